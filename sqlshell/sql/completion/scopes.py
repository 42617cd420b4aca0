"""Visible names at a position of a statement: relations in its FROM clauses, their aliases, common table expressions.

Works on unfinished text: brackets that are not closed end with the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from sqlshell.sql import keywords
from sqlshell.sql.analysis.tokens import Token

_SETS: Final = frozenset({"UNION", "INTERSECT", "EXCEPT"})
_CLAUSES: Final = frozenset(
    keywords.words("WHERE GROUP HAVING ORDER LIMIT OFFSET WINDOW QUALIFY RETURNING SET ON USING SELECT VALUES EMIT")
)

ENDS_ALIAS: Final = (
    _CLAUSES
    | _SETS
    | frozenset(
        keywords.words(
            "SAMPLE TABLESAMPLE JOIN LEFT RIGHT FULL INNER OUTER CROSS NATURAL ASOF POSITIONAL SEMI ANTI FROM DEFAULT"
            " WITH LATERAL AND OR FETCH FOR PIVOT UNPIVOT WHEN THEN AS"
        )
    )
)
"""Words after a relation that are not an alias."""


class Group(Struct):
    """The items between two brackets, or of the whole statement: tokens and groups, from `start` to `end`."""

    start: int
    end: int = 1 << 60
    items: list[Token | Group] = field(default_factory=list)


class TableReference(Struct, frozen=True):
    """A relation in scope: `name` are its parts as written, without quotes; `columns` are known only for a subquery.
    `stars` are the relations whose columns follow those, because the subquery selects `*`.
    """

    alias: str
    name: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    stars: tuple[TableReference, ...] = ()


class Scope(Struct, frozen=True):
    """Sources from the innermost SELECT outward; `ctes` are the common table expressions by name."""

    sources: tuple[TableReference, ...] = ()
    ctes: tuple[TableReference, ...] = ()


def token_tree(given: Sequence[Token]) -> Group:
    """The tokens of one statement as a tree."""
    root = Group(-1)
    stack = [root]
    for token in given:
        if token.text in "([{" and token.kind == "sign":
            inner = Group(token.end)
            stack[-1].items.append(inner)
            stack.append(inner)
        elif token.text in ")]}" and token.kind == "sign":
            if len(stack) > 1:
                stack.pop().end = token.start
        else:
            stack[-1].items.append(token)
    return root


def path_to(root: Group, position: int) -> list[Group]:
    """The groups that contain a position, the whole statement first."""
    path = [root]
    while True:
        inner = next(
            (item for item in path[-1].items if isinstance(item, Group) and item.start <= position <= item.end), None
        )
        if inner is None:
            return path
        path.append(inner)


def scope_at(root: Group, position: int) -> Scope:
    """The names that are visible at a position."""
    sources: list[TableReference] = []
    ctes: list[TableReference] = []
    for group in reversed(path_to(root, position)):
        ctes += _ctes(group.items, position)
        sources += sources_of(select_at(group, position))
    return Scope(tuple(sources), tuple(ctes))


def select_at(group: Group, position: int) -> list[Token | Group]:
    """The items of the SELECT that contains a position, if a group has several, joined by UNION and similar."""
    items: list[Token | Group] = []
    for item in group.items:
        if isinstance(item, Token) and (item.word in _SETS or item.text == ";"):
            if item.start >= position:
                break
            items = []
        else:
            items.append(item)
    return items


def _ctes(items: Sequence[Token | Group], position: int) -> Iterator[TableReference]:
    number = 0
    while number < len(items) and not (isinstance(item := items[number], Token) and item.word == "WITH"):
        number += 1
    number += 1
    while number < len(items):
        item = items[number]
        if (isinstance(item, Token) and item.word in {"RECURSIVE", "AS", "MATERIALIZED", "NOT"}) or _text(item) == ",":
            number += 1
            continue
        if not isinstance(item, Token) or item.kind not in {"word", "name"} or item.word in {"SELECT", "INSERT"}:
            return
        name, number = item.value, number + 1
        explicit: tuple[str, ...] | None = None
        while number < len(items):
            item = items[number]
            if isinstance(item, Token) and item.word in {"AS", "MATERIALIZED", "NOT"}:
                number += 1
            elif isinstance(item, Group):
                before = items[number - 1]
                if isinstance(before, Token) and before.word in {"AS", "MATERIALIZED"}:
                    inside = item.start <= position <= item.end
                    columns, stars = ((), ()) if inside or explicit is not None else output_columns(item)
                    yield TableReference(name, (), explicit if explicit is not None else columns, stars)
                    number += 1
                    break
                explicit = tuple(token.value for token in item.items if isinstance(token, Token) and _named(token))
                number += 1
            else:
                return


def sources_of(items: Sequence[Token | Group]) -> Iterator[TableReference]:
    """The relations of FROM, JOIN, UPDATE, INTO and similar among these items."""
    number = 0
    listing = False
    first = _word(items[0]) if len(items) > 1 and not isinstance(items[1], Group) else ""
    begins = _BEGINS | ({"USING"} if first in {"MERGE", "DELETE"} else {first} & {"COPY", "PIVOT", "UNPIVOT"})
    while number < len(items):
        item = items[number]
        word = item.word if isinstance(item, Token) else ""
        if word in begins or (listing and _text(item) == ","):
            listing = word in {"FROM", "JOIN"} or listing
            source, number = _reference(items, number + 1, called=word not in {"INTO", "COPY"})
            yield from source
            continue
        if word in _CLAUSES:
            listing = False
        number += 1


_BEGINS: Final = frozenset({"FROM", "JOIN", "UPDATE", "INTO"})
"""The words before a relation."""


def _reference(items: Sequence[Token | Group], number: int, *, called: bool = True) -> tuple[list[TableReference], int]:
    """The relation at an item, and the number of the item after it. `called` is whether a bracket directly after a name
    makes it a function; after INTO it is a list of columns.
    """
    while number < len(items) and _word(items[number]) in {"LATERAL", "ONLY", "TABLE", "OVERWRITE"}:
        number += 1
    if number >= len(items):
        return [], number
    item = items[number]
    name: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    stars: tuple[TableReference, ...] = ()
    inner: list[TableReference] = []
    if isinstance(item, Group):
        number += 1
        first = next(iter(item.items), None)
        if isinstance(first, Token) and first.word in {"SELECT", "WITH", "VALUES", "FROM"}:
            columns, stars = output_columns(item)
        else:
            reference, _ = _reference(item.items, 0)
            inner = [*reference, *sources_of(item.items)]
    elif _named(item) and item.word not in ENDS_ALIAS:
        parts = [item.value]
        number += 1
        while number + 1 < len(items) and _text(items[number]) == "." and _named(items[number + 1]):
            parts.append(_token(items[number + 1]).value)
            number += 2
        if number < len(items) and _text(items[number]) == ".":
            number += 1
        if (
            called
            and number < len(items)
            and isinstance(items[number], Group)
            and _token(items[number - 1]).end + 1 == items[number].start
        ):
            # A table function: its columns are unknown.
            columns = ()
            number += 1
        name = tuple(parts)
    elif item.kind == "string":
        columns = ()
        number += 1
    else:
        return [], number
    alias = name[-1] if name else ""
    if number < len(items) and _word(items[number]) == "AS":
        number += 1
    if number < len(items) and _named(items[number]) and _word(items[number]) not in ENDS_ALIAS:
        alias = _token(items[number]).value
        number += 1
        if number < len(items) and isinstance(given := items[number], Group):
            names = tuple(token.value for token in given.items if isinstance(token, Token) and _named(token))
            columns, stars = (names, ()) if names else (columns, stars)
            number += 1
    if inner and not alias:
        return inner, number
    return [TableReference(alias, name, columns, stars)], number


def output_columns(group: Group) -> tuple[tuple[str, ...], tuple[TableReference, ...]]:
    """The column names of the query in a group, as far as its text shows, and the relations of its `*`."""
    items = select_at(group, group.start)
    sources = tuple(sources_of(items))
    number = 0
    while number < len(items) and _word(items[number]) != "SELECT":
        number += 1
    if number == len(items):
        return (), sources
    names: list[str] = []
    stars: list[TableReference] = []
    part: list[Token | Group] = []
    for item in [*items[number + 1 :], None]:
        if item is None or _text(item) == "," or _word(item) in {"FROM", *_CLAUSES}:
            alias = _starred(part)
            stars += [source for source in sources if alias in {"", source.alias.lower()}]
            if alias is None and (name := _output(part)):
                names.append(name)
            part = []
            if item is None or _text(item) != ",":
                break
        else:
            part.append(item)
    return tuple(names), tuple(stars)


def _starred(part: Sequence[Token | Group]) -> str | None:
    """The alias before a `*`, "" without one; None if this is no `*`."""
    texts = [_text(item) for item in part if _word(item) not in {"DISTINCT", "ALL"}][:3]
    if texts[:1] == ["*"]:
        return ""
    return _token(part[0]).value.lower() if texts[1:] == [".", "*"] and _named(part[0]) else None


def _output(part: Sequence[Token | Group]) -> str:
    if not part or not isinstance(part[-1], Token):
        first = part[0] if part else None
        return first.value if isinstance(first, Token) and first.kind == "word" and len(part) == 2 else ""
    return part[-1].value if _named(part[-1]) else ""


def _named(item: Token | Group) -> bool:
    return isinstance(item, Token) and item.kind in {"word", "name"}


def _token(item: Token | Group) -> Token:
    assert isinstance(item, Token)
    return item


def _text(item: Token | Group) -> str:
    return item.text if isinstance(item, Token) and item.kind == "sign" else ""


def _word(item: Token | Group) -> str:
    return item.word if isinstance(item, Token) else ""
