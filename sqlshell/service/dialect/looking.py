"""Statements that look: LIST, SHOW, DESCRIBE, CAN I, PRINT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from sqlshell.service.dialect.forms import Form
from sqlshell.service.dialect.names import KINDS, Names


class List(Struct, frozen=True):
    """LIST or SHOW: what is listed, in lower case; the kind and name of where it is; a store that was named beside
    that; and the condition behind WHERE, as it was written. `show` tells a SHOW, which the engine has too. `options`
    such as 'all' change nothing."""

    what: str
    place: str = ""
    names: Names = ()
    store: str = ""
    where: str = ""
    show: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


class Describe(Struct, frozen=True):
    """DESCRIBE of an object; `columns` says that its columns were asked for by that word."""

    kind: str
    names: Names
    store: str = ""
    columns: bool = False


class DescribeStatement(Struct, frozen=True):
    """DESCRIBE of a CREATE or INSERT: what it would make, without making it."""

    sql: str


class CanI(Struct, frozen=True):
    """CAN I: the privilege, in lower case, and what it is about as it was written."""

    privilege: str
    about: str = ""


class Print(Struct, frozen=True):
    """PRINT ENTITY: some rows of it. `options` are those of WITH, flags without a value are "true"."""

    names: Names
    store: str = ""
    from_beginning: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


Looking = List | Describe | DescribeStatement | CanI | Print

_SHOWN = (
    "SCHEMAS|STORES|STREAMS|CHANGELOGS|RELATIONS|MATERIALIZED_VIEWS|ENTITIES|COMPUTE_POOLS|FUNCTIONS|FUNCTION_SOURCES|"
    "DESCRIPTOR_SOURCES|SCHEMA_REGISTRIES|QUERIES|SESSIONS|ORGANIZATIONS|ROLES|USERS|SECRETS|API_TOKENS|INVITATIONS"
)
"""What SHOW lists as LIST does. SHOW DATABASES and SHOW TABLES are DuckDB's own, and stay so."""

_DESCRIBED = f"RELATION|TABLE|VIEW|MATERIALIZED_VIEW|SCHEMA|FUNCTION|{KINDS}"
_WHERE = "[ WITH <options:flags> ] [ WHERE ! <where:rest> ]"


def _print(**values: Any) -> Print:
    beginning = str(values.get("options", {}).get("from_beginning", "false"))
    return Print(**{"from_beginning": beginning.lower() == "true", **values})


def _inside(what: str, **values: Any) -> List:
    return List(what, "database" if what == "schemas" else "schema", **values)


def _listing(verb: str, what: str) -> tuple[Form[Looking], ...]:
    show = verb == "SHOW"
    entities = f"{verb} what:ENTITIES IN <names:path> [ IN STORE <store:one> ] {_WHERE}"
    return (
        Form(f"{verb} what:ENTITIES IN STORE <store:one> {_WHERE}", List, show=show),
        Form(entities, List, place="entity", show=show),
        Form(f"{verb} {what} IN place:DATABASE|SCHEMA|STORE <names:names> {_WHERE}", List, show=show),
        Form(f"{verb} {what} IN <names:names> {_WHERE}", _inside, show=show),
        Form(f"{verb} {what} {_WHERE}", List, show=show),
    )


FORMS: Mapping[str, tuple[Form[Looking], ...]] = {
    "list": (
        *_listing("LIST", f"what:{_SHOWN}"),
        *_listing("LIST", "<what:word>"),
        # Nothing of the engine's begins with this word.
        Form(f"LIST ! <what:word> {_WHERE}", List),
    ),
    "show": _listing("SHOW", f"what:{_SHOWN}"),
    "describe": (
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
