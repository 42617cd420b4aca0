"""What is loaded: the request, the columns of the file and of the table, and which goes into which."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Final

from msgspec import Struct

from sqlshell.errors import UsageError, reason
from sqlshell.origin import EMPTY, Trusted
from sqlshell.runtime.files import expanded
from sqlshell.shell.connection import Connection
from sqlshell.sql.analysis.copy_statements import OWN, WRITTEN, CopyStatement
from sqlshell.sql.identifiers import quoted, unquoted
from sqlshell.text import format_count

FORMATS: Final = {
    "csv": "csv",
    "tsv": "text",
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
    "parquet": "parquet",
}
"""The formats by the endings of files."""
CHOSEN: Final = {**FORMATS, "text": "text", "auto": "auto"}
"""The formats that can be named. Which one a file has shows itself with "auto"."""
COMPRESSIONS: Final = frozenset({".gz", ".zst"})
UNKNOWN: Final = ("skip", "send")
HEAD: Final = 4096
_NULLS: Final = ("force_not_null", "force_null", "allow_quoted_nulls")
_GZIP: Final = b"\x1f\x8b"
_ZIP: Final = b"PK\x03\x04"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"


class LoadRequest(Struct, frozen=True):
    """`table` and `columns` are as written; no columns are those of the source, by name. `path` is the file that is
    read and `name` what messages call it. `unknown` says how to treat batches whose outcome is unknown: "skip", "send",
    or "" if not specified. With `kept`, progress is recorded so that a later load can continue."""

    table: str
    columns: tuple[str, ...]
    path: Trusted
    name: str
    format: str
    header: bool | None = None
    delimiter: str | None = None
    null: str | None = None
    quote: str | None = None
    escape: str | None = None
    encoding: str = ""
    create: bool = False
    dry_run: bool = False
    max_errors: int = 0
    rejects: Trusted = EMPTY
    resume: bool = False
    unknown: str = ""
    kept: bool = True
    round: bool = False
    """Whether values may lose digits, an offset or the time of day, which their column does not keep."""
    binary: str = "hex"
    """How bytes are written in text: "hex" is `\\x6162`, and DuckDB's own form otherwise; "escaped" is DuckDB's own
    form, `a\\x62`."""
    force_not_null: tuple[str, ...] = ()
    """Columns of the table in which the text of NULL is a value, in lower case; `*` is all."""
    force_null: tuple[str, ...] = ()
    """Columns of the table in which that text is NULL within quotes too, in lower case; `*` is all."""
    ends: bool = False
    """Whether a line that is `\\.` ends CSV, as it ends text."""

    @property
    def one(self) -> str:
        """The word of messages for one row of the source."""
        return {"csv": "line", "text": "line", "json": "record"}.get(self.format, "row")


def request_of(copy: CopyStatement, path: Trusted, name: str, *, kept: bool = True) -> LoadRequest:
    """The request of a COPY … FROM; `path` is where its data is. The format of a name without a known ending
    is text. Raises UsageError for options that cannot be."""
    given = copy.options
    if other := next((name for name in given if name in WRITTEN), ""):
        raise UsageError(f"COPY FROM: the option {other.upper()} applies only to COPY TO")
    form = given.get("format", "")
    if form and form not in CHOSEN:
        raise UsageError(f"COPY: unknown format {form!r}", f"formats: {', '.join(CHOSEN)}")
    form = CHOSEN.get(form) or format_of(name) or "text"
    for option in ("delimiter", "null", "quote", "escape", "header", "encoding", *_NULLS):
        of_csv = option in {"quote", "escape", *_NULLS}
        if option in given and (form in {"json", "parquet"} or (form == "text" and of_csv)):
            raise UsageError(f"COPY: {option.upper()} does not apply to the format {form}")
    for option in ("delimiter", "quote", "escape"):
        if option in given and len(given[option].encode()) != 1 and not (option != "delimiter" and not given[option]):
            raise UsageError(f"COPY: {option.upper()} must be a single one-byte character, not {given[option]!r}")
    if given.get("if_unknown", UNKNOWN[0]) not in UNKNOWN:
        raise UsageError(f"COPY: IF_UNKNOWN must be skip or send, not {given['if_unknown']!r}")
    sniffed = given.get("sniff") == "true" or (not given.get("format") and format_of(name)) or form == "auto"
    header = given["header"] == "true" if "header" in given else None
    if not sniffed and form in {"csv", "text"}:
        # As in psql, options that are not given are not detected.
        given = {"delimiter": ",", "quote": '"', "escape": given.get("quote", '"'), **given} if form == "csv" else given
        header = bool(header)
    return LoadRequest(
        copy.source,
        copy.columns,
        path,
        name,
        form,
        header,
        given.get("delimiter"),
        given.get("null"),
        given.get("quote"),
        given.get("escape"),
        given.get("encoding", ""),
        given.get("create") == "true",
        given.get("dry_run") == "true",
        _number(given.get("max_errors", "0")),
        Trusted(given.get("rejects", "")),
        given.get("resume") == "true",
        given.get("if_unknown", ""),
        kept,
        given.get("round") == "true",
        force_not_null=_columns(given, "force_not_null"),
        force_null=("*",) if given.get("allow_quoted_nulls") == "true" else _columns(given, "force_null"),
    )


def _columns(given: Mapping[str, str], option: str) -> tuple[str, ...]:
    return tuple(given[option].lower().split("\n")) if option in given else ()


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 12:
        raise UsageError(f"COPY: MAX_ERRORS must be a number of rows, not {text!r}")
    return int(text)


def format_of(path: str) -> str:
    """The format by the ending of a file's name, "" for none that is known."""
    pure = PurePath(path)
    if pure.suffix.lower() in COMPRESSIONS:
        pure = pure.with_suffix("")
    return FORMATS.get(pure.suffix.lower().removeprefix("."), "")


