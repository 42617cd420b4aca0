"""Statements that change, test and empty objects, add records to entities, and run a query again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from sqlshell.interface import sqlstate
from sqlshell.service.dialect.names import DOTTED, NAME, Names, Reader, kind_of, names_of, read_options
from sqlshell.service.engines.engine import Failure

_WITH = r"(?:\s*WITH\s*\((?P<options>.*)\))?\s*"
_STORE = rf"(?: IN STORE (?P<store>{NAME}))?"
_STRING = r"'(?P<value>(?:[^']++|'')*+)'"
_ID = r"""(?:'(?P<q1>[^']*)'|"(?P<q2>[^"]*)"|(?P<q3>[\w-]+))"""
_RELATIONS = "RELATION|STREAM|CHANGELOG|MATERIALIZED VIEW|TABLE|VIEW"

_UPDATE_ENTITY = rf"UPDATE (?P<kind>ENTITY) (?P<name>{DOTTED}){_STORE}{_WITH}"
_UPDATE = (
    rf"UPDATE (?P<kind>STORE|COMPUTE_POOL|SCHEMA_REGISTRY|SECRET) (?P<name>{NAME})\s*WITH\s*\((?P<options>.*)\)\s*"
)
_TEST = rf"TEST (?P<kind>STORE|SCHEMA_REGISTRY) (?P<name>{NAME})"
_INSERT = rf"INSERT INTO ENTITY (?P<name>{DOTTED}){_STORE}\s*VALUE\s*\(\s*{_STRING}\s*\){_WITH}"
_INSERT_MORE = rf"INSERT INTO ENTITY (?P<name>{DOTTED}){_STORE}\s*VALUE(?!\w).*"
_TRUNCATE = rf"TRUNCATE RELATION (?P<name>{DOTTED})"
_ALTER = rf"ALTER (?P<kind>RELATION|STREAM|CHANGELOG) (?P<name>{DOTTED}) SET DESCRIPTION\s*=\s*{_STRING}"
_RESTART = rf"RESTART QUERY {_ID}"
_ARGUMENTS = r"""\s*\((?P<arguments>[^'"()]*+(?:\([^'"()]*+\)[^'"()]*+)*+)\)"""
_FUNCTION = (
    rf"CREATE(?P<replace> OR REPLACE)? FUNCTION(?P<exists> IF NOT EXISTS)? (?P<name>{DOTTED}){_ARGUMENTS}"
    rf"\s*RETURNS (?P<returns>[\w<>(),\s]{{1,500}}?) LANGUAGE (?P<language>\w+){_WITH}"
)
_DROP_FUNCTION = rf"DROP FUNCTION(?P<exists> IF EXISTS)? (?P<name>{DOTTED}){_ARGUMENTS}\s*"
_ARGUMENT = re.compile(r"\s*(?:([A-Za-z_]\w*)\s+)?([A-Za-z].*?)\s*", re.S)


class Update(Struct, frozen=True):
    """`store` is where an entity is, "" for the session's."""

    kind: str
    names: Names
    options: Mapping[str, str] = field(default_factory=dict)
    store: str = ""


class Test(Struct, frozen=True):
    kind: str
    name: str


class InsertEntity(Struct, frozen=True):
    names: Names
    store: str
    value: str
    options: Mapping[str, str] = field(default_factory=dict)


class Truncate(Struct, frozen=True):
    names: Names


class Alter(Struct, frozen=True):
    kind: str
    names: Names
    description: str


class Restart(Struct, frozen=True):
    statement_id: str


class CreateFunction(Struct, frozen=True):
    """`arguments` are names and types; types are as normal_type() has them."""

    name: str
    arguments: tuple[tuple[str, str], ...]
    returns: str
    language: str
    options: Mapping[str, str] = field(default_factory=dict)
    replace: bool = False
    if_not_exists: bool = False


class DropFunction(Struct, frozen=True):
    """`types` are those of the arguments."""

    name: str
    types: tuple[str, ...]
    if_exists: bool = False


def normal_type(text: str) -> str:
    """A type in capitals and with one blank between words, so that two ways to write it are one."""
    return re.sub(r"\s*([<>(),])\s*", r"\1", " ".join(text.upper().split())).replace(",", ", ")


def _options(found: re.Match[str]) -> dict[str, str]:
    return read_options(found["options"]) if found["options"] else {}


def _text(found: re.Match[str]) -> str:
    return str(found["value"]).replace("''", "'")


def _store(found: re.Match[str]) -> str:
    return "".join(names_of(found["store"] or ""))


def _pieces(text: str) -> list[str]:
    """What stands between commas outside of brackets."""
    pieces, depth = [""], 0
    for sign in text:
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and not depth:
            pieces.append("")
        else:
            pieces[-1] += sign
    return [piece for piece in pieces if piece.strip()]


def _arguments(text: str) -> tuple[tuple[str, str], ...]:
    made = []
    for piece in _pieces(text):
        found = _ARGUMENT.fullmatch(piece)
        if not found:
            raise Failure(sqlstate.SYNTAX, f"syntax error at {piece.strip()[:60]!r}: name TYPE is expected")
        made.append(((found[1] or "").lower(), normal_type(found[2])))
    return tuple(made)


def _insert_more(found: re.Match[str]) -> InsertEntity:
    said = "INSERT INTO ENTITY takes one record: INSERT INTO ENTITY name [IN STORE store] VALUE('{\"key\": 1}')"
    raise Failure(sqlstate.SYNTAX, said)


def _function(found: re.Match[str]) -> CreateFunction:
    return CreateFunction(
        names_of(found["name"])[-1],
        _arguments(found["arguments"]),
        normal_type(found["returns"]),
        found["language"].upper(),
        _options(found),
        bool(found["replace"]),
        bool(found["exists"]),
    )


def _drop_function(found: re.Match[str]) -> DropFunction:
    types = tuple(kind for _, kind in _arguments(found["arguments"]))
    return DropFunction(names_of(found["name"])[-1], types, bool(found["exists"]))


def _update(found: re.Match[str]) -> Update:
    store = _store(found) if "store" in found.re.groupindex else ""
    return Update(kind_of(found["kind"]), names_of(found["name"]), _options(found), store)


Changing = Update | Test | InsertEntity | Truncate | Alter | Restart | CreateFunction | DropFunction

READERS: Mapping[str, Sequence[Reader[Changing]]] = {
    "update": ((_UPDATE_ENTITY, _update), (_UPDATE, _update)),
    "test": ((_TEST, lambda found: Test(found["kind"].lower(), names_of(found["name"])[0])),),
    "insert": (
        (_INSERT, lambda found: InsertEntity(names_of(found["name"]), _store(found), _text(found), _options(found))),
        (_INSERT_MORE, _insert_more),
    ),
    "truncate": ((_TRUNCATE, lambda found: Truncate(names_of(found["name"]))),),
    "alter": ((_ALTER, lambda found: Alter(found["kind"].lower(), names_of(found["name"]), _text(found))),),
    "restart": ((_RESTART, lambda found: Restart(found["q1"] or found["q2"] or found["q3"] or "")),),
    "create": ((_FUNCTION, _function),),
    "drop": ((_DROP_FUNCTION, _drop_function),),
}
