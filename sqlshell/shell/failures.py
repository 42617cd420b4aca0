"""How a failure is told: where in which script, with the place in the statement and the nearest names."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from sqlshell.bugs import trace
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import Exit, ShellError, StatementError


class Told(ShellError):
    """A script inside another failed, and said so itself."""

    def __init__(self, code: Exit) -> None:
        super().__init__("")
        self.exit = code


def tell(
    error: ShellError,
    script: str,
    line: int,
    sent: str,
    diagnostics: Diagnostics,
    names: Callable[[], Iterable[str]],
) -> None:
    """Tell it. `script` and `line` are where it happened, `sent` is the text that the service was given."""
    trace(error)
    if line and script:
        error.where = replace(error.where, file=script, line=line)
    if not sent or not isinstance(error, StatementError):
        diagnostics.error(error)
        return
    from sqlshell.shell.excerpt import excerpt, nearest

    near = nearest(error, names())
    error.hint = f"{near}; {error.hint}".rstrip("; ") if near else error.hint
    diagnostics.error(error, excerpt(sent, error))
