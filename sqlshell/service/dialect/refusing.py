"""Statements of the interface that this service does not carry out, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from sqlshell.interface import sqlstate
from sqlshell.service.dialect.forms import Form
from sqlshell.service.engines.engine import Failure

_ROLES = (
    "the roles owner, writer and reader are fixed, and a token has its roles from CREATE API_TOKEN … WITH ('roles' = …)"
)
_USERS = "this service has no users or invitations: who has an API token may use it, and CREATE API_TOKEN makes one"
_SOURCES = "a source's file is downloaded with GET /v2/download/KIND/ORGANIZATION/NAME, and COPY writes no files here"
_INTEGRATIONS = "this service reports to no other system, so that there is nothing to integrate"

_DEFAULT = (
    "defaults are not kept for a user here: a client sends its context with each request, and USE changes a session's"
)
_GENERATE = "columns are not guessed from records here: SELECT * FROM store.entity reads the columns of its files"
_RESUME = "a query that has ended keeps no state from which it could go on: RESTART QUERY runs its statement again"
_SANDBOX = "this service has no sandboxes: CREATE DATABASE makes a place to try things in, and DROP DATABASE removes it"

_REFUSED: Mapping[str, str] = {
    "GRANT": f"privileges are not granted one by one: {_ROLES}",
    "REVOKE": f"privileges are not revoked one by one: {_ROLES}",
    "SET DEFAULT": _DEFAULT,
    "GENERATE": _GENERATE,
    "INVITE": _USERS,
    "ACCEPT": _USERS,
    "REJECT": _USERS,
    "RESUME QUERY": _RESUME,
    "START SANDBOX": _SANDBOX,
    "STOP SANDBOX": _SANDBOX,
    "DESCRIBE SANDBOX": _SANDBOX,
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
"""By the first words of a statement: the sentence that says what the service cannot do and why."""


def _refuse(sentence: str, **_: object) -> NoReturn:
    raise Failure(sqlstate.UNSUPPORTED, sentence)


def _forms() -> Mapping[str, tuple[Form[NoReturn], ...]]:
    forms: dict[str, tuple[Form[NoReturn], ...]] = {}
    for words, sentence in _REFUSED.items():
        first = words.split()[0].lower()
        # COPY of a table of this name is the engine's.
        rest = "<name:one>" if first == "copy" else "[ <rest:rest> ]"
        forms[first] = (*forms.get(first, ()), Form(f"{words} {rest}", _refuse, sentence=sentence))
    return forms


FORMS = _forms()
