"""Every error that a person may meet.

ShellError                 a message, a hint, an exit code
├── UsageError             2   the command line, a setting or a backslash command is wrong
│   └── Unreadable         2   nobody knows where the script goes on: it ends, whatever is set for errors
├── StatementError         1   the service ran the statement and it failed (sqlState)
├── OutputError            1   the rows could not be written (disk full, no permission)
├── ServiceError           3   the service did not do its part
│   ├── ConnectionFailed   3   nobody answers there, TLS or name resolution failed: the request was not received
│   │   ├── Unreachable    3   the same, and trying again soon is of no use
│   │   └── ConnectionBroken 3 it broke after the request had begun: the service may have it
│   │       └── NotHttp    3   what came back is not HTTP
│   ├── NotAuthenticated   3   401 or 403
│   ├── UnknownStatement   3   404: the service no longer has the statement, or never had it
│   └── ProtocolError      3   an answer that the interface does not allow
├── Bug                    3   sqlshell itself did not expect what happened
├── WaitTimeout            4   a wait ran out
├── Unread               141   nobody reads stdout any more: nothing is told, as after SIGPIPE
└── Interrupted          130   Ctrl-C
"""

from __future__ import annotations

import enum

from msgspec import Struct


class Exit(enum.IntEnum):
    """The exit codes of the program."""

    DONE = 0
    STATEMENT = 1
    USAGE = 2
    SERVICE = 3
    TIMEOUT = 4
    INTERRUPTED = 130
    UNREAD = 141


class Where(Struct, frozen=True):
    """What an error is about.

    `sql_state` is the five-character code of the service, `statement_id` the uuid that the service gave the statement,
    `offset` a character offset in the statement's text; `file` and `line` (from 1) place the statement in a script.
    """

    sql_state: str = ""
    statement_id: str = ""
    offset: int | None = None
    file: str = ""
    line: int | None = None


class ShellError(Exception):
    """Something that a person is told in one or two lines: what happened, and what to do about it."""

    exit: Exit = Exit.STATEMENT

    def __init__(self, message: str, hint: str = "", where: Where | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.where = where or Where()


class UsageError(ShellError):
    exit = Exit.USAGE


class Unreadable(UsageError):
    pass


class StatementError(ShellError):
    exit = Exit.STATEMENT


class OutputError(ShellError):
    exit = Exit.STATEMENT


class ServiceError(ShellError):
    exit = Exit.SERVICE


class ConnectionFailed(ServiceError):
    pass


class Unreachable(ConnectionFailed):
    pass


class ConnectionBroken(ConnectionFailed):
    pass


class NotHttp(ConnectionBroken):
    pass


class NotAuthenticated(ServiceError):
    pass


class UnknownStatement(ServiceError):
    pass


class ProtocolError(ServiceError):
    pass


class Bug(ShellError):
    exit = Exit.SERVICE


class WaitTimeout(ShellError):
    exit = Exit.TIMEOUT


class Unread(ShellError):
    exit = Exit.UNREAD


class Interrupted(ShellError):
    exit = Exit.INTERRUPTED


def reason(error: Exception) -> str:
    """What went wrong, in the words of the system without its number."""
    return (error.strerror if isinstance(error, OSError) else "") or str(error)
