"""A file of the user's, looked at by a DuckDB of its own: whether it can be read, how, and what its columns are.

Everything here blocks.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import mmap
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Final

import duckdb
from msgspec.structs import replace

from sqlshell.errors import MISSING, UsageError
from sqlshell.runtime.compressed_files import ENDS_TOO_EARLY, damage, ends_too_early, is_empty, is_marked_array
from sqlshell.runtime.files import expanded
from sqlshell.runtime.isolated_duckdb import hide_progress
from sqlshell.shell.loading.spec import FileLayout, LoadRequest, SourceColumn, compression_of
from sqlshell.sql.duckdb_json_errors import json_error
from sqlshell.sql.identifiers import always_quoted, literal

MEMORY: Final = "1GB"
LONGEST_LINE: Final = 16 << 20
"""Bytes of a line."""

BUFFER: Final = 2 * LONGEST_LINE
"""Bytes that DuckDB reads at once. By its own default it reads all of most files, also for their first line."""

SAMPLE: Final = 20_480
"""Records that are looked at for the keys of JSON, as DuckDB does by default."""

LONGEST_MESSAGE: Final = 200
"""Characters of a line of an error."""

ISO_DATE: Final = "%Y-%m-%d"
ENCODE: Final = "name the encoding of the file, such as --with ENCODING=latin1 (in \\copy: WITH (ENCODING latin1))"
CONVERT: Final = "convert it with: iconv -f latin1 -t UTF-8 FILE > NEW_FILE"
_SIGNS: Final = (
    r"""set delimiter and quote: --with "DELIMITER ';', QUOTE '\"'" (in \copy: WITH (DELIMITER ';', QUOTE '"'))"""
)
_DIGITS: Final = 38
_NULLS: Final = {"csv": "", "text": "\\N"}
_ENCODINGS: Final = {"UTF8": "utf-8", "UTF-8": "utf-8", "LATIN1": "latin-1", "ISO-8859-1": "latin-1", "UTF16": "utf-16"}
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_SEPARATOR: Final = re.compile(rb"(?:\xef\xbb\xbf)?(sep=[!-~])\r?\n", re.I)
_SEPARATOR_LINE: Final = 16
_PATTERN: Final = re.compile(r"[*?[=]")
_PACKED: Final = frozenset({".gz", ".zst"})
_UNDETECTED: Final = "not possible to automatically detect"
_NOT_UTF8: Final = re.compile(r"not utf-8 encoded|invalid UTF-8", re.I)
_LINE_NUMBER: Final = re.compile(r"CSV Error on Line: (\d+)")
_FULL: Final = re.compile(r"No space left on device|Disk quota exceeded")
_INVALID: Final = "state machine reached an invalid state"
_NO_OBJECT: Final = ["json"]
"""The columns that DuckDB finds where not every record is an object."""

_NUMBERED: Final = re.compile(r"_\d+$")
_SAME: Final = frozenset({"decimal", "boolean", "tinyint", "smallint", "integer", "bigint", "float", "double", "date"})
_OTHER: Final = {
    "timestamp with time zone": "TIMESTAMP_LTZ(6)",
    "timestamp_tz": "TIMESTAMP_LTZ(6)",
    "timestamptz_ns": "TIMESTAMP_LTZ(9)",
    **dict.fromkeys(("timestamp", "timestamp_s", "timestamp_ms", "timestamp_us"), "TIMESTAMP(6)"),
    "timestamp_ns": "TIMESTAMP(9)",
    "time": "TIME(6)",
    "time_ns": "TIME(9)",
    "blob": "VARBINARY",
    "utinyint": "SMALLINT",
    "usmallint": "INTEGER",
    "uinteger": "BIGINT",
    "ubigint": "DECIMAL(38,0)",
    "hugeint": "DECIMAL(38,0)",
}
"""The interface's names of DuckDB's types."""

LINES: Final = (
    "auto_detect = false, columns = {j: 'VARCHAR'}, header = false, delim = '', quote = '', escape = '', "
    "strict_mode = false"
)
"""Arguments of DuckDB's reader for the lines of a file, as texts."""

PLAIN: Final = "FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER E'\\x01'"
"""Options of COPY for texts, each on a line."""

