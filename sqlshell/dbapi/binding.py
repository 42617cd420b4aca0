"""Parameters: where a statement has placeholders, and the statement with literals in their places.

A sequence fills `?`, a mapping fills `:name`. With a sequence, `??` is the operator `?`, as in JDBC. Text in strings,
quoted names, comments and dollar quotes is not a placeholder. If engines disagree on where the strings of a statement
end, the statement is refused with parameters, because a literal could end up inside a string.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from sqlshell.dbapi.exceptions import DataError, ProgrammingError
from sqlshell.dbapi.literals import Literals
from sqlshell.errors import describe_surrogate
from sqlshell.sql.analysis.lexed import lexed
from sqlshell.sql.analysis.tokens import Token
from sqlshell.sql.variables import references
from sqlshell.text import format_count, was_or_were

Parameters = Sequence[Any] | Mapping[str, Any]

BATCH_CHARACTERS: Final = 256 << 10
BATCH_ROWS: Final = 2_000
"""The maximum size of one INSERT of executemany(), unless a single row is larger."""

_SAFE: Final = frozenset(["", *" \t\n(),[]{};=<>+*:"])
"""The characters next to which a literal can stand without a space."""

_NAMED: Final = re.compile(r":(\w+)")


class Template(Struct, frozen=True):
    """A statement in pieces: literals stand between them. `names` is empty for `?`.

    `other` is the first placeholder of the other kind, if the statement has none of its own kind.
    """

    pieces: tuple[str, ...]
    names: tuple[str, ...] = ()
    other: str = ""

    def bound(self, parameters: Parameters, literals: Literals) -> str:
        """The statement with values in place of its placeholders. Raises ProgrammingError, DataError."""
        parts = [self.pieces[0]]
        for text, piece in zip(self._texts(parameters, literals), self.pieces[1:], strict=True):
            if not text.isascii():
                _check_characters(text)
            parts += (text, piece)
        return "".join(parts)

    def _texts(self, parameters: Parameters, literals: Literals) -> list[str]:
        count = len(self.pieces) - 1
        if isinstance(parameters, Mapping):
            if self.other:
                raise ProgrammingError("the placeholder ? requires a sequence, not a mapping", hint="write :name")
            try:
                return [literals.of(parameters[name]) for name in self.names]
            except KeyError as error:
                raise ProgrammingError(f"no value for the placeholder :{error.args[0]}") from None
        if isinstance(parameters, str | bytes) or not isinstance(parameters, Sequence):
            raise ProgrammingError(
                f"parameters must be a sequence or a mapping, not {type(parameters).__name__}",
                hint="pass a tuple such as (value,)",
            )
        if len(parameters) != count:
            given = len(parameters)
            if not count and self.other:
                raise ProgrammingError(
                    f"the placeholder {self.other} requires a mapping, not a sequence", hint="write ?"
                )
            raise ProgrammingError(
                f"the statement has {format_count(count, 'placeholder')}, "
                f"but {format_count(given, 'value')} {was_or_were(given)} given",
                hint="" if count else "write ? for each value, or :name and pass a mapping",
            )
        return list(map(literals.of, parameters))


def bound(sql: str, parameters: Parameters | None, literals: Literals) -> str:
    """The statement with its parameters; unchanged if there are none (None). Raises ProgrammingError, DataError."""
    sql = statement_text(sql)
    if parameters is None:
        return sql
    return template_of(sql, named=isinstance(parameters, Mapping)).bound(parameters, literals)


def statement_text(sql: object) -> str:
    """The text of a statement as a plain str: a subclass may change what slicing and joining do.

    Raises ProgrammingError if it is no str.
    """
    if not issubclass(type(sql), str):
        raise ProgrammingError(f"a statement must be a str, not {type(sql).__name__}")
    return str.__str__(sql)


@functools.lru_cache(maxsize=128)
def template_of(sql: str, *, named: bool) -> Template:
    """The statement split at its placeholders. Raises ProgrammingError if engines disagree on where they are."""
    readings = _readings(sql)
    doubled: list[int] = []
    by_name = [(start, end) for start, end in references(sql) if _NAMED.fullmatch(sql, start, end)]
    marks, pairs = _marks(readings[0])
    spans, others = (by_name, marks) if named else (marks, by_name)
    if not named:
        doubled = pairs
    _check_neighbors(readings[0], spans)
    pieces, done = [], 0
    for start, end in spans:
        # A literal never touches a word: behind an `e` its quote would begin a string with escapes.
        before = "" if sql[start - 1 : start] in _SAFE else " "
        pieces.append(f"{_between(sql, done, start, doubled)}{before}")
        done = end
    names = tuple(sql[start + 1 : end] for start, end in spans) if named else ()
    pieces.append(_between(sql, done, len(sql), doubled))
    other = sql[slice(*others[0])] if others and not spans else ""
    return Template((pieces[0], *(piece if piece[:1] in _SAFE else f" {piece}" for piece in pieces[1:])), names, other)


def _check_characters(text: str) -> None:
    """Raises DataError for half of a surrogate pair, which no encoding has."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"a parameter contains {describe_surrogate(error)}") from None


