"""COPY to and from the process's own descriptors: TO STDOUT returns rows, all others are refused.

The engine opens files by name, and `/dev/stdout` is a name: it would truncate the file that our output is redirected
to, and write into it.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.runtime.files import Descriptor, descriptor
from sqlshell.service.failure import Failure
from sqlshell.sql.analysis.tokens import Token, first_word, tokens

_STDOUT: Final = 1
_RELATION: Final = frozenset(
    {"FROM", "JOIN", "INTO", "TABLE", "DESCRIBE", "DESC", "SUMMARIZE", "SHOW", "PIVOT", "UNPIVOT", "USING", "TO"}
)
"""Words before the name of a relation or, for COPY, of a file."""
_FILES: Final = frozenset({"ATTACH", "EXPORT", "IMPORT", "LOAD", "INSTALL", "PRAGMA", "SET", "CALL"})
"""First words of statements whose strings may all be names of files."""
_DESCRIPTORS: Final = frozenset({"STDIN", "STDOUT", "STDERR"})
_READER: Final = re.compile(r"(?:read_|parquet_)\w+|sniff_csv|\w+_scan", re.I)
_LOOK: Final = re.compile(
    rf"(?<!\w)(?:{'|'.join(sorted(_RELATION))})\W*?(?:['\"`$]|e'|std(?:in|out|err)(?!\w))"
    rf"|(?:(?:read_|parquet_)\w++|sniff_csv|_scan)\s*\(|^\s*(?:{'|'.join(sorted(_FILES))})(?!\w)",
    re.I,
)
"""A first look for names of files; the tokens decide."""
MATCHES: Final = 1000
"""Maximum files that are checked for a pattern."""
OPTIONS_UNUSED = "the options of COPY are ignored: the rows are returned as a result, and the client sets its format"


class CopyQuery(Struct, frozen=True):
    """A COPY … TO STDOUT as the SELECT of its rows; `options` says whether it had options."""

    sql: str
    options: bool


def copied_out(sql: str, *, paths: bool) -> CopyQuery | None:
    """Return the SELECT of a COPY … TO STDOUT; None for all other statements. With `paths` also for a path to
    descriptor 1."""
    if first_word(sql) != "copy":
        return None
    found = list(tokens(sql))
    depth = 0
    for at, token in enumerate(found):
        depth += (token.text == "(") - (token.text == ")")
        if depth or token.word != "TO" or not 1 < at < len(found) - 1:
            continue
        target, after = found[at + 1], found[at + 2 :]
        file = _file(target) if paths else None
        if (target.word == "STDOUT" and not _dotted(after)) or (file and file.own and file.number == _STDOUT):
            return CopyQuery(_selected(sql, found[1:at]), any(item.text != ";" for item in after))
        return None
    return None


def check_files(sql: str) -> None:
    """Refuse a statement that uses a descriptor as a file. Raises Failure.

    Names that the statement computes are not known here.
    """
    if not _LOOK.search(sql):
        return
    found = list(tokens(sql))
    names_files = found[0].word in _FILES and found[1].word != "VARIABLE" if len(found) > 1 else False
    copies = any(token.word == "COPY" for token in found)
    before, readers = "", [names_files]
    for at, token in enumerate(found):
        match token.text:
            case "(":
                readers.append(readers[-1] or (at > 0 and _READER.fullmatch(found[at - 1].text) is not None))
                continue
            case ")" if len(readers) > 1:
                readers.pop()
        if copies and before in {"TO", "FROM"} and token.word in _DESCRIPTORS and not _dotted(found[at + 1 :]):
            raise _refusal(token.word)
        if (before in _RELATION or readers[-1]) and _file(token) is not None:
            raise _refusal(token.text)
        before = token.word


def _refusal(name: str) -> Failure:
    message = f"{name} is a file descriptor of the service; statements cannot read or write it"
    return Failure(sqlstate.UNSUPPORTED, message)


def _dotted(after: Sequence[Token]) -> bool:
    """Whether a name goes on behind a token: it is that of a schema."""
    return bool(after) and after[0].text == "."


def _selected(sql: str, source: Sequence[Token]) -> str:
    """The SELECT for what COPY has before its TO: a statement in parentheses, or a relation with or without columns."""
    start, end = source[0].start, source[-1].end
    columns = next((item for item in source if item.text == "("), None)
    if columns is None:
        return f"SELECT * FROM {sql[start:end]}"
    listed = sql[columns.end : end].rpartition(")")[0]
    return listed if columns.start == start else f"SELECT {listed}\nFROM {sql[start : columns.start]}"


def _file(token: Token) -> Descriptor | None:
    """The descriptor that a string or quoted name refers to, also as a pattern for names of files."""
    if token.kind not in {"string", "name"} or "\0" in token.value:
        return None
    name = token.value.removeprefix("file://").removeprefix("file:")
    if not any(sign in name for sign in "*?["):
        return descriptor(name)
    try:
        paths = islice(glob.iglob(name), MATCHES)  # noqa: PTH207
        return next(filter(None, map(descriptor, paths)), None)
    except (OSError, ValueError, re.error):
        return None
