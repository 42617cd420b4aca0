"""A file of the user's, read by a DuckDB of its own: what is in it, and its rows, converted to the types of a table.

Nothing is sent before all of it was read: the converted rows are kept in a Parquet file among this process's temporary
files, with row groups that are bounded in bytes, and batches are taken from that. Everything here blocks.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import itertools
import re
import secrets
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
from msgspec import Struct

from sqlshell.errors import StatementError, UsageError
from sqlshell.interface.types import Kind, kind
from sqlshell.runtime.empty_files import is_empty
from sqlshell.runtime.gzip_members import damage
from sqlshell.runtime.isolated_duckdb import hide_progress
from sqlshell.runtime.json_arrays import is_marked_array
from sqlshell.runtime.paths import expanded
from sqlshell.runtime.zstd_frames import ENDS_TOO_EARLY, ends_too_early
from sqlshell.shell.loading.column_types import TargetColumn, interface_type, may_be_dropped
from sqlshell.shell.loading.digits import keep_digits, unmarked
from sqlshell.shell.loading.end_of_data import cut_at_end
from sqlshell.shell.loading.exactness import DIGITS, has_fraction, inexact, overflows, whole_number
from sqlshell.shell.loading.file_layout import FileLayout, SourceColumn
from sqlshell.shell.loading.rejects import Reject
from sqlshell.shell.loading.request import LoadRequest
from sqlshell.shell.loading.sniffing import compression_of
from sqlshell.shell.loading.text_checks import (
    ISO_DATE,
    LONGEST_LINE,
    TextChecks,
    TextRecord,
    abbreviated,
    as_texts,
    lines_at,
    quote_is_open,
    records,
)
from sqlshell.sql.duckdb_json_errors import json_error
from sqlshell.sql.duckdb_types import TEXT, is_nested
from sqlshell.sql.identifiers import always_quoted, literal

MEMORY: Final = "1GB"
ROW_GROUP: Final = 40_960
ROW_GROUP_BYTES: Final = 8 << 20
"""Rows and bytes of a row group of the converted rows."""

PIECE: Final = 1 << 20
"""Bytes that are searched at once for different ends of lines."""

LONGEST_MESSAGE: Final = 200
"""Characters of a line of an error."""

REJECTS: Final = 1000
"""Bad rows that are remembered at least, to report the first of them."""

LONGEST_REJECT: Final = 10_000
"""Characters of a bad row that DuckDB keeps."""

FETCHED: Final = 256
"""Rows that are read at once where they become SQL."""

_NULLS: Final = {"csv": "", "text": "\\N"}
_ENCODINGS: Final = {"UTF8": "utf-8", "UTF-8": "utf-8", "LATIN1": "latin-1", "ISO-8859-1": "latin-1", "UTF16": "utf-16"}
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_SEPARATOR: Final = re.compile(rb"(?:\xef\xbb\xbf)?(sep=[!-~])\r?\n", re.I)
_SEPARATOR_LINE: Final = 16
_SHORT: Final = frozenset({Kind.INTEGER, Kind.FLOAT, Kind.BOOLEAN, Kind.DATE, Kind.TIME, Kind.TIMESTAMP})
"""Types that no number is rounded for on its way."""
_FRACTIONAL: Final = ("DOUBLE", "FLOAT", "DECIMAL", "VARCHAR")
_PATTERN: Final = re.compile(r"[*?[=]")
_PACKED: Final = frozenset({".gz", ".zst"})
_ALL: Final = ", sample_size = -1"
_UNDETECTED: Final = "not possible to automatically detect"
_NOT_UTF8: Final = re.compile(r"not utf-8 encoded|invalid UTF-8", re.I)
_LINE_NUMBER: Final = re.compile(r"CSV Error on Line: (\d+)")
ENCODE: Final = "name the encoding of the file, such as --with ENCODING=latin1 (in \\copy: ENCODING latin1)"
CONVERT: Final = "convert it: iconv -f latin1 -t UTF-8 FILE > NEW_FILE"
_FULL: Final = re.compile(r"No space left on device|Disk quota exceeded")
_INVALID: Final = "state machine reached an invalid state"
_ESCAPES: Final = {"b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}


class ConvertedRows(Struct, frozen=True):
    """The converted rows: a Parquet file and its number of rows; and the rows that could not be converted."""

    path: Path
    rows: int
    rejects: tuple[Reject, ...] = ()
    has_more_rejects: bool = False
    """Whether more rows than these may be impossible to convert; they are more than may be skipped then."""


class DataFile:
    """One file; `folder` is for converted rows.

    Every method raises UsageError for a file that cannot be read.
    """

    def __init__(self, request: LoadRequest, folder: Path) -> None:
        self._request = request
        self._folder = folder
        self._path = str(expanded(request.path))
        self._text = request.format in _NULLS
        self._mark = ""
        self._form = ""
        self._connection = duckdb.connect()
        hide_progress(self._connection)
        for setting in (
            f"memory_limit = '{MEMORY}'",
            f"temp_directory = {literal(str(folder / 'spilled'))}",
            "autoinstall_known_extensions = false",
        ):
            self._connection.execute(f"SET {setting}")

    def use_timezone(self, timezone: str) -> None:
        """Set the time zone of times without one, if it is known."""
        if timezone:
            with contextlib.suppress(duckdb.Error):
                self._connection.execute(f"SET TimeZone = {literal(timezone)}")

    def close(self) -> None:
        # After a second Ctrl-C a thread may still use it, and DuckDB refuses to close it; the thread ends soon.
        with contextlib.suppress(duckdb.Error):
            self._connection.close()

    def interrupt(self) -> None:
        """End what runs, in another thread."""
        # It may have been closed.
        with contextlib.suppress(duckdb.Error):
            self._connection.interrupt()

    def look(self, known: Sequence[str]) -> FileLayout:
        """The layout of the file. A first line of names that are `known` is a header."""
        if not Path(self._path).exists():
            raise UsageError(f"cannot read {self._request.name}: no such file")
        if Path(self._path).is_dir():
            raise UsageError(f"{self._request.name} is a directory, not a file")
        if not is_empty(Path(self._path)):
            self._link()
            self._check_beginning()
            self._cut()
        if is_empty(Path(self._path)):
            return self._empty()
        with self._translating_errors():
            return self._look_at_text(known) if self._text else self._look_at_rows()

    def _empty(self) -> FileLayout:
        if self._request.create or self._request.format == "parquet":
            raise UsageError(f"{self._request.name} is empty")
        return FileLayout((), False, "empty")

    def _link(self) -> None:
        """Read this file and no other: DuckDB takes a path for a pattern, and NAME=VALUE in it for a column."""
        if _PATTERN.search(self._path):
            path = Path(self._path)
            packed = path.suffix if path.suffix.lower() in _PACKED else ""
            link = self._folder / f"file{packed}"
            link.symlink_to(path.absolute())
            self._path = str(link)

    def _cut(self) -> None:
        """Read only what is before a line that ends the data: in text, and in CSV that was typed or piped."""
        request = self._request
        csv_ = request.format == "csv" and request.ends
        if not (csv_ or request.format == "text") or self._path.endswith(".zst") or "16" in request.encoding:
            return
        quote = '"' if request.quote is None else request.quote
        escape = quote if request.escape is None else request.escape
        path = self._folder / "data"
        try:
            cut = cut_at_end(Path(self._path), path, *((quote.encode(), escape.encode()) if csv_ else ()))
        except (OSError, EOFError) as error:
            raise UsageError(f"cannot read {request.name}: {error}") from None
        if cut:
            self._path = str(path)

    def _check_beginning(self) -> None:
        """Raises UsageError for a file that is cut off, and for one in another encoding where its format is to be
        detected."""
        request = self._request
        packed = compression_of(Path(self._path))
        if packed and not self._path.lower().endswith(packed) and request.format != "parquet":
            raise UsageError(f"{request.name} is compressed", f"rename it to {request.name}{packed}")
        with Path(self._path).open("rb") as file:
            line = file.readline(_SEPARATOR_LINE)
        head = line[: len(_UTF16[0])]
        if request.format == "csv" and request.header is None and (match := _SEPARATOR.fullmatch(line)):
            raise UsageError(
                f"{request.name}: the first line, {match[1].decode()}, is Excel's separator and not a header",
                "remove the line: tail -n +2 FILE > NEW_FILE",
            )
        if self._path.lower().endswith(".zst") and ends_too_early(Path(self._path)):
            raise UsageError(f"cannot read {request.name}: {ENDS_TOO_EARLY}")
        if self._path.lower().endswith(".gz") and (wrong := damage(Path(self._path))):
            raise UsageError(f"cannot read {request.name}: {wrong}")
        # DuckDB reads only the order of bytes of the first mark.
        if head in _UTF16 and request.format != "parquet" and not (request.encoding and head == _UTF16[0]):
            convert = "convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW_FILE"
            named = "use --with ENCODING=utf16 (in \\copy: ENCODING utf16), or " if self._text else ""
            raise UsageError(f"{request.name} is UTF-16, not UTF-8", (named if head == _UTF16[0] else "") + convert)

    def date_warnings(self, looked: FileLayout, pairs: Sequence[tuple[SourceColumn, TargetColumn]]) -> list[str]:
        """Warnings about ambiguous dates: columns in which 03/04/2026 is April as well as March."""
        with self._translating_errors():
            return TextChecks(self._connection, self._path, self._request.name, looked, pairs).date_warnings()

    def stage(self, looked: FileLayout, pairs: Sequence[tuple[SourceColumn, TargetColumn]], most: int) -> ConvertedRows:
        """Convert all rows; up to `most` bad rows are skipped. The values are those of `pairs`, in their order."""
        path = self._folder / "rows.parquet"
        with self._translating_errors():
            if self._text:
                return self._stage_text(looked, pairs, path, most)
            return self._stage_rows(looked, pairs, path, most)

    def batch(self, staged: ConvertedRows, start: int, stop: int) -> Path:
        """A Parquet file of some of the rows."""
        if (start, stop) == (0, staged.rows):
            return staged.path
        path = self._folder / "batch.parquet"
        with self._translating_errors():
            self._connection.execute(
                f"COPY (SELECT * EXCLUDE file_row_number FROM {_numbered(staged.path)} "
                f"WHERE file_row_number >= {start} AND file_row_number < {stop}) TO {literal(str(path))} ({_PARQUET})"
            )
        return path

    def literals(self, staged: ConvertedRows, targets: Sequence[TargetColumn], start: int) -> Iterator[str]:
        """The rows from one on, each as the list of its values in parentheses, in SQL."""
        values = " || ', ' || ".join(target.literal(f"c{number}") for number, target in enumerate(targets))
        with self._translating_errors():
            cursor = self._connection.execute(
                f"SELECT '(' || {values} || ')' FROM {_numbered(staged.path)} WHERE file_row_number >= {start}"
            )
            while rows := cursor.fetchmany(FETCHED):
                for row in rows:
                    yield str(row[0])

    @contextlib.contextmanager
    def _translating_errors(self) -> Iterator[None]:
        try:
            yield
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            if isinstance(error, duckdb.IOException) and _FULL.search(str(error)):
                raise UsageError(
                    f"cannot load {self._request.name}: the disk of the temporary files is full",
                    "set TMPDIR to a directory on a disk with more space",
                ) from None
            message = str(error).partition("\n\nLINE ")[0].partition("\nPossible ")[0]
            message = message.partition("\nTry ")[0].strip().replace(self._path, self._request.path)
            if _UNDETECTED in message or _INVALID in message:
                mixed = self._mixed()
                raise UsageError(
                    f"cannot detect the format of {self._request.name}: "
                    + ("some lines end in \\r\\n, others in \\n" if mixed else "its rows do not have the same columns"),
                    "give all lines the same ending" if mixed else "name the delimiter, the quote and the escape",
                ) from None
            if _NOT_UTF8.search(message) and not self._request.encoding:
                line = match[1] if (match := _LINE_NUMBER.search(message)) and self._text else ""
                where = f"{self._request.name}, line {line}" if line else self._request.name
                remedy = ENCODE if self._text else CONVERT
                raise UsageError(f"cannot read {where}: the file is not valid UTF-8", remedy) from None
            if wrong := json_error(message):
                raise UsageError(f"cannot read {self._request.name}, {wrong.place}: {_short(wrong.cause)}") from None
            message = "\n".join(map(_short, message.split("\n")))
            raise UsageError(f"cannot read {self._request.name}: {message}") from None

    def _mixed(self) -> bool:
        """Whether lines end in different ways."""
        opened = gzip.open if self._path.endswith(".gz") else open
        pairs = ends = 0
        last = b""
        with opened(self._path, "rb") as file:
            while piece := bytes(file.read(PIECE)):
                pairs += piece.count(b"\r\n") + (last == b"\r" and piece.startswith(b"\n"))
                ends += piece.count(b"\n")
                last = piece[-1:]
        return 0 < pairs < ends

    def _look_at_text(self, known: Sequence[str]) -> FileLayout:
        request, form = self._request, self._request.format
        quote = '"' if request.quote is None else request.quote
        given = {
            "delim": "\t" if form == "text" and request.delimiter is None else request.delimiter,
            # A quote that first appears behind the sample would be read as a character of the value.
            "quote": "" if form == "text" else quote,
            "escape": "" if form == "text" else quote if request.escape is None else request.escape,
        }
        fixed = [(name, literal(value)) for name, value in given.items() if value is not None]
        if request.encoding:
            encoding = _ENCODINGS.get(request.encoding.upper(), request.encoding)
            fixed.append(("encoding", literal(encoding)))
        header = [] if request.header is None else [("header", str(request.header).lower())]
        null = request.null if request.null is not None else _NULLS[form]
        # Without nullstr, a column that contains this text would be read as text.
        nulls = [("nullstr", literal(null))] if null else []
        sniffed = self._sniffed([*fixed, *header, *nulls], known)
        reader = [*sniffed[2], ("nullstr", literal(null)), *fixed]
        named = dict(reader)
        text = ", ".join(filter(None, [_about(named["delim"]), "header" if sniffed[1] else "no header"]))
        about = f"{'tab-separated text' if form == 'text' and given['delim'] == chr(9) else form}, {text}"
        columns = sniffed[0]
        warnings: list[str] = []
        if request.create and (doubles := [column.name for column in columns if column.type == "DOUBLE"]):
            texts = {name: always_quoted(name) for name in doubles}
            columns, warnings = self._exact(columns, as_texts(self._path, named, columns), texts)
        return FileLayout(tuple(columns), sniffed[1], about, tuple(named.items()), tuple(warnings))

    def _exact(
        self, columns: Sequence[SourceColumn], rows: str, texts: Mapping[str, str]
    ) -> tuple[list[SourceColumn], list[str]]:
        """The columns with DECIMAL where a DOUBLE would change a number; and what no type keeps."""
        changed = inexact(self._connection, rows, texts)
        exact, warnings = [], []
        for column in columns:
            needed = changed.get(column.name)
            if needed is not None and needed.decimal:
                column = SourceColumn(column.name, needed.decimal, needed.decimal)
            elif needed is not None:
                warnings.append(
                    f"{self._request.name}, column {column.name}: some numbers have more digits than a DOUBLE can "
                    "store; create the table with a VARCHAR column to keep all digits"
                )
            exact.append(column)
        return exact, warnings

    def _sniffed(
        self, fixed: Sequence[tuple[str, str]], known: Sequence[str]
    ) -> tuple[list[SourceColumn], bool, list[tuple[str, str]]]:
        """The columns, whether they have names, and the arguments of the reader that were not given."""
        try:
            cursor = self._connection.execute(self._sniff(dict(fixed)))
        except duckdb.InvalidInputException as error:
            if _UNDETECTED not in str(error):
                raise
            # In a short file one unterminated quote is enough. It is found again when the rows are read.
            cursor = self._connection.execute(self._sniff(dict(fixed) | {"quote": "''", "escape": "''"}))
        names = [item[0] for item in cursor.description or ()]
        row = cursor.fetchone()
        assert row is not None
        dialect = dict(zip(names, row, strict=True))
        headed = bool(dialect["HasHeader"])
        if len(dialect["Columns"]) == 1 and not any(name == "delim" for name, _ in fixed):
            # Rows that differ in their number of columns keep it from finding the delimiter.
            line = "".join([dialect["Columns"][0]["name"], *self._first(dialect, fixed)])
            if delimiter := next((sign for sign in ",;\t|" if sign in line), ""):
                return self._sniffed([*fixed, ("delim", literal(delimiter))], known)
        if not headed and not any(name == "header" for name, _ in fixed):
            first = self._first(dialect, fixed)
            # A file of texts alone does not show that its first line has names.
            if first and {name.lower() for name in first} <= {name.lower() for name in known}:
                return self._sniffed([*fixed, ("header", "true")], known)
        columns = [self._column(item["name"], item["type"]) for item in dialect["Columns"]]
        reader = [("header", str(headed).lower()), ("skip", str(dialect["SkipRows"]))]
        for option, name in (("Delimiter", "delim"), ("Quote", "quote"), ("Escape", "escape"), ("Comment", "comment")):
            reader.append((name, literal(_bare(dialect[option]))))
        for option, name in (("DateFormat", "dateformat"), ("TimestampFormat", "timestampformat")):
            # Values that a format does not cover, such as infinity and years BC, are read only without one.
            if dialect[option] and not str(dialect[option]).startswith(ISO_DATE):
                reader.append((name, literal(dialect[option])))
        return columns, headed, reader

    def _sniff(self, given: Mapping[str, str]) -> str:
        arguments = "".join(f", {name} = {value}" for name, value in given.items())
        return f"SELECT * FROM sniff_csv({literal(self._path)}, ignore_errors = true, {_LINE}{arguments})"

    def _column(self, name: str, type_: str) -> SourceColumn:
        return SourceColumn(name, type_, interface_type(self._connection.type(type_)))

    def _first(self, dialect: dict[str, Any], fixed: Sequence[tuple[str, str]]) -> list[str]:
        """The values of the first row."""
        given = {"delim": literal(_bare(dialect["Delimiter"])), "quote": literal(_bare(dialect["Quote"]))} | dict(fixed)
        given.pop("header", None)
        arguments = "".join(f", {name} = {value}" for name, value in given.items())
        row = self._connection.execute(
            f"SELECT * FROM read_csv({literal(self._path)}, header = false, all_varchar = true, {_LINE}, "
            f"strict_mode = false, skip = {dialect['SkipRows']}{arguments}) LIMIT 1"
        ).fetchone()
        return [str(value) for value in row] if row is not None else []

    def _look_at_rows(self) -> FileLayout:
        json = self._request.format == "json"
        if json and is_marked_array(Path(self._path)):
            self._form = ", format = 'array'"
        # A key that first appears behind the sample would be left out without a word.
        described = self._connection.execute(f"DESCRIBE FROM {self._rows(_ALL if json else '')}").fetchall()
        # DuckDB has this column for JSON without objects, such as [].
        objectless = json and [row[0] for row in described] == ["json"]
        if objectless and self._connection.execute(f"SELECT 1 FROM {self._rows()} LIMIT 1").fetchone() is None:
            return self._empty()
        if json:
            self._check_keys([str(row[0]) for row in described])
        columns = [self._column(str(row[0]), str(row[1])) for row in described]
        doubles = [column.name for column in columns if column.type == "DOUBLE"]
        warnings = [] if json else self._parquet_warnings()
        if doubles and self._request.create and json and self._keep_digits():
            listed = ", ".join(f"{literal(name)}: 'JSON'" for name in doubles)
            texts = {name: unmarked(f"({always_quoted(name)} ->> '$')", self._mark) for name in doubles}
            columns, warnings = self._exact(columns, self._rows(f", columns = {{{listed}}}"), texts)
        return FileLayout(tuple(columns), True, self._request.format, warnings=tuple(warnings))

    def _parquet_warnings(self) -> list[str]:
        """What DuckDB's reader of Parquet does not keep."""
        columns = self._connection.execute(
            f"SELECT name, type, precision FROM parquet_schema({literal(self._path)}) "
            f"WHERE type = 'INT96' OR (converted_type = 'DECIMAL' AND precision > {DIGITS})"
        ).fetchall()
        return [
            f"{self._request.name}, column {name}: "
            + (
                "timestamps of the type INT96 are read as microseconds; write INT64 to keep nanoseconds"
                if kind_ == "INT96"
                else f"decimals of {precision} digits are read as DOUBLE; write them as strings to keep all digits"
            )
            for name, kind_, precision in columns
        ]

    def _check_keys(self, names: Sequence[str]) -> None:
        """Raises UsageError for keys that differ only in case: DuckDB adds a number to the second one, and finds no
        value by this name."""
        by_name = {name.lower(): name for name in names}
        for name in names:
            key, _, number = name.rpartition("_")
            other = by_name.get(key.lower())
            if other is None or not number.isdigit():
                continue
            counted = f"SELECT count({always_quoted(name)}) FROM"
            detected = self._connection.execute(f"{counted} {self._rows(_ALL)}").fetchall()
            listed = f", columns = {{{literal(name)}: 'JSON'}}"
            if self._connection.execute(f"{counted} {self._rows(listed)}").fetchall() < detected:
                raise UsageError(
                    f"{self._request.name}: the keys {other!r} and {key!r} differ only in case",
                    "give one of them another name",
                )

    def _rows(self, options: str = "") -> str:
        return f"read_{self._request.format}({literal(self._path)}{self._form}{options})"

    def _stage_text(
        self, looked: FileLayout, pairs: Sequence[tuple[SourceColumn, TargetColumn]], path: Path, most: int
    ) -> ConvertedRows:
        texts, values, exact, never_null = [], [], [], []
        # The columns that are texts to the reader: always, and in the first way.
        loose, strict = set[int](), set[int]()
        forced, null = self._request.force_not_null, dict(looked.reader)["nullstr"]
        named_null = {name for name in self._request.force_null if name != "*"}
        for number, (source, target) in enumerate(pairs):
            text = always_quoted(source.name)
            nullable = target.name.lower() in named_null
            if nullable:
                text = f"nullif({text}, {null})"
            if target.name.lower() in forced or "*" in forced:
                # DuckDB's own option is about other columns if not all are read.
                if target.has_encoded_text or target.converted == TEXT:
                    text = f"coalesce({text}, {null})"
                else:
                    never_null.append((number, target))
            if self._request.format == "text" and (target.has_encoded_text or target.converted == TEXT):
                text = _unescaped(text)
            texts.append(f"{text} AS t{number}, {always_quoted(source.name)} AS raw{number}")
            value = target.from_text(f"t{number}", self._request.binary)
            given_format = dict(looked.reader).get(_format_option(target), "") if target.instant else ""
            # DuckDB's own option is about all columns, and NULL within quotes is not a value of another type.
            as_text = target.has_encoded_text or (nullable and target.converted != TEXT)
            if as_text:
                loose.add(number)
                if given_format:
                    value = f"CAST(strptime(t{number}, {given_format}) AS {target.converted})"
                elif nullable and target.whole:
                    # > makes the text invalid as a number; unlike error(), it is not a volatile function.
                    sign = f"CASE WHEN {has_fraction(f't{number}')} THEN '>' ELSE '' END"
                    value = f"CAST({sign} || t{number} AS {target.converted})"
            elif target.whole or (target.instant and not given_format):
                # The reader would round fractions, and drop what follows a date.
                strict.add(number)
            values.append(value if as_text else f"t{number}")
            exact.append(
                whole_number(f"t{number}", target.converted)
                if target.whole
                else value
                if number in strict
                else values[-1]
            )
        limit = max(REJECTS, most + 1)
        # A row has at most one for each column.
        most_errors = limit * len(looked.columns)
        names = {source.name: source.name if looked.named else target.name for source, target in pairs}
        checks = TextChecks(self._connection, self._path, self._request.name, looked, pairs)

        def rows(converted: Container[int], rejects: str) -> str:
            """The rows that the reader can convert, with the columns by number that are not left as texts; the table of
            the other rows exists when all were read.
            """
            types = {
                source.name: target.converted for number, (source, target) in enumerate(pairs) if number in converted
            }
            columns = ", ".join(
                f"{literal(each.name)}: {literal(types.get(each.name, TEXT))}" for each in looked.columns
            )
            arguments = dict(looked.reader) | {
                "auto_detect": "false",
                "allow_quoted_nulls": str("*" in self._request.force_null).lower(),
                "max_line_size": str(LONGEST_LINE),
                "store_rejects": "true",
                "rejects_limit": str(most_errors),
                "rejects_table": literal(rejects),
                "rejects_scan": literal(f"{rejects}_scan"),
                "columns": f"{{{columns}}}",
            }
            given = ", ".join(f"{name} = {value}" for name, value in arguments.items())
            return f"(SELECT {', '.join(texts)} FROM read_csv({literal(self._path)}, {given}))"

        # This suffices for most files. The slower ways find the place of an error.
        everything = set(range(len(pairs)))
        select = f"SELECT {_numbered_columns(exact)} FROM {rows(everything - loose - strict, 'doubted')}"
        count = self._copy_if_exact(select, "doubted", path)
        if count is not None:
            checks.check(path, count)
            self._check_never_null(never_null, path)
            return ConvertedRows(path, count)
        for number in self._with_dropped_text(
            {each: exact[each] for each in strict if pairs[each][1].instant}, rows((), "dates")
        ):
            loose.add(number)
            values[number] = exact[number]
        chosen, read = _numbered_columns(values), everything - loose
        wrong: list[tuple[Any, ...]] = []
        table = "rejects"
        try:
            count = self._copy(f"SELECT {chosen} FROM {rows(read, table)}", path)
            rejects = self._rejects(table, names, dict(looked.reader))
        except (duckdb.ConversionException, duckdb.InvalidInputException):
            if not loose:
                raise
            # DuckDB's error says which value is wrong, but not where.
            tests = " ".join(f"WHEN TRY(({values[number]}) IS NULL) IS NULL THEN {number}" for number in sorted(loose))
            which = f"CASE {tests} END"
            shown = " ".join(f"WHEN {number} THEN [raw{number}, t{number}]" for number in loose)
            wrong = self._connection.execute(
                f"SELECT which, CASE which {shown} END FROM (SELECT *, {which} AS which FROM {rows((), 'scanned')}) "
                f"WHERE which IS NOT NULL LIMIT {limit}"
            ).fetchall()
            if not wrong:
                raise
            table = "rejects_of_reader"
            count = self._copy(f"SELECT {chosen} FROM {rows(read, table)} WHERE {which} IS NULL", path)
            rejects = self._rejects(table, names, dict(looked.reader))
            wrong_values = [(pairs[number], *details) for number, details in wrong]
            more = self._with_wrong_values(rejects, looked, wrong_values)
            rejects = tuple(sorted([*rejects, *more], key=lambda item: item.line))
        checks.check_fractions()
        checks.check(path, count + len(rejects))
        self._check_never_null(never_null, path)
        cut_off = f"SELECT count(*) >= {most_errors} FROM {table}"
        has_more = len(wrong) >= limit or bool(self._connection.execute(cut_off).fetchall()[0][0])
        return ConvertedRows(path, count, rejects, has_more)

    def _copy_if_exact(self, select: str, rejects: str, path: Path) -> int | None:
        """The number of rows; None if a row cannot be converted, or whole_number() refuses a value."""
        try:
            count = self._copy(select, path)
        except (duckdb.ConversionException, duckdb.InvalidInputException):
            return None
        return None if self._connection.execute(f"FROM {rejects} LIMIT 1").fetchone() else count

    def _with_dropped_text(self, values: Mapping[int, str], rows: str) -> list[int]:
        """The numbers of the columns with a date of which the reader may drop something, or that is before Christ.
        `values` are the expressions that convert dates in full, `rows` has all values as texts."""
        if not values:
            return []
        tests = (f"bool_or({may_be_dropped(f't{number}', value)})" for number, value in values.items())
        dropped = self._connection.execute(f"SELECT {', '.join(tests)} FROM {rows}").fetchall()[0]
        return [number for number, seen in zip(values, dropped, strict=True) if seen]

    def _check_never_null(self, columns: Iterable[tuple[int, TargetColumn]], path: Path) -> None:
        for number, target in columns:
            empty = f"SELECT 1 FROM {_numbered(path)} WHERE c{number} IS NULL LIMIT 1"
            if self._connection.execute(empty).fetchone() is not None:
                raise UsageError(
                    f"{self._request.name}, column {target.name}: FORCE_NOT_NULL reads NULL as text, which cannot be "
                    f"converted to {target.type}",
                    "omit the column from FORCE_NOT_NULL",
                )

    def _with_wrong_values(
        self,
        known: Sequence[Reject],
        looked: FileLayout,
        wrong: Iterable[tuple[tuple[SourceColumn, TargetColumn], str, str]],
    ) -> Iterator[Reject]:
        """The rows with wrong values, which are given in the order of the file: each with its column, its text in the
        file and the text that it stands for. Those that are `known` are left out."""
        records = self._records(looked)
        # The lines of compressed rows that DuckDB rejects are not known.
        lines = set[int]() if self._path.lower().endswith(".zst") else {item.line for item in known}
        rows = {item.row for item in known}
        for (source, target), raw, text in wrong:
            at, column = looked.columns.index(source), source.name if looked.named else target.name
            record = next((each for each in records if each.fields[at] == raw), TextRecord(0, raw, ()))
            if record.line not in lines and record.text not in rows:
                yield Reject(
                    record.line,
                    column,
                    f"cannot convert {abbreviated(text)} to {target.type}",
                    record.text,
                    quoted=not text,
                )

    def _records(self, looked: FileLayout) -> Iterator[TextRecord]:
        """The records behind the header with the right number of fields, up to one that Python cannot read."""
        reader, width = dict(looked.reader), len(looked.columns)
        skipped, headed = int(reader["skip"]), reader["header"] == "true"
        with contextlib.suppress(csv.Error, OSError, ValueError):
            behind = (each for each in records(self._unpacked_text(), reader) if each.line > skipped)
            for each in itertools.islice(behind, headed, None):
                if len(each.fields) == width or (len(each.fields) == width + 1 and not each.fields[-1]):
                    yield each

    def _unpacked_text(self) -> str:
        """A path with the text of the file, which Python can read."""
        if not self._path.lower().endswith(".zst"):
            return self._path
        path, end = self._folder / "unpacked.txt", literal("\x01")
        cursor = self._connection.execute(
            f"SELECT line FROM read_csv({literal(self._path)}, columns = {{line: 'VARCHAR'}}, auto_detect = false, "
            f"header = false, delim = {end}, quote = '', escape = '', {_LINE}, ignore_errors = true)"
        )
        with path.open("w", encoding="utf-8", newline="") as file:
            while rows := cursor.fetchmany(FETCHED):
                file.writelines(f"{row[0] or ''}\n" for row in rows)
        return str(path)

    def _rejects(self, table: str, names: Mapping[str, str], reader: Mapping[str, str]) -> tuple[Reject, ...]:
        """The bad rows, each once, with the lines that they begin in; `names` are those that columns go by.

        Raises StatementError if the last one begins with a quote that is not closed: it is the rest of the file.
        """
        rows = self._connection.execute(
            "SELECT line_byte_position, min(line), arg_min(column_name, column_idx), "
            "arg_min(error_message, column_idx), any_value(csv_line), bool_or(error_type = 'INVALID ENCODING'), "
            "bool_or(error_type = 'CAST'), bool_or(error_type = 'UNQUOTED VALUE') "
            f"FROM {table} "
            "GROUP BY line_byte_position ORDER BY line_byte_position"
        ).fetchall()
        lines = lines_at(self._path, [int(row[0]) for row in rows])
        if rows and rows[-1][7]:
            self._check_quote(int(rows[-1][0]), lines[-1] or int(rows[-1][1]), reader)
        return tuple(
            Reject(
                line or int(row[1]),
                names.get(row[2], row[2] or ""),
                _reason(row[3]),
                _whole(row[4] or ""),
                bool(row[5]),
                bool(row[6]) and '""' in (row[4] or ""),
            )
            for line, row in zip(lines, rows, strict=True)
        )

    def _check_quote(self, position: int, line: int, reader: Mapping[str, str]) -> None:
        with contextlib.suppress(OSError, EOFError, ValueError):
            if quote_is_open(self._unpacked_text(), position, reader):
                raise StatementError(
                    f"{self._request.name}, line {line:,}: unterminated quoted field: its quote is not closed before "
                    "the end of the file",
                    "nothing was sent; close the quote, or read quotes as text: --with \"QUOTE ''\" "
                    "(in \\copy: QUOTE '')",
                )

    def _stage_rows(
        self, looked: FileLayout, pairs: Sequence[tuple[SourceColumn, TargetColumn]], path: Path, most: int
    ) -> ConvertedRows:
        json = self._request.format == "json"
        read, mark, values, texts = "", "", [], []
        if json:
            columns = ", ".join(f"{literal(source.name)}: 'JSON'" for source, _ in pairs)
            read = f", columns = {{{columns}}}"
            exact = any(each.converted == TEXT or kind(each.type) not in _SHORT for _, each in pairs)
            mark = self._keep_digits() if exact else self._mark
        for source, target in pairs:
            name = always_quoted(source.name)
            text = f"({name} ->> '$')" if json else name
            if mark and is_nested(target.converted):
                name = unmarked(f"{name}::VARCHAR", mark)
                text = unmarked(text, mark)
            elif mark:
                text = unmarked(text, mark)
            texts.append(text)
            if json and kind(target.type) is Kind.FLOAT and target.converted != TEXT:
                # Infinity would be taken for the number; with > the text is not a number.
                text = f"CASE WHEN {overflows(text, target.converted)} THEN '>' || {text} ELSE {text} END"
            elif kind(target.type) is Kind.INTEGER and (json or source.type.startswith(_FRACTIONAL)):
                # The number would be rounded; with > the text is not a number.
                text = f"{text}::VARCHAR"
                refused = f"CAST(CAST('>' || {text} AS BIGINT) AS VARCHAR)"
                text = f"CASE WHEN {has_fraction(text)} THEN {refused} ELSE {text} END"
            value = target.from_text(
                name if json and is_nested(target.converted) else text, "base64" if json else "hex"
            )
            if not json and (target.has_encoded_text or target.instant) and source.type != TEXT:
                value = f"CAST({name} AS {target.converted})"
            elif not json and source.type == "BLOB" and target.converted == TEXT:
                value = f"to_base64({name})"
            values.append(value)
        chosen = _numbered_columns(values)
        try:
            return ConvertedRows(path, self._copy(f"SELECT {chosen} FROM {self._rows(read)}", path))
        except (duckdb.ConversionException, duckdb.InvalidInputException) as error:
            # DuckDB's error says which value is wrong, but not where.
            failed = error
        wrong = [f"TRY(({value}) IS NULL) IS NULL" for value in values]
        numbered = f"(SELECT *, row_number() OVER () AS __row FROM {self._rows(read)})"
        which = "CASE " + " ".join(f"WHEN {test} THEN {number}" for number, test in enumerate(wrong)) + " END"
        shown = ", ".join(f"({text})::VARCHAR" for text in texts)
        bad = self._connection.execute(
            f"SELECT __row, which, list_value({shown})[which + 1], to_json(list_value({shown})) "
            f"FROM (SELECT *, {which} AS which FROM {numbered}) WHERE which IS NOT NULL ORDER BY __row "
            f"LIMIT {max(REJECTS, most + 1)}"
        ).fetchall()
        rejects = tuple(
            Reject(
                int(row[0]),
                pairs[int(row[1])][0].name,
                f"cannot convert {abbreviated(row[2])} to {pairs[int(row[1])][1].type}",
                row[3],
            )
            for row in bad
        )
        if not rejects:
            # The file is damaged.
            raise failed
        if len(rejects) > most:
            return ConvertedRows(path, 0, rejects, len(rejects) >= max(REJECTS, most + 1))
        good = f"SELECT {chosen} FROM {self._rows(read)} WHERE NOT coalesce({' OR '.join(wrong)}, false)"
        rows = self._copy(good, path)
        return ConvertedRows(path, rows, rejects)

    def _keep_digits(self) -> str:
        """Read another file, in which numbers are texts with the mark that is returned; "" if none needs it."""
        if self._mark:
            return self._mark
        mark, path = f"number-{secrets.token_hex(8)}:", self._folder / "digits.json"
        try:
            if not keep_digits(self._unpacked(), path, mark):
                return ""
        except (OSError, EOFError) as error:
            raise UsageError(f"cannot read {self._request.name}: {error}") from None
        self._path, self._mark = str(path), mark
        return mark

    def _unpacked(self) -> str:
        """A path with the JSON of the file, which Python can read."""
        if not self._path.lower().endswith(".zst"):
            return self._path
        path = self._folder / "unpacked.json"
        cursor = self._connection.execute(f"SELECT json FROM read_json_objects({literal(self._path)})")
        with path.open("w", encoding="utf-8") as file:
            while rows := cursor.fetchmany(FETCHED):
                file.writelines(f"{row[0]}\n" for row in rows)
        return str(path)

    def _copy(self, select: str, path: Path) -> int:
        self._connection.execute(f"COPY ({select}) TO {literal(str(path))} ({_PARQUET})")
        row = self._connection.fetchone()
        return int(row[0]) if row else 0


