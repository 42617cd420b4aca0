"""Statements of the interface that this service does not carry out, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from sqlshell.interface import sqlstate
from sqlshell.service.dialect.forms import Form
from sqlshell.service.engines.engine import Failure

_ROLES = "the roles owner, writer and reader are fixed, and CREATE API_TOKEN gives a token its roles"
_USERS = "this service has API tokens in place of users, and CREATE API_TOKEN makes one"
_SOURCES = "GET /v2/download/KIND/ORGANIZATION/NAME gives the file of a source"
_INTEGRATIONS = "this service reports to no other system"

_DEFAULT = "a client sends its context with each request, and USE changes that of a session"
_GENERATE = "SELECT * FROM store.entity finds the columns of an entity by itself"
_RESUME = "a query that has ended cannot go on from where it was, and RESTART QUERY begins it again"
_SANDBOX = "CREATE DATABASE makes a place to try things in, and DROP DATABASE removes it"

_STREAM = "a stream takes rows as long as it exists; only compute pools start and stop"
_FILE = "a source's file is sent with its statement: WITH ('file' = 'NAME'), and an attachment of that name"
_ARGUMENTS = "a function names its arguments: CREATE FUNCTION name (argument, …) AS expression"

_REFUSED: Mapping[str, str] = {
    "GRANT": _ROLES,
    "REVOKE": _ROLES,
    "SET DEFAULT": _DEFAULT,
    "GENERATE": _GENERATE,
    "INVITE": _USERS,
    "ACCEPT": _USERS,
    "REJECT": _USERS,
    "CREATE USER": _USERS,
    "DROP USER": _USERS,
    "UPDATE USER": _USERS,
    "DESCRIBE USER": _USERS,
    "LIST DESCRIPTORS": "a descriptor source is kept as it is, and this service does not read what is in it",
    "RESUME QUERY": _RESUME,
    "START SANDBOX": _SANDBOX,
    "STOP SANDBOX": _SANDBOX,
    "DESCRIBE SANDBOX": _SANDBOX,
    "START STREAM": _STREAM,
    "STOP STREAM": _STREAM,
    "CREATE FUNCTION_SOURCE <name:names> FROM": _FILE,
    "CREATE DESCRIPTOR_SOURCE <name:names> FROM": _FILE,
    "CREATE FUNCTION <name:names> AS": _ARGUMENTS,
    "UPDATE ENTITY <name:path> SET SCHEMA <columns:parentheses>": "an entity has the columns that its file has",
    "ALTER API_TOKEN": "a token's roles do not change: DROP API_TOKEN, and make another one",
    "COPY FUNCTION_SOURCE": _SOURCES,
    "COPY DESCRIPTOR_SOURCE": _SOURCES,
    **{
        f"{verb} {kind}_INTEGRATION{'S' * (verb == 'LIST')}": _INTEGRATIONS
        for verb in ("CREATE", "DROP", "ALTER", "UPDATE", "LIST", "DESCRIBE")
        for kind in ("METRICS", "SECURITY")
    },
}
"""By the first words of a statement: why the service does not do it."""


def _refuse(sentence: str, **_: object) -> NoReturn:
    raise Failure(sqlstate.UNSUPPORTED, sentence)


def _forms() -> Mapping[str, tuple[Form[NoReturn], ...]]:
    forms: dict[str, tuple[Form[NoReturn], ...]] = {}
    for words, why in _REFUSED.items():
        first = words.split()[0].lower()
        # COPY of a table of this name, and DESCRIBE of it, are the engine's.
        rest = {"copy": "<name:one> [ TO <rest:rest> ]", "describe": "<name:one>"}.get(first, "[ <rest:rest> ]")
        said = f"{' '.join(part for part in words.split() if part.isupper())} is not supported: {why}"
        forms[first] = (*forms.get(first, ()), Form(f"{words} {rest}", _refuse, sentence=said.replace("_INT", " INT")))
    return forms


FORMS = _forms()
