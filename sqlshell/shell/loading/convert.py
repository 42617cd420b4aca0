"""The rows of a file converted to the types of a table, in one scan, and the rows that cannot be converted exactly.

Each value is read as a text. Where the expression of its column gives NULL for a text, the row is a bad one. All rows
are kept in a Parquet file among this process's temporary files, in the order of the source, and nothing is sent before
all of them were read. Everything here blocks.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
from msgspec import Struct
from msgspec.structs import replace

from sqlshell.errors import StatementError
from sqlshell.interface.types import Kind, kind
from sqlshell.shell.loading.inspect import LINES, LONGEST_LINE, NOT_BLANK, PLAIN, DataFile, keys_differ_in_case, short
from sqlshell.shell.loading.spec import FileLayout, SourceColumn, TargetColumn
from sqlshell.shell.loading.types import MOST_DIGITS, as_json, exact, fits, nested, rounds, staged_type
from sqlshell.sql.duckdb_types import BYTES, TEXT, is_nested
from sqlshell.sql.identifiers import always_quoted, literal
from sqlshell.text import format_count

ROW_GROUP: Final = 40_960
ROW_GROUP_BYTES: Final = 8 << 20
"""Rows and bytes of a row group of the converted rows."""

REJECTS: Final = 1000
"""Bad rows that are remembered at least, to report the first of them."""

LONGEST_REJECT: Final = 10_000
"""Characters of a bad row that DuckDB keeps."""

LONGEST_QUOTED: Final = 60
"""Characters of a value that a message quotes."""

FETCHED: Final = 256
"""Rows that are read at once where they become SQL."""

Pairs = Sequence[tuple[SourceColumn, TargetColumn]]

_MALFORMED: Final = -1
_TWICE: Final = -2
_BLANK: Final = -3
"""Numbers in place of that of a column: the record is not an object, has a key twice, or is an empty line."""

_MALFORMED_JSON: Final = "malformed JSON"
_JSON_TYPES: Final = {"VARCHAR": "string", **dict.fromkeys(("BIGINT", "UBIGINT", "DOUBLE"), "number")}
"""The names of DuckDB's types in JSON, where they are others."""
_STRINGS_AND_NUMBERS: Final = r'("(?:[^"\\]|\\.)*")|(-?[0-9][-+.0-9eE]*)'
_CHANGED: Final = r"^([{\[]|-?[0-9]+[.eE])"
"""Texts of JSON in which a DOUBLE may have been written in another way."""
_MARK: Final = secrets.token_hex(8)
_COMPARED: Final = 100
"""The maximum number of digits with which a DOUBLE is written for the comparison; longer numbers count as changed."""
_WIDE: Final = ("DOUBLE", "HUGEINT")
"""Types of numbers that may have more digits than a column of a new table."""
_CERTAIN: Final = 15
"""Digits that a DOUBLE always holds."""
_DATE: Final = re.compile(r"%([dmy])(\W)%([dmy])\2%([dmyY])(.*)", re.DOTALL)
_OPEN: Final = "unexpected end of data"
_WRONG_WIDTH: Final = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
_ESCAPES: Final = {"b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_PARQUET: Final = (
    "FORMAT parquet, PARQUET_VERSION V2, COMPRESSION snappy, "
    f"ROW_GROUP_SIZE {ROW_GROUP}, ROW_GROUP_SIZE_BYTES {ROW_GROUP_BYTES}"
)


class Reject(Struct, frozen=True):
    """A row that cannot be converted; `line` is its number from 1, `column` "" where none is to blame."""

    line: int
    column: str
    error: str
    row: str
    encoded: bool = False
    """Whether it is not text in the encoding of the file."""
    quoted: bool = False
    """Whether the value may be an empty text within quotes."""
    rounded: bool = False
    """Whether ROUND would load it."""


class ConvertedRows(Struct, frozen=True):
    """The converted rows: a Parquet file and its number of rows."""

    path: Path
    rows: int


