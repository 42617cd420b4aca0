"""Checks for text that DuckDB's CSV reader accepts silently, although a value changes or a field is lost.

It rounds fractions, reads a number that is too large as infinity and special dates as 1900-01-01, and drops an empty
field at the end of a line. Each check is a query of the file, and names the first place where this happens.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import duckdb
from msgspec import Struct

from sqlshell.errors import StatementError, UsageError
from sqlshell.humanize import format_count
from sqlshell.interface.types import Kind, kind
from sqlshell.shell.loading.column_types import TargetColumn
from sqlshell.shell.loading.exactness import has_fraction, overflows
from sqlshell.shell.loading.file_layout import FileLayout, SourceColumn
from sqlshell.sql.duckdb_types import TEXT
from sqlshell.sql.identifiers import always_quoted, literal

LONGEST_LINE: Final = 16 << 20
"""Bytes of a line."""

ISO_DATE: Final = "%Y-%m-%d"
_DATE: Final = re.compile(r"%([dmy])(\W)%([dmy])\2%([dmyY])(.*)", re.DOTALL)
_SIGNS: Final = ("'.'", "'e-'", "'E-'")
"""Signs of a number that is not whole, as SQL."""
_OPEN: Final = "unexpected end of data"
_SPECIAL: Final = "('infinity', '-infinity', 'epoch')"


def check_date_order(file: str, layout: FileLayout, pairs: Sequence[tuple[SourceColumn, TargetColumn]]) -> None:
    """Raises UsageError for dates that are not in ISO format: the server's DateStyle says what 05/06/2024 means."""
    formats = dict(layout.reader)
    for source, target in pairs:
        form = {"DATE": "dateformat", "TIMESTAMP": "timestampformat"}.get(source.type, "")
        if form in formats and target.converted.startswith(("DATE", "TIMESTAMP")):
            raise UsageError(
                f"{file}, column {source.name}: the dates are not in the form YYYY-MM-DD, so the order of day and "
                "month is ambiguous",
                "nothing was sent; add `csv header` so that the server reads the file: \\copy … from FILE csv header",
            )


