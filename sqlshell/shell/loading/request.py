"""The request to load a file into a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Final

from msgspec import Struct

from sqlshell.errors import UsageError
from sqlshell.origin import EMPTY, Own
from sqlshell.sql.analysis.copy_statements import WRITTEN, CopyStatement

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
_NULLS: Final = ("force_not_null", "force_null", "allow_quoted_nulls")


class LoadRequest(Struct, frozen=True):
    """`table` and `columns` are as written; no columns are those of the source, by name. `path` is the file that is
    read and `name` what messages call it. `unknown` says how to treat batches whose outcome is unknown: "skip", "send",
    or "" if not specified. With `kept`, progress is recorded so that a later load can continue."""

    table: str
    columns: tuple[str, ...]
    path: Own
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
    rejects: Own = EMPTY
    resume: bool = False
    unknown: str = ""
    kept: bool = True
    binary: str = "hex"
    """How bytes are written in text: "hex" or "escaped"; see TargetColumn.from_text()."""
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


def format_of(path: str) -> str:
    """The format by the ending of a file's name, "" for none that is known."""
    pure = PurePath(path)
    if pure.suffix.lower() in COMPRESSIONS:
        pure = pure.with_suffix("")
    return FORMATS.get(pure.suffix.lower().removeprefix("."), "")


def request_of(copy: CopyStatement, path: Own, name: str, *, default: str = "text", kept: bool = True) -> LoadRequest:
    """The request of a COPY … FROM; `path` is where its data is. `default` is the format of a name without a known
    ending. Raises UsageError for options that cannot be."""
    given = copy.options
    if other := next((name for name in given if name in WRITTEN), ""):
        raise UsageError(f"COPY FROM: the option {other} applies only to COPY TO")
    form = given.get("format", "")
    if form and form not in CHOSEN:
        raise UsageError(f"COPY: unknown format {form!r}", f"the formats are {', '.join(CHOSEN)}")
    form = CHOSEN.get(form) or format_of(name) or default
    for option in ("delimiter", "null", "quote", "escape", "header", "encoding", *_NULLS):
        of_csv = option in {"quote", "escape", *_NULLS}
        if option in given and (form in {"json", "parquet"} or (form == "text" and of_csv)):
            raise UsageError(f"COPY: {option} does not apply to the format {form}")
    for option in ("delimiter", "quote", "escape"):
        if option in given and len(given[option].encode()) != 1 and not (option != "delimiter" and not given[option]):
            raise UsageError(f"COPY: {option} must be a single one-byte character, not {given[option]!r}")
    if given.get("unknown", UNKNOWN[0]) not in UNKNOWN:
        raise UsageError(f"COPY: unknown must be skip or send, not {given['unknown']!r}")
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
        Own(given.get("rejects", "")),
        given.get("resume") == "true",
        given.get("unknown", ""),
        kept,
        force_not_null=_columns(given, "force_not_null"),
        force_null=("*",) if given.get("allow_quoted_nulls") == "true" else _columns(given, "force_null"),
    )


def _columns(given: Mapping[str, str], option: str) -> tuple[str, ...]:
    return tuple(given[option].lower().split("\n")) if option in given else ()


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 12:
        raise UsageError(f"COPY: max_errors must be a number of rows, not {text!r}")
    return int(text)
