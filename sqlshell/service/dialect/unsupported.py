"""Statements of the interface that this service does not support, with the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from sqlshell.interface import sqlstate
from sqlshell.service.dialect.forms import Form
from sqlshell.service.failure import Failure

_ROLES = "the roles owner, writer and reader are predefined; assign them with CREATE API_TOKEN"
_USERS = "this service has API tokens instead of users; use CREATE API_TOKEN"
_SOURCES = "download the file of a source with GET /v2/download/KIND/ORGANIZATION/NAME"
_INTEGRATIONS = "this service does not report to other systems"

_DEFAULT = "the client sends its context with each request; use USE to change the context of a session"
_GENERATE = "columns are detected automatically; use SELECT * FROM store.entity"
_RESUME = "a finished query cannot be resumed; use RESTART QUERY to start it from the beginning"
_SANDBOX = "use CREATE DATABASE and DROP DATABASE instead"

_STREAM = "a stream accepts rows as long as it exists; only compute pools can be started and stopped"
_FILE = "use WITH ('file' = 'NAME') and send the file as an attachment of that name"
_ARGUMENTS = "name the arguments: CREATE FUNCTION name (argument, …) AS expression"

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
    "LIST DESCRIPTORS": "this service does not read the contents of descriptor sources",
    "RESUME QUERY": _RESUME,
    "START SANDBOX": _SANDBOX,
    "STOP SANDBOX": _SANDBOX,
    "DESCRIBE SANDBOX": _SANDBOX,
    "START STREAM": _STREAM,
    "STOP STREAM": _STREAM,
    "CREATE FUNCTION_SOURCE <name:names> FROM": _FILE,
    "CREATE DESCRIPTOR_SOURCE <name:names> FROM": _FILE,
    "CREATE FUNCTION <name:names> AS": _ARGUMENTS,
    "UPDATE ENTITY <name:path> SET SCHEMA <columns:parentheses>": "the columns of an entity are those of its file",
    "ALTER API_TOKEN": "the roles of a token cannot be changed; drop the token and create another one",
    "COPY FUNCTION_SOURCE": _SOURCES,
    "COPY DESCRIPTOR_SOURCE": _SOURCES,
    **{
        f"{verb} {kind}_INTEGRATION{'S' * (verb == 'LIST')}": _INTEGRATIONS
        for verb in ("CREATE", "DROP", "ALTER", "UPDATE", "LIST", "DESCRIBE")
        for kind in ("METRICS", "SECURITY")
    },
}
"""By the form of a statement: why it is not supported."""


def _refuse(sentence: str, **_: object) -> NoReturn:
    raise Failure(sqlstate.UNSUPPORTED, sentence)


def _forms(refused: Mapping[str, str]) -> Mapping[str, tuple[Form[NoReturn], ...]]:
    forms: dict[str, tuple[Form[NoReturn], ...]] = {}
    for words, why in refused.items():
        first = words.split()[0].lower()
        # COPY and DESCRIBE of a table with such a name are for the engine.
        rest = {"copy": "<name:one> [ TO <rest:rest> ]", "describe": "<name:one>"}.get(first, "[ <rest:rest> ]")
        sentence = f"{' '.join(part for part in words.split() if part.isupper())} is not supported: {why}"
        forms[first] = (
            *forms.get(first, ()),
            Form(f"{words} {rest}", _refuse, sentence=sentence.replace("_INT", " INT")),
        )
    return forms


FORMS = _forms(_REFUSED)

_ENGINES = {"GRANT", "REVOKE", "CREATE USER", "DROP USER", "CREATE FUNCTION <name:names> AS"}
"""What an engine with roles and functions of its own has."""

SERVER_FORMS = _forms({words: why for words, why in _REFUSED.items() if words not in _ENGINES})
