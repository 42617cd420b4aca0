"""Variables in a statement: `:x`, `:'x'`, `:"x"` and `:{?x}`, with psql's rules, but not in strings and comments.

A colon that belongs to SQL is ignored: `::`, `:=`, the bound of a slice (`a[1:n]`) and the key of a struct (`{a:x}`),
where psql substitutes. A reference to a variable that is not set is kept. A value may refer to other variables, unless
it came from a service; a reference to itself is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sqlshell.origin import Text, Trusted, joined, service_text, trusted_text
from sqlshell.sql.analysis.lexed import Lexed, Sql, lexed, once_per_statement
from sqlshell.sql.analysis.tokens import Token
from sqlshell.sql.identifiers import always_quoted, literal
from sqlshell.sql.script.lexical_rules import IN_TAG

REFERENCE: Final = re.compile(rf""":(?:({IN_TAG}++)|'({IN_TAG}++)'|"({IN_TAG}++)"|\{{\?({IN_TAG}++)\}})""")
"""One reference: the name of a variable that is inserted verbatim, as a string, as an identifier, or tested."""


def substituted(sql: Lexed | Text, values: Mapping[str, Text]) -> Text:
    """The statement with its variables substituted; the same object if there are none."""
    return _substituted(lexed(sql), values, frozenset())


def reference_value(match: re.Match[str], values: Mapping[str, Text]) -> Text | None:
    """The value of a reference; None if its variable is not set."""
    plain, string, quoted, asked = match.groups()
    if asked is not None:
        return trusted_text(Trusted("TRUE" if asked in values else "FALSE"))
    value = values.get(plain or string or quoted)
    if value is None:
        return None
    text = value.text if plain is not None else literal(value.text) if string is not None else always_quoted(value.text)
    return service_text(text, f":{plain or string or quoted}") if value.foreign else trusted_text(Trusted(text))


def undefined(sql: Sql, values: Mapping[str, Text]) -> list[str]:
    """The names of variables that are inserted, but not set: their references are kept."""
    names = (match[1] or match[2] or match[3] for _, match in _references(lexed(sql)))
    return list(dict.fromkeys(name for name in names if name and name not in values))


def references(sql: Sql) -> list[tuple[int, int]]:
    """Start and end of each reference to a variable."""
    return [(start, match.end()) for start, match in _references(sql)]


def _substituted(statement: Lexed, values: Mapping[str, Text], within: frozenset[str]) -> Text:
    sql = statement.whole
    parts: list[Text] = []
    done = 0
    for start, match in _references(statement):
        name = next(group for group in match.groups() if group is not None)
        value = reference_value(match, values)
        if value is None or name in within or sql.part(start, match.end()).foreign:
            continue
        # A value from a service must not refer to variables: the service would receive their values.
        if match[1] is not None and ":" in value.text and not value.foreign:
            value = _substituted(lexed(value), values, within | {name})
        parts += [sql.part(done, start), value]
        done = match.end()
    return joined([*parts, sql.part(done, len(sql.text))]) if parts else sql


@once_per_statement
def _references(statement: Lexed) -> list[tuple[int, re.Match[str]]]:
    """The references outside of strings, comments, casts, slices and struct keys, with their positions."""
    sql = statement.text
    if ":" not in sql or not REFERENCE.search(sql):
        return []
    references: list[tuple[int, re.Match[str]]] = []
    inside: list[str] = []
    before: Token | None = None
    skipped = 0
    for token in statement:
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
                        references.append((token.start, reference))
                        skipped = reference.end()
        before = token
    return references


def _bound(token: Token | None, position: int) -> bool:
    """Whether the text before a colon is the bound of a slice, or the key of a struct. A keyword cannot be either."""
    if token is None:
        return False
    return token.end == position if token.kind == "word" else token.kind != "sign" or token.text in {")", "]"}
