"""Records of a run, one JSON object per line for each statement, written when it has ended.

- `--stats`: `script` and `line`, `digest` (of the statement without its secrets: no SQL is written), `statementID`,
  `sqlState`, `rows`, `bytes` (received), and `queued`, `running`, `fetching` and `total` in milliseconds. `queued` is
  null where the service does not report it; `running` is then the time from sending the statement to its result.
- `\\transcript`, which `sqlshell replay` runs again and compares: `statement`, `context` (the parts that were set when
  it was sent), `id`, `sqlState`, `results` (the rows, the columns and the SHA-256 of each), `began` (ISO 8601, UTC) and
  `seconds`. Secrets are removed from a statement, and what is not valid Unicode is written as an escape;
  `redacted` is then true.
"""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime, timedelta
from io import FileIO
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import UsageError, reason
from sqlshell.interface.sqlstate import DONE
from sqlshell.origin import Trusted
from sqlshell.output.sinks.sink import write_error
from sqlshell.output.writer import Summary
from sqlshell.result import Batch, BatchWrapper, Result
from sqlshell.runtime.files import check_output, expanded, write_all
from sqlshell.shell.records.checkpoint import digest
from sqlshell.shell.running.statement import Running
from sqlshell.shell.scripts.position import source_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlshell.output.copy import ResultHandler


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


class RecordedResult(msgspec.Struct, frozen=True):
    """One result: `rows` is None if not all were read."""

    columns: list[str]
    rows: int | None
    digest: str


class TranscriptRecord(msgspec.Struct, frozen=True, rename={"sql_state": "sqlState"}):
    """One statement."""

    statement: str
    context: dict[str, str] = {}
    id: str = ""
    sql_state: str = DONE
    results: list[RecordedResult] = []
    began: str = ""
    seconds: float = 0.0
    message: str = ""
    redacted: bool = False


class LineFile:
    """A file to which records are appended."""

    def __init__(self, path: Trusted) -> None:
        """Open it. Raises OutputError if that is not possible."""
        self.path = path
        try:
            place = expanded(path)
            check_output(place, path)
            # Statements and their errors are as private as a history.
            self._file = FileIO(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab")
        except (OSError, RuntimeError, ValueError) as error:
            raise write_error(path, error) from None

    def append(self, record: msgspec.Struct) -> None:
        """Append a line. Raises OSError."""
        write_all(self._file.write, msgspec.json.encode(record) + b"\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Statistics(LineFile):
    """Appends a line for each statement. The first line that cannot be written is the last: the statements continue."""

    def __init__(self, path: Trusted, diagnostics: Diagnostics) -> None:
        """Open the file. Raises OutputError if that is not possible, UsageError for `-`."""
        if path == "-":
            raise UsageError("--stats cannot write to stdout, where the rows are", "name a file: --stats stats.jsonl")
        super().__init__(path)
        self._diagnostics = diagnostics
        self.incomplete = False
        """Whether a line could not be written."""

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
        try:
            self.append(timed)
        except OSError as failure:
            self.incomplete = True
            self._diagnostics.warn(f"cannot write to {self.path}: {reason(failure)}; no more statistics are written")


class Transcript(LineFile):
    """Appends the records of a transcript. Raises OutputError if it cannot be opened."""

    def __init__(self, path: Trusted) -> None:
        """Open the file. Raises OutputError if that is not possible."""
        super().__init__(path)
        self._results: list[RecordedResult] = []

    def recording(self, show: ResultHandler) -> ResultHandler:
        """The same handler; its results are hashed on the way."""

        async def shown(result: Result) -> Summary:
            digested = DigestedBatches(result)
            summary = await show(replace(result, batches=digested))
            self._results.append(digested.recorded(summary))
            return summary

        return shown

    def write(self, statement: Running, redacted: str, seconds: float) -> None:
        """Write the record of a statement that ended after `seconds`; `redacted` is its text without secrets.

        Raises OutputError.
        """
        # A statement that is not valid Unicode was refused, which is what is recorded.
        redacted = redacted.encode("utf-8", "backslashreplace").decode()
        error, changed = statement.error, redacted != str(statement.statement)
        results, self._results = self._results, []
        if changed:
            # A column may be named after the text of its expression.
            results = [RecordedResult([], result.rows, "") for result in results]
        record = TranscriptRecord(
            redacted,
            {name: value for name, value in statement.context.parts() if value},
            statement.statement_id if error is None else error.where.statement_id,
            DONE if error is None else error.where.sql_state or "XX000",
            results,
            (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat(timespec="milliseconds"),
            round(seconds, 6),
            # A message may quote the statement in a form that cannot be redacted.
            "" if error is None or changed else error.message,
            changed,
        )
        try:
            self.append(record)
        except OSError as failure:
            raise write_error(self.path, failure, "stop recording with \\transcript") from None


class DigestedBatches(BatchWrapper):
    """The batches of a result, hashed as they are read."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.batches)
        self._result = result
        self._hash = hashlib.sha256(msgspec.json.encode([[column.name, column.type] for column in result.columns]))

    def each(self, batch: Batch) -> Batch:
        for row in batch.rows:
            self._hash.update(msgspec.json.encode(row) + b"\n")
        return batch

    def recorded(self, summary: Summary) -> RecordedResult:
        """The result as it is recorded."""
        whole = summary.complete and self._result.endless is None
        names = [column.name for column in self._result.columns]
        return RecordedResult(names, summary.rows if whole else None, self._hash.hexdigest() if whole else "")


def read(path: Trusted) -> Iterator[tuple[int, TranscriptRecord]]:
    """The records of a transcript with their line numbers. Raises UsageError for a file that is not a transcript."""
    try:
        with expanded(path).open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    yield number, msgspec.json.decode(line, type=TranscriptRecord)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    raise UsageError(f"{path}:{number}: not a transcript record: {error}") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {reason(error)}") from None


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1e3, 3)