def compression_of(path: Path) -> str:
    """The ending of the compression of a file, by its first bytes; "" for none. Raises UsageError."""
    head = _head(path)
    return ".gz" if head.startswith(_GZIP) else ".zst" if head.startswith(_ZSTD) else ""


def format_of_data(path: Path) -> str:
    """The format of a file by its first bytes: parquet, json or csv. Raises UsageError."""
    head = _head(path)
    if head.startswith(_GZIP):
        with contextlib.suppress(zlib.error):
            head = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head)
    if head.startswith(_ZIP):
        raise UsageError(
            f"{path.name} is a spreadsheet or a zip archive, not a data file", "save it as csv, or unpack it"
        )
    if head.startswith(b"PAR1"):
        return "parquet"
    return "json" if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in {b"[", b"{"} else "csv"


def _head(path: Path) -> bytes:
    try:
        with expanded(path).open("rb") as file:
            return file.read(HEAD)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {reason(error)}") from None


def engine_understands(copy: CopyStatement) -> bool:
    """Whether nothing in a COPY is sqlshell's own: neither its options nor a format that only it reads and writes."""
    if OWN & set(copy.options):
        return False
    if copy.stream or copy.program:
        return copy.options.get("format", "text") not in CHOSEN.keys() - {"csv", "text"}
    compressed = Path(copy.place).suffix.lower() in COMPRESSIONS
    form = copy.options.get("format", "") or format_of(copy.place) or "text"
    named = "format" in copy.options or not format_of(copy.place)
    return named and not compressed and form not in CHOSEN.keys() - {"csv", "text"}


def copy_for_engine(copy: CopyStatement) -> str:
    """A \\copy as the COPY that the engine carries out."""
    columns = f" ({', '.join(copy.columns)})" if copy.columns else ""
    source = f"({copy.source}\n)" if copy.query else f"{copy.source}{columns}"
    return f"COPY {source} {'FROM STDIN' if copy.loads else 'TO STDOUT'} {copy.tail}".rstrip()


async def is_engine_copy(copy: CopyStatement, connection: Connection) -> bool:
    """Whether the engine reads or writes the data of a COPY."""
    if connection.offline is not None or not engine_understands(copy):
        return False
    return await connection.service.engine_copies_data()


class SourceColumn(Struct, frozen=True):
    """A column of the file: its name, DuckDB's type, and the interface's type that a table made of it has."""

    name: str
    type: str
    table_type: str


class TargetColumn(Struct, frozen=True):
    """A column of the table: its name, and its type as reported by the service."""

    name: str
    type: str


class FileLayout(Struct, frozen=True):
    """The layout of the file: `about` says how it was read. With `named` its columns have names."""

    columns: tuple[SourceColumn, ...]
    named: bool
    about: str
    rows: str = ""
    """SQL of DuckDB's reader, to which further arguments and a parenthesis can be added. That of json gives the texts
    of records."""
    reader: tuple[tuple[str, str], ...] = ()
    """Arguments of DuckDB's reader of csv, as SQL."""
    lines: bool = False
    """Whether each line is a record of json, which can be skipped if it is malformed."""
    complete: bool = True
    """Whether all records of json were looked at for keys."""
    warnings: tuple[str, ...] = ()
    """Warnings about information that is lost when the file is read."""

    @property
    def records(self) -> str:
        """SQL of the records of json, each as the text `j`, for FROM."""
        return f"{self.rows}{', ignore_errors = true' if self.lines else ''}) AS records(j)"

    def date_format(self, column: SourceColumn) -> str:
        """The format of the dates of a column, as SQL; "" for that of ISO."""
        option = {"DATE": "dateformat", "TIMESTAMP": "timestampformat"}.get(column.type, "")
        return dict(self.reader).get(option, "")


