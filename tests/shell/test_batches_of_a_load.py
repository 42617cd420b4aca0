"""Rows of a load in attachments: their bounds may differ from those of an earlier load."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sqlshell.client.http.upload import Attachment
from sqlshell.errors import UsageError
from sqlshell.origin import Trusted
from sqlshell.shell.loading.convert import ConvertedRows
from sqlshell.shell.loading.send import AttachmentSender, Range, fingerprint, missing
from sqlshell.shell.loading.spec import ColumnMatch, LoadRequest


@pytest.mark.parametrize(
    ("done", "left"),
    [
        ([], [(0, 100)]),
        ([(0, 100)], []),
        ([(0, 30), (60, 70)], [(30, 60), (70, 100)]),
        ([(40, 100)], [(0, 40)]),
    ],
)
@pytest.mark.parametrize("limit", [10, 33, 1000])
def test_each_row_that_is_left_is_sent_once(tmp_path: Path, done: list[Range], left: list[Range], limit: int) -> None:
    assert list(missing(done, 100)) == left
    path = tmp_path / "rows.parquet"
    path.write_bytes(bytes(100))
    sent: list[Range] = []

    async def batch(rows: Range) -> Path:
        return path

    async def submit(sql: str, attachment: Attachment) -> None:
        """Nothing goes wrong."""

    async def run() -> list[Range]:
        request = LoadRequest("t", (), Trusted("a.csv"), "a.csv", "csv")
        sender = AttachmentSender(request, ColumnMatch(()), batch, submit, lambda: True, limit)
        return [batch.rows async for batch in sender.send(ConvertedRows(path, 100), done, sent.append)]

    confirmed = asyncio.run(run())
    assert confirmed == sent
    rows = [row for start, stop in sent for row in range(start, stop)]
    assert rows == [row for start, stop in left for row in range(start, stop)]
    assert all(stop - start <= max(limit, 1) for start, stop in sent)


def test_a_file_that_cannot_be_read_has_no_fingerprint(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*/none.csv: no such file or directory"):
        fingerprint(Trusted(str(tmp_path / "none.csv")), "t", (), "")
