"""Numbers that a DOUBLE does not hold as they are written, found before a table is created for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import duckdb
from msgspec import Struct

from sqlshell.sql.duckdb_types import TEXT
from sqlshell.sql.identifiers import always_quoted, literal

DIGITS: Final = 38
"""The most digits of a DECIMAL."""

_SAFE: Final = 15
"""Digits that a DOUBLE always holds."""
_COMPARED: Final = 100
"""The maximum number of digits with which a DOUBLE is written for the comparison; longer numbers count as changed."""


class Inexact(Struct, frozen=True):
    """The digits that the numbers of a column need before and after the point. With `scientific` some numbers have an
    exponent, or are infinite or NaN."""

    whole: int
    places: int
    scientific: bool

    @property
    def decimal(self) -> str:
        """The type that holds all of them; "" for none."""
        return "" if self.scientific or self.whole + self.places > DIGITS else f"DECIMAL({DIGITS},{self.places})"


def inexact(connection: duckdb.DuckDBPyConnection, rows: str, texts: Mapping[str, str]) -> dict[str, Inexact]:
    """The columns with numbers that a DOUBLE changes. `rows` is SQL for FROM, `texts` has the text of each column.

    A number is unchanged if the DOUBLE, written with as many digits, is the same: 0.1, but also 0.10000000000000001,
    which is how C and R write all digits of a DOUBLE.
    """
    selected = ", ".join(f"trim({text}) AS {always_quoted(name)}" for name, text in texts.items())
    measured = ", ".join(_measured(always_quoted(name)) for name in texts)
    measures = connection.execute(f"SELECT {measured} FROM (SELECT {selected} FROM {rows})").fetchone() or ()
    return {
        name: Inexact(int(whole or 0), int(places or 0), bool(scientific))
        for name, (lossy, whole, places, scientific) in zip(
            texts, zip(*(measures[at::4] for at in range(4)), strict=True), strict=True
        )
        if lossy
    }


def _measured(text: str) -> str:
    """SQL of four aggregates: whether a DOUBLE changes a value, and the parts of Inexact."""
    digits = _significant(text)
    same = f"format('{{:.{{}}e}}', TRY_CAST({text} AS DOUBLE), least(length({digits}), {_COMPARED}) - 1)"
    lossy = (
        f"CASE WHEN length({text}) <= {_SAFE} OR NOT isfinite(TRY_CAST({text} AS DOUBLE)) THEN false "
        f"WHEN length({digits}) <= {_SAFE} THEN false ELSE {_significant(same)} <> {digits} END"
    )
    whole = f"length(ltrim(split_part({text}, '.', 1), '+-0'))"
    return (
        f"bool_or({lossy}), max({whole}), max(length(split_part({text}, '.', 2))), "
        f"bool_or(NOT regexp_full_match({text}, {literal('[+-]?[0-9]*[.]?[0-9]*')}))"
    )


def _significant(text: str) -> str:
    """SQL of the digits of a number, without zeros at both ends."""
    return f"trim(regexp_replace(regexp_replace({text}, '[eE].*', ''), '[^0-9]', '', 'g'), '0')"


def overflows(text: str, type_: str) -> str:
    """SQL: whether the text of a number is one that is too large for a type of floating-point numbers."""
    return f"isinf(TRY_CAST({text} AS {type_})) AND regexp_matches({text}, '[0-9]')"


def has_fraction(text: str) -> str:
    """SQL: whether the text of a number is one that is not whole."""
    number = f"TRY_CAST({text} AS DOUBLE)"
    return (
        f"CASE WHEN contains(lower({text}), 'e') THEN {number} <> round({number}) "
        f"ELSE {number} IS NOT NULL AND regexp_matches({text}, '[.][0-9]*[1-9]') END"
    )


def whole_number(text: str, type_: str) -> str:
    """SQL for the value of a text in a type of whole numbers, or in that of texts; an error if it has a fraction."""
    value = f"CAST({text} AS {type_})"
    as_written = f"WHEN CAST({value} AS {TEXT}) = {text} THEN {value} " if type_ != TEXT else ""
    # The exact test takes longer than the number.
    return f"CASE {as_written}WHEN {has_fraction(text)} THEN error('fraction') ELSE {value} END"
