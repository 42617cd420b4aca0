"""Statements that show something: LIST, SHOW, DESCRIBE, CAN I, PRINT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from sqlshell.service.dialect.forms import Form
from sqlshell.service.dialect.names import KINDS, Names


class List(Struct, frozen=True):
    """LIST or SHOW: what is listed, in lower case; the kind and name of its place; the name of a store after IN STORE;
    and the text of the condition of WHERE. `show` distinguishes SHOW, which the engine has too. `options` such as 'all'
    have no effect."""

    what: str
    place: str = ""
    names: Names = ()
    store: str = ""
    where: str = ""
    show: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


class Describe(Struct, frozen=True):
    """DESCRIBE of an object; `columns` is set by the word COLUMNS."""

    kind: str
    names: Names
    store: str = ""
    columns: bool = False


class DescribeStatement(Struct, frozen=True):
    """DESCRIBE of a CREATE or INSERT: shows what it would create, without running it."""

    sql: str


class CanI(Struct, frozen=True):
    """CAN I: the privilege, in lower case, and the text after ON."""

    privilege: str
    about: str = ""


class Print(Struct, frozen=True):
    """PRINT ENTITY: shows some of its rows. `options` are those of WITH; an option without a value is "true"."""

    names: Names
    store: str = ""
    from_beginning: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


class EngineObjects(Struct, frozen=True):
    """LIST ENGINE and DESCRIBE ENGINE: what the engine has, in its own terms. The fields are those of ObjectQuery;
    `place` is the name of a schema."""

    kind: str
    part: str = ""
    names: Names = ()
    place: Names = ()
    details: bool = False
    arguments: str = ""


Inspection = List | Describe | DescribeStatement | CanI | Print | EngineObjects

_SHOWN = (
    "SCHEMAS|STORES|STREAMS|CHANGELOGS|RELATIONS|MATERIALIZED_VIEWS|ENTITIES|COMPUTE_POOLS|FUNCTIONS|FUNCTION_SOURCES|"
    "DESCRIPTOR_SOURCES|SCHEMA_REGISTRIES|QUERIES|SESSIONS|ORGANIZATIONS|ENGINES|ROLES|USERS|SECRETS|API_TOKENS|INVITATIONS"
)
"""The kinds of objects that SHOW lists in the same way as LIST. SHOW DATABASES and SHOW TABLES are DuckDB's own."""

_DESCRIBED = f"RELATION|TABLE|VIEW|MATERIALIZED_VIEW|SCHEMA|FUNCTION|{KINDS}"
_WHERE = "[ WITH <options:flags> ] [ WHERE ! <where:rest> ]"
_LISTED = "RELATIONS|COLUMNS|FOREIGN_KEYS|INDEXES|FUNCTIONS|TYPES|DATABASES|SCHEMAS|ROLES|PRIVILEGES|CONNECTIONS"
_DETAILS = "[ WITH DETAILS =details ]"


def _print(**values: Any) -> Print:
    beginning = str(values.get("options", {}).get("from_beginning", "false"))
    return Print(**{"from_beginning": beginning.lower() == "true", **values})


def _inside(what: str, **values: Any) -> List:
    return List(what, "database" if what == "schemas" else "schema", **values)


def _listing(verb: str, what: str) -> tuple[Form[Inspection], ...]:
    show = verb == "SHOW"
    entities = f"{verb} what:ENTITIES IN <names:path> [ IN STORE <store:one> ] {_WHERE}"
    return (
        Form(f"{verb} what:ENTITIES IN STORE <store:one> {_WHERE}", List, show=show),
        Form(entities, List, place="entity", show=show),
        Form(f"{verb} {what} IN place:DATABASE|SCHEMA|STORE <names:names> {_WHERE}", List, show=show),
        Form(f"{verb} {what} IN <names:names> {_WHERE}", _inside, show=show),
        Form(f"{verb} {what} {_WHERE}", List, show=show),
    )


_SHOWN_BY_SERVERS = "SCHEMAS|MATERIALIZED_VIEWS|FUNCTIONS|ROLES|USERS"
"""What an engine of its own may have a SHOW for."""

FORMS: Mapping[str, tuple[Form[Inspection], ...]] = {
    "list": (
        Form(f"LIST ENGINE ! kind:{_LISTED} [ IN SCHEMA <place:names> ] {_DETAILS}", EngineObjects),
        *_listing("LIST", f"what:{_SHOWN}"),
        *_listing("LIST", "<what:word>"),
        # The engine has no statement that begins with LIST.
        Form(f"LIST ! <what:word> {_WHERE}", List),
    ),
    "show": _listing("SHOW", f"what:{_SHOWN}"),
    "describe": (
        Form(f"DESCRIBE ENGINE kind:RELATION part:COLUMNS|SQL <names:names> {_DETAILS}", EngineObjects),
        Form("DESCRIBE ENGINE kind:FUNCTION part:SQL <names:names> [ <arguments:parentheses> ]", EngineObjects),
        Form(f"DESCRIBE ENGINE kind:RELATION <names:names> {_DETAILS}", EngineObjects),
        Form("DESCRIBE <sql:making>", DescribeStatement),
        Form("DESCRIBE kind:RELATION COLUMNS <names:names> =columns", Describe),
        Form("DESCRIBE kind:ENTITY COLUMNS <names:path> [ IN STORE <store:one> ] =columns", Describe),
        Form("DESCRIBE kind:ENTITY <names:path> [ IN STORE <store:one> ]", Describe),
        Form(f"DESCRIBE kind:{_DESCRIBED} <names:names> [ COLUMNS =columns ]", Describe),
    ),
    "print": (
        Form(
            "PRINT ENTITY ! <names:path> [ IN STORE <store:one> ] [ WITH <options:flags> ] "
            "[ FROM BEGINNING =from_beginning ]",
            _print,
        ),
    ),
    "can": (Form("CAN I ! <privilege:word> [ ON <about:rest> ]", CanI),),
}

SERVER_FORMS: Mapping[str, tuple[Form[Inspection], ...]] = {
    **FORMS,
    "show": _listing("SHOW", f"what:{'|'.join(sorted({*_SHOWN.split('|')} - {*_SHOWN_BY_SERVERS.split('|')}))}"),
}
