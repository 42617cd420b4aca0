"""What is kept of an export beside its file: found again, verified, and removed without anything else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from sqlshell.client.results.partitions import PartitionReader
from sqlshell.errors import OutputError, UsageError
from sqlshell.origin import Own
from sqlshell.result import Batch, Column, Result
from sqlshell.shell.results.kept_partitions import (
    FILE,
    MANIFEST,
    ExportedResult,
    KeptBatches,
    PartitionStore,
    digest,
    exported,
)

PARTS = 4


def body(number: int) -> bytes:
    return json.dumps({"data": [[f"row {number}"]]}).encode()


class Service:
    """A result of PARTS partitions; `asked` are those that were fetched."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.batches = PartitionReader(self.fetch, Batch(1, body=body(0)), PARTS, 1)
        self.result = Result(
            [Column("a", "VARCHAR")],
            self.batches,
            statement_id="id",
            row_counts=[1] * PARTS,
            partition=self.fetch,
        )

    async def fetch(self, number: int) -> Batch:
        self.asked.append(number)
        return Batch(1, body=body(number), number=number, count=1)


KNOWN = ExportedResult("id", "here", digest("select 1"), [("a", "VARCHAR")], [1] * PARTS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out.csv.parts"


def store(folder: Path) -> PartitionStore:
    return PartitionStore(Own(str(folder).removesuffix(".parts")))


def read(folder: Path, most: int = PARTS) -> tuple[list[str | None], list[int], list[int]]:
    """The rows of the first partitions, which partitions were fetched, and what was reported."""
    reported: list[int] = []

    async def work() -> tuple[list[str | None], list[int], list[int]]:
        kept, service = store(folder), Service()
        if kept.read() is None:
            kept.begin(KNOWN)
        batches = KeptBatches(service.result, kept, reported.append)
        rows = []
        for _ in range(most):
            rows += [row[0] for row in (await anext(batches)).rows]
        if most == PARTS:
            with pytest.raises(StopAsyncIteration):
                await anext(batches)
        await batches.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(service.batches)
        return rows, service.asked, reported

    return asyncio.run(work())


ROWS = [f"row {number}" for number in range(PARTS)]


def test_partitions_that_are_kept_are_not_fetched_again(folder: Path) -> None:
    assert store(folder).read() is None
    rows, _, reported = read(folder, 2)
    assert (rows, reported) == (ROWS[:2], [1, 2])
    kept = store(folder)
    assert kept.read() == KNOWN
    assert [part.partition for part in kept.kept] == [0, 1]
    assert sorted(path.name for path in folder.iterdir()) == ["0", "1", MANIFEST]
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert read(folder) == (ROWS, [2, 3], [1, 2, 3, 4])
    assert read(folder) == (ROWS, [], [1, 2, 3, 4])


def test_a_line_that_was_being_written_does_not_count(folder: Path) -> None:
    read(folder, 3)
    manifest = folder / MANIFEST
    lines = manifest.read_bytes().splitlines()
    for left, count in (
        (lines, 3),
        ([*lines[:3], lines[3][:-5]], 2),
        # One that is missing ends what is kept.
        ([lines[0], lines[1], lines[3]], 1),
        (lines[:1], 0),
    ):
        manifest.write_bytes(b"\n".join(left))
        kept = store(folder)
        kept.read()
        assert len(kept.kept) == count


@pytest.mark.parametrize("damage", [b"", body(1)[:-1] + b" ", body(1) + b" "])
def test_a_partition_that_is_damaged_is_not_used(folder: Path, damage: bytes) -> None:
    read(folder, 2)
    (folder / "1").write_bytes(damage)
    with pytest.raises(OutputError, match=r"parts/1 is damaged"):
        read(folder)
    (folder / "1").unlink()
    with pytest.raises(OutputError, match=r"cannot store partitions in .*: No such file"):
        read(folder)


def test_a_manifest_that_is_damaged_is_refused(folder: Path) -> None:
    read(folder, 1)
    (folder / MANIFEST).write_bytes(b"{")
    with pytest.raises(OutputError, match=r"manifest\.jsonl is damaged"):
        store(folder).read()
    (folder / MANIFEST).unlink()
    (folder / MANIFEST).mkdir()
    with pytest.raises(OutputError, match=r"cannot store partitions in .*: Is a directory"):
        store(folder).read()


def test_only_what_belongs_to_an_export_is_removed(folder: Path) -> None:
    store(folder).discard()
    read(folder, 2)
    (folder / FILE).write_bytes(b"x")
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"parts contains mine\.txt, which does not belong to an export"):
        store(folder).discard()
    assert len(list(folder.iterdir())) == 5
    (folder / "mine.txt").unlink()
    store(folder).discard()
    assert not folder.exists()
    folder.write_text("a file")
    with pytest.raises(OutputError, match="Not a directory"):
        store(folder).discard()
    folder.unlink()
    folder.mkdir()
    (folder / "7").mkdir()
    with pytest.raises(OutputError, match="cannot store partitions in"):
        store(folder).discard()


@pytest.mark.parametrize("work", [lambda kept: kept.begin(KNOWN), lambda kept: kept.keep(b"x")])
def test_a_folder_that_cannot_be_written(tmp_path: Path, work: Callable[[PartitionStore], None]) -> None:
    kept = store(tmp_path / "none" / "out.csv.parts")
    with pytest.raises(OutputError, match=r"cannot store partitions in .*: No such file or directory"):
        work(kept)
    assert kept.kept == []


def test_the_result_file_is_continued(folder: Path) -> None:
    arrived: list[int] = []
    kept = store(folder)
    kept.begin(KNOWN)
    with kept.file(arrived.append) as file:
        file.restart('"one"')
        file.write(b"half ")
    again = store(folder)
    again.read()
    assert again.kept_file is not None
    assert (again.kept_file.tag, again.kept_file.bytes, arrived) == ('"one"', 5, [5])
    with again.file(arrived.append) as file:
        file.write(b"rest")
    assert (folder / FILE).read_bytes() == b"half rest"
    assert arrived == [5, 9]
    last = store(folder)
    last.read()
    assert last.kept_file is not None
    assert last.kept_file.bytes == 9
    (folder / FILE).write_bytes(b"other")
    with pytest.raises(OutputError, match=r"result\.parquet is damaged"):
        last.file(arrived.append)


def test_which_results_are_kept() -> None:
    result = Service().result
    assert exported(result, "here", "select 1") == KNOWN
    assert exported(replace(result, statement_id=""), "here", "") is None
    assert exported(replace(result, partition=None), "here", "") is None
    assert exported(replace(result, row_counts=[1]), "here", "") is None
    assert exported(replace(result, row_counts=None), "here", "") is None
    with pytest.raises(UsageError, match="an unbounded result cannot be exported"):
        exported(replace(result, endless=cast("Any", object())), "here", "")
