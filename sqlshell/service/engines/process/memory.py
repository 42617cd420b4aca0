"""Detects that an engine's process is running out of memory, and turns such errors into failures."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Final

import duckdb

from sqlshell.interface import sqlstate
from sqlshell.service.engines.duckdb import messages
from sqlshell.service.failure import Failure
from sqlshell.service.settings import limit_note

LEAST: Final = 512 << 20
"""Minimum memory in bytes that an idle process should have left of its limit, which is 1.5 GiB more than DuckDB's."""

USED_UP: Final = "the engine's process ran out of memory (limit set by sqlshell serve --memory)"


def used_up() -> bool:
    """Whether the process has nearly reached its limit of data memory (RLIMIT_DATA)."""
    most = resource.getrlimit(resource.RLIMIT_DATA)[0]
    if most == resource.RLIM_INFINITY:
        return False
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return False
    except MemoryError:
        return True
    taken = next((int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmData:")), 0)
    return taken > most - LEAST


def short_of_memory(error: BaseException) -> Failure | None:
    """The failure for an error that means too little memory; None for another error."""
    cause: BaseException | None = error
    for _ in range(8):
        if messages.spill_is_full(str(cause)):
            return None
        if isinstance(cause, MemoryError | duckdb.OutOfMemoryException) or _is_out_of_memory(cause):
            message = str(cause).partition("\n")[0].strip()
            if isinstance(cause, MemoryError) or messages.lacks_threads(message) or not message:
                message = "out of memory"
            return Failure(
                sqlstate.LIMIT, f"{message}: the engine's memory is limited (limit set by sqlshell serve --memory)"
            )
        cause = cause.__cause__ if cause is not None else None
    return None


def short_of_spill(error: BaseException | None) -> Failure | None:
    """The failure for an error that means too little space for temporary files; None for another error."""
    for _ in range(8):
        if isinstance(error, duckdb.OutOfMemoryException) and messages.spill_is_full(str(error)):
            return Failure(
                sqlstate.LIMIT,
                f"the temporary files of the organization's statements need too much space {limit_note('spill_size')}",
            )
        error = error.__cause__ if error is not None else None
    return None


def _is_out_of_memory(error: BaseException | None) -> bool:
    if isinstance(error, duckdb.InternalException):
        return messages.lacks_memory(str(error))
    return isinstance(error, RuntimeError) and messages.lacks_threads_or_memory(str(error))