class ColumnMatch(Struct, frozen=True):
    """Pairs of columns in the order of the file; `left` are columns of the table that get their defaults."""

    pairs: tuple[tuple[SourceColumn, TargetColumn], ...]
    left: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[TargetColumn, ...]:
        return tuple(target for _, target in self.pairs)

    @property
    def listed(self) -> str:
        """The columns of the table, as SQL."""
        return ", ".join(quoted(target.name) for target in self.targets)


def match_columns(request: LoadRequest, looked: FileLayout, table: Sequence[TargetColumn]) -> ColumnMatch:
    """Match by name where the file has names, and else by position. Raises UsageError."""
    wanted = _wanted(request, table)
    known = {"*", *(column.name.lower() for column in table)}
    for option, listed in (("force_not_null", request.force_not_null), ("force_null", request.force_null)):
        if unknown := next((name for name in listed if name not in known), ""):
            raise UsageError(f'COPY: {option.upper()}: {request.table} has no column "{unknown}"')
    if not looked.columns:
        return ColumnMatch(())
    if looked.named and (request.columns or request.format not in {"csv", "text"} or _known(looked, wanted)):
        by_name = _by_name(request, looked, wanted)
        if by_name is not None:
            return ColumnMatch(by_name, _left(table, by_name))
    if looked.named and request.header is None:
        names = [column.name.lower() for column in looked.columns]
        if _known(looked, wanted):
            missing = [target.name for target in wanted if target.name.lower() not in names]
            why = f", but some columns of {request.table} are missing: {', '.join(missing[:20])}"
        else:
            names = [column.name for column in looked.columns[:20]]
            why = f" ({', '.join(names)}), but none of these is a column of {request.table}"
        raise UsageError(
            f"{request.name}: the first line looks like a header{why}",
            "if the line is data, use --with 'HEADER false' (in \\copy: WITH (HEADER false)); if it is a header with "
            "other names, use --with HEADER (in \\copy: WITH (HEADER)), and list the columns of the table in the order "
            "of the file: t (a, b)",
        )
    if len(looked.columns) != len(wanted):
        raise UsageError(
            f"{request.name} has {format_count(len(looked.columns), 'column')}, "
            f"but {request.table} has {format_count(len(wanted), 'column')} to fill",
            "list the columns of the table in the order of the file: t (a, b)",
        )
    pairs = tuple(zip(looked.columns, wanted, strict=True))
    return ColumnMatch(pairs, _left(table, pairs))


def unknown_column(request: LoadRequest, name: str, table: Sequence[TargetColumn]) -> UsageError:
    """The error for a column of the file that the table does not have."""
    return UsageError(
        f'{request.name}: {request.table} has no column "{name}"; it has {", ".join(each.name for each in table)}',
        "list the columns to load, t (a, b), or create the table with --create (in \\copy: WITH (CREATE))",
    )


def _wanted(request: LoadRequest, table: Sequence[TargetColumn]) -> list[TargetColumn]:
    if not request.columns:
        return list(table)
    by_name = {column.name.lower(): column for column in table}
    targets = []
    for written in request.columns:
        name = unquoted(written)
        if name.lower() not in by_name:
            raise UsageError(f'{request.table} has no column "{name}"', f"it has {', '.join(by_name)}")
        targets.append(by_name[name.lower()])
    return targets


def _known(looked: FileLayout, wanted: Sequence[TargetColumn]) -> bool:
    names = {column.name.lower() for column in wanted}
    return any(column.name.lower() in names for column in looked.columns)


def _by_name(
    request: LoadRequest, looked: FileLayout, wanted: Sequence[TargetColumn]
) -> tuple[tuple[SourceColumn, TargetColumn], ...] | None:
    """None where listed columns are the file's by their position alone."""
    by_name = {column.name.lower(): column for column in wanted}
    pairs = [(each, by_name[each.name.lower()]) for each in looked.columns if each.name.lower() in by_name]
    if request.columns:
        return tuple(pairs) if len(pairs) == len(wanted) else None
    if unknown := [each.name for each in looked.columns if each.name.lower() not in by_name]:
        raise unknown_column(request, unknown[0], wanted)
    targets = [target.name for _, target in pairs]
    if twice := next((name for name in targets if targets.count(name) > 1), ""):
        raise UsageError(f"{request.name}: two columns are named {twice!r}", "rename one of them")
    return tuple(pairs)


def _left(table: Sequence[TargetColumn], pairs: Sequence[tuple[SourceColumn, TargetColumn]]) -> tuple[str, ...]:
    filled = {target.name for _, target in pairs}
    return tuple(column.name for column in table if column.name not in filled)
