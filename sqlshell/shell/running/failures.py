"""How a failure is told: where in which script, with the place in the statement and the nearest names."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import Exit, ShellError, StatementError
from sqlshell.runtime.bugs import trace


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
    redact: Callable[[str], str],
) -> None:
    """Tell it. `script` and `line` are where it happened, `sent` is the text that the service was given.

    Of a text with secrets in it no part is shown.
    """
    trace(error)
    if line and script:
        error.where = replace(error.where, file=script, line=line)
    if not sent or not isinstance(error, StatementError):
        diagnostics.error(error)
        return
    from sqlshell.shell.running.excerpt import excerpt, suggested

    if (shown := redact(sent)) != sent:
        from sqlshell.sql.analysis.secrets import taken_out, without_values

        error.message = without_values(error.message, taken_out(sent, shown))
    near = suggested(error, names())
    error.hint = f"{near}; {error.hint}".rstrip("; ") if near else error.hint
    diagnostics.error(error, excerpt(sent, error) if shown == sent else [])
