"""Data files: the SQL that reads a file, and short error messages with place, cause and remedy.

DuckDB's messages have 25 lines, most of which list the options of its reader, and count the lines of JSON from two.
"""

from __future__ import annotations

import re
from pathlib import Path

from sqlshell.interface import sqlstate
from sqlshell.runtime.compressed_files import ENDS_TOO_EARLY, ends_too_early, is_marked_array
from sqlshell.service.failure import Failure
from sqlshell.sql.duckdb_json_errors import json_error
from sqlshell.sql.identifiers import literal
from sqlshell.text import format_count

_CSV = re.compile(
    r"(?:[A-Z]\w+ )+Error: CSV Error on Line: (?P<line>\d+)\n(?:Original Line: (?P<text>[^\n]*)\n)?(?P<cause>[^\n]+)"
)
_FILE = re.compile(r"^  file = (.+)$", re.M)
_SNIFFED = re.compile(
    r"(?:[A-Z]\w+ )+Error: Error when sniffing file \"(?P<file>.+?)\"\.\n"
    r"It was not possible to .*?(?P<place>\n\nLINE .*)?\Z",
    re.S,
)
_GIVEN = re.compile(
    r"they contain: (\d+) columns\. It does not match the number of columns found by the sniffer: (\d+)"
)
_OTHER = re.compile(r"(?P<kind>[A-Z][\w -]*?) Error: (?P<cause>[^\n]+)")
_PATTERN = re.compile(r"[*?[]")
_COLUMNS = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
_VALUE = re.compile(r"Error when converting column (\".*\")\. Could not convert string (\".*\") to '(.*)'")

READERS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".parquet": "read_parquet",
    ".json": "read_json",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
}
COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
ENDINGS = (*READERS, *(kind + packed for kind in READERS if kind != ".parquet" for packed in COMPRESSED))
"""File extensions of data files, in any case."""

ENCODING = "invalid UTF-8"
CONVERT = "convert it with: iconv -f latin1 -t UTF-8 FILE > NEW_FILE"
LONGEST_LINE = 120


def reader(name: str, path: Path, *, lines: bool = False, whole: bool = False) -> str:
    """Return SQL that reads the file at `path`, and no other, in the format that the extension of `name` determines.

    DuckDB takes a path for a pattern, and NAME=VALUE in it for a column. Raises Failure.
    """
    low = name.lower()
    packed = next((ending for ending in COMPRESSED if low.endswith(ending)), "")
    kind = next((ending for ending in READERS if low.removesuffix(packed).endswith(ending)), "")
    recorded = lines and not low.endswith(ENDINGS)
    if recorded:
        kind = ".ndjson"
    elif not low.endswith(ENDINGS):
        raise Failure(
            sqlstate.UNSUPPORTED, f"unknown file extension of {name}; expected csv, tsv, json, jsonl, ndjson or parquet"
        )
    if COMPRESSED.get(packed) == "zstd" and ends_too_early(path):
        raise Failure(sqlstate.UNSUPPORTED, ENDS_TOO_EARLY)
    if kind != ".parquet" and _is_utf16(path):
        raise Failure(
            sqlstate.UNSUPPORTED,
            f"the file is UTF-16, not UTF-8; {CONVERT.replace('latin1', 'UTF-16')}",
        )
    text = str(path)
    if _PATTERN.search(text):
        if "\\" in text:
            # The path cannot be written as a pattern, which cannot contain a backslash.
            raise Failure(
                sqlstate.UNSUPPORTED,
                f"cannot read {name}: its path contains a backslash and one of *?[; rename the file",
            )
        text = _PATTERN.sub(r"[\g<0>]", text)
    options = "hive_partitioning = false"
    if kind != ".parquet":
        options += f", compression = {literal(COMPRESSED.get(packed, 'none'))}"
    if READERS[kind] == "read_csv":
        # Where DuckDB finds comments, it also cuts values at their sign.
        options += ", comment = ''"
    if recorded:
        # Any record may be the first one with a different type.
        options += ", format = 'newline_delimited', sample_size = -1"
    elif whole and kind != ".parquet":
        options += ", sample_size = -1"
    if kind == ".json" and is_marked_array(path):
        options += ", format = 'array'"
    return f"system.main.{READERS[kind]}({literal(text)}, {options})"


def _is_utf16(path: Path) -> bool:
    # A pipe can be read once only.
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(2) in {b"\xff\xfe", b"\xfe\xff"}
    except OSError:
        return False


def explained(message: str, *, store: bool = False) -> str:
    """DuckDB's message about a data file in fewer words; other messages are not changed.

    In a `store` the user cannot choose how a file is read, so the advice is about the file itself.
    """
    if match := _CSV.match(message):
        named = _FILE.search(message)
        file = named[1] if named else "the CSV file"
        where, cause = f"{file}, line {match['line']}", match["cause"]
        if "unicode" in cause and store:
            return f"{where}: {ENCODING}; {CONVERT}"
        if "unicode" in cause:
            return (
                f"{where}: {ENCODING}\nHINT: read it with its encoding, such as"
                f" FROM read_csv({literal(file)}, encoding = 'latin-1') or 'utf-16', or {CONVERT}"
            )
        if value := _VALUE.match(cause):
            detected = "auto-detected" in message and not store
            advice = f"\nHINT: read all rows to detect the types: {_from_all('csv', file)}" if detected else ""
            return f"{where}, column {value[1]}: cannot convert {value[2]} to {value[3]}{advice}"
        if counts := _COLUMNS.match(cause):
            cause = _unequal(counts)
        text = f": {match['text'][:LONGEST_LINE]}" if match["text"] else ""
        return f"{where}: {cause[:1].lower()}{cause[1:].rstrip('.')}{text}"
    if match := _SNIFFED.match(message):
        counts = _GIVEN.search(message)
        cause = "the format cannot be detected; set delim, quote, escape and header"
        if counts:
            cause = f"{_unequal(counts)}; correct the parameter columns"
        return f"{match['file']}: {cause}{match['place'] or ''}"
    if error := json_error(message):
        if error.not_utf8:
            return f"{error.file}, {error.place}: {ENCODING}; {CONVERT}"
        advice = ""
        if error.unknown_key and not store:
            advice = f"\nHINT: read all records to detect the keys: {_from_all('json', error.file)}"
        return f"{error.file}, {error.place}: {error.cause}{advice}"
    if store and (match := _OTHER.match(message)):
        damaged = match["kind"] == "Invalid Input" or " is not a " in match["cause"]
        cause = match["cause"].strip().rstrip(".")
        return f"{cause}; the file is damaged or has the wrong extension" if damaged else cause
    return message


def _unequal(counts: re.Match[str]) -> str:
    return f"expected {format_count(int(counts[1]), 'column')}, found {counts[2]}"


def _from_all(kind: str, file: str) -> str:
    return f"FROM read_{kind}({literal(file)}, sample_size = -1)"
