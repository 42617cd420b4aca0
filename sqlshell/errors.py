"""Every error that the program reports.

ShellError                 a message, a hint, an exit code
├── UsageError             2   the command line, a setting or a backslash command is wrong
│   ├── AmbiguousScript    2   it is unclear where the script continues: it ends, whatever on_error says
│   └── CannotResume       2   --resume cannot tell what is left to do: no script runs any further
├── StatementError         1   the service ran the statement and it failed (sqlState)
├── OutputError            1   the rows could not be written (disk full, no permission)
├── ServiceError           3   the service failed
│   ├── ConnectionFailed   3   connection, TLS or name resolution failed: the service did not receive the request
│   │   ├── Unreachable    3   the same, and a retry will not help
│   │   ├── Busy           3   a status such as 503, in response to a request that may be sent again
│   │   └── ConnectionBroken 3 the connection broke during the request: the service may have received it
│   │       └── NotHttp    3   the response is not HTTP
│   ├── NotAuthenticated   3   401 or 403
│   ├── PasswordMissing    3   the engine's server asks for a password, and none is configured
│   ├── UnknownStatement   3   404: the service no longer has the statement, or never had it
│   └── ProtocolError      3   a response that violates the interface
├── Bug                    3   an unexpected exception in sqlshell
├── WaitTimeout            4   a wait timed out
├── ReaderLeft           141   the reader closed stdout: no message is printed, as with SIGPIPE
└── Interrupted          130   Ctrl-C
"""

from __future__ import annotations

import enum
import errno
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

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
    """The statement and the position that an error refers to.

    `sql_state` is the five-character code of the service, `statement_id` the uuid that the service assigned,
    `offset` a character offset in the statement's text; `file`, `line` and `column` (from 1) locate it in a script.
    """

    sql_state: str = ""
    statement_id: str = ""
    offset: int | None = None
    file: str = ""
    line: int | None = None
    column: int = 0


class ShellError(Exception):
    """An error that is printed in one or two lines: the cause, and the remedy."""

    exit: Exit = Exit.STATEMENT

    in_command: bool | None = None
    """Whether a backslash command failed at its own work, so that the user's last statement is not to blame; None as
    long as that is not known."""

    misplaces_rest: bool = False
    """Whether the rest of a script would run somewhere that it was not written for."""

    def __init__(self, message: str, hint: str = "", where: Where | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.where = where or Where()

    def __str__(self) -> str:
        # The message may have been redacted since.
        return self.message


class UsageError(ShellError):
    exit = Exit.USAGE


class AmbiguousScript(UsageError):
    pass


class CannotResume(UsageError):
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


class Busy(ConnectionFailed):
    """`headers` are those of the response with `status`; Retry-After may be one of them."""

    def __init__(self, message: str, status: int = 503, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


class ConnectionBroken(ConnectionFailed):
    pass


class NotHttp(ConnectionBroken):
    pass


class NotAuthenticated(ServiceError):
    pass


class PasswordMissing(ServiceError):
    pass


class UnknownStatement(ServiceError):
    pass


class ProtocolError(ServiceError):
    pass


class TooLarge(ServiceError):
    """A response exceeds a limit of the client."""


class Bug(ShellError):
    exit = Exit.SERVICE


class WaitTimeout(ShellError):
    exit = Exit.TIMEOUT


class ReaderLeft(ShellError):
    exit = Exit.UNREAD


class Interrupted(ShellError):
    exit = Exit.INTERRUPTED


class NotAnswered(Interrupted):
    """The user typed Ctrl-C or Ctrl-D instead of answering a question."""


def describe_surrogate(error: UnicodeEncodeError) -> str:
    """What a text contains that is not Unicode: half of a character of UTF-16, or a byte that was not UTF-8."""
    return f"a lone surrogate ({ascii(error.object[error.start])[1:-1]}), which is not a valid character"


MISSING: Final = "no such file or directory"
"""The reason, in the system's words, why a file that is not there cannot be read."""


def reason(error: Exception) -> str:
    """The operating system's description of an error, without its number and a capital at its beginning."""
    if isinstance(error, UnicodeDecodeError):
        return f"invalid {error.encoding.upper()}"
    if isinstance(error, UnicodeEncodeError):
        return f"the text contains {describe_surrogate(error)}"
    if isinstance(error, OSError) and error.errno == errno.EBADF:
        return "it is closed"
    text = (error.strerror if isinstance(error, OSError) else "") or str(error)
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
