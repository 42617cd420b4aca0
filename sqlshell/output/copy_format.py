"""The format of COPY … TO, from its options and the name of the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.errors import UsageError
from sqlshell.output.writer import Writer, WriterOptions
from sqlshell.output.writers.formats import Format, delimited_writer, format_for_path, format_named
from sqlshell.output.writers.unaligned import UnalignedWriter
from sqlshell.sql.analysis.copy_statements import KNOWN, WRITTEN, CopyStatement

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

    return CopyFormat(replace(format_named("unaligned"), factory=writer), header=False, by_engine=True)


def copy_format(copy: CopyStatement) -> CopyFormat:
    """The format of the rows that COPY … TO writes: its option FORMAT, else the extension of the file, else text.

    With FORMAT, csv and text have no header unless HEADER says so, as in PostgreSQL. Raises UsageError for options
    that do not exist or do not apply.
    """
    copy.check()
    given = copy.options
    if other := next((name for name in given if name not in KNOWN | WRITTEN), ""):
        raise UsageError(f"COPY TO: the option {other} applies only to COPY FROM")
    by_name = None if copy.stream or copy.program else format_for_path(copy.place)
    if by_name is not None and by_name.name == "table":
        by_name = None
    named = given.get("format", "")
    chosen = format_named("tsv" if named == "text" else named) if named else by_name or format_named("tsv")
    if given.get("encoding", "utf8").lower() not in UTF8:
        raise UsageError(f"COPY TO: encoding {given['encoding']!r} is not supported", "files are written in UTF-8")
    if other := next((name for name in given if name not in _APPLY.get(chosen.name, _ALWAYS)), ""):
        raise UsageError(f"COPY TO: {other} does not apply to the format {_shown(chosen)}")
    header = None
    if chosen.name in _APPLY:
        header = given["header"] == "true" if "header" in given else not named and by_name is not None
    factory = _factory(chosen, given)
    if factory is not None:
        chosen = replace(chosen, factory=factory)
    return CopyFormat(chosen, header, given.get("null"), "" if copy.query else copy.source)


def _shown(chosen: Format) -> str:
    return "text" if chosen.name == "tsv" else chosen.name


def _factory(chosen: Format, given: Mapping[str, str]) -> Callable[[WriterOptions], Writer] | None:
    """A writer with options of COPY; None for the format's own, which DuckDB can write too."""
    if chosen.name not in _APPLY:
        return None
    from sqlshell.output.writers.postgres import CopyCsvWriter, text_writer

    delimiter = _single("delimiter", given.get("delimiter", "," if chosen.name == "csv" else "\t"))
    null = given.get("null", "")
    if chosen.name == "tsv":
        if delimiter in _NO_DELIMITER:
            raise UsageError(f"COPY TO: delimiter cannot be {delimiter!r} in the format text")
        _check_null(null, delimiter)
        return lambda options: delimited_writer(text_writer(options, delimiter), options)
    quote = _single("quote", given.get("quote", '"'))
    escape = _single("escape", given.get("escape", quote))
    if delimiter == quote:
        raise UsageError("COPY TO: delimiter and quote must be different")
    _check_null(null, delimiter, quote)
    names = given.get("force_quote", "")
    if not names and (delimiter, quote, escape, null) == (",", '"', '"', ""):
        return None
    force = None if names == "*" else frozenset(filter(None, names.split("\n")))
    return lambda options: delimited_writer(CopyCsvWriter(options, delimiter, quote, escape, force), options)


def _single(name: str, value: str) -> str:
    if len(value.encode()) != 1 or value in "\r\n":
        raise UsageError(f"COPY TO: {name} must be a single one-byte character, not {value!r}")
    return value


def _check_null(null: str, *signs: str) -> None:
    if any(sign in null for sign in ("\r", "\n", *signs)):
        raise UsageError(f"COPY TO: null cannot be {null!r}: it contains a delimiter, quote or line break")
