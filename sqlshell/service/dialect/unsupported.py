"""Statements of the interface that this service does not support, with the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    "CREATE SANDBOX": _SANDBOX,
    "DROP SANDBOX": _SANDBOX,
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


def _form(words: str, why: str) -> Form[NoReturn]:
    # COPY and DESCRIBE of a table with such a name are for the engine.
    rest = {"COPY": "<name:one> [ TO <rest:rest> ]", "DESCRIBE": "<name:names>"}.get(
        words.split(maxsplit=1)[0], "[ <rest:rest> ]"
    )
    shown = " ".join(part for part in words.split() if part.isupper()).replace("_INT", " INT")
    return Form(f"{words} {rest}", _refuse, sentence=f"{shown} is not supported: {why}")


_ENGINES = frozenset({"GRANT", "REVOKE", "CREATE USER", "DROP USER", "CREATE FUNCTION <name:names> AS"})
"""What an engine with roles and functions of its own has."""


def forms(*, server: bool) -> Iterator[Form[NoReturn]]:
    """Yield the forms that are refused; `server`: on an engine with roles and functions of its own."""
    for words, why in _REFUSED.items():
        if not (server and words in _ENGINES):
            yield _form(words, why)
