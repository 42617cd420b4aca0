"""A transcript of statements, one JSON object per line, which `sqlshell replay` runs again and compares.

Each record has `statement`, `context` (the parts that were set when it was sent), `id`, `sqlState`, `results` (the
rows, the columns and the SHA-256 of each result), `began` (ISO 8601, UTC) and `seconds`. Secrets are removed from a
statement, and what is not valid Unicode is written as an escape; `redacted` is then true.
"""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime, timedelta
from io import FileIO
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from sqlshell.context import SessionContext
from sqlshell.errors import ShellError, UsageError
from sqlshell.interface.sqlstate import DONE
from sqlshell.origin import Own
from sqlshell.output.sinks.sink import write_error
from sqlshell.output.writer import Summary
from sqlshell.result import Batch, BatchWrapper, Result
from sqlshell.runtime.files import check_output, expanded, write_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlshell.output.copy import Consumer
    from sqlshell.shell.session import Session
    from sqlshell.sql.analysis.lexed import Redact, Sql


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


class Transcript:
    """Appends records to a file. Raises OutputError if it cannot be opened."""

    def __init__(self, path: Own, redact: Redact) -> None:
        self.path = path
        self._redact = redact
        self._results: list[RecordedResult] = []
        try:
            place = expanded(path)
            check_output(place, path)
            # Statements and their errors are as private as a history.
            self._file = FileIO(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
        except (OSError, RuntimeError, ValueError) as error:
            raise write_error(path, error) from None

    def recording(self, show: Consumer) -> Consumer:
        """The same consumer; its results are hashed on the way."""

        async def shown(result: Result) -> Summary:
            digested = DigestedBatches(result)
            summary = await show(replace(result, batches=digested))
            self._results.append(digested.recorded(summary))
            return summary

        return shown

    def write(self, sql: Sql, context: SessionContext, session: Session, error: ShellError | None) -> None:
        """Write the record of a statement that was sent in that context. Raises OutputError."""
        # A statement that is not valid Unicode was refused, which is what is recorded.
        redacted = self._redact(sql).encode("utf-8", "backslashreplace").decode()
        results, self._results = self._results, []
        if redacted != str(sql):
            # A column may be named after the text of its expression.
            results = [RecordedResult([], result.rows, "") for result in results]
        seconds = session.elapsed or 0.0
        began = datetime.now(UTC) - timedelta(seconds=seconds)
        record = TranscriptRecord(
            redacted,
            {name: value for name, value in context.parts() if value},
            session.state.last_statement_id if error is None else error.where.statement_id,
            DONE if error is None else error.where.sql_state or "XX000",
            results,
            began.isoformat(timespec="milliseconds"),
            round(seconds, 6),
            # A message may quote the statement in a form that cannot be redacted.
            "" if error is None or redacted != str(sql) else error.message,
            redacted != str(sql),
        )
        try:
            write_all(self._file.write, msgspec.json.encode(record) + b"\n")
        except OSError as failure:
            raise write_error(self.path, failure, "stop recording with \\transcript") from None

    def close(self) -> None:
        self._file.close()


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


def read(path: Own) -> Iterator[tuple[int, TranscriptRecord]]:
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
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
