"""Translates types of the interface into DuckDB's."""

from __future__ import annotations

from typing import Final

from sqlshell.interface import sqlstate
from sqlshell.service.engines.duckdb.translation.text import BracketedTokens, Edits
from sqlshell.service.failure import Failure
from sqlshell.sql.identifiers import always_quoted

MOST_DIGITS: Final = 9
_DEEPEST: Final = 100
_WIDEST_DECIMAL: Final = ("39", "0")
"""The interface's type for 128-bit integers."""

_BYTES: Final = frozenset({"BYTES", "VARBINARY", "BINARY"})
_MORE: Final = frozenset({"NOT", "NULL", "PRECISION", "VARYING", "WITH", "WITHOUT"})
"""Words that may follow the first word of a type."""

_INSTANTS: Final = frozenset({"TIMESTAMP_LTZ", "TIMESTAMP_TZ"})


def read_type(text: BracketedTokens, at: int, edits: Edits) -> int:
    """Translate the type at a token and return the token after it, -1 if there is none or it is not understood.

    Raises Failure for a type that DuckDB cannot store.
    """
    mine = Edits()
    behind = _Reader(text, mine).type(at)
    if behind > 0:
        edits.add(mine)
    return behind


class _Reader:
    """Reads one type. Each method returns the token after what it read, -1 if that is not there."""

    def __init__(self, text: BracketedTokens, edits: Edits) -> None:
        self._text = text
        self._edits = edits
        self._depth = 0

    def type(self, at: int) -> int:
        if not self._text.is_name(at):
            return -1
        self._depth += 1
        if self._depth > _DEEPEST:
            raise Failure(sqlstate.LIMIT, f"the type is nested more than {_DEEPEST} levels deep")
        behind = self._base(at)
        self._depth -= 1
        while behind > 0 and self._text.sign(behind) == "[":
            behind = self._text.closing.get(behind, -2) + 1
        return behind

    def _base(self, at: int) -> int:
        word = self._text.word(at)
        angle, open_ = self._text.sign(at + 1) == "<", self._text.sign(at + 1) == "("
        match word:
            case "ARRAY" if angle:
                self._edits.drop(at, at + 2)
                return self._closed(self._part(at + 2), "[]")
            case "MAP" if angle:
                self._edits.replace(at + 1, "(")
                comma = self._part(at + 2)
                if comma < 0 or self._text.sign(comma) != ",":
                    return -1
                return self._closed(self._part(comma + 1), ")")
            case "STRUCT" | "ROW" if angle:
                self._edits.replace(at + 1, "(")
                return self._closed(self._fields(at, at + 2), ")")
            case "STRUCT" | "ROW" | "UNION" | "MAP" | "TUPLE" if open_:
                return self._parentheses(at + 1, named=word not in {"MAP", "TUPLE"})
            case "TIMESTAMP" | "TIMESTAMP_LTZ" | "TIMESTAMP_TZ" | "TIME":
                return self._time(at, word)
            case known if known in _BYTES:
                self._edits.replace(at, "BLOB")
                behind = self._arguments(at + 1)
                self._edits.drop(at + 1, behind)
                return behind
            case "DECIMAL" | "NUMERIC" if open_ and self._numbers(at + 1) == _WIDEST_DECIMAL:
                behind = self._arguments(at + 1)
                self._edits.replace(at, "HUGEINT")
                self._edits.drop(at + 1, behind)
                return behind
            case "DOUBLE" if self._text.word(at + 1) == "PRECISION":
                return at + 2
            case "CHARACTER" | "CHAR" if self._text.word(at + 1) == "VARYING":
                return self._arguments(at + 2)
        at += 1
        while self._text.sign(at) == "." and self._text.is_name(at + 1):
            at += 2
        return self._arguments(at)

    def _part(self, at: int) -> int:
        """A type inside another one. DuckDB cannot store that it is NOT NULL."""
        at = self.type(at)
        words = self._text.word(at), self._text.word(at + 1)
        if at < 0 or words[0] not in {"NOT", "NULL"}:
            return at
        behind = at + (2 if words == ("NOT", "NULL") else 1)
        self._edits.drop(at, behind)
        return behind

    def _closed(self, at: int, closing: str) -> int:
        if at < 0 or self._text.sign(at) != ">":
            return -1
        self._edits.replace(at, closing)
        return at + 1

    def _fields(self, struct: int, at: int) -> int:
        """The fields of a STRUCT up to its `>`; types without names make it a TUPLE."""
        named: set[bool] = set()
        while True:
            named.add(self._text.sign(at + 1) == ":" or self._begins_type(at + 1))
            at = self._field(at) if True in named else self._part(at)
            if at < 0 or len(named) > 1:
                return -1
            if self._text.sign(at) == ">":
                self._edits.replace(struct, "STRUCT" if True in named else "TUPLE")
                return at
            if self._text.sign(at) != ",":
                return -1
            at += 1

    def _begins_type(self, at: int) -> bool:
        """Whether a type begins at a token after a name, rather than the name being the first word of the type."""
        return self._text.is_name(at) and self._text.word(at) not in _MORE

    def _field(self, at: int) -> int:
        if not self._text.is_name(at):
            return -1
        token = self._text.tokens[at]
        # A word may be one of DuckDB's own types.
        self._edits.replace(at, always_quoted(token.value))
        at += 1
        if self._text.sign(at) == ":":
            self._edits.drop(at, at + 1)
            at += 1
        return self._part(at)

    def _parentheses(self, at: int, *, named: bool) -> int:
        """Types in parentheses, in DuckDB's syntax, whose parts may be types of the interface."""
        for start, behind in self._text.arguments(at):
            if self._part(start + named) != behind:
                return -1
        return self._text.closing.get(at, -2) + 1

    def _time(self, at: int, word: str) -> int:
        behind, digits = at + 1, 6
        numbers = self._numbers(behind)
        if numbers is not None:
            if len(numbers) != 1:
                return -1
            digits = int(numbers[0][:4])
            behind = self._arguments(behind)
            if digits > MOST_DIGITS:
                message = f"{word}({digits}) is not supported: DuckDB stores at most {MOST_DIGITS} fractional digits"
                raise Failure(sqlstate.UNSUPPORTED, message)
        end, zone = self._zone(behind)
        if word == "TIME":
            if zone:
                # DuckDB accepts no precision there, and stores six digits.
                self._edits.drop(at + 1, behind)
                return end
            self._edits.replace(at, "TIME_NS" if digits > 6 else "TIME")
            self._edits.drop(at + 1, end)
        elif word in _INSTANTS or zone:
            self._edits.replace(at, "TIMESTAMPTZ_NS" if digits > 6 else "TIMESTAMPTZ")
            self._edits.drop(at + 1, end)
        return end

    def _zone(self, at: int) -> tuple[int, bool]:
        """WITH, WITH LOCAL or WITHOUT TIME ZONE: the token after it, and whether the type has a time zone."""
        with_ = self._text.word(at)
        time = at + (2 if with_ == "WITH" and self._text.word(at + 1) == "LOCAL" else 1)
        if with_ in {"WITH", "WITHOUT"} and (self._text.word(time), self._text.word(time + 1)) == ("TIME", "ZONE"):
            return time + 2, with_ == "WITH"
        return at, False

    def _arguments(self, at: int) -> int:
        """The token after the parentheses at a token, if there are any."""
        return self._text.closing[at] + 1 if self._text.sign(at) == "(" and at in self._text.closing else at

    def _numbers(self, at: int) -> tuple[str, ...] | None:
        """The numbers in the parentheses at a token; None if there is something else."""
        if self._text.sign(at) != "(":
            return None
        arguments = self._text.arguments(at)
        numbers = [self._text.tokens[start] for start, behind in arguments if behind == start + 1]
        if len(numbers) != len(arguments) or not all(item.kind == "number" and item.text.isdigit() for item in numbers):
            return None
        return tuple(item.text for item in numbers)
