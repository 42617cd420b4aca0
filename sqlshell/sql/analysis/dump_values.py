"""PostgreSQL's texts of arrays and bytes, `'{1,2}'` and `'\\x6162'`, in an INSERT of pg_dump."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from sqlshell.interface.types import Kind, base, kind, parts_of
from sqlshell.sql.analysis.lexed import Lexed
from sqlshell.sql.analysis.tokens import Token
from sqlshell.sql.identifiers import literal

Items = list["str | Items | None"]

_PART: Final = re.compile(r'\s*+(?:"((?:[^"\\]|\\.)*+)"|([{},])|((?:[^{},"\\\s]|\\.|\s++(?![{},]|\Z))++))\s*+', re.S)
_WHOLE_NUMBER: Final = re.compile(r"[+-]?\d++")
_HEX: Final = re.compile(r"\\x((?:[0-9A-Fa-f]{2})*+)")
_DEEPEST: Final = 20


class DumpValues(Struct, frozen=True):
    """The table of an INSERT as written, its columns or none for all, and the strings that look like arrays or
    bytes, each with the number of its column."""

    table: str
    columns: tuple[str, ...]
    strings: tuple[tuple[Token, int], ...]


def dump_values(statement: Lexed) -> DumpValues | None:
    """The texts of arrays and bytes of an INSERT … VALUES; None for a statement without any."""
    if ("'{" not in statement.text and "'\\x" not in statement.text) or statement.text[:6].lower() != "insert":
        return None
    tokens = [*statement.tokens]
    if len(tokens) < 4 or tokens[1].word != "INTO" or tokens[2].kind not in {"word", "name"}:
        return None
    at = 3
    while tokens[at].text == "." and at + 2 < len(tokens):
        at += 2
    table = statement.text[tokens[2].start : tokens[at - 1].end]
    columns: list[str] = []
    if tokens[at].text == "(":
        end = next((number for number in range(at, len(tokens)) if tokens[number].text == ")"), at)
        columns = [token.value for token in tokens[at + 1 : end] if token.kind in {"word", "name"}]
        at = end + 1
    if at >= len(tokens) or tokens[at].word != "VALUES":
        return None
    values, depth, column = [], 0, 0
    for before, token, behind in zip(tokens[at:], tokens[at + 1 :], [*tokens[at + 2 :], None], strict=False):
        if token.text in {"(", "[", "{"} and token.kind == "sign":
            depth += 1
            column = 0 if depth == 1 else column
        elif token.text in {")", "]", "}"} and token.kind == "sign":
            depth -= 1
        elif token.text == "," and depth == 1:
            column += 1
        elif token.kind == "string" and depth == 1 and token.text.startswith(("'{", "'\\x")):
            alone = before.text in {"(", ","} and behind is not None and behind.text in {")", ","}
            if alone and (_HEX.fullmatch(token.value) or read_array(token.value) is not None):
                values.append((token, column))
    return DumpValues(table, tuple(columns), tuple(values)) if values else None


def read_array(text: str) -> Items | None:
    """The items of PostgreSQL's text of an array, None for any other text."""
    items: Items = []
    open_: list[Items] = []
    at, needs_item = 0, False
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or (at and not open_):
            return None
        at = part.end()
        quoted, sign, bare = part.groups()
        follows = text[at : at + 1] in {",", "}"}
        if sign == "{":
            inner: Items = []
            if open_:
                open_[-1].append(inner)
            else:
                items = inner
            open_.append(inner)
            needs_item = False
        elif not open_:
            return None
        elif sign == "}":
            open_.pop()
            if needs_item or (open_ and not follows):
                return None
        elif sign == ",":
            if needs_item or not open_[-1]:
                return None
            needs_item = True
            continue
        elif not follows:
            return None
        elif quoted is not None:
            open_[-1].append(re.sub(r"\\(.)", r"\1", quoted, flags=re.S))
        else:
            open_[-1].append(None if bare.upper() == "NULL" else re.sub(r"\\(.)", r"\1", bare, flags=re.S))
        needs_item = False
    return None if open_ or not text else items


def translated_values(statement: Lexed, values: DumpValues, types: Callable[[int], str], *, with_bytes: bool) -> str:
    """The statement with lists instead of texts in columns of arrays, and `with_bytes` with bytes in columns of bytes.

    `types` gives the type of a column by its number.
    """
    pieces, taken = [], 0
    for token, column in values.strings:
        declared, text = types(column), token.value
        written = ""
        if base(declared) == "ARRAY":
            items = read_array(text)
            written = _list(items, declared) if items is not None else ""
        elif with_bytes and kind(declared) is Kind.BYTES:
            written = _item(text, declared)
        if written:
            pieces += [statement.text[taken : token.start], written]
            taken = token.end
    return "".join([*pieces, statement.text[taken:]])


def _list(items: Sequence[str | Items | None], declared: str) -> str:
    """SQL of a list, "" if an item cannot be written exactly."""
    inner = parts_of(declared)[0] if base(declared) == "ARRAY" and parts_of(declared) else declared
    literals = [
        "NULL" if item is None else _list(item, inner) if isinstance(item, list) else _item(item, inner)
        for item in items
    ]
    return f"[{', '.join(literals)}]" if all(literals) else ""


def _item(text: str, declared: str) -> str:
    what = kind(declared)
    if what is Kind.BYTES:
        match = _HEX.fullmatch(text)
        return f"unhex('{match[1]}')" if match is not None else ""
    if what is Kind.NESTED or (what is Kind.INTEGER and not _WHOLE_NUMBER.fullmatch(text)):
        # A fraction would be rounded.
        return ""
    return literal(text)
