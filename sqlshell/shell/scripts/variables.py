"""The variables of a shell: those of \\set, \\gset and --set, and those that each statement sets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sqlshell.config.peers import variable_remedy
from sqlshell.config.settings import ON_OR_OFF, VARIABLES, on_or_off
from sqlshell.errors import ShellError, UsageError
from sqlshell.interface.sqlstate import DONE
from sqlshell.origin import Text, Trusted, service_text, trusted_text
from sqlshell.shell.session import Session
from sqlshell.sql.analysis.lexed import Lexed
from sqlshell.text import any_of

NO_ERROR: Final = {"LAST_ERROR_MESSAGE": "", "LAST_ERROR_SQLSTATE": DONE}
"""The variables of the last error, and their values before the first one, as in psql; then they are not listed."""
RESERVED = frozenset({"LAST_STATEMENT_ID", "ROW_COUNT", "SQLSTATE", "ERROR", "ELAPSED", *NO_ERROR})
"""Variables that each statement sets."""
CONTROL = frozenset({*VARIABLES, *RESERVED, "SHELL_ERROR", "SHELL_EXIT_CODE"})
"""Names that a service's column cannot set, because they belong to the shell and control scripts."""
_STATE = re.compile(r"[0-9A-Z]{5}")
_OF_SERVER: Final = {
    "USER": "user",
    "HOST": "host",
    "PORT": "port",
    "SERVER_VERSION_NAME": "version",
    "SERVER_VERSION_NUM": "versionnumber",
}
"""The variables that have a value of the engine's server, and its columns in LIST ENGINE CONNECTIONS, in lower case."""
_OF_CONNECTION: Final = frozenset({"DBNAME", "ENCODING", *_OF_SERVER})
_REFERENCE: Final = re.compile(rf""":[{{?'"]*+(?:{"|".join(sorted(_OF_CONNECTION))})\b""")


