"""psql's variables about the connection: `:DBNAME`, `:USER`, `:SERVER_VERSION_NUM` and others.

They are asked for when a text first refers to one, because asking a server takes a connection to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from sqlshell.origin import Text, service_text
from sqlshell.shell.session import Session

_OF_SERVER: Final = {
    "USER": "user",
    "HOST": "host",
    "PORT": "port",
    "SERVER_VERSION_NAME": "version",
    "SERVER_VERSION_NUM": "versionnumber",
}
"""The variables that have a value of the engine's server, and its columns in LIST ENGINE CONNECTIONS, in lower case."""
NAMES: Final = frozenset({"DBNAME", "ENCODING", *_OF_SERVER})
_REFERENCE: Final = re.compile(rf""":[{{?'"]*+(?:{"|".join(sorted(NAMES))})\b""")


def refers_to_connection(text: str) -> bool:
    """Whether a text may refer to one of the variables."""
    return ":" in text and _REFERENCE.search(text) is not None


class ConnectionVariables(Mapping[str, Text]):
    """Those of the variables that the current connection has a value for, and that the user has not set."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __getitem__(self, name: str) -> Text:
        value = self._value(name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name in NAMES if self._value(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def leave(self, name: str) -> None:
        """From now on the user sets this variable, until the shell connects elsewhere."""
        if name in NAMES:
            self._session.state.own_variables.add(name)

    def _value(self, name: str) -> Text | None:
        state = self._session.state
        if name not in NAMES or name in state.own_variables or state.server is None:
            return None
        match name:
            case "DBNAME":
                value = state.context.database
            case "ENCODING":
                value = "UTF8"
            case _:
                value = state.server.get(_OF_SERVER[name], "")
        return service_text(value, f":{name}") if value else None
