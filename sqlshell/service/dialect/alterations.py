"""Statements that change, test and truncate objects, load attachments, insert records, and restart queries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from sqlshell.interface import sqlstate
from sqlshell.service.dialect.forms import Form
from sqlshell.service.dialect.names import Names
from sqlshell.service.failure import Failure

_ARGUMENT = re.compile(r"\s*(?:([A-Za-z_]\w*)\s+)?([A-Za-z].*?)\s*", re.S)
ARGUMENTS = 4096
"""The maximum length of a function's arguments with their types, in characters."""

_IN_STORE = "[ IN STORE <store:one> ]"
_WITH = "[ WITH <options:options> ]"
_FLOWS = "RELATION|STREAM|CHANGELOG"


class Update(Struct, frozen=True):
    """UPDATE of an object; `store` is the store of an entity, "" for the session's."""

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


class Load(Struct, frozen=True):
    """COPY … FROM '@file': load an attachment into a relation; no `columns` are all of them, in order."""

    names: Names
    file: str
    columns: tuple[str, ...] = ()


class Truncate(Struct, frozen=True):
    names: Names


class Alter(Struct, frozen=True):
    kind: str
    names: Names
    description: str


class Restart(Struct, frozen=True):
    statement_id: str


class CreateFunction(Struct, frozen=True):
    """CREATE FUNCTION; `arguments` are pairs of name and type; types have the form of normal_type()."""

    name: str
    arguments: tuple[tuple[str, str], ...]
    returns: str
    language: str
    options: Mapping[str, str] = field(default_factory=dict)
    replace: bool = False
    if_not_exists: bool = False


class DropFunction(Struct, frozen=True):
    """DROP FUNCTION; `types` are the argument types, or None if the statement does not list them."""

    name: str
    types: tuple[str, ...] | None
    if_exists: bool = False


def in_store(values: dict[str, Any]) -> dict[str, Any]:
    """The fields of a statement about an entity; `store` may also be given as an option."""
    options = dict(values.get("options", {}))
    store = options.pop("store", "")
    if store and values.get("store", store) != store:
        raise Failure("22023", f"IN STORE {values['store']!r} and option 'store' = {store!r} name different stores")
    return {"store": store, **values, "options": options}


def _update_entity(**values: Any) -> Update:
    return Update(**in_store(values))


def normal_type(text: str) -> str:
    """A type in upper case with single spaces, so that different spellings are equal."""
    return re.sub(r"\s*([<>(),])\s*", r"\1", " ".join(text.upper().split())).replace(",", ", ")


def _pieces(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    pieces, depth, start = [], 0, 0
    for position, sign in enumerate(text):
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and not depth:
            pieces.append(text[start:position])
            start = position + 1
    return [piece for piece in (*pieces, text[start:]) if piece.strip()]


def _arguments(text: str) -> tuple[tuple[str, str], ...]:
    if len(text) > ARGUMENTS:
        raise Failure(sqlstate.LIMIT, f"the arguments of the function are longer than {ARGUMENTS} characters")
    arguments = []
    for piece in _pieces(text):
        match = _ARGUMENT.fullmatch(piece)
        if not match:
            raise Failure(sqlstate.SYNTAX, f"syntax error at {piece.strip()[:60]!r}: expected name TYPE")
        arguments.append(((match[1] or "").lower(), normal_type(match[2])))
    return tuple(arguments)


def _load(names: Names, file: str, columns: tuple[str, ...] = (), form: str = "(FORMAT PARQUET)") -> Load:
    words = form.strip("()").replace("'", "").upper().split()
    if words != ["FORMAT", "PARQUET"]:
        message = f"COPY FROM an attachment supports only (FORMAT parquet), not {form[:ARGUMENTS]}"
        raise Failure(sqlstate.UNSUPPORTED, message)
    return Load(names, file, columns)


def _alter(kind: str, names: Names, options: Mapping[str, str]) -> Alter:
    if options.keys() != {"description"}:
        message = f"ALTER {kind.upper()} can set only 'description', not {min(options.keys() - {'description'})!r}"
        raise Failure(sqlstate.UNSUPPORTED, message)
    return Alter(kind, names, options["description"])


def _insert(value: tuple[str, ...], **values: Any) -> InsertEntity:
    if len(value) > 1:
        message = "INSERT INTO ENTITY accepts one record; use one statement for each record"
        raise Failure(sqlstate.UNSUPPORTED, message)
    return InsertEntity(value=value[0], **in_store(values))


def _function(names: Names, arguments: str, returns: str, language: str, **values: Any) -> CreateFunction:
    return CreateFunction(names[-1], _arguments(arguments[1:-1]), normal_type(returns), language.upper(), **values)


def _drop_function(names: Names, types: str = "", **values: Any) -> DropFunction:
    return DropFunction(names[-1], tuple(kind for _, kind in _arguments(types[1:-1])) if types else None, **values)


Alteration = Load | Update | Test | InsertEntity | Truncate | Alter | Restart | CreateFunction | DropFunction

SERVER_FORMS: Mapping[str, tuple[Form[Alteration], ...]] = {
    "update": (
        # Clients omit an empty WITH.
        Form(f"UPDATE kind:ENTITY <names:path> {_IN_STORE} {_WITH}", _update_entity),
        Form(f"UPDATE kind:STORE|COMPUTE_POOL|SCHEMA_REGISTRY|SECRET <names:names> {_WITH}", Update),
    ),
    "test": (Form("TEST kind:STORE|SCHEMA_REGISTRY ! <name:one>", Test),),
    "insert": (Form(f"INSERT INTO ENTITY <names:path> {_IN_STORE} VALUE|VALUES ! <value:texts> {_WITH}", _insert),),
    "copy": (Form("COPY <names:names> [ <columns:columns> ] FROM <file:attached> ! [ <form:parentheses> ]", _load),),
    "truncate": (Form(f"TRUNCATE {_FLOWS} <names:names>", Truncate),),
    "alter": (Form(f"ALTER kind:{_FLOWS} <names:names> SET ! <options:settings>", _alter),),
    "restart": (Form("RESTART QUERY ! <statement_id:id>", Restart),),
}
"""Without functions, which an engine of its own has."""

FORMS: Mapping[str, tuple[Form[Alteration], ...]] = {
    **SERVER_FORMS,
    "create": (
        Form(
            "CREATE [ OR REPLACE =replace ] FUNCTION [ IF NOT EXISTS =if_not_exists ] <names:names> "
            f"<arguments:parentheses> RETURNS ! <returns:type> LANGUAGE <language:word> {_WITH}",
            _function,
        ),
    ),
    "drop": (Form("DROP FUNCTION [ IF EXISTS =if_exists ] <names:names> [ <types:parentheses> ]", _drop_function),),
}
