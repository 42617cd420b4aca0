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

_PARTS: Final = {"ARRAY": 1, "MAP": 2}
"""How many types are in angle brackets; STRUCT and ROW have any number of fields there."""

_STRUCTS: Final = frozenset({"STRUCT", "ROW"})
_TIMES: Final = frozenset({"TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_TZ", "TIME"})
_INSTANTS: Final = frozenset({"TIMESTAMP_LTZ", "TIMESTAMP_TZ"})
_MORE: Final = frozenset({"NOT", "NULL", "PRECISION", "VARYING", "WITH", "WITHOUT"})
"""Words that may follow the first word of a type."""


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
        text, behind = self._text, at + 1
        match text.word(at), text.sign(behind):
            case ("ARRAY" | "MAP" | "STRUCT" | "ROW") as word, "<":
                return self._angles(at, word)
            case ("STRUCT" | "ROW" | "UNION" | "MAP" | "TUPLE") as word, "(":
                return self._parentheses(behind, named=word not in {"MAP", "TUPLE"})
            case word, _ if word in _TIMES:
                return self._time(at, word)
            case (("BYTES" | "VARBINARY" | "BINARY"), _):
                return self._replaced(at, "BLOB", self._arguments(behind))
            case (("DECIMAL" | "NUMERIC"), "(") if self._numbers(behind) == _WIDEST_DECIMAL:
                return self._replaced(at, "HUGEINT", self._arguments(behind))
        while text.sign(behind) == "." and text.is_name(behind + 1):
            behind += 2
        # DOUBLE PRECISION, CHARACTER VARYING(…).
        return self._arguments(behind + (text.word(behind) in {"PRECISION", "VARYING"}))

    def _replaced(self, at: int, name: str, behind: int) -> int:
        """Replace the type from one token to before another one."""
        self._edits.replace(at, name)
        self._edits.drop(at + 1, behind)
        return behind

    def _angles(self, at: int, word: str) -> int:
        """ARRAY<type>, MAP<type, type>, STRUCT<name type, …>; types without names make a STRUCT a TUPLE."""
        end, number, named = at + 1, 0, False
        while number == 0 or self._text.sign(end) == ",":
            start = end + 1
            is_field = word in _STRUCTS and (self._text.sign(start + 1) == ":" or self._begins_type(start + 1))
            if number and is_field is not named:
                return -1
            number, named = number + 1, is_field
            end = self._field(start) if named else self._part(start)
        if end < 0 or self._text.sign(end) != ">" or number != _PARTS.get(word, number):
            return -1
        if word == "ARRAY":
            self._edits.drop(at, at + 2)
        else:
            self._edits.replace(at, word if word == "MAP" else "STRUCT" if named else "TUPLE")
            self._edits.replace(at + 1, "(")
        self._edits.replace(end, "[]" if word == "ARRAY" else ")")
        return end + 1

    def _part(self, at: int) -> int:
        """A type inside another one. DuckDB cannot store that it is NOT NULL."""
        at = self.type(at)
        words = self._text.word(at), self._text.word(at + 1)
        if at < 0 or words[0] not in {"NOT", "NULL"}:
            return at
        behind = at + (2 if words == ("NOT", "NULL") else 1)
        self._edits.drop(at, behind)
        return behind

    def _begins_type(self, at: int) -> bool:
        """Whether a type begins at a token after a name, rather than the name being the first word of the type."""
        return self._text.is_name(at) and self._text.word(at) not in _MORE

    def _field(self, at: int) -> int:
        if not self._text.is_name(at):
            return -1
        # A word may be one of DuckDB's own types.
        self._edits.replace(at, always_quoted(self._text.tokens[at].value))
        colon = self._text.sign(at + 1) == ":"
        self._edits.drop(at + 1, at + 1 + colon)
        return self._part(at + 1 + colon)

    def _parentheses(self, at: int, *, named: bool) -> int:
        """Types in parentheses, in DuckDB's syntax, whose parts may be types of the interface."""
        for start, behind in self._text.arguments(at):
            if self._part(start + named) != behind:
                return -1
        return self._text.closing.get(at, -2) + 1

    def _time(self, at: int, word: str) -> int:
        """A time or timestamp with any precision, and WITH, WITH LOCAL or WITHOUT TIME ZONE."""
        numbers = self._numbers(at + 1)
        if numbers is not None and len(numbers) != 1:
            return -1
        digits = int(numbers[0][:4]) if numbers else 6
        if digits > MOST_DIGITS:
            message = f"{word}({digits}) is not supported: DuckDB stores at most {MOST_DIGITS} fractional digits"
            raise Failure(sqlstate.UNSUPPORTED, message)
        behind = self._arguments(at + 1) if numbers else at + 1
        end, has_zone = self._zone(behind)
        if word in _INSTANTS or (word == "TIMESTAMP" and has_zone):
            return self._replaced(at, "TIMESTAMPTZ_NS" if digits > 6 else "TIMESTAMPTZ", end)
        if word == "TIME" and not has_zone:
            return self._replaced(at, "TIME_NS" if digits > 6 else "TIME", end)
        if word == "TIME":
            # DuckDB accepts no precision there, and stores six digits.
            self._edits.drop(at + 1, behind)
        return end

    def _zone(self, at: int) -> tuple[int, bool]:
        """The token after the time zone of a type, if there is one, and whether the type has a time zone."""
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
        arguments = self._text.arguments(at) if self._text.sign(at) == "(" else []
        numbers = tuple(self._text.tokens[start].text for start, behind in arguments if behind == start + 1)
        return numbers if arguments and len(numbers) == len(arguments) and all(map(str.isdecimal, numbers)) else None
