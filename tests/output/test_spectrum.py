"""The cases of csv-spectrum, if they are next to the checkout: written by us and read by Python."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from sqlshell.output.writer import WriterOptions
from sqlshell.output.writers.delimited import CsvWriter
from sqlshell.result import Batch, Column, Rows

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "csv-spectrum"


def test_each_case_comes_back() -> None:
    cases = sorted(FOLDER.rglob("*.json"))
    assert len(cases) == 12 or not FOLDER.exists()
    for path in cases:
        loaded = json.loads(path.read_text())
        records = loaded if isinstance(loaded, list) else [loaded]
        names = list(records[0])
        rows: Rows = [[record[name] for name in names] for record in records]
        writer = CsvWriter(WriterOptions())
        chunks = [*writer.begin([Column(name) for name in names]), *writer.write(Batch(len(names), rows=rows))]
        found = list(csv.reader(io.StringIO(b"".join(chunks).decode(), newline="")))
        assert found == [names, *rows], path.stem