class TextChecks:
    """The checks of one file, called `name` in messages, whose columns go to those of a table in `pairs`."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        path: str,
        name: str,
        layout: FileLayout,
        pairs: Sequence[tuple[SourceColumn, TargetColumn]],
    ) -> None:
        self._connection = connection
        self._path = path
        self._name = name
        self._layout = layout
        self._pairs = pairs
        self._rows = as_texts(path, dict(layout.reader), layout.columns)

    def check(self, converted: Path, rows: int) -> None:
        """Raises UsageError or StatementError if the converted rows are not what the file says."""
        self._check_ends(rows)
        self._check_dates(converted)
        self._check_range(converted)

    def date_warnings(self) -> list[str]:
        """Warnings about ambiguous dates: columns in which 03/04/2026 is April as well as March."""
        named, messages = dict(self._layout.reader), []
        for source, target in self._pairs:
            form = {"DATE": "dateformat", "TIMESTAMP": "timestampformat"}.get(target.converted, "")
            read = named.get(form, "''")[1:-1]
            for other in _other_orders(read):
                text, mine, theirs = always_quoted(source.name), literal(read), literal(other)
                example = self._connection.execute(
                    f"SELECT first(x), first(strftime(a, '{ISO_DATE}')), first(strftime(b, '{ISO_DATE}')) "
                    f"FROM (SELECT trim({text}) AS x, try_strptime(x, {mine}) AS a, try_strptime(x, {theirs}) AS b "
                    f"FROM {self._rows} WHERE {text} IS NOT NULL) "
                    "HAVING bool_and(a IS NULL OR b IS NOT NULL) AND bool_or(a <> b)"
                ).fetchone()
                if example is not None:
                    messages.append(
                        f"{self._name}, column {source.name}: {example[0]} is read as {example[1]}, but may "
                        f"be {example[2]}; write dates as YYYY-MM-DD"
                    )
                    break
        return messages

    def check_fractions(self) -> None:
        """Raises UsageError for a number that is not whole in a column of integers: DuckDB rounds it."""
        whole = [pair for pair in self._pairs if pair[1].whole]
        if not whole:
            return
        rows = self._rows
        names = [always_quoted(source.name) for source, _ in whole]
        # Few files need the exact test.
        signs = (f"bool_or({' OR '.join(f'contains({name}, {sign})' for sign in _SIGNS)})" for name in names)
        suspect = self._connection.execute(f"SELECT {', '.join(signs)} FROM {rows}").fetchall()[0]
        for pair, name, seen in zip(whole, names, suspect, strict=True):
            first = (
                seen
                and self._connection.execute(f"SELECT {name} FROM {rows} WHERE {has_fraction(name)} LIMIT 1").fetchone()
            )
            if first:
                place, type_ = self._place(pair, first[0]), pair[1].type
                raise UsageError(
                    f"{place}: {abbreviated(first[0])} has a fraction, which {type_} cannot store",
                    "nothing was sent; correct the number, or load it into a column of DECIMAL",
                )

    def _check_ends(self, rows: int) -> None:
        """Raises StatementError if some of the rows have an empty field too many: DuckDB drops it without a word, as of
        files in which each line ends with a delimiter."""
        extra = "extra"
        while any(source.name.lower() == extra for source in self._layout.columns):
            extra += "_"
        types = [f"{literal(source.name)}: {literal(TEXT)}" for source in self._layout.columns]
        text = dict(self._layout.reader) | {"auto_detect": "false", "max_line_size": str(LONGEST_LINE)}
        text.pop("nullstr", None)
        text["columns"] = f"{{{', '.join(types)}, {extra}: {literal(TEXT)}}}"
        count = self._count(f"{_csv(self._path, text)}, ignore_errors = true) WHERE coalesce({extra}, '') = ''")
        if not 0 < count < rows:
            return
        # An empty text is not a number, and so an error with its place; a missing one is NULL.
        number = text | {"columns": f"{{{', '.join(types)}, {extra}: 'INTEGER'}}"}
        number |= {"nullstr": literal(secrets.token_hex(8)), "null_padding": "true", "parallel": "false"}
        number |= {"store_rejects": "true", "rejects_limit": "1"}
        number |= {"rejects_table": "'ends'", "rejects_scan": "'scans'"}
        # The table of rejects is there when all rows were fetched.
        self._connection.execute(f"SELECT count({extra}) FROM {_csv(self._path, number)})").fetchall()
        first = self._connection.execute(
            f"SELECT line_byte_position, line FROM ends WHERE column_name = {literal(extra)}"
        ).fetchone()
        at = f", line {next(iter(lines_at(self._path, [int(first[0])]))) or first[1]}" if first else ""
        columns = len(self._layout.columns)
        more = f" (and {format_count(count - 1, 'more such line')})" if count > 1 else ""
        raise StatementError(
            f"{self._name}{at}: expected {columns} columns, found {columns + 1}, the last one empty{more}",
            "nothing was sent; remove the delimiter at the end of the line",
        )

    def _place(self, pair: tuple[SourceColumn, TargetColumn], value: str) -> str:
        """The file, the line and the column of the first row with a text; the line only if it is found."""
        named, (source, target) = dict(self._layout.reader), pair
        at, name = self._layout.columns.index(source), source.name if self._layout.named else target.name
        with contextlib.suppress(csv.Error, OSError, ValueError):
            for record in records(self._path, named):
                if len(record.fields) > at and record.fields[at] == value:
                    return f"{self._name}, line {record.line}, column {name}"
        return f"{self._name}, column {name}"

    def _check_dates(self, converted: Path) -> None:
        """Raises UsageError for infinity and epoch among dates of another format: DuckDB reads them as 1900-01-01."""
        named = dict(self._layout.reader)
        for number, (source, target) in enumerate(self._pairs):
            date_text = f"c{number}::VARCHAR"
            if {"dateformat", "timestampformat"}.isdisjoint(named) or target.converted not in {"DATE", "TIMESTAMP"}:
                continue
            text = always_quoted(source.name)
            # Few files need the second query, which reads the text.
            if self._count(
                f"read_parquet({literal(str(converted))}) WHERE {date_text} LIKE '1900-01-01%'"
            ) and self._count(f"{self._rows} WHERE lower(trim({text})) IN {_SPECIAL}"):
                form = named.get("dateformat") or named["timestampformat"]
                raise UsageError(
                    f"{self._name}, column {source.name}: contains infinity or epoch, but its dates have the format "
                    f"{form}",
                    "nothing was sent; write all dates of this column as YYYY-MM-DD",
                )

    def _check_range(self, converted: Path) -> None:
        """Raises UsageError for a number that is too large for its column: DuckDB reads it as infinity."""
        for number, (source, target) in enumerate(self._pairs):
            if kind(target.type) is not Kind.FLOAT or target.converted == TEXT:
                continue
            text = always_quoted(source.name)
            first = (
                self._count(f"read_parquet({literal(str(converted))}) WHERE isinf(c{number})")
                and self._connection.execute(
                    f"SELECT {text} FROM {self._rows} WHERE {overflows(text, target.converted)} LIMIT 1"
                ).fetchone()
            )
            if first:
                place = self._place((source, target), first[0])
                raise UsageError(
                    f"{place}: {abbreviated(first[0])} is out of range for {target.type}",
                    "correct the number, or load it into a column of VARCHAR",
                )

    def _count(self, rows: str) -> int:
        row = self._connection.execute(f"SELECT count(*) FROM {rows}").fetchone()
        return int(row[0]) if row else 0


def as_texts(path: str, reader: Mapping[str, str], columns: Sequence[SourceColumn]) -> str:
    """SQL for the rows with all values as text."""
    listed = ", ".join(f"{literal(each.name)}: {literal(TEXT)}" for each in columns)
    arguments = {name: value for name, value in reader.items() if name not in {"dateformat", "timestampformat"}}
    arguments |= {"auto_detect": "false", "max_line_size": str(LONGEST_LINE), "columns": f"{{{listed}}}"}
    return f"{_csv(path, arguments)}, ignore_errors = true)"


def _csv(path: str, arguments: Mapping[str, str]) -> str:
    """A call of DuckDB's reader without its closing parenthesis."""
    given = ", ".join(f"{name} = {value}" for name, value in arguments.items())
    return f"read_csv({literal(path)}, {given}"


