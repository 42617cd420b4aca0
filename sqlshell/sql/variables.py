"""Variables in a statement: `:x`, `:'x'`, `:"x"` and `:{?x}`, by psql's rules, never in strings and comments.

A colon that belongs to SQL is left alone: `::`, `:=`, the bound of a slice (`a[1:n]`) and the key of a struct
(`{a:x}`): there psql fills in. What is not set stays as it is written. A value may name further variables; one inside
itself stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sqlshell.sql.tokens import Token, tokens

_CHAR: Final = r"[A-Za-z0-9_\x80-\U0010ffff]"
REFERENCE: Final = re.compile(rf""":(?:({_CHAR}++)|'({_CHAR}++)'|"({_CHAR}++)"|\{{\?({_CHAR}++)\}})""")
"""One reference, wherever it stands; the name of one that is taken as it is, as a string, quoted, or asked about."""


def substituted(sql: str, values: Mapping[str, str]) -> tuple[str, frozenset[str]]:
    """The statement with its variables' values, itself where there are none, and the names that were used."""
    if ":" not in sql or not REFERENCE.search(sql):
        return sql, frozenset()
    used: set[str] = set()
    text = _substituted(sql, values, frozenset(), used)
    return text if used else sql, frozenset(used)


def filled(found: re.Match[str], values: Mapping[str, str]) -> str | None:
    """What a reference stands for; None where its variable is not set."""
    plain, string, quoted, asked = found.groups()
    if asked is not None:
        return "TRUE" if asked in values else "FALSE"
    value = values.get(plain or string or quoted)
    if value is None or plain is not None:
        return value
    return literal(value) if string is not None else identifier(value)


def literal(value: str) -> str:
    """The value as an SQL string."""
    return "'" + value.replace("'", "''") + "'"


def identifier(value: str) -> str:
    """The value as a quoted name."""
    return '"' + value.replace('"', '""') + '"'


def _substituted(sql: str, values: Mapping[str, str], within: frozenset[str], used: set[str]) -> str:
    parts: list[str] = []
    done = 0
    for start, found in _references(sql):
        name = next(group for group in found.groups() if group is not None)
        value = filled(found, values)
        if value is None or name in within:
            continue
        used.add(name)
        if found[1] is not None and ":" in value:
            value = _substituted(value, values, within | {name}, used)
        parts += [sql[done:start], value]
        done = found.end()
    return "".join([*parts, sql[done:]])


def _references(sql: str) -> list[tuple[int, re.Match[str]]]:
    """The references outside of strings, comments, casts, slices and struct keys, with where each begins."""
    found: list[tuple[int, re.Match[str]]] = []
    inside: list[str] = []
    before: Token | None = None
    skipped = 0
    for token in tokens(sql):
        if token.start < skipped:
            continue
        if token.kind == "sign":
            match token.text:
                case "[" | "{" | "(":
                    inside.append(token.text)
                case "]" | "}" | ")" if inside:
                    inside.pop()
                case ":":
                    reference = REFERENCE.match(sql, token.start)
                    if sql.startswith((":=", "::"), token.start):
                        skipped = token.start + 2
                    elif reference and not (inside[-1:] in (["["], ["{"]) and _bound(before, token.start)):
                        found.append((token.start, reference))
                        skipped = reference.end()
        before = token
    return found


def _bound(token: Token | None, position: int) -> bool:
    """Whether the bound of a slice, or the key of a struct, stands before a colon. A keyword would keep off it."""
    if token is None:
        return False
    return token.end == position if token.kind == "word" else token.kind != "sign" or token.text in {")", "]"}
