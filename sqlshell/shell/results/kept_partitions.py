"""Keeps the received parts of a result beside a file while it is exported, so that an interrupted export can continue.

The folder `FILE.parts` has one file for each partition, as the service sent it, and `manifest.jsonl`: a line about the
statement, then one for each partition, which is written when its file is complete. Or it has the result's own file, as
far as it has arrived, and lines with its ETag, its bytes and their SHA-256; the last one counts.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from sqlshell.client.results.factory import READ_AHEAD
from sqlshell.client.results.partitions import PartitionReader
from sqlshell.errors import OutputError, UsageError
from sqlshell.origin import Own
from sqlshell.result import Batch, Partitions, Result
from sqlshell.runtime.paths import expanded
from sqlshell.shell.results.kept_file import START_AGAIN, KeptBytes, KeptFile

MANIFEST: Final = "manifest.jsonl"
FILE: Final = "result.parquet"


class ExportedResult(Struct, frozen=True):
    """An export: `statement` is the SHA-256 of its text, `counts` are the rows of each partition."""

    statement_id: str
    target: str
    statement: str
    columns: list[tuple[str, str]]
    counts: list[int]


class KeptPartition(Struct, frozen=True):
    """One complete partition."""

    partition: int
    bytes: int
    sha256: str


class PartitionStore:
    """The folder beside `file`. Methods raise OutputError if it cannot be read or written."""

    def __init__(self, file: Own) -> None:
        self._folder = Path(f"{expanded(file)}.parts")
        self.kept: list[KeptPartition] = []
        self.kept_file: KeptBytes | None = None

    @property
    def name(self) -> str:
        return str(self._folder)

    def read(self) -> ExportedResult | None:
        """The state of an earlier export, None if there is none; `kept` are its partitions, `kept_file` the received
        part of the result's file."""
        self.kept, self.kept_file = [], None
        try:
            lines = (self._folder / MANIFEST).read_bytes().split(b"\n")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failed(error) from error
        try:
            exported = msgspec.json.decode(lines[0], type=ExportedResult)
        except msgspec.DecodeError:
            raise OutputError(f"{self._folder / MANIFEST} is damaged", START_AGAIN) from None
        for line in lines[1:]:
            with contextlib.suppress(msgspec.DecodeError):
                kept = msgspec.json.decode(line, type=KeptPartition)
                if kept.partition == len(self.kept):
                    self.kept.append(kept)
            with contextlib.suppress(msgspec.DecodeError):
                self.kept_file = msgspec.json.decode(line, type=KeptBytes)
        return exported

    def begin(self, exported: ExportedResult) -> None:
        """Begin with an empty folder."""
        self.discard()
        try:
            self._folder.mkdir(mode=0o700)
            self._append(msgspec.json.encode(exported))
        except OSError as error:
            raise self._failed(error) from error

    def supersede(self) -> None:
        """Remove what an earlier export has kept: a later --resume must not find its result."""
        if (self._folder / MANIFEST).exists():
            self.discard()

    def body(self, number: int) -> bytes:
        """A partition that is kept."""
        kept = self.kept[number]
        try:
            body = (self._folder / str(number)).read_bytes()
        except OSError as error:
            raise self._failed(error) from error
        if len(body) != kept.bytes or hashlib.sha256(body).hexdigest() != kept.sha256:
            raise OutputError(f"{self._folder / str(number)} is damaged", START_AGAIN)
        return body

    def keep(self, body: bytes | bytearray) -> None:
        """Keep the next partition."""
        number = len(self.kept)
        kept = KeptPartition(number, len(body), hashlib.sha256(body).hexdigest())
        try:
            _write(self._folder / str(number), body, os.O_TRUNC)
            self._append(msgspec.json.encode(kept))
        except OSError as error:
            raise self._failed(error) from error
        self.kept.append(kept)

    def file(self, arrived: Callable[[int], None]) -> KeptFile:
        """The result's file, with what is kept of it; `arrived` is called with the bytes that have arrived."""
        try:
            return KeptFile(self._folder / FILE, self.kept_file, self._note, arrived)
        except OSError as error:
            raise self._failed(error) from error

    def discard(self) -> None:
        """Remove the folder, but nothing that is not of an export."""
        try:
            names = [path.name for path in self._folder.iterdir()]
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._failed(error) from error
        if other := next((name for name in names if name not in {MANIFEST, FILE} and not name.isdecimal()), ""):
            raise OutputError(
                f"{self._folder} contains {other}, which does not belong to an export",
                "move that file, or rename the directory",
            )
        try:
            for name in names:
                (self._folder / name).unlink()
            self._folder.rmdir()
        except OSError as error:
            raise self._failed(error) from error

    def _note(self, kept: KeptBytes) -> None:
        self._append(msgspec.json.encode(kept))
        self.kept_file = kept

    def _append(self, line: bytes) -> None:
        _write(self._folder / MANIFEST, line + b"\n", os.O_APPEND)

    def _failed(self, error: OSError) -> OutputError:
        return OutputError(f"cannot store partitions in {self._folder}: {error.strerror or error}")


def _write(path: Path, data: bytes | bytearray, flag: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | flag, 0o600), "wb") as file:
        file.write(data)


class KeptBatches:
    """The batches of a result, as Partitions: those that are kept, then the others, each kept when it arrives.

    `report` is called with the number of partitions that have arrived.
    """

    def __init__(self, result: Result, store: PartitionStore, report: Callable[[int], None]) -> None:
        assert result.partition is not None and result.row_counts is not None
        self._result = result
        self._counts = result.row_counts
        self._fetch = result.partition
        self._store = store
        self._report = report
        self._next = 0
        self._rest: Partitions | None = None if store.kept else result.batches

    def __aiter__(self) -> KeptBatches:
        return self

    async def __anext__(self) -> Batch:
        number = self._next
        if number >= len(self._counts):
            raise StopAsyncIteration
        if number < len(self._store.kept):
            width, count = len(self._result.columns), self._counts[number]
            batch = Batch(width, body=self._store.body(number), number=number, count=count)
        else:
            if self._rest is None:
                first = await self._fetch(number)
                self._rest = PartitionReader(self._fetch, first, len(self._counts), READ_AHEAD, start=number)
            batch = await anext(self._rest)
            self._store.keep(batch.body or msgspec.json.encode({"data": batch.rows}))
        self._next += 1
        self._report(self._next)
        return batch

    async def aclose(self) -> None:
        if self._rest is not None:
            await self._rest.aclose()
        await self._result.batches.aclose()


def exported(result: Result, target: str, text: str) -> ExportedResult | None:
    """The description of the export; None for a result in a single partition, which is not kept."""
    if result.endless is not None:
        raise UsageError("an unbounded result cannot be exported", "use -o FILE with --max-rows or --for")
    if not result.statement_id or result.partition is None or len(result.row_counts or ()) < 2:
        return None
    columns = [(column.name, column.type) for column in result.columns]
    return ExportedResult(result.statement_id, target, digest(text), columns, list(result.row_counts or ()))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