_LINE: Final = f"max_line_size = {LONGEST_LINE}"
_PARQUET: Final = (
    "FORMAT parquet, PARQUET_VERSION V2, COMPRESSION snappy, "
    f"ROW_GROUP_SIZE {ROW_GROUP}, ROW_GROUP_SIZE_BYTES {ROW_GROUP_BYTES}"
)


def _format_option(target: TargetColumn) -> str:
    """The argument of DuckDB's reader with the format of the column's dates."""
    return "dateformat" if target.converted == "DATE" else "timestampformat"


def _numbered_columns(values: Iterable[str]) -> str:
    return ", ".join(f"{value} AS c{number}" for number, value in enumerate(values))


def _numbered(path: Path) -> str:
    return f"read_parquet({literal(str(path))}, file_row_number = true)"


def _bare(option: Any) -> str:
    return "" if option == "(empty)" else str(option)


def _about(delimiter: str) -> str:
    shown = delimiter.strip("'")
    return "" if shown in {"\t", ","} else f"separated by {shown or 'nothing'}"


def _unescaped(value: str) -> str:
    """SQL for a text of COPY's text format without its backslashes: those of a pair stand for themselves."""
    part = "p"
    for letter, code in _ESCAPES.items():
        part = f"replace({part}, '\\{letter}', chr({code}))"
    # Any other character stands for itself.
    part = f"regexp_replace({part}, '\\\\([^0-9x])', '\\1', 'g')"
    whole = f"array_to_string(list_transform(string_split({value}, '\\\\'), lambda p: {part}), '\\')"
    return f"CASE WHEN contains({value}, '\\') THEN {whole} ELSE {value} END"


def _whole(row: str) -> str:
    """A bad row, with a mark where DuckDB has cut it."""
    return row if len(row) < LONGEST_REJECT else f"{row}… (truncated)"


def _reason(message: str) -> str:
    """DuckDB's reason without the column, which the message names itself."""
    return _short(message.partition('". ')[2] or message)


def _short(line: str) -> str:
    """A line without the middle of a long value."""
    return line if len(line) <= LONGEST_MESSAGE else f"{line[: LONGEST_MESSAGE // 2]}…{line[-LONGEST_MESSAGE // 4 :]}"