class Scan:
    """The one scan of a file, whose columns go to those of a table in `pairs`.

    run() is first. Every method raises UsageError for a file that cannot be read.
    """

    def __init__(self, file: DataFile, layout: FileLayout, pairs: Pairs) -> None:
        self._file = file
        self._request = file.request
        self._layout = layout
        self._pairs = pairs
        self._connection = file.connection
        self._path = file.folder / "staged.parquet"
        self._limit = max(REJECTS, self._request.max_errors + 1)
        # The numbers of a new table may have more digits than its type, which shows itself when all are there.
        undecided = self._request.create and self._request.format != "parquet"
        self._undecided = [number for number, (source, _) in enumerate(pairs) if undecided and source.type in _WIDE]

    def run(self) -> None:
        """Read and convert all rows."""
        for table in ("rejects", "scans"):
            self._connection.execute(f"DROP TABLE IF EXISTS {table}")
        numbers = range(len(self._pairs))
        values = ", ".join(f"{self._value(number)} AS c{number}" for number in numbers)
        read = f"SELECT *, {values} FROM ({self._texts()})"
        bad = " ".join(f"WHEN {self._is_bad(number)} THEN {number}" for number in numbers)
        bad = f"CASE {'WHEN bad IS NOT NULL THEN bad ' if self._request.format == 'json' else ''}{bad} END"
        wrong = " ".join(f"WHEN {number} THEN t{number}::{TEXT}" for number in numbers)
        texts = ", ".join(f"t{number}::{TEXT}" for number in numbers)
        row = {"json": "j", "parquet": f"to_json(list_value({texts}))"}.get(self._request.format, "NULL")
        unseen = "unseen" if self._request.format == "json" else "NULL"
        kept = ", ".join(f"c{number}" for number in numbers)
        with self._file.translating_errors():
            self._connection.execute(
                f"COPY (SELECT {kept}, bad_, CASE bad_ {wrong} END AS wrong, "
                f"CASE WHEN bad_ IS NOT NULL THEN {row} END AS row_, {unseen}::{TEXT} AS unseen "
                f"FROM (SELECT *, {bad} AS bad_ FROM ({read}))) TO {literal(str(self._path))} ({_PARQUET})"
            )

    @property
    def _staged(self) -> str:
        return f"read_parquet({literal(str(self._path))}, file_row_number = true)"

    def _texts(self) -> str:
        """SQL of the rows with the text of each column, named t and its number; nested values also as JSON, named j."""
        texts = ", ".join(f"{self._text(number)} AS t{number}" for number in range(len(self._pairs)))
        rejects = (
            f", store_rejects = true, rejects_limit = {self._limit * max(1, len(self._layout.columns))}, "
            "rejects_table = 'rejects', rejects_scan = 'scans'"
        )
        match self._request.format:
            case "parquet":
                rows = f"SELECT {texts} FROM {self._layout.rows})"
            case "json":
                rows = f"SELECT j, bad, unseen, {texts} FROM ({self._records(rejects if self._layout.lines else '')})"
            case _:
                columns = ", ".join(f"{literal(column.name)}: '{TEXT}'" for column in self._layout.columns)
                nulls = str("*" in self._request.force_null).lower()
                rows = (
                    f"SELECT {texts} FROM {self._layout.rows}, columns = {{{columns}}}, "
                    f"allow_quoted_nulls = {nulls}{rejects})"
                )
        as_json_ = [
            f"{as_json(target.type, f't{number}')} AS j{number}"
            for number, (_, target) in enumerate(self._pairs)
            if self._reads_nested(number)
        ]
        return f"SELECT *, {', '.join(as_json_)} FROM ({rows})" if as_json_ else rows

    def _records(self, options: str) -> str:
        """SQL of the records of JSON: their texts, the values by key, what is wrong with them, and a key that was not
        seen when the columns were."""
        names = [column.name for column in self._layout.columns]
        known = f"[{', '.join(map(literal, names))}]"
        shape = literal(json.dumps(dict.fromkeys(names, TEXT)))
        missed = f"NOT list_contains({known}, key)"
        if self._request.columns:
            # Other keys are not loaded.
            lower = f"[{', '.join(literal(name.lower()) for name in names)}]"
            missed += f" AND list_contains({lower}, lower(key))"
        rows = f"SELECT j, CASE WHEN json_valid(j) THEN json_keys(j) END AS keys FROM {self._layout.rows}{options})"
        rows += " AS records(j)" if self._layout.lines else f" AS records(j) WHERE {NOT_BLANK}"
        # In most records nothing else is looked at.
        known_keys = (
            f"SELECT *, CASE WHEN keys = {known} THEN true WHEN keys IS NULL THEN false "
            f"ELSE json_type(j) = 'OBJECT' END AS whole FROM ({rows})"
        )
        return (
            f"SELECT j, from_json(CASE WHEN whole THEN j END, {shape}) AS record, "
            f"CASE WHEN keys = {known} THEN NULL WHEN NOT coalesce({NOT_BLANK}, false) THEN {_BLANK} "
            f"WHEN NOT whole THEN {_MALFORMED} WHEN len(list_distinct(keys)) < len(keys) THEN {_TWICE} END AS bad, "
            f"CASE WHEN keys <> {known} THEN list_filter(keys, lambda key: {missed})[1] END AS unseen "
            f"FROM ({known_keys})"
        )

    def _text(self, number: int) -> str:
        """SQL for the text of a column; in Parquet, for its value."""
        source, target = self._pairs[number]
        text = always_quoted(source.name)
        if self._request.format == "parquet":
            return text
        staged = staged_type(target.type)
        if self._request.format == "json":
            text = f"record.{text}"
            of_digits = staged == TEXT or number in self._undecided or kind(target.type) is Kind.DECIMAL
            return _with_digits(text, source.name, as_written=staged == TEXT) if of_digits else text
        null, name = dict(self._layout.reader)["nullstr"], target.name.lower()
        if name in self._request.force_null:
            text = f"nullif({text}, {null})"
        if {name, "*"} & set(self._request.force_not_null):
            text = f"coalesce({text}, {null})"
        if self._request.format == "text" and (staged in {TEXT, BYTES} or is_nested(staged)):
            text = _unescaped(text)
        return text

    def _reads_nested(self, number: int) -> bool:
        """Whether nested values are read from a text."""
        source, target = self._pairs[number]
        return is_nested(staged_type(target.type)) and (self._request.format != "parquet" or source.type == TEXT)

    def _value(self, number: int) -> str:
        """SQL for the value of a column; NULL if it is not exactly the one of the file."""
        source, target = self._pairs[number]
        text, request = f"t{number}", self._request
        if self._reads_nested(number):
            record, key = ("j", source.name) if request.format == "json" else ("", "")
            value = nested(target.type, f"j{number}", record, key)
            return (
                f"CASE WHEN json_valid(j{number}) THEN CASE WHEN {fits(target.type, f'j{number}')} THEN {value} END END"
            )
        if request.format == "parquet":
            return self._stored_value(source, target.type, text)
        if number in self._undecided:
            return f"CASE WHEN ({exact('DOUBLE', text)}) IS NOT NULL THEN trim({text}) END"
        return self._exact(number, text)

    def _exact(self, number: int, text: str, *, rounding: bool = False) -> str:
        source, target = self._pairs[number]
        request, form = self._request, self._layout.date_format(source)
        binary = "base64" if request.format == "json" else request.binary
        return exact(target.type, text, binary=binary, form=form, rounding=rounding or request.round)

    def _is_bad(self, number: int) -> str:
        """SQL: whether the value of a column is not that of the file."""
        test = f"c{number} IS NULL AND t{number} IS NOT NULL"
        return f"{test} AND trim(t{number}) <> 'null'" if self._reads_nested(number) else test

    def _stored_value(self, source: SourceColumn, declared: str, value: str) -> str:
        """SQL for a value of Parquet, which has a type."""
        staged, rounding = staged_type(declared), self._request.round
        if source.type == BYTES and staged == TEXT:
            return f"to_base64({value})"
        if TEXT in {staged, source.type} or source.type.startswith("ENUM"):
            return exact(declared, f"{value}::{TEXT}", binary="hex", rounding=rounding)
        if self._connection.type(source.type) == self._connection.type(staged):
            return value
        # TRY_CAST gives NULL for a wrong part of a nested value.
        cast = f"TRY(CAST({value} AS {staged}))" if is_nested(staged) else f"TRY_CAST({value} AS {staged})"
        if kind(declared) is Kind.FLOAT:
            return f"CASE WHEN isfinite({cast}) OR NOT isfinite(TRY_CAST({value} AS DOUBLE)) THEN {cast} END"
        if rounding:
            return cast
        return f"CASE WHEN TRY(CAST({cast} AS {source.type})) IS NOT DISTINCT FROM {value} THEN {cast} END"

    def unseen_key(self) -> str:
        """A key of a record that is no column; "" for none. Raises UsageError if it differs from one only in case."""
        row = self._connection.execute(f"SELECT unseen FROM {self._staged} WHERE unseen IS NOT NULL LIMIT 1").fetchone()
        key = str(row[0]) if row else ""
        for column in self._layout.columns:
            if key and column.name.lower() == key.lower():
                raise keys_differ_in_case(self._request.name, column.name, key)
        return key

    def new_types(self) -> tuple[list[str], list[str]]:
        """The types of the columns of a new table, and warnings: DECIMAL where a DOUBLE would change a number."""
        types, warnings = [target.type for _, target in self._pairs], []
        for number in self._undecided:
            type_ = self._type_for(f"c{number}", integers=self._pairs[number][0].type == _WIDE[-1])
            types[number] = type_ or "DOUBLE"
            if not type_:
                warnings.append(
                    f'{self._request.name}, column "{self._pairs[number][0].name}": some numbers have more digits than '
                    "a DOUBLE can store; create the table with a VARCHAR column to keep all digits"
                )
        return types, warnings

    def _type_for(self, text: str, *, integers: bool) -> str:
        """The type that keeps all digits of the numbers in a staged column; "" if there is none. For `integers` that is
        no DOUBLE.

        A number is unchanged if the DOUBLE, written with as many digits, is the same: 0.1, but also
        0.10000000000000001, which is how C and R write all digits of a DOUBLE.
        """

        def significant(number: str) -> str:
            return f"trim(regexp_replace(regexp_replace({number}, '[eE].*', ''), '[^0-9]', '', 'g'), '0')"

        digits, double = significant(text), f"TRY_CAST({text} AS DOUBLE)"
        written = f"format('{{:.{{}}e}}', {double}, least(length({digits}), {_COMPARED}) - 1)"
        changed = (
            f"CASE WHEN length({text}) <= {_CERTAIN} OR NOT isfinite({double}) THEN false "
            f"WHEN length({digits}) <= {_CERTAIN} THEN false ELSE {significant(written)} <> {digits} END"
        )
        row = self._connection.execute(
            f"SELECT bool_or({changed}), max(length(ltrim(split_part({text}, '.', 1), '+-0'))), "
            f"max(length(split_part({text}, '.', 2))), bool_or(NOT regexp_full_match({text}, '[+-]?[0-9]*[.]?[0-9]*')) "
            f"FROM {self._staged} WHERE bad_ IS NULL"
        ).fetchone()
        lossy, whole, places, scientific = row or (False, 0, 0, False)
        if not (lossy or integers):
            return "DOUBLE"
        return "" if scientific or whole + places > MOST_DIGITS else f"DECIMAL({MOST_DIGITS},{places})"

    def date_warnings(self) -> list[str]:
        """Warnings about ambiguous dates: columns in which 03/04/2026 is April as well as March."""
        messages = []
        for number, (source, target) in enumerate(self._pairs):
            form = self._layout.date_format(source) if kind(target.type) in {Kind.DATE, Kind.TIMESTAMP} else ""
            for other in _other_orders(form[1:-1]):
                example = self._connection.execute(
                    "SELECT first(text), first(strftime(mine, '%Y-%m-%d')), first(strftime(theirs, '%Y-%m-%d')) FROM ("
                    f"SELECT c{number} AS mine, strftime(c{number}, {form}) AS text, "
                    f"try_strptime(text, {literal(other)}) AS theirs FROM {self._staged} "
                    f"WHERE isfinite(c{number})) HAVING bool_and(theirs IS NOT NULL) AND bool_or(mine <> theirs)"
                ).fetchone()
                if example is not None:
                    messages.append(
                        f'{self._request.name}, column "{source.name}": {example[0]} is read as {example[1]}, but may '
                        f"be {example[2]}; write dates as YYYY-MM-DD"
                    )
                    break
        return messages

    def rows(self, types: Sequence[str]) -> ConvertedRows:
        """The good rows, in columns of these types."""
        values = ", ".join(
            f"CAST(c{number} AS {type_}) AS c{number}" if number in self._undecided else f"c{number}"
            for number, type_ in enumerate(types)
        )
        path = self._file.folder / "rows.parquet"
        with self._file.translating_errors():
            count = _copy(self._connection, f"SELECT {values} FROM {self._staged} WHERE bad_ IS NULL", path)
        self._path.unlink()
        return ConvertedRows(path, count)

    def rejects(self) -> tuple[list[Reject], bool]:
        """The bad rows, in the order of the file, and whether there may be more: as many as may be skipped, and one
        more, or REJECTS, are enough. Raises StatementError for a quote that is not closed: it is the rest of the file.
        """
        rounded = " ".join(
            f"WHEN {number} THEN ({self._exact(number, 'wrong', rounding=True)})::{TEXT}"
            for number, (_, target) in enumerate(self._pairs)
            if rounds(target.type) and not self._request.round
        )
        result = f"CASE bad_ {rounded} END" if rounded else "NULL"
        converted = self._connection.execute(
            f"SELECT file_row_number, bad_, wrong, row_, {result} FROM {self._staged} WHERE bad_ > {_BLANK} "
            f"ORDER BY file_row_number LIMIT {self._limit}"
        ).fetchall()
        unreadable = [] if self._request.format == "parquet" or not self._has_rejects() else self._unreadable()
        if not converted and not unreadable:
            return [], False
        names = [self._shown_name(source, target) for source, target in self._pairs]
        wrong = {row: self._reject(names, bad, *details) for row, bad, *details in converted}
        malformed = [row for row, reject in wrong.items() if reject.error == _MALFORMED_JSON]
        for row in malformed[:REJECTS]:
            wrong[row] = replace(wrong[row], error=self._why_malformed(wrong[row].row))
        with self._file.translating_errors():
            found = self._placed(wrong, unreadable) if self._file.text else _numbered(wrong, unreadable)
        rejects = sorted(found, key=lambda item: item.line)[: self._limit]
        return rejects, len(rejects) >= self._limit

    def _has_rejects(self) -> bool:
        return self._file.text or self._layout.lines

    def _shown_name(self, source: SourceColumn, target: TargetColumn) -> str:
        return source.name if self._layout.named else target.name

    def _reject(self, names: Sequence[str], bad: int, text: str | None, row: str | None, rounded: str | None) -> Reject:
        if bad == _TWICE:
            keys = json.loads(row or "{}", object_pairs_hook=lambda pairs: [key for key, _ in pairs])
            twice = next(key for key in keys if keys.count(key) > 1)
            return Reject(0, "", f'the key "{twice}" appears twice in an object', row or "")
        if bad == _MALFORMED:
            return Reject(0, "", _MALFORMED_JSON, row or "")
        target = self._pairs[bad][1]
        error = f"cannot convert {abbreviated(text)} to {target.type}"
        if rounded is not None:
            error += f": it would become {rounded}"
        quoted = not text and self._request.format == "csv"
        return Reject(0, names[bad], error, row or "", quoted=quoted, rounded=rounded is not None)

    def _why_malformed(self, record: str) -> str:
        try:
            found = self._connection.execute("SELECT json_type(?::JSON)", [record]).fetchone()
        except duckdb.Error as error:
            place = re.search(r"at byte (\d+) of input: ([^\n]+?)\.?\s+Input", str(error))
            return f"malformed JSON at byte {int(place[1]) + 1}: {place[2]}" if place else _MALFORMED_JSON
        type_ = str(found[0]) if found else "nothing"
        return f"expected an object, found {_JSON_TYPES.get(type_, type_).lower()}"

    def _unreadable(self) -> list[tuple[int, Reject, bool]]:
        """The rows that DuckDB's reader rejects: their numbers among all lines outside of quotes, and whether a quote
        is not closed."""
        rows = self._connection.execute(
            "SELECT line, arg_min(column_name, column_idx), first(error_message ORDER BY column_idx), "
            "any_value(csv_line), bool_or(error_type = 'INVALID ENCODING'), bool_or(error_type = 'UNQUOTED VALUE') "
            f"FROM rejects GROUP BY line ORDER BY line LIMIT {self._limit}"
        ).fetchall()
        names = {source.name: self._shown_name(source, target) for source, target in self._pairs}
        unreadable = []
        for line, column, message, text, encoded, quote in rows:
            shown = names.get(column, column or "") if self._file.text else ""
            error = _WRONG_WIDTH.sub(_width, short(message.partition('". ')[2] or message))
            unreadable.append((int(line), Reject(int(line), shown, error, text or "", bool(encoded)), bool(quote)))
        return unreadable

    def _placed(self, wrong: Mapping[int, Reject], unreadable: Sequence[tuple[int, Reject, bool]]) -> Iterator[Reject]:
        """Bad rows of a text file with their lines and texts, which are found by reading it once more, up to the last
        one."""
        by_line = {line: (reject, quote) for line, reject, quote in unreadable}
        width, row, left = len(self._layout.columns), 0, dict(wrong)
        with contextlib.suppress(csv.Error, OSError, EOFError, ValueError):
            for record in self._text_records():
                if record.number in by_line:
                    reject, quote = by_line.pop(record.number)
                    if quote and self._is_open(record.text):
                        raise self._unterminated(record.line)
                    yield _with_place(reject, record.line, record.text)
                elif _has_width(record.fields, width):
                    if (found := left.pop(row, None)) is not None:
                        yield _with_place(found, record.line, record.text)
                    row += 1
                if not by_line and not left:
                    return
        # What Python does not read has no line, or that of DuckDB.
        for reject, quote in by_line.values():
            if quote:
                raise self._unterminated(reject.line)
            yield reject
        yield from left.values()

    def _unterminated(self, line: int) -> StatementError:
        return StatementError(
            f"{self._request.name}, line {line:,}: unterminated quoted field: its quote is not closed before the end "
            "of the file",
            "nothing was sent; close the quote, or read quotes as text: --with \"QUOTE ''\" "
            "(in \\copy: WITH (QUOTE ''))",
        )

    def _option(self, name: str) -> str:
        return dict(self._layout.reader).get(name, "''")[1:-1].replace("''", "'")

    def _csv(self) -> dict[str, Any]:
        """The arguments of Python's reader."""
        quote, escape = self._option("quote"), self._option("escape")
        doubled = escape in {"", quote}
        return {
            "delimiter": self._option("delim"),
            "quotechar": quote or None,
            "quoting": csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
            "doublequote": doubled,
            "escapechar": None if doubled else escape,
        }

    def _is_open(self, record: str) -> bool:
        """Whether a quote of a record is not closed."""
        try:
            next(csv.reader(io.StringIO(record, newline=""), strict=True, **self._csv()), None)
        except csv.Error as error:
            return str(error) == _OPEN
        return False

    def _text_records(self) -> Iterator[TextRecord]:
        """The records of a text file behind its header. Raises csv.Error, OSError, EOFError and ValueError."""
        path, encoding, comment = self._file.path, self._option("encoding") or "utf-8-sig", self._option("comment")
        if self._file.packed:
            path, encoding = self._unpacked(), "utf-8-sig"
        skipped, headed = int(dict(self._layout.reader)["skip"]), dict(self._layout.reader)["header"] == "true"
        begins = number = 1
        read: list[str] = []

        def lines(file: Iterator[str]) -> Iterator[str]:
            nonlocal begins, number
            for line in file:
                if begins <= skipped or (comment and not read and line.startswith(comment)):
                    begins, number = begins + 1, number + 1
                    continue
                read.append(line)
                yield line

        limit = csv.field_size_limit(LONGEST_LINE)
        opened = gzip.open if path.lower().endswith(".gz") else open
        try:
            with opened(path, "rt", encoding=encoding, errors="replace", newline="") as file:
                for fields in csv.reader(lines(file), **self._csv()):
                    if not headed:
                        yield TextRecord(number, begins, "".join(read).rstrip("\r\n"), fields)
                    headed, number = False, number + 1
                    begins += len(read)
                    read.clear()
        finally:
            csv.field_size_limit(limit)

    def _unpacked(self) -> str:
        """A path with the text of a file that Python cannot read."""
        path = self._file.folder / "unpacked.txt"
        lines = f"read_csv({literal(self._file.path)}, {LINES}, max_line_size = {LONGEST_LINE}, ignore_errors = true)"
        self._connection.execute(f"COPY (FROM {lines}) TO {literal(str(path))} ({PLAIN})")
        return str(path)


