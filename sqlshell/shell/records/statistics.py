"""The statistics of `--stats`: one JSON object per line for each statement, written when the statement has ended.

Each has `script` and `line`, `digest` (of the statement without its secrets: no SQL is written), `statementID`,
`sqlState`, `rows`, `bytes` (received), and `queued`, `running`, `fetching` and `total` in milliseconds. `queued` is
null where the service does not report it; `running` is then the time from sending the statement to its result.
"""

from __future__ import annotations

import os
from io import FileIO

import msgspec

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import UsageError, reason
from sqlshell.interface.sqlstate import DONE
from sqlshell.origin import Own
from sqlshell.output.sinks.sink import write_error
from sqlshell.runtime.files import check_output, expanded, write_all
from sqlshell.shell.records.checkpoint import digest
from sqlshell.shell.running.statement import Running
from sqlshell.shell.scripts.position import source_name


class StatementTiming(msgspec.Struct, frozen=True, rename={"statement_id": "statementID", "sql_state": "sqlState"}):
    """One statement. `sql_state` is None where the outcome is not known from the service."""

    script: str
    line: int
    digest: str
    statement_id: str | None
    sql_state: str | None
    rows: int | None
    bytes: int
    queued: float | None
    running: float | None
    fetching: float | None
    total: float


class Statistics:
    """Appends a line for each statement. The first line that cannot be written is the last: the statements continue."""

    def __init__(self, path: Own, diagnostics: Diagnostics) -> None:
        """Raises OutputError if the file cannot be opened, UsageError for `-`."""
        if path == "-":
            raise UsageError("--stats cannot write to stdout, where the rows are", "name a file: --stats stats.jsonl")
        self._path = path
        self._diagnostics = diagnostics
        self.incomplete = False
        """Whether a line could not be written."""
        try:
            place = expanded(path)
            check_output(place, path)
            self._file = FileIO(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab")
        except (OSError, RuntimeError, ValueError) as error:
            raise write_error(path, error) from None

    def write(self, statement: Running, redacted: str) -> None:
        """Write the line of a statement that has ended; `redacted` is its text without secrets."""
        if self.incomplete:
            return
        script, line = statement.place
        error, ended, answered, timing = statement.error, statement.ended, statement.answered, statement.timing
        ran = timing.running if timing is not None else statement.elapsed
        state = error.where.sql_state if error is not None else statement.sql_state or DONE
        timed = StatementTiming(
            source_name(script),
            line,
            digest(redacted),
            statement.statement_id or (error.where.statement_id if error is not None else "") or None,
            state or None,
            None if error is not None else statement.rows,
            statement.size,
            _milliseconds(timing.queued if timing is not None else None),
            _milliseconds(ran if ran is not None else (answered or ended) - statement.began),
            _milliseconds(ended - answered if answered is not None else None),
            _milliseconds(ended - statement.began) or 0.0,
        )
        data = msgspec.json.encode(timed) + b"\n"
        try:
            write_all(self._file.write, data)
        except OSError as failure:
            self._stop(reason(failure))

    def close(self) -> None:
        self._file.close()

    def _stop(self, why: str) -> None:
        self.incomplete = True
        self._diagnostics.warn(f"cannot write to {self._path}: {why}; no more statistics are written")


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1e3, 3)