class TextRecord(Struct, frozen=True):
    """A record of a file, its text, and the line that it begins in, from 1."""

    line: int
    text: str
    fields: Sequence[str]


def records(path: str, reader: Mapping[str, str]) -> Iterator[TextRecord]:
    """The records of a text file, which is read with these arguments of DuckDB's reader, as SQL.

    Raises csv.Error, OSError and ValueError.
    """
    delimiter, quote, escape, comment, encoding = (
        reader.get(name, "''")[1:-1].replace("''", "'") for name in ("delim", "quote", "escape", "comment", "encoding")
    )
    opened = gzip.open if path.lower().endswith(".gz") else open
    begins, read = 1, list[str]()

    def lines(file: Iterable[str]) -> Iterator[str]:
        nonlocal begins
        for line in file:
            if comment and not read and line.startswith(comment):
                begins += 1
                continue
            read.append(line)
            yield line

    limit = csv.field_size_limit(LONGEST_LINE)
    try:
        with opened(path, "rt", encoding=encoding or "utf-8-sig", errors="replace", newline="") as file:
            for fields in csv.reader(
                lines(file),
                delimiter=delimiter,
                quotechar=quote or None,
                quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
                doublequote=escape in {"", quote},
                escapechar=None if escape in {"", quote} else escape,
            ):
                yield TextRecord(begins, "".join(read).rstrip("\r\n"), fields)
                begins += len(read)
                read.clear()
    finally:
        csv.field_size_limit(limit)


def quote_is_open(path: str, position: int, reader: Mapping[str, str]) -> bool:
    """Whether the record at a position in bytes has a quote that is not closed before the end of the file, or within
    the bytes that a line may have. Raises OSError, EOFError and ValueError."""
    delimiter, quote, escape, encoding = (
        reader.get(name, "''")[1:-1].replace("''", "'") for name in ("delim", "quote", "escape", "encoding")
    )
    if not quote:
        return False
    opened = gzip.open if path.lower().endswith(".gz") else open
    with opened(path, "rb") as file:
        file.seek(position)
        text = file.read(LONGEST_LINE).decode(encoding or "utf-8", "replace")
    doubled = escape in {"", quote}
    limit = csv.field_size_limit(LONGEST_LINE)
    try:
        next(
            csv.reader(
                io.StringIO(text, newline=""),
                delimiter=delimiter,
                quotechar=quote,
                doublequote=doubled,
                escapechar=None if doubled else escape,
                strict=True,
            ),
            None,
        )
    except csv.Error as error:
        return str(error) == _OPEN
    finally:
        csv.field_size_limit(limit)
    return False


def lines_at(path: str, positions: Sequence[int]) -> list[int]:
    """The numbers of the lines at positions in bytes, in order; 0 where they are unknown."""
    if not positions or path.endswith(".zst"):
        # DuckDB counts a value with line breaks as one line.
        return [0] * len(positions)
    opened = gzip.open if path.endswith(".gz") else open
    lines, at, number = [], 0, 1
    with opened(path, "rb") as file:
        for position in positions:
            while at < position and (piece := file.read(min(1 << 20, position - at))):
                number += piece.count(b"\n")
                at += len(piece)
            lines.append(number)
    return lines


def _other_orders(form: str) -> list[str]:
    """The formats of dates with the day, the month and a year of two digits in another order."""
    match = _DATE.fullmatch(form)
    if match is None:
        return []
    first, sign, second, third, rest = match.groups()
    given = first, second, third
    # A year of four digits is not a day.
    orders = ("dmY", "mdY") if third == "Y" else ("dmy", "mdy", "ymd")
    return [sign.join(f"%{part}" for part in order) + rest for order in orders if tuple(order) != given]


def abbreviated(value: str | None, most: int = 60) -> str:
    """A value in quotes, without the end if it is long."""
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}…"
