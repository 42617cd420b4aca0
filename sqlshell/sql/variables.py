"""Variables in a statement: `:x`, `:'x'`, `:"x"` and `:{?x}`, by psql's rules, never in strings and comments.

A colon that belongs to SQL is left alone: `::`, `:=`, the bound of a slice (`a[1:n]`) and the key of a struct
(`{a:x}`): there psql fills in. What is not set stays as it is written. A value may name further variables, unless it
came from a service; one inside itself stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sqlshell.origin import Own, Text, joined, mine, theirs
from sqlshell.sql.analysis.tokens import Token, tokens
from sqlshell.sql.identifiers import always_quoted, literal

_CHAR: Final = r"[A-Za-z0-9_\x80-\U0010ffff]"
REFERENCE: Final = re.compile(rf""":(?:({_CHAR}++)|'({_CHAR}++)'|"({_CHAR}++)"|\{{\?({_CHAR}++)\}})""")
"""One reference, wherever it stands; the name of one that is taken as it is, as a string, quoted, or asked about."""


def substituted(sql: Text, values: Mapping[str, Text]) -> Text:
    """The statement with its variables' values; itself where there are none."""
    if ":" not in sql.text or not REFERENCE.search(sql.text):
        return sql
    return _substituted(sql, values, frozenset())


def filled(found: re.Match[str], values: Mapping[str, Text]) -> Text | None:
    """What a reference stands for; None where its variable is not set."""
    plain, string, quoted, asked = found.groups()
    if asked is not None:
        return mine(Own("TRUE" if asked in values else "FALSE"))
    value = values.get(plain or string or quoted)
    if value is None:
        return None
    text = value.text if plain is not None else literal(value.text) if string is not None else always_quoted(value.text)
    return theirs(text, f":{plain or string or quoted}") if value.foreign else mine(Own(text))


def references(sql: str) -> list[tuple[int, int]]:
    """Where the references to variables begin and end."""
    return [(start, found.end()) for start, found in _references(sql)]


def _substituted(sql: Text, values: Mapping[str, Text], within: frozenset[str]) -> Text:
    parts: list[Text] = []
    done = 0
    for start, found in _references(sql.text):
        name = next(group for group in found.groups() if group is not None)
        value = filled(found, values)
        if value is None or name in within or sql.part(start, found.end()).foreign:
            continue
        # What a service gave names no variables: it would be sent the values of others.
        if found[1] is not None and ":" in value.text and not value.foreign:
            value = _substituted(value, values, within | {name})
        parts += [sql.part(done, start), value]
        done = found.end()
    return joined([*parts, sql.part(done, len(sql.text))]) if parts else sql


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
