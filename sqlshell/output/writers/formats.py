"""The table of formats. Their factories load their modules when they are first used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from sqlshell.errors import UsageError
from sqlshell.output.writer import Writer, WriterOptions
from sqlshell.spelling import did_you_mean


class Format(Struct, frozen=True):
    """One format: `concatenates` is whether a second result may share the stream, `holds` what precedes a byte."""

    name: str
    summary: str
    audience: Literal["people", "programs"]
    extensions: tuple[str, ...]
    concatenates: bool
    holds: Literal["nothing", "sample", "all"]
    factory: Callable[[WriterOptions], Writer]


def _table(options: WriterOptions) -> Writer:
    from sqlshell.output.writers.table import TableWriter

    return _readable(TableWriter(options))


def _vertical(options: WriterOptions) -> Writer:
    from sqlshell.output.writers.vertical import VerticalWriter

    return _readable(VerticalWriter(options))


def _csv(options: WriterOptions) -> Writer:
    from sqlshell.output.writers.delimited import CsvWriter

    return _readable(CsvWriter(options))


def _tsv(options: WriterOptions) -> Writer:
    from sqlshell.output.writers.delimited import TsvWriter

    return _readable(TsvWriter(options))


def _json(options: WriterOptions) -> Writer:
    from sqlshell.output.writers.json import JsonWriter

    return JsonWriter(options)


def _jsonl(options: WriterOptions) -> Writer:
    from sqlshell.output.writers.json import JsonlWriter

    return JsonlWriter(options)


def _readable(writer: Writer) -> Writer:
    from sqlshell.output.text.binary import HexWriter

    return HexWriter(writer)


FORMATS: tuple[Format, ...] = (
    Format("table", "aligned columns", "people", (".txt",), True, "sample", _table),
    Format("vertical", "one record per row, one line per column", "people", (), True, "nothing", _vertical),
    Format("csv", "comma-separated; NULL is empty, '' is quoted", "programs", (".csv",), True, "nothing", _csv),
    Format("tsv", "tab-separated; NULL is \\N", "programs", (".tsv", ".tab"), True, "nothing", _tsv),
    Format("json", "one array of objects", "programs", (".json",), False, "nothing", _json),
    Format("jsonl", "one object per line", "programs", (".jsonl", ".ndjson"), True, "nothing", _jsonl),
)


EXTENSIONS = tuple(ending for item in FORMATS for ending in item.extensions)

ALIASES = {
    "aligned": "table",
    "column": "table",
    "box": "table",
    "line": "vertical",
    "expanded": "vertical",
    "tabs": "tsv",
    "ndjson": "jsonl",
}
"""What psql, sqlite, duckdb and others call the same."""


def format_named(name: str) -> Format:
    """The format of that name, in any case, here or elsewhere. Raises UsageError with the nearest, or all."""
    wanted = ALIASES.get(name.lower(), name.lower())
    for item in FORMATS:
        if item.name == wanted:
            return item
    names = [item.name for item in FORMATS]
    raise UsageError(f"unknown format {name!r}", did_you_mean(name, names, f"formats: {', '.join(names)}"))


def format_for_path(path: str) -> Format | None:
    """The format that a file's ending chooses, in any case; None where it chooses none."""
    lower = path.lower()
    return next((item for item in FORMATS if lower.endswith(item.extensions)), None)