NOT_BLANK: Final = "trim(j, ' \t\r') <> ''"
IS_OBJECT: Final = (
    "CASE WHEN json_valid(j) THEN json_type(j) = 'OBJECT' AND len(list_distinct(json_keys(j))) = len(json_keys(j)) "
    "ELSE false END"
)
"""SQL: whether a line is a record, and whether a record can be read."""


class DataFile:
    """One file; `folder` is for temporary files.

    Every method raises UsageError for a file that cannot be read.
    """

    def __init__(self, request: LoadRequest, folder: Path) -> None:
        self.request = request
        self.folder = folder
        self.path = str(expanded(request.path))
        self.connection = duckdb.connect()
        hide_progress(self.connection)
        for setting in (
            f"memory_limit = '{MEMORY}'",
            f"temp_directory = {literal(str(folder / 'spilled'))}",
            "autoinstall_known_extensions = false",
        ):
            self.connection.execute(f"SET {setting}")

    @property
    def text(self) -> bool:
        """Whether the file is csv or COPY's text format."""
        return self.request.format in _NULLS

    @property
    def packed(self) -> bool:
        """Whether only DuckDB reads it, and Python does not."""
        return self.path.lower().endswith(".zst")

    def use_timezone(self, timezone: str) -> None:
        """Set the time zone of times without one, if it is known."""
        if timezone:
            with contextlib.suppress(duckdb.Error):
                self.connection.execute(f"SET TimeZone = {literal(timezone)}")

    def close(self) -> None:
        # After a second Ctrl-C a thread may still use it, and DuckDB refuses to close it; the thread ends soon.
        with contextlib.suppress(duckdb.Error):
            self.connection.close()

    def interrupt(self) -> None:
        """End what runs, in another thread."""
        # It may have been closed.
        with contextlib.suppress(duckdb.Error):
            self.connection.interrupt()

    def opened(self) -> gzip.GzipFile | BinaryIO:
        """The bytes of the file, without gzip."""
        return gzip.open(self.path) if self.path.lower().endswith(".gz") else Path(self.path).open("rb")

    def look(self, known: Sequence[str]) -> FileLayout:
        """The layout of the file. A first line of names that are `known` is a header."""
        path = Path(self.path)
        if not path.exists():
            raise UsageError(f"cannot read {self.request.name}: {MISSING}")
        if path.is_dir():
            raise UsageError(f"{self.request.name} is a directory, not a file")
        if not is_empty(path):
            self._link()
            self._check_beginning()
            self._cut()
        if is_empty(Path(self.path)):
            return self._empty()
        with self.translating_errors():
            if self.text:
                return self._look_at_text(known)
            return self._look_at_parquet() if self.request.format == "parquet" else self._look_at_json()

    def look_again(self, layout: FileLayout) -> FileLayout:
        """The layout of JSON, of which all records are looked at for keys."""
        with self.translating_errors():
            return self._with_keys(layout, complete=True)

    def _empty(self) -> FileLayout:
        if self.request.create or self.request.format == "parquet":
            raise UsageError(f"{self.request.name} is empty")
        return FileLayout((), False, "empty")

    def _link(self) -> None:
        """Read this file and no other: DuckDB takes a path for a pattern, and NAME=VALUE in it for a column."""
        if _PATTERN.search(self.path):
            path = Path(self.path)
            link = self.folder / f"file{path.suffix if path.suffix.lower() in _PACKED else ''}"
            link.symlink_to(path.absolute())
            self.path = str(link)

    def _check_beginning(self) -> None:
        """Raises UsageError for a file that is cut off or damaged, and for what would be read as something else."""
        request, path = self.request, Path(self.path)
        packed = compression_of(path)
        if packed and not self.path.lower().endswith(packed) and request.format != "parquet":
            raise UsageError(f"{request.name} is compressed", f"rename it to {request.name}{packed}")
        with path.open("rb") as file:
            line = file.readline(_SEPARATOR_LINE)
        head = line[: len(_UTF16[0])]
        if request.format == "csv" and request.header is None and (match := _SEPARATOR.fullmatch(line)):
            raise UsageError(
                f"{request.name}: the first line, {match[1].decode()}, is Excel's separator and not a header",
                "remove the line: tail -n +2 FILE > NEW_FILE",
            )
        if self.packed and ends_too_early(path):
            raise UsageError(f"cannot read {request.name}: {ENDS_TOO_EARLY}")
        if self.path.lower().endswith(".gz") and (wrong := damage(path)):
            raise UsageError(f"cannot read {request.name}: {wrong}")
        # DuckDB reads only the order of bytes of the first mark.
        if head in _UTF16 and request.format != "parquet" and not (request.encoding and head == _UTF16[0]):
            convert = "convert it with: iconv -f UTF-16 -t UTF-8 FILE > NEW_FILE"
            named = "use --with ENCODING=utf16 (in \\copy: WITH (ENCODING utf16)), or " if self.text else ""
            raise UsageError(f"{request.name} is UTF-16, not UTF-8", (named if head == _UTF16[0] else "") + convert)

    def _cut(self) -> None:
        """Read only what is before a line that ends the data: in text, and in CSV that was typed or piped."""
        request = self.request
        of_csv = request.format == "csv" and request.ends
        if not (of_csv or request.format == "text") or self.packed or "16" in request.encoding:
            return
        quote = '"' if request.quote is None else request.quote
        escape = quote if request.escape is None else request.escape
        try:
            with self.opened() as file:
                length = end_of_data(file, *((quote.encode(), escape.encode()) if of_csv else ()))
            if length is None:
                return
            path = self.folder / "data"
            with self.opened() as file, path.open("wb") as copy:
                while length and (piece := file.read(min(LONGEST_LINE, length))):
                    copy.write(piece)
                    length -= len(piece)
        except (OSError, EOFError) as error:
            raise UsageError(f"cannot read {request.name}: {error}") from None
        self.path = str(path)

    def _size(self) -> str:
        """The arguments of DuckDB's reader about sizes. It drops a line that is longer than its buffer in silence: with
        one that may be, and where that is not known, it chooses its buffer itself."""
        limit = f"max_line_size = {LONGEST_LINE}"
        if self.path.lower().endswith(tuple(_PACKED)) or has_long_line(Path(self.path)):
            return limit
        return f"{limit}, buffer_size = {BUFFER}"

    @contextlib.contextmanager
    def translating_errors(self) -> Iterator[None]:
        """Raise DuckDB's errors as UsageError, but not that it was interrupted."""
        try:
            yield
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            raise self._translated(error) from None

    def _translated(self, error: duckdb.Error) -> UsageError:
        name = self.request.name
        if isinstance(error, duckdb.IOException) and _FULL.search(str(error)):
            return UsageError(
                f"cannot load {name}: the disk of the temporary files is full",
                "set TMPDIR to a directory on a disk with more space",
            )
        message = str(error).partition("\n\nLINE ")[0].partition("\nPossible ")[0]
        message = message.partition("\nTry ")[0].strip().replace(self.path, self.request.path)
        if _UNDETECTED in message or _INVALID in message:
            if self._mixed():
                why, remedy = "some lines end in \\r\\n, others in \\n", "give all lines the same ending"
            else:
                why, remedy = "its rows do not have the same columns", _SIGNS
            return UsageError(f"cannot detect the format of {name}: {why}", remedy)
        if _NOT_UTF8.search(message) and not self.request.encoding:
            line = match[1] if (match := _LINE_NUMBER.search(message)) and self.text else ""
            where = f"{name}, line {line}" if line else name
            remedy = ENCODE if self.text else CONVERT
            return UsageError(f"{where}: invalid UTF-8", remedy)
        if wrong := json_error(message):
            return UsageError(f"cannot read {name}, {wrong.place}: {short(wrong.cause)}")
        return UsageError(f"cannot read {name}: " + "\n".join(map(short, message.split("\n"))))

    def _mixed(self) -> bool:
        """Whether lines end in different ways."""
        if self.packed:
            return False
        pairs = ends = 0
        with self.opened() as file:
            for line in file:
                pairs += line.endswith(b"\r\n")
                ends += line.endswith(b"\n")
        return 0 < pairs < ends

    def _look_at_text(self, known: Sequence[str]) -> FileLayout:
        request, form = self.request, self.request.format
        quote = '"' if request.quote is None else request.quote
        given = {
            "delim": "\t" if form == "text" and request.delimiter is None else request.delimiter,
            # A quote that first appears behind the sample would be read as a character of the value.
            "quote": "" if form == "text" else quote,
            "escape": "" if form == "text" else quote if request.escape is None else request.escape,
        }
        fixed = {name: literal(value) for name, value in given.items() if value is not None}
        if request.encoding:
            fixed["encoding"] = literal(_ENCODINGS.get(request.encoding.upper(), request.encoding))
        null = literal(request.null if request.null is not None else _NULLS[form])
        sniffed = dict(fixed)
        if request.header is not None:
            sniffed["header"] = str(request.header).lower()
        if null != "''":
            # Without it, a column that contains this text would be read as text.
            sniffed["nullstr"] = null
        size = self._size()
        columns, headed, found = self._sniffed(sniffed, known, size)
        reader = {**found, "nullstr": null, **fixed}
        delimiter = reader["delim"][1:-1]
        separated = "" if delimiter in {"\t", ","} else f"separated by {delimiter or 'nothing'}"
        shown = "tab-separated text" if form == "text" and given["delim"] == "\t" else form
        about = ", ".join(filter(None, [shown, separated, "header" if headed else "no header"]))
        read = {name: value for name, value in reader.items() if name not in {"dateformat", "timestampformat"}}
        options = "".join(f", {name} = {value}" for name, value in read.items())
        rows = f"read_csv({literal(self.path)}, auto_detect = false, {size}{options}"
        renamed = self._renamed(columns, reader, size) if headed and request.create else ()
        return FileLayout(tuple(columns), headed, about, rows, tuple(reader.items()), warnings=renamed)

    def _renamed(self, columns: Sequence[SourceColumn], reader: Mapping[str, str], size: str) -> tuple[str, ...]:
        """A warning about names of which a table has one, because they differ only in case or not at all: DuckDB adds
        numbers to them."""
        if not any(_NUMBERED.search(column.name) for column in columns):
            return ()
        given = {name: value for name, value in reader.items() if name in {"delim", "quote", "encoding", "skip"}}
        names = zip(self._first(given, size), (column.name for column in columns), strict=False)
        changed = [f"{name} to {new}" for name, new in names if name != new]
        return (f"{self.request.name}: duplicate column names were changed: {', '.join(changed)}",) if changed else ()

    def _sniffed(
        self, given: Mapping[str, str], known: Sequence[str], size: str
    ) -> tuple[list[SourceColumn], bool, dict[str, str]]:
        """The columns, whether they have names, and the arguments of the reader that were found."""

        def sniff(arguments: Mapping[str, str]) -> dict[str, Any]:
            options = "".join(f", {name} = {value}" for name, value in arguments.items())
            cursor = self.connection.execute(
                f"SELECT * FROM sniff_csv({literal(self.path)}, ignore_errors = true, {size}{options})"
            )
            names = [item[0] for item in cursor.description or ()]
            return dict(zip(names, cursor.fetchone() or (), strict=True))

        try:
            dialect = sniff(given)
        except duckdb.InvalidInputException as error:
            if _UNDETECTED not in str(error):
                raise
            # In a short file one unterminated quote is enough. It is found again when the rows are read.
            dialect = sniff({**given, "quote": "''", "escape": "''"})
        if (comment := _bare(dialect["Comment"])) and "comment" not in given:
            # Only lines before the header are left out: the reader would also cut values at the sign.
            skip = str(self._commented(comment, given, size))
            return self._sniffed({**given, "comment": "''", "skip": skip}, known, size)
        headed = bool(dialect["HasHeader"])
        found = {"delim": literal(_bare(dialect["Delimiter"])), "quote": literal(_bare(dialect["Quote"]))}
        first = {**found, **given, "skip": str(dialect["SkipRows"])}
        first.pop("header", None)
        if len(dialect["Columns"]) == 1 and "delim" not in given:
            # Rows that differ in their number of columns keep it from finding the delimiter.
            line = "".join([dialect["Columns"][0]["name"], *self._first(first, size)])
            if delimiter := next((sign for sign in ",;\t|" if sign in line), ""):
                return self._sniffed({**given, "delim": literal(delimiter)}, known, size)
        if not headed and "header" not in given:
            names = {name.lower() for name in self._first(first, size)}
            # A file of texts alone does not show that its first line has names.
            if names and names <= {name.lower() for name in known}:
                return self._sniffed({**given, "header": "true"}, known, size)
        columns = [self._column(item["name"], item["type"]) for item in dialect["Columns"]]
        reader = {"header": str(headed).lower(), "skip": str(dialect["SkipRows"])}
        for option, name in (("Delimiter", "delim"), ("Quote", "quote"), ("Escape", "escape"), ("Comment", "comment")):
            reader[name] = literal(_bare(dialect[option]))
        for option, name in (("DateFormat", "dateformat"), ("TimestampFormat", "timestampformat")):
            # Values that a format does not cover, such as infinity and years BC, are read only without one.
            if dialect[option] and not str(dialect[option]).startswith(ISO_DATE):
                reader[name] = literal(dialect[option])
        return columns, headed, reader

    def _commented(self, sign: str, given: Mapping[str, str], size: str) -> int:
        """The number of lines at the beginning that begin with the sign."""
        encoding = f", encoding = {given['encoding']}" if "encoding" in given else ""
        rows = self.connection.execute(
            f"SELECT j FROM read_csv({literal(self.path)}, {LINES}, {size}{encoding}) LIMIT {SAMPLE}"
        ).fetchall()
        return sum(1 for _ in itertools.takewhile(lambda row: (row[0] or sign).lstrip("\ufeff").startswith(sign), rows))

    def _first(self, arguments: Mapping[str, str], size: str) -> list[str]:
        """The values of the first row."""
        options = "".join(f", {name} = {value}" for name, value in arguments.items())
        row = self.connection.execute(
            f"SELECT * FROM read_csv({literal(self.path)}, header = false, all_varchar = true, {size}, "
            f"strict_mode = false{options}) LIMIT 1"
        ).fetchone()
        return [str(value) for value in row] if row is not None else []

    def _column(self, name: str, type_: str) -> SourceColumn:
        return SourceColumn(name, type_, interface_type(self.connection.type(type_)))

    def _look_at_parquet(self) -> FileLayout:
        path = literal(self.path)
        found = self.connection.execute(f"DESCRIBE FROM read_parquet({path})").fetchall()
        columns = tuple(self._column(*row[:2]) for row in found)
        lost = self.connection.execute(
            f"SELECT name, type, precision FROM parquet_schema({path}) "
            f"WHERE type = 'INT96' OR (converted_type = 'DECIMAL' AND precision > {_DIGITS})"
        ).fetchall()
        warnings = [
            f'{self.request.name}, column "{name}": '
            + (
                "timestamps of the type INT96 are read as microseconds; write INT64 to keep nanoseconds"
                if kind == "INT96"
                else f"decimals of {precision} digits are read as DOUBLE; write them as strings to keep all digits"
            )
            for name, kind, precision in lost
        ]
        return FileLayout(columns, True, "parquet", f"read_parquet({path}", warnings=tuple(warnings))

    def _look_at_json(self) -> FileLayout:
        """The layout of JSON: a record a line, each of which is read by itself, or an array, or records over several
        lines."""
        path = literal(self.path)
        lines = f"read_csv({path}, {LINES}, {self._size()}"
        first = self.connection.execute(
            f"SELECT ltrim(j), json_valid(j) FROM {lines}, ignore_errors = true) WHERE {NOT_BLANK} LIMIT 1"
        )
        begins, valid = first.fetchone() or ("", False)
        ending = PurePath(self.request.name.lower().removesuffix(".gz").removesuffix(".zst")).suffix
        if begins.startswith("{") and (valid or ending in {".jsonl", ".ndjson"}):
            layout = FileLayout((), True, "json", lines, lines=True)
        else:
            form = "array" if is_marked_array(Path(self.path)) else "auto"
            layout = FileLayout((), True, "json", f"read_json_objects({path}, format = '{form}'")
        return self._with_keys(layout, complete=self.request.create)

    def _with_keys(self, layout: FileLayout, *, complete: bool) -> FileLayout:
        """The layout with the keys of the records as columns, and the types of their values."""
        path, rows = literal(self.path), layout.rows.replace("read_json_objects", "read_json", 1)
        if layout.lines:
            rows = f"read_json({path}, format = 'newline_delimited', ignore_errors = true"
        sample = f", sample_size = {-1 if complete else SAMPLE})"
        try:
            found = self.connection.execute(f"DESCRIBE FROM {rows}{sample}").fetchall()
        except duckdb.InvalidInputException:
            if not layout.lines:
                raise
            # A key appears twice in a record.
            found = []
        if [row[0] for row in found] in ([], _NO_OBJECT):
            if self.connection.execute(f"FROM {layout.records} WHERE {NOT_BLANK} LIMIT 1").fetchone() is None:
                return self._empty()
            objects = self._objects(layout)
            if not objects:
                return self._look_at_json()
            found = self.connection.execute(f"DESCRIBE FROM read_json({objects}{sample}").fetchall()
        columns = tuple(self._column(str(row[0]), str(row[1])) for row in found)
        self._check_cases([column.name for column in columns], layout)
        return replace(layout, columns=columns, complete=complete)

    def _objects(self, layout: FileLayout) -> str:
        """A file with the records that are objects, as SQL. "" if there is none: then all are read as values of a
        column that is called json, as in DuckDB."""
        path = self.folder / "objects.jsonl"
        objects, records = literal(str(path)), f"FROM {layout.records}"
        self.connection.execute(f"COPY (SELECT json(j)::VARCHAR {records} WHERE {IS_OBJECT}) TO {objects} ({PLAIN})")
        if self.connection.execute(f"FROM read_json_objects({objects}) LIMIT 1").fetchone() is not None:
            return objects
        if layout.lines:
            # DuckDB says where they are malformed.
            self.connection.execute(f"FROM read_json({literal(self.path)}, format = 'newline_delimited') LIMIT 1")
            raise UsageError(f"{self.request.name}: no record is an object")
        value = "translate(j, E'\\r\\n', '  ')"
        self.connection.execute(f"COPY (SELECT '{{\"json\":' || {value} || '}}' {records}) TO {objects} ({PLAIN})")
        self.path = str(path)
        return ""

    def _check_cases(self, names: Sequence[str], layout: FileLayout) -> None:
        """Raises UsageError for keys that differ only in case. DuckDB adds a number to one of them."""
        for name in names:
            key = _NUMBERED.sub("", name)
            other = next((each for each in names if each != key and each.lower() == key.lower()), "")
            is_key = f"CASE WHEN json_valid(j) THEN list_contains(json_keys(j), {literal(name)}) END"
            if other and not self.connection.execute(f"FROM {layout.records} WHERE {is_key} LIMIT 1").fetchone():
                raise keys_differ_in_case(self.request.name, other, key)