def _check_neighbors(given: Sequence[Token], spans: Sequence[tuple[int, int]]) -> None:
    """Raises ProgrammingError for a placeholder next to a string or another placeholder, also across lines and
    comments: engines read strings on consecutive lines as one, whose first part decides what a backslash means.
    """
    begins = [token.start for token in given]
    placeholders = {start for start, _ in spans}
    for start, end in spans:
        before, after = bisect_left(begins, start) - 1, bisect_left(begins, end)
        problem = ""
        if before >= 0 and given[before].kind == "string":
            problem = "a placeholder directly follows a string"
        elif after < len(given) and given[after].kind == "string":
            problem = "a string directly follows a placeholder"
        elif after < len(given) and given[after].start in placeholders:
            problem = "a placeholder directly follows another"
        if problem:
            raise ProgrammingError(
                f"{problem}: the two would be read as one", hint="put an operator or a comma between them"
            )


def _marks(given: Sequence[Token]) -> tuple[list[tuple[int, int]], list[int]]:
    """Where the placeholders `?` are, and the first characters of each `??`."""
    spans: list[tuple[int, int]] = []
    doubled: list[int] = []
    starts = [token.start for token in given if token.text == "?"]
    at = 0
    while at < len(starts):
        if starts[at + 1 : at + 2] == [starts[at] + 1]:
            doubled.append(starts[at])
            at += 2
        else:
            spans.append((starts[at], starts[at] + 1))
            at += 1
    return spans, doubled


def _between(sql: str, start: int, end: int, doubled: Sequence[int]) -> str:
    """A part of the statement with one `?` for two."""
    parts = []
    for at in doubled:
        if start <= at < end:
            parts.append(sql[start:at])
            start = at + 1
    return "".join([*parts, sql[start:end]])


def _readings(sql: str) -> Sequence[Sequence[Token]]:
    """The tokens of a statement. Raises ProgrammingError if engines disagree on them."""
    readings = lexed(sql).readings
    ends = [{token.start: token.end for token in each if _matters(token)} for each in readings]
    if any(each != ends[0] for each in ends):
        raise ProgrammingError(
            "engines disagree on where the strings or comments of this statement end",
            hint="write no backslash before a quote and no comment inside a comment, or pass the text as a parameter",
        )
    return readings


def _matters(token: Token) -> bool:
    return token.kind in {"string", "name"} or token.text in {"?", ":"}


class RowInsert(Struct, frozen=True):
    """An INSERT … VALUES (…): `head` ends before the row, `row` is the row with its placeholders, `tail` follows it."""

    head: str
    row: Template
    tail: str

    def statements(self, rows: Iterable[Parameters], literals: Literals) -> Iterator[tuple[str, int]]:
        """INSERTs of many rows each, with their numbers of rows.

        Rows whose values have other types go into another INSERT: engines find one type for each column of VALUES, and
        would make floats of the decimals beside one. Raises ProgrammingError, DataError.
        """
        texts: list[str] = []
        size = 0
        types: list[type] = []
        for row in rows:
            text = self.row.bound(row, literals)
            values = [row[name] for name in self.row.names] if isinstance(row, Mapping) else row
            given = [type(value) for value in values]
            full = len(texts) >= BATCH_ROWS or size + len(text) > BATCH_CHARACTERS
            if texts and (full or not _alike(types, given)):
                yield self._statement(texts), len(texts)
                texts, size = [], 0
            if not texts:
                types = given
            types = [new if old is type(None) else old for old, new in zip(types, given, strict=True)]
            texts.append(text)
            size += len(text)
        if texts:
            yield self._statement(texts), len(texts)

    def _statement(self, rows: Sequence[str]) -> str:
        return f"{self.head}{', '.join(rows)}{self.tail}"


def _alike(types: Sequence[type], others: Sequence[type]) -> bool:
    none = type(None)
    return all(one is other or one is none or other is none for one, other in zip(types, others, strict=True))


def row_insert(sql: str, *, named: bool) -> RowInsert | None:
    """The statement as an INSERT of one row, all of whose placeholders are in its VALUES; None for any other.

    Raises ProgrammingError as template_of() does.
    """
    given = _readings(sql)[0]
    if not given or given[0].word != "INSERT":
        return None
    values = next((at for at, token in enumerate(given) if token.word == "VALUES"), len(given))
    if values + 1 >= len(given) or given[values + 1].text != "(":
        return None
    depth = 0
    for token in given[values + 1 :]:
        depth += (token.text in "([{") - (token.text in ")]}") if token.kind == "sign" else 0
        if not depth:
            break
    else:
        return None
    start, end = given[values + 1].start, token.end
    tail = [each for each in given if each.start >= end]
    if any(each.text == ";" for each in tail[:-1]) or (tail and tail[0].text == ","):
        return None
    whole, row = template_of(sql, named=named), template_of(sql[start:end], named=named)
    if len(whole.pieces) != len(row.pieces):
        return None
    before, after = (template_of(text, named=named).pieces[0] for text in (sql[:start], sql[end:]))
    return RowInsert(before, row, after)
