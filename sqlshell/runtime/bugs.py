"""What becomes of an exception that nobody expected: one line that can be reported, and the traceback on request."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sqlshell import __version__
from sqlshell.errors import Bug, ShellError

TRACEBACK = "SQLSHELL_TRACEBACK"
LONGEST = 200
_PACKAGE = Path(__file__).parents[1]


def bug_of(error: Exception, doing: str = "") -> Bug:
    """The error that a person is told: where in sqlshell it was raised, and how to report it.

    `doing` is what was being done, such as a command's name. Its cause is the exception.
    """
    # A StopIteration that leaves a coroutine is wrapped.
    cause = error.__cause__ if isinstance(error.__cause__, StopIteration) else error
    said = " ".join(str(cause).split())[:LONGEST]
    told = f"{type(cause).__name__}: {said}" if said else type(cause).__name__
    at = f"{doing}: " if doing else ""
    bug = Bug(
        f"bug in sqlshell {__version__}: {at}{told} ({_place(cause)}); please report this line"
        f" ({TRACEBACK}=1 adds the traceback, sqlshell doctor the versions)"
    )
    bug.__cause__ = error
    return bug


def trace(error: ShellError) -> None:
    """Write the traceback behind a bug to stderr, where SQLSHELL_TRACEBACK asks for it."""
    if isinstance(error, Bug) and error.__cause__ is not None and os.environ.get(TRACEBACK):
        import traceback

        traceback.print_exception(error.__cause__, file=sys.stderr)


def _place(error: BaseException) -> str:
    """The file and line of this package that were reached last."""
    found, trace = "elsewhere", error.__traceback__
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if path.is_relative_to(_PACKAGE):
            found = f"{path.relative_to(_PACKAGE)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found