def has_long_line(path: Path) -> bool:
    """Whether a line may have twice LONGEST_LINE bytes: then a part of the file of LONGEST_LINE bytes has no end."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            starts = range(0, len(data) - LONGEST_LINE + 1, LONGEST_LINE)
            return any(data.find(b"\n", start, start + LONGEST_LINE) < 0 for start in starts)
    except (OSError, ValueError):
        # A device, or a file of the kernel without a size.
        return True


def end_of_data(file: gzip.GzipFile | BinaryIO, quote: bytes = b"", escape: bytes = b"") -> int | None:
    """The bytes before a line that is `\\.`, which ends COPY's data; None without one. Within quotes it is a value.

    Raises OSError and EOFError.
    """
    escaped = re.compile(re.escape(escape) + rb"[\s\S]") if quote and escape not in {b"", quote} else None
    at, quoted = 0, False
    for line in iter(partial(file.readline, LONGEST_LINE), b""):
        if not quoted and line.rstrip(b"\r\n") == b"\\.":
            return at
        if quote and quote in line:
            quoted ^= (escaped.sub(b"", line) if escaped else line).count(quote) % 2 == 1
        at += len(line)
    return None


def keys_differ_in_case(name: str, one: str, other: str) -> UsageError:
    """The error for two keys of JSON that are one column."""
    return UsageError(f"{name}: the keys {one!r} and {other!r} differ only in case", "give one of them another name")


def short(line: str) -> str:
    """A line without the middle of a long value."""
    return line if len(line) <= LONGEST_MESSAGE else f"{line[: LONGEST_MESSAGE // 2]}…{line[-LONGEST_MESSAGE // 4 :]}"


def _bare(option: Any) -> str:
    return "" if option == "(empty)" else str(option)


def interface_type(type_: Any) -> str:
    """The interface's name of a type of DuckDB's, for CREATE TABLE."""
    name = str(type_.id)
    children = dict(type_.children) if name in {"list", "array", "struct", "map"} else {}
    match name:
        case "list" | "array":
            return f"ARRAY<{interface_type(children['child'])}>"
        case "map":
            return f"MAP<{interface_type(children['key'])}, {interface_type(children['value'])}>"
        case "struct":
            parts = (f"{always_quoted(field)} {interface_type(each)}" for field, each in children.items())
            return f"STRUCT<{', '.join(parts)}>"
    return str(type_) if name in _SAME else _OTHER.get(name, "VARCHAR")