class Variables(Mapping[str, Text]):
    """Names and values with their origin; those of VARIABLES are options of the shell, as in psql.

    psql's variables about the connection (`:DBNAME`, `:USER` and others) have its values unless they are set here. They
    are asked for when a text first refers to one, because asking a server takes a connection to it.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._values: dict[str, Text] = {}
        self._warned: set[str] = set()

    def __getitem__(self, name: str) -> Text:
        value = self._of_connection(name)
        if value is None and name in NO_ERROR and name not in self._values:
            return trusted_text(Trusted(NO_ERROR[name]))
        return self._values[name] if value is None else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values.keys() | {name for name in _OF_CONNECTION if self._of_connection(name) is not None})

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def lacks_connection(self, text: str) -> bool:
        """Whether a text, or a value that it may refer to, refers to the connection, of which nothing is known yet."""
        if self._session.state.server is not None or ":" not in text:
            return False
        own = (value.text for value in self._values.values() if not value.foreign)
        return any(_REFERENCE.search(each) for each in (text, *own))

    def _of_connection(self, name: str) -> Text | None:
        """The value that the connection has for a variable, unless the user has set it."""
        state = self._session.state
        if name not in _OF_CONNECTION or name in state.own_variables or state.server is None:
            return None
        given = {"DBNAME": state.context.database, "ENCODING": "UTF8"}
        value = given[name] if name in given else state.server.get(_OF_SERVER[name], "")
        return service_text(value, f":{name}") if value else None

    def _leave_connection(self, name: str) -> None:
        """From now on the user sets this variable, until the shell connects elsewhere."""
        if name in _OF_CONNECTION:
            self._session.state.own_variables.add(name)

    def set(self, name: Trusted, value: Text) -> None:
        """Set a variable. Raises UsageError for an invalid name or value."""
        check_name(name)
        if name in VARIABLES:
            self._choose(name, value.trusted(f"the value of {name}"))
        _check_autocommit(name, value.text)
        if name == "ON_ERROR_ROLLBACK" and (value.text or "on").lower() != "off":
            raise UsageError(
                "ON_ERROR_ROLLBACK is not supported: a failed statement aborts its transaction",
                "commit in smaller transactions, or use SAVEPOINT if the engine has it, as PostgreSQL does",
            )
        self._leave_connection(name)
        self._values[name] = value
        self._session.secret_filter.add(value.text, name)

    def warning(self, name: str) -> str:
        """The warning that a variable of psql which has been set has no effect; "" after the first time, and for all
        other variables.
        """
        instead = (
            variable_remedy(name, self._values[name].text) if name in self._values and name not in self._warned else ""
        )
        if not instead or (name == "SINGLELINE" and self._session.interactive):
            return ""
        self._warned.add(name)
        return f"psql's {name} has no effect: {instead}"

    def receive(self, rows: Mapping[str, str | None]) -> None:
        """Set variables whose names and values came from a service; None unsets one.

        Raises UsageError for an invalid name, or one that belongs to the shell; then none is set.
        """
        check_received(rows)
        for name, value in rows.items():
            self._leave_connection(name)
            if value is None:
                self._values.pop(name, None)
            else:
                self._values[name] = service_text(value, f":{name}")
                self._session.secret_filter.add(value, name)

    def unset(self, name: Trusted) -> None:
        """Unset a variable; an option of the shell is reset. Raises UsageError for AUTOCOMMIT, which would be off."""
        if name in VARIABLES:
            words = VARIABLES[name][1]
            self._choose(name, Trusted("off" if "off" in words else next(iter(words))))
        _check_autocommit(name, "off")
        self._leave_connection(name)
        self._values.pop(name, None)

    def set_from_argument(self, text: Trusted) -> None:
        """Set a variable from `NAME=VALUE` of the command line; `NAME` alone is empty. Raises UsageError."""
        name, _, value = text.partition("=")
        if name.isdecimal():
            raise UsageError(f"--set {text}: {name!r} is not a valid variable name", "example: --set limit=5")
        self.set(Trusted(name), trusted_text(Trusted(value)))

    def substitute(self, sql: Lexed | Text) -> Text:
        """The statement with its variables' values."""
        if ":" not in sql.text:
            return sql.whole if isinstance(sql, Lexed) else sql
        from sqlshell.sql.variables import substituted

        return substituted(sql, self)

    def record_outcome(self, error: ShellError | None) -> None:
        """Set the variables of the last statement's outcome. Numbers and codes are validated; everything else counts as
        coming from the service.
        """
        session = self._session
        failed = error is not None
        statement_id = (error.where.statement_id if error is not None else "") or session.state.last_statement_id
        code = (error.where.sql_state or "XX000") if error is not None else DONE
        state = trusted_text(Trusted(code)) if _STATE.fullmatch(code) else service_text(code, ":SQLSTATE")
        self._values |= {
            "LAST_STATEMENT_ID": service_text(statement_id, ":LAST_STATEMENT_ID"),
            "ROW_COUNT": trusted_text(Trusted(str(0 if failed else session.rows or 0))),
            "SQLSTATE": state,
            "ERROR": trusted_text(Trusted("true" if failed else "false")),
            "ELAPSED": trusted_text(Trusted(f"{session.elapsed or 0.0:.3f}")),
        }
        if error is not None:
            message = next(iter(error.message.splitlines()), "")
            self._values["LAST_ERROR_MESSAGE"] = service_text(message, ":LAST_ERROR_MESSAGE")
            self._values["LAST_ERROR_SQLSTATE"] = state

    def _choose(self, name: str, value: Trusted) -> None:
        """Set the option that is a variable of psql."""
        option, words = VARIABLES[name]
        if "on" in words:
            word = "on" if switch(value or "on", name) else "off"
        else:
            word = value.lower()
        if word not in words:
            raise UsageError(f"{name}: invalid value {value!r}", f"expected {any_of(list(words))}")
        self._session.options.choose({option: words[word]})


def _check_autocommit(name: str, value: str) -> None:
    if name == "AUTOCOMMIT" and not switch(value or "on", name):
        # In silence, a ROLLBACK would come too late.
        error = UsageError(
            "AUTOCOMMIT cannot be off: a statement outside of a transaction is committed at once",
            "write BEGIN, or use --single-transaction for all scripts",
        )
        error.misplaces_rest = True
        raise error


def check_received(names: Iterable[str]) -> None:
    """Raises UsageError if a name is invalid, or belongs to the shell."""
    for name in names:
        check_name(name)
        if name in CONTROL:
            raise UsageError(
                f'column "{name}" has the name of a variable of the shell; nothing was set',
                "add a prefix with \\gset PREFIX",
            )


def check_name(name: str) -> None:
    """Raises UsageError unless it is the name of a variable, or the beginning of one."""
    if not name or not all(char.isalnum() or char == "_" for char in name):
        raise UsageError(f"{name!r} is not a valid variable name", "a name consists of letters, digits and underscores")


def switch(text: str, name: str) -> bool:
    """Parse on or off in psql's spellings and abbreviations. Raises UsageError."""
    value = on_or_off(text)
    if value is None:
        raise UsageError(f"{name}: invalid value {text!r}", f"expected {ON_OR_OFF}")
    return value
