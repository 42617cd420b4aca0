"""Results that an engine writes to a file, and what they contain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlshell.client.http.transport import Transport
from sqlshell.client.results.result_file import ResultFile, ResultTable
from sqlshell.client.target import Target
from sqlshell.result import Column
from sqlshell.service.engines.duckdb.instance import DuckdbEngine
from sqlshell.service.engines.engine import Outcome, RunOptions
from sqlshell.service.results.results import Discard
from tests.service.values import DEEPER, OTHERS, SCALARS, WRAPPED


class Sink(Discard):
    """A sink with a place for the engine's file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def keep(self, rows: Sequence[str]) -> None:
        raise AssertionError("every result goes to the file")

    def file(self) -> Path:
        return self.path


class Source:
    """An engine that writes each result to a file."""

    def __init__(self, folder: Path) -> None:
        self.engine = DuckdbEngine()
        self.connection = self.engine.connect()
        self.path = folder / "result.parquet"
        self._tables = 0
        self.transport = Transport(Target("http", "127.0.0.1", 1), "")

    def run(self, sql: str) -> tuple[list[Column], Outcome, bytes]:
        """The columns, and the rows as the JSON of an answer."""
        self.path.unlink(missing_ok=True)
        outcome = self.connection.run(sql, RunOptions(), Sink(self.path))
        assert outcome.filed is not None
        counts = [rows for rows, _ in outcome.filed]
        body = b",".join(self.engine.read(self.path, 0, counts)) if sum(counts) else b""
        columns = [Column(item.name or "", item.type or "", item.nullable) for item in outcome.columns or []]
        return columns, outcome, body

    def told(self, columns: Sequence[Column], rows: int, zone: str = "UTC") -> ResultFile:
        return ResultFile(lambda: self.transport, "/", "id", columns, rows, 1 << 30, zone)

    def table(self, columns: Sequence[Column], rows: int, zone: str = "UTC", *, typed: bool = False) -> ResultTable:
        """The file as the reader of such a result opens it; the table removes its copy."""
        self._tables += 1
        place = self.path.parent / f"table {self._tables}" / "result.parquet"
        place.parent.mkdir()
        place.write_bytes(self.path.read_bytes())
        return ResultTable(place, self.told(columns, rows, zone), typed=typed)

    def close(self) -> None:
        self.connection.close()
        self.engine.close()


def values_of(kind: str) -> list[str]:
    """The values of a type as SQL, alone and in lists, maps, structs and unions."""
    if kind == "others":
        return OTHERS
    values = ["'" + text.replace("'", "''") + f"'::{kind}" for text in SCALARS[kind]]
    return [*values, *(form.format(values[0], kind) for form in WRAPPED + DEEPER), f"[{', '.join(values)}]"]
