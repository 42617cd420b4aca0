"""Syntax of the dialect after the relations of a FROM: options, windows and time bounds of joins."""

from __future__ import annotations

from typing import Final

from sqlshell.interface import sqlstate
from sqlshell.service.engines.duckdb.translation.text import BracketedTokens, Edits
from sqlshell.service.engines.engine import NO_CONTINUOUS_QUERIES
from sqlshell.service.failure import Failure

WINDOWS: Final = frozenset({"TUMBLE", "HOP", "CUMULATE"})
_POSITION: Final = "starting.position"


def options(text: BracketedTokens, at: int, edits: Edits) -> dict[str, str]:
    """Remove WITH ('key' = value, …) at a token and return its options; {} if something else is there.

    Raises Failure for a starting position that is not supported.
    """
    if text.sign(at + 1) != "(" or text.sign(at + 3) != "=" or text.tokens[at + 2].kind not in {"string", "name"}:
        return {}
    given: dict[str, str] = {}
    for start, behind in text.arguments(at + 1):
        if behind != start + 3 or text.sign(start + 1) != "=":
            return {}
        given[text.tokens[start].value.lower()] = text.tokens[start + 2].value
    position = given.get(_POSITION, "latest")
    if position.lower() not in {"earliest", "latest"}:
        raise Failure(sqlstate.UNSUPPORTED, f"'{_POSITION}': expected 'earliest' or 'latest', not {position[:60]!r}")
    # QUERY WITH (…) names the query of a streaming engine.
    edits.drop(at - (text.word(at - 1) == "QUERY"), text.closing[at + 1] + 1)
    return given


def from_earliest(given: dict[str, str]) -> bool:
    return given.get(_POSITION, "").lower() == "earliest"


def window(name: str) -> Failure:
    """The failure for a window over a stream."""
    return Failure(sqlstate.UNSUPPORTED, f"{name} over a stream is not supported: {NO_CONTINUOUS_QUERIES}")


def matches() -> Failure:
    """The failure for MATCH_RECOGNIZE."""
    return Failure(sqlstate.UNSUPPORTED, f"MATCH_RECOGNIZE is not supported: {NO_CONTINUOUS_QUERIES}")


def check_within(text: BracketedTokens, at: int) -> None:
    """Raises Failure (0A000) for a join of streams with a time limit: WITHIN 5 MINUTES ON."""
    if text.word(at + 2) and text.tokens[at + 1].kind == "number":
        raise Failure(sqlstate.UNSUPPORTED, f"JOIN … WITHIN is not supported: {NO_CONTINUOUS_QUERIES}")
