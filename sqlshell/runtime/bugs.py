"""How an unexpected exception is reported: one line to report, and the traceback on request."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

from sqlshell.errors import Bug, ShellError
from sqlshell.version import __version__

TRACEBACK = "SQLSHELL_TRACEBACK"
LONGEST = 200
_PACKAGE = Path(__file__).parents[1]


def bug_of(error: Exception, doing: str = "") -> Bug:
    """The Bug for an unexpected exception: where in sqlshell it was raised, and how to report it.

    `doing` names the operation, such as a command. The exception is its `__cause__`.
    """
    # Python wraps a StopIteration that leaves a coroutine.
    cause = error.__cause__ if isinstance(error.__cause__, StopIteration) else error
    detail = " ".join(str(cause).split())[:LONGEST]
    message = f"{type(cause).__name__}: {detail}" if detail else type(cause).__name__
    at = f"{doing}: " if doing else ""
    bug = Bug(
        f"bug in sqlshell {__version__}: {at}{message} ({_place(cause)}); report this line"
        f" (for a traceback, set {TRACEBACK}=1; for the versions, run sqlshell doctor)"
    )
    bug.__cause__ = error
    return bug


def trace(error: ShellError, stream: TextIO) -> None:
    """Write the traceback of a bug to `stream` if SQLSHELL_TRACEBACK is set."""
    if isinstance(error, Bug) and error.__cause__ is not None and os.environ.get(TRACEBACK):
        import traceback

        traceback.print_exception(error.__cause__, file=stream)


def _place(error: BaseException) -> str:
    """The innermost file and line of this package in the traceback."""
    place, trace = "elsewhere", error.__traceback__
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if path.is_relative_to(_PACKAGE):
            place = f"{path.relative_to(_PACKAGE)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
