"""The table of formats. Modules are imported when a format is first used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

from sqlshell.errors import UsageError
from sqlshell.output.sinks.sink import compression, uncompressed
from sqlshell.output.writer import Writer, WriterOptions
from sqlshell.text import did_you_mean


class Format(Struct, frozen=True):
    """One format: `make` makes a writer of it, and `several` is whether several results may share an output.

    What is `shown` has bytes as in psql, and the changes for people that the options ask for; in a `safe` format
    formulas can also be made harmless. A `for_terminal` format is made for the screen: long values may be truncated,
    and messages may appear between results. A format with `distinct_names` has to rename duplicate column names, and
    one that `folds_case` also those that differ only in case. A `binary` one is not written to a terminal, and a
    `packed` one is not compressed again.
    """

    name: str
    summary: str
    for_terminal: bool
    extensions: tuple[str, ...]
    several: Literal["allowed", "warned", "refused"]
    make: Callable[[WriterOptions], Writer]
    changes: Literal["", "shown", "safe"] = ""
    distinct_names: bool = False
    binary: bool = False
    packed: bool = False
    folds_case: bool = False

    def factory(self, options: WriterOptions) -> Writer:
        """Make a writer with the changes of values that apply to the format."""
        writer = self.make(options)
        if not self.changes:
            return writer
        from sqlshell.output.changes import ChangedWriter

        return ChangedWriter(writer, options.display, safe=self.changes == "safe" and options.spreadsheet_safe)


def _table(options: WriterOptions) -> Writer:
    if not options.layout:
        from sqlshell.output.writers.table import TableWriter

        return TableWriter(options)
    from sqlshell.output.writers.fitting import AutoWriter, FoldWriter, LiveTableWriter
    from sqlshell.output.writers.plan import PlanWriter

    if options.layout == "live":
        return LiveTableWriter(options)
    if options.layout == "plan":
        return PlanWriter(options)
    fitting = FoldWriter if options.layout == "fold" else AutoWriter
    return fitting(options, options.width)


def _vertical(options: WriterOptions) -> Writer:
    from sqlshell.output.writers.records import RecordWriter

    return RecordWriter(options)


def _csv(options: WriterOptions) -> Writer:
    from sqlshell.output.writers.delimited import CsvRecordWriter, CsvWriter

    return CsvRecordWriter(options) if options.expanded else CsvWriter(options)


def _tsv(options: WriterOptions) -> Writer:
    from sqlshell.output.writers.delimited import TsvWriter

    return TsvWriter(options)


def _json(options: WriterOptions) -> Writer:
    from sqlshell.output.writers.json import JsonWriter

    return JsonWriter(options)


def _jsonl(options: WriterOptions) -> Writer:
    from sqlshell.output.writers.json import JsonlWriter

    return JsonlWriter(options)


def _markdown(options: WriterOptions) -> Writer:
    from sqlshell.output.writers.markdown import MarkdownWriter

    return MarkdownWriter(options)


def _html(options: WriterOptions) -> Writer:
    from sqlshell.output.writers.html import HtmlWriter

    return HtmlWriter(options)


def _unaligned(options: WriterOptions) -> Writer:
    from sqlshell.output.writers.unaligned import UnalignedWriter

    return UnalignedWriter(options)


def _insert(options: WriterOptions) -> Writer:
    from sqlshell.output.writers.insert import InsertWriter

    return InsertWriter(options)


def _xlsx(options: WriterOptions) -> Writer:
    from sqlshell.output.writers.xlsx import XlsxWriter

    return XlsxWriter(options)


def _parquet(options: WriterOptions) -> Writer:
    from sqlshell.output.typed.writers import ParquetWriter

    return ParquetWriter()


def _arrow(options: WriterOptions) -> Writer:
    from sqlshell.output.typed.writers import ArrowWriter

    return ArrowWriter()


def _arrow_stream(options: WriterOptions) -> Writer:
    from sqlshell.output.typed.writers import ArrowWriter

    return ArrowWriter(stream=True)


_FILE: Final[dict[str, bool]] = {"binary": True, "packed": True}
_TYPED: Final[dict[str, bool]] = _FILE | {"distinct_names": True, "folds_case": True}

FORMATS: tuple[Format, ...] = (
    Format("table", "aligned columns", True, (".txt",), "allowed", _table, "shown"),
    Format("vertical", "one record per row, one line per column", True, (), "allowed", _vertical, "shown"),
    Format("csv", "comma-separated; NULL is empty, '' is quoted", False, (".csv",), "allowed", _csv, "safe", True),
    Format("tsv", "tab-separated; NULL is \\N", False, (".tsv", ".tab"), "allowed", _tsv, "safe", True),
    Format("json", "one array of objects", False, (".json",), "warned", _json, "", True),
    Format("jsonl", "one object per line", False, (".jsonl", ".ndjson"), "allowed", _jsonl, "", True),
    Format("unaligned", "values between separators, like psql -A", False, (), "allowed", _unaligned, "shown"),
    Format("markdown", "a table in Markdown", False, (".md", ".markdown"), "allowed", _markdown, "shown"),
    Format("html", "a web page that can be searched and sorted", False, (".html", ".htm"), "refused", _html, "shown"),
    Format("insert", "INSERT statements for a table", False, (".sql",), "allowed", _insert, "", True),
    Format("xlsx", "an Excel workbook", False, (".xlsx",), "refused", _xlsx, "shown", **_FILE),
    Format("parquet", "a Parquet file with typed columns", False, (".parquet",), "refused", _parquet, "", **_TYPED),
    Format(
        "arrow", "an Arrow IPC file with typed columns", False, (".arrow", ".feather"), "refused", _arrow, "", **_TYPED
    ),
    Format("arrows", "an Arrow IPC stream", False, (".arrows",), "refused", _arrow_stream, "", **_TYPED),
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
    "list": "unaligned",
    "md": "markdown",
    "excel": "xlsx",
    "feather": "arrow",
}
"""The names of these formats in psql, sqlite, duckdb and others."""


def format_named(name: str) -> Format:
    """The format with that name or alias, in any case. Raises UsageError with similar names, or all."""
    wanted = ALIASES.get(name.lower(), name.lower())
    for item in FORMATS:
        if item.name == wanted:
            return item
    names = [item.name for item in FORMATS]
    raise UsageError(f"unknown format {name!r}", did_you_mean(name, names, f"formats: {', '.join(names)}"))


def format_for_path(path: str) -> Format | None:
    """The format for the extension of a file, in any case; None if there is none.

    Raises the same errors as check_compression().
    """
    lower = uncompressed(path).lower()
    found = next((item for item in FORMATS if lower.endswith(item.extensions)), None)
    if found is not None:
        check_compression(found, path)
    return found


def check_compression(chosen: Format, path: str) -> None:
    """Raises UsageError for a compressed file of a format that is compressed already, or read at any place."""
    if chosen.packed and compression(path):
        raise UsageError(
            f"{path}: the {chosen.name} format cannot be compressed as a whole", f"write {uncompressed(path)}"
        )
