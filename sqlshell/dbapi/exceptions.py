"""The exceptions of PEP 249. The class of an error, or of its sqlState, determines the exception.

Exception
├── Warning
└── Error                  sqlstate, statement_id, offset, hint
    ├── InterfaceError     a closed connection or cursor, or a response that violates the interface
    └── DatabaseError
        ├── DataError          22
        ├── OperationalError   08 28 3E 40 53 54 55 57 58, and no connection, no valid token, a time limit
        ├── IntegrityError     23 2B
        ├── InternalError      25 XX, and a bug of sqlshell
        ├── ProgrammingError   every other class: 21 3D 42 …
        └── NotSupportedError  0A
"""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Iterator

from sqlshell.errors import Bug, ProtocolError, ServiceError, ShellError, UsageError, WaitTimeout
from sqlshell.output.text.cells import printable
from sqlshell.runtime.bugs import bug_of

KEPT = "\n\t"
"""Control characters that stay in a message."""


class Warning(builtins.UserWarning):
    """An unsafe setting, such as a token file that other users can read; issued with warnings.warn()."""


class Error(Exception):
    """An error of the service or of this module.

    `sqlstate` is the service's code of five or six characters and `statement_id` the ID of the statement; either may
    be "". `offset` is the position in the text that was sent, in characters. `hint` says what to do, or is "".

    A traceback prints the message on a terminal: control characters in it are visible, as in the shell.
    """

    def __init__(
        self,
        message: str = "",
        *,
        sqlstate: str = "",
        statement_id: str = "",
        offset: int | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(printable(message, KEPT))
        self.sqlstate = sqlstate
        self.statement_id = statement_id
        self.offset = offset
        self.hint = hint
        if hint:
            self.add_note(f"help: {printable(hint, KEPT)}")


class InterfaceError(Error):
    pass


class DatabaseError(Error):
    pass


class DataError(DatabaseError):
    pass


class OperationalError(DatabaseError):
    pass


class IntegrityError(DatabaseError):
    pass


class InternalError(DatabaseError):
    pass


class ProgrammingError(DatabaseError):
    pass


class NotSupportedError(DatabaseError):
    pass


_OF_CLASS: dict[str, type[DatabaseError]] = {
    "0A": NotSupportedError,
    "22": DataError,
    "23": IntegrityError,
    "25": InternalError,
    "2B": IntegrityError,
    "XX": InternalError,
    **dict.fromkeys(("08", "28", "3E", "40", "53", "54", "55", "57", "58"), OperationalError),
}

_OF_ERROR: tuple[tuple[type[ShellError], type[Error]], ...] = (
    (UsageError, ProgrammingError),
    (ProtocolError, InterfaceError),
    (ServiceError, OperationalError),
    (WaitTimeout, OperationalError),
    (Bug, InternalError),
)


def error_of(error: ShellError) -> Error:
    """The exception that callers see for an error of the client."""
    kind = next((kind for given, kind in _OF_ERROR if isinstance(error, given)), None)
    if kind is None:
        kind = _OF_CLASS.get(error.where.sql_state[:2], ProgrammingError)
    where = error.where
    hint = error.hint.replace("use --token-file FILE, with the URL as TARGET", "pass token with the URL as target")
    return kind(
        error.message, sqlstate=where.sql_state, statement_id=where.statement_id, offset=where.offset, hint=hint
    )


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Raise the errors of the client as those of PEP 249; an unexpected exception is reported as a bug."""
    try:
        yield
    except ShellError as error:
        raise error_of(error) from error.__cause__
    except (Error, Warning):
        raise
    except Exception as error:
        raise error_of(bug_of(error)) from error
