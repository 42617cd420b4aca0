"""Statements that make, change and drop objects, and that enter them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from sqlshell.interface import sqlstate
from sqlshell.service.dialect.names import DOTTED, KINDS, NAME, Names, Reader, kind_of, names_of, read_options
from sqlshell.service.engines.engine import Failure

_USE = rf"USE (?P<kind>DATABASE|SCHEMA|ROLE|STORE|ORGANIZATION|COMPUTE_POOL) (?P<name>{DOTTED})"
_MADE = KINDS.replace("|SECRET|", "|")
"""A secret without WITH is the engine's own."""
_CREATE = (
    rf"CREATE(?P<replace> OR REPLACE)? (?P<kind>{_MADE})(?P<exists> IF NOT EXISTS)? (?P<name>{DOTTED})(?P<rest>.*)"
)
_DROP = (
    rf"DROP (?P<kind>{KINDS})(?P<exists> IF EXISTS)? (?P<name>{DOTTED})(?: IN STORE (?P<store>{NAME}))?"
    r"(?: (?:CASCADE|RESTRICT))?"
)
_CREATE_SECRET = (
    rf"CREATE(?P<replace> OR REPLACE)? (?P<kind>SECRET)(?P<exists> IF NOT EXISTS)? (?P<name>{NAME})"
    r"\s*(?P<rest>WITH\s*\(.*)"
)
_CREATE_ENTITY = (
    rf"CREATE(?P<replace> OR REPLACE)? (?P<kind>ENTITY)(?P<exists> IF NOT EXISTS)? (?P<name>{DOTTED})"
    rf" IN STORE (?P<store>{NAME})(?P<rest>.*)"
)
_POOL = rf"(?P<what>START|STOP) COMPUTE_POOL (?P<name>{NAME})"


class Use(Struct, frozen=True):
    kind: str
    names: Names


class Create(Struct, frozen=True):
    kind: str
    names: Names
    options: Mapping[str, str] = field(default_factory=dict)
    replace: bool = False
    if_not_exists: bool = False
    columns: str = ""
    store: str = ""
    """Where an entity is to be, "" for the session's store."""


class Drop(Struct, frozen=True):
    kind: str
    names: Names
    if_exists: bool = False
    store: str = ""


class StartPool(Struct, frozen=True):
    name: str
    start: bool


def _create(found: re.Match[str]) -> Create:
    kind, rest = kind_of(found["kind"]), found["rest"]
    columns = ""
    if kind in {"stream", "changelog"}:
        if re.search(r"(?<!\w)AS\s+SELECT(?!\w)", rest, re.I):
            said = f"CREATE {kind.upper()} … AS SELECT would run forever: this is not a streaming engine"
            raise Failure(sqlstate.UNSUPPORTED, said)
        before, _, after = rest.partition(")") if not rest.strip().startswith("(") else _columns(rest)
        columns, rest = before + ")" if after or before else "", after
        if not columns.strip().startswith("("):
            raise Failure(sqlstate.SYNTAX, f"CREATE {kind.upper()} needs its columns: ({kind} (name type, …))")
    options: dict[str, str] = {}
    if rest.strip():
        inside = re.fullmatch(r"\s*WITH\s*\((.*)\)\s*", rest, re.I | re.S)
        if not inside:
            raise Failure(
                sqlstate.SYNTAX, f"syntax error at {rest.strip()[:60]!r}: WITH ('key' = 'value', …) is expected"
            )
        options = read_options(inside[1])
    store = "".join(names_of(found.groupdict().get("store") or ""))
    return Create(
        kind, names_of(found["name"]), options, bool(found["replace"]), bool(found["exists"]), columns.strip(), store
    )


def _columns(rest: str) -> tuple[str, str, str]:
    """What stands in the first parentheses, which may nest, and what follows them."""
    depth, quote = 0, ""
    for position, sign in enumerate(rest):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
            if depth == 0:
                return rest[:position], ")", rest[position + 1 :]
    raise Failure(sqlstate.SYNTAX, "a parenthesis is not closed")


def _drop(found: re.Match[str]) -> Drop:
    store = "".join(names_of(found["store"] or ""))
    return Drop(kind_of(found["kind"]), names_of(found["name"]), bool(found["exists"]), store)


def _pool(found: re.Match[str]) -> StartPool:
    return StartPool(names_of(found["name"])[0], found["what"].lower() == "start")


READERS: Mapping[str, Sequence[Reader[Use | Create | Drop | StartPool]]] = {
    "use": ((_USE, lambda found: Use(found["kind"].lower(), names_of(found["name"]))),),
    "create": ((_CREATE_SECRET, _create), (_CREATE_ENTITY, _create), (_CREATE, _create)),
    "drop": ((_DROP, _drop),),
    "start": ((_POOL, _pool),),
    "stop": ((_POOL, _pool),),
}
