"""COPY to and from the process's own descriptors: TO STDOUT returns rows, all others are refused.

The engine opens files by name, and `/dev/stdout` is a name: it would truncate the file that our output is redirected
to, and write into it.
"""

from __future__ import annotations

import glob
import re
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.runtime.descriptors import descriptor
from sqlshell.service.engines.duckdb.statement import Word, words
from sqlshell.service.failure import Failure
from sqlshell.sql.script.blanks import first_word

_STDOUT: Final = 1
_BLANK: Final = r"\s++|--[^\n]*+\n|/\*(?:[^*]++|\*(?!/))*+\*/"
_RELATION: Final = frozenset(
    {"from", "join", "into", "table", "describe", "desc", "summarize", "show", "pivot", "unpivot", "using", "to"}
)
"""Words before the name of a relation or, for COPY, of a file."""
_FILES: Final = frozenset({"attach", "export", "import", "load", "install", "pragma", "set", "call"})
"""First words of statements whose strings may all be names of files."""
_READER: Final = re.compile(r"read_\w+|parquet_\w+|sniff_csv|\w+_scan", re.I)
_LOOK: Final = re.compile(
    rf"""(?<!\w)(?:(?:{"|".join(sorted(_RELATION))})(?:\(|{_BLANK})*+(?:['"`$]|e'|std(?:in|out|err)(?!\w))"""
    rf"|(?:{_READER.pattern})\s*\()|^\s*(?:{'|'.join(sorted(_FILES))})(?!\w)",
    re.I | re.S,
)
_MAGIC: Final = re.compile(r"[*?\[]")
MATCHES: Final = 1000
"""Maximum files that are checked for a pattern."""
_ESCAPE: Final = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-7]{1,3})|(.))|''", re.S)
_NAMED_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
OPTIONS_UNUSED = "the options of COPY are ignored: the rows are returned as a result, and the client sets its format"


class CopyQuery(Struct, frozen=True):
    """A COPY … TO STDOUT as the SELECT of its rows; `options` says whether it had options."""

    sql: str
    options: bool


def copied_out(sql: str, *, paths: bool) -> CopyQuery | None:
    """The SELECT of a COPY … TO STDOUT; None for all other statements. With `paths` also for a path to descriptor 1."""
    parts = _copied(sql)
    if parts is None:
        return None
    selected, target, after = parts
    if after and after[0].word.startswith("."):
        return None
    if target.word != "stdout" and not (paths and _number(target) == _STDOUT):
        return None
    return CopyQuery(selected, any(item.word != ";" for item in after))


def _copied(sql: str) -> tuple[str, Word, list[Word]] | None:
    """The SELECT of a COPY … TO, its target, and the rest of the statement."""
    if first_word(sql) != "copy":
        return None
    tokens = words(sql)
    depth = 0
    for number, token in enumerate(tokens):
        depth += (token.word == "(") - (token.word == ")")
        if not depth and token.word == "to" and 1 < number < len(tokens) - 1:
            selected = _selected(sql.encode("utf-8", "surrogatepass"), tokens[1:number], token.start)
            return selected, tokens[number + 1], tokens[number + 2 :]
    return None


def check_files(sql: str) -> None:
    """Refuse a statement that uses a descriptor as a file. Raises Failure.

    Names that the statement computes are not known here.
    """
    if not _LOOK.search(sql):
        return
    tokens = words(sql)
    first = tokens[0].word if tokens else ""
    if first == "set" and len(tokens) > 1 and tokens[1].word == "variable":
        first = ""
    copies = any(token.word == "copy" for token in tokens)
    before, readers, depth = "", [0], 0
    for number, token in enumerate(tokens):
        if token.word == "(":
            depth += 1
            if number and _READER.fullmatch(tokens[number - 1].word):
                readers.append(depth)
            continue
        if token.word == ")":
            if depth == readers[-1] and depth:
                readers.pop()
            depth -= 1
        named = copies and before in {"to", "from"} and token.word in {"stdin", "stdout", "stderr"}
        if named and not (number + 1 < len(tokens) and tokens[number + 1].word.startswith(".")):
            raise _refusal(token.word.upper())
        if (before in _RELATION or len(readers) > 1 or first in _FILES) and _is_descriptor(token):
            raise _refusal(token.text)
        before = token.word


def _refusal(name: str) -> Failure:
    message = f"{name} is a file descriptor of the service; statements cannot read or write it"
    return Failure(sqlstate.UNSUPPORTED, message)


def _selected(encoded: bytes, source: list[Word], end: int) -> str:
    text = encoded[source[0].start : end].decode("utf-8", "surrogatepass").strip()
    if source[0].word == "(":
        return text[1:].rpartition(")")[0]
    columns = next((number for number, token in enumerate(source) if token.word == "("), None)
    if columns is None:
        return f"SELECT * FROM {text}"
    start = source[columns].start
    name = encoded[source[0].start : start].decode("utf-8", "surrogatepass")
    listed = encoded[start:end].decode("utf-8", "surrogatepass").strip()[1:].rpartition(")")[0]
    return f"SELECT {listed}\nFROM {name}"


def _is_descriptor(token: Word) -> bool:
    name = _name(token)
    if name is None:
        return False
    if not _MAGIC.search(name):
        return descriptor(name) is not None
    try:
        paths = islice(glob.iglob(name), MATCHES)  # noqa: PTH207
        return any(descriptor(path) is not None for path in paths)
    except (OSError, ValueError, re.error):
        return False


def _number(token: Word) -> int | None:
    name = _name(token)
    file = descriptor(name) if name is not None else None
    return file.number if file is not None and file.own else None


def _name(token: Word) -> str | None:
    """The path in a string or a quoted name, as the engine reads it."""
    text = token.text
    if text.startswith(('"', "`")):
        text = text[1:-1].replace(text[0] * 2, text[0])
    elif text.startswith("'"):
        text = text[1:-1].replace("''", "'")
    elif text[:2] in {"e'", "E'"}:
        text = _ESCAPE.sub(_unescaped, text[2:-1])
    elif text.startswith("$") and text.count("$") > 2:
        text = text[text.index("$", 1) + 1 : text.rindex("$", 0, -1)]
    else:
        return None
    if text.startswith("file:"):
        text = unquote(re.sub(r"^file:(?://(?:localhost)?(?=/))?", "", text))
    if text.startswith("~"):
        text = str(Path.home()) + text[1:]
    return None if "\0" in text else text


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code or match[4]:
        return chr(min(int(code, 16) if code else int(match[4], 8), 0x10FFFF))
    return _NAMED_ESCAPES.get(match[5], match[5]) if match[5] else "'"