class TextRecord(Struct, frozen=True):
    """A record of a text file: its number among all lines outside of quotes, the line that it begins in, its text and
    its fields."""

    number: int
    line: int
    text: str
    fields: Sequence[str]


def batch(file: DataFile, converted: ConvertedRows, start: int, stop: int) -> Path:
    """A Parquet file of some of the rows."""
    if (start, stop) == (0, converted.rows):
        return converted.path
    path = file.folder / "batch.parquet"
    rows = f"read_parquet({literal(str(converted.path))}, file_row_number = true)"
    with file.translating_errors():
        chosen = f"file_row_number >= {start} AND file_row_number < {stop}"
        _copy(file.connection, f"SELECT * EXCLUDE file_row_number FROM {rows} WHERE {chosen}", path)
    return path


def _copy(connection: duckdb.DuckDBPyConnection, select: str, path: Path) -> int:
    """Write rows to a Parquet file, and count them."""
    row = connection.execute(f"COPY ({select}) TO {literal(str(path))} ({_PARQUET})").fetchone()
    return int(row[0]) if row else 0


def abbreviated(value: str | None) -> str:
    """A value in quotes, without the end if it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST_QUOTED else f"{text[:LONGEST_QUOTED]}…"


def _with_place(reject: Reject, line: int, row: str = "") -> Reject:
    cut = row if len(row) < LONGEST_REJECT else f"{row[:LONGEST_REJECT]}… (truncated)"
    return replace(reject, line=line, row=cut or reject.row)


def _width(match: re.Match[str]) -> str:
    return f"expected {format_count(int(match[1]), 'column')}, found {match[2]}"


def _has_width(fields: Sequence[str], width: int) -> bool:
    """Whether a record has one field for each column. DuckDB allows an empty one more, and no line without a field."""
    return len(fields) == width or (len(fields) == width + 1 and not fields[-1]) or (width == 1 and not fields)


def _numbered(wrong: Mapping[int, Reject], unreadable: Sequence[tuple[int, Reject, bool]]) -> Iterator[Reject]:
    """Bad rows with their numbers in the file: unreadable ones are not among the converted ones."""
    before = sorted(line for line, _, _ in unreadable)
    for row, reject in wrong.items():
        number = row + 1
        for line in before:
            number += line <= number
        yield _with_place(reject, number)
    for _, reject, _ in unreadable:
        yield reject


def _with_digits(text: str, key: str, *, as_written: bool) -> str:
    """SQL for the text of a value of JSON with the digits of its numbers as they are in the record `j`: DuckDB's
    functions have those of a DOUBLE, and therefore read them here as strings, with a mark at each end. Unless the value
    is wanted `as_written`, 1.1 may stand for 1.10."""
    shape = literal(json.dumps({key: TEXT}))
    # Behind other strings is an empty one, which is removed.
    marked = f"regexp_replace(j, {literal(_STRINGS_AND_NUMBERS)}, '\\1\"{_MARK}\\2{_MARK}\"', 'g')"
    marked = f"replace({marked}, '\"{_MARK}{_MARK}\"', '')"
    exact = f"from_json({marked}, {shape}).{always_quoted(key)}"
    for mark in (f'"{_MARK}', f'{_MARK}"', _MARK):
        exact = f"replace({exact}, '{mark}', '')"
    changed = f"regexp_matches({text}, {literal(_CHANGED)})"
    if not as_written:
        changed += f" AND regexp_matches(j, '[0-9.]{{{_CERTAIN + 1}}}')"
    return f"CASE WHEN {changed} THEN {exact} ELSE {text} END"


def _unescaped(value: str) -> str:
    """SQL for a text of COPY's text format without its backslashes: those of a pair stand for themselves."""
    part = "p"
    for letter, code in _ESCAPES.items():
        part = f"replace({part}, '\\{letter}', chr({code}))"
    # Any other character stands for itself.
    part = f"regexp_replace({part}, '\\\\([^0-9x])', '\\1', 'g')"
    whole = f"array_to_string(list_transform(string_split({value}, '\\\\'), lambda p: {part}), '\\')"
    return f"CASE WHEN contains({value}, '\\') THEN {whole} ELSE {value} END"


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
