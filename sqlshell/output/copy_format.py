"""The format of COPY … TO, from its options and the name of the file: CSV and text as PostgreSQL has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.errors import UsageError
from sqlshell.output.writer import Values, Writer, WriterOptions, encode
from sqlshell.output.writers.column_names import distinct_names
from sqlshell.output.writers.delimited import COPY_END, TsvWriter
from sqlshell.output.writers.formats import Format, format_for_path, format_named
from sqlshell.output.writers.unaligned import UnalignedWriter
from sqlshell.result import Batch, Column
from sqlshell.sql.analysis.copy_statements import KNOWN, WRITTEN, CopyStatement

_ESCAPES: Final = {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
UTF8: Final = frozenset({"utf8", "utf-8", "unicode"})
_NO_DELIMITER: Final = frozenset("\\.abcdefghijklmnopqrstuvwxyz0123456789")
"""Delimiters that PostgreSQL refuses in its text format: letters and digits are escape sequences there."""
_ALWAYS: Final = frozenset({"format", "encoding"})
_APPLY: Final = {"csv": KNOWN | WRITTEN, "tsv": _ALWAYS | {"header", "delimiter", "null"}}
"""Options that apply to a format."""


class CopyFormat(Struct, frozen=True):
    """A format, and the options of its writer as far as COPY sets them."""

    format: Format
    header: bool | None = None
    null: str | None = None
    table: str = ""
    by_engine: bool = False
    """Whether the engine has written the rows, as lines of text."""

    def options(self, session: WriterOptions) -> WriterOptions:
        """The options of the writer; COPY takes no text for NULL from the session."""
        header = session.header if self.header is None else self.header
        return replace(session, null=self.null, header=header, table=self.table or session.table, expanded=False)


def copied_data() -> CopyFormat:
    """The format of rows that the engine has written by the options of the statement: a column of lines."""

    def writer(options: WriterOptions) -> Writer:
        return UnalignedWriter(replace(options, record_separator="\n"))

    return CopyFormat(replace(format_named("unaligned"), make=writer, changes=""), header=False, by_engine=True)


def copy_format(copy: CopyStatement) -> CopyFormat:
    """The format of the rows that COPY … TO writes: its option FORMAT, else the extension of the file, else text.

    With FORMAT, csv and text have no header unless HEADER says so, as in PostgreSQL. Raises UsageError for options
    that do not exist or do not apply.
    """
    copy.check()
    given = copy.options
    if other := next((name for name in given if name not in KNOWN | WRITTEN), ""):
        raise UsageError(f"COPY TO: the option {other.upper()} applies only to COPY FROM")
    by_name = None if copy.stream or copy.program else format_for_path(copy.place)
    if by_name is not None and by_name.name == "table":
        by_name = None
    named = given.get("format", "")
    chosen = format_named("tsv" if named == "text" else named) if named else by_name or format_named("tsv")
    if given.get("encoding", "utf8").lower() not in UTF8:
        raise UsageError(f"COPY TO: ENCODING {given['encoding']!r} is not supported", "files are written in UTF-8")
    if other := next((name for name in given if name not in _APPLY.get(chosen.name, _ALWAYS)), ""):
        raise UsageError(f"COPY TO: {other.upper()} does not apply to the format {_shown(chosen)}")
    header = None
    if chosen.name in _APPLY:
        header = given["header"] == "true" if "header" in given else not named and by_name is not None
    factory = _factory(chosen, given)
    if factory is not None:
        chosen = replace(chosen, make=factory)
    return CopyFormat(chosen, header, given.get("null"), "" if copy.query else copy.source)


def _shown(chosen: Format) -> str:
    return "text" if chosen.name == "tsv" else chosen.name


def _factory(chosen: Format, given: Mapping[str, str]) -> Callable[[WriterOptions], Writer] | None:
    """A writer with options of COPY; None for the format's own, which DuckDB can write too."""
    if chosen.name not in _APPLY:
        return None
    delimiter = _single("delimiter", given.get("delimiter", "," if chosen.name == "csv" else "\t"))
    null = given.get("null", "")
    if chosen.name == "tsv":
        if delimiter in _NO_DELIMITER:
            raise UsageError(f"COPY TO: DELIMITER cannot be {delimiter!r} in the format text")
        _check_null(null, delimiter)
        return lambda options: text_writer(options, delimiter)
    quote = _single("quote", given.get("quote", '"'))
    escape = _single("escape", given.get("escape", quote))
    if delimiter == quote:
        raise UsageError("COPY TO: DELIMITER and QUOTE must be different")
    _check_null(null, delimiter, quote)
    names = given.get("force_quote", "")
    if not names and (delimiter, quote, escape, null) == (",", '"', '"', ""):
        return None
    force = None if names == "*" else frozenset(filter(None, names.split("\n")))
    return lambda options: CopyCsvWriter(options, delimiter, quote, escape, force)


def _single(name: str, value: str) -> str:
    if len(value.encode()) != 1 or value in "\r\n":
        raise UsageError(f"COPY TO: {name.upper()} must be a single one-byte character, not {value!r}")
    return value


def _check_null(null: str, *signs: str) -> None:
    if any(sign in null for sign in ("\r", "\n", *signs)):
        raise UsageError(f"COPY TO: NULL cannot be {null!r}: it contains a delimiter, quote or line break")


def text_writer(options: WriterOptions, delimiter: str) -> TsvWriter:
    """The text format: control characters and the delimiter are escaped."""
    return TsvWriter(options, delimiter, _ESCAPES if delimiter == "\t" else {**_ESCAPES, delimiter: f"\\{delimiter}"})


class CopyCsvWriter(Writer):
    """CSV with any delimiter, quote and escape character. `force_quote` are names of columns whose values are always
    quoted; None is all columns.
    """

    def __init__(
        self, options: WriterOptions, delimiter: str, quote: str, escape: str, force_quote: frozenset[str] | None
    ) -> None:
        self._null = options.null or ""
        self._header = options.header
        self._delimiter = delimiter
        self._quote = quote
        self._escape = escape
        self._force = force_quote
        self._forced: list[bool] = []
        self._single = False
        self._special = re.compile(f"[{re.escape(delimiter + quote)}\r\n]")

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._single = len(columns) == 1
        self._forced = [self._force is None or column.name in self._force for column in columns]
        if self._header and columns:
            return [encode(self._delimiter.join(map(self._if_needed, distinct_names(columns))) + "\n")]
        return []

    def write(self, batch: Batch) -> Iterable[bytes]:
        if not batch.rows or not batch.width:
            return []
        columns = map(self._column, zip(*batch.rows, strict=True), self._forced)
        return [encode("\n".join(map(self._delimiter.join, zip(*columns, strict=True))) + "\n")]

    def _column(self, values: Values, forced: bool) -> Sequence[str]:
        text_of = self._quoted if forced else self._if_needed
        return [self._null if value is None else text_of(value) for value in values]

    def _if_needed(self, value: str) -> str:
        needed = value == self._null or self._special.search(value) or (self._single and value == COPY_END)
        return self._quoted(value) if needed else value

    def _quoted(self, value: str) -> str:
        if self._escape != self._quote:
            value = value.replace(self._escape, self._escape * 2)
        return f"{self._quote}{value.replace(self._quote, self._escape + self._quote)}{self._quote}"
