"""Statements that create, use, drop, start and stop objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from sqlshell.service.dialect.alterations import in_store
from sqlshell.service.dialect.forms import Form
from sqlshell.service.dialect.names import Names


class Use(Struct, frozen=True):
    kind: str
    names: Names


class Create(Struct, frozen=True):
    """CREATE of an object; `columns` is the parenthesized column list of a stream or changelog, `store` the store of an
    entity."""

    kind: str
    names: Names
    options: Mapping[str, str] = field(default_factory=dict)
    replace: bool = False
    if_not_exists: bool = False
    columns: str = ""
    store: str = ""


class CreateAs(Struct, frozen=True):
    """CREATE … AS SELECT that the engine does not support: of a stream, changelog or materialized_view, or of a table
    with options."""

    kind: str
    names: Names
    select: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    replace: bool = False
    if_not_exists: bool = False
    columns: str = ""


class Drop(Struct, frozen=True):
    """DROP of an object; `store` is the store of an entity."""

    kind: str
    names: Names
    if_exists: bool = False
    store: str = ""
    cascade: bool = False


class StartPool(Struct, frozen=True):
    name: str
    start: bool


Definition = Use | Create | CreateAs | Drop | StartPool

_CREATE = "CREATE [ OR REPLACE =replace ]"
_IF_NOT = "[ IF NOT EXISTS =if_not_exists ]"
_IF = "[ IF EXISTS =if_exists ]"
_CASCADE = "[ CASCADE =cascade ] [ RESTRICT ]"
_IN_STORE = "[ IN STORE <store:one> ]"
_WITH = "[ WITH <options:options> ]"
_OBJECTS = "STORE|COMPUTE_POOL|FUNCTION_SOURCE|DESCRIPTOR_SOURCE|ORGANIZATION|API_TOKEN|SCHEMA_REGISTRY"
_ENGINES_OBJECTS = "DATABASE|ROLE|USER"
"""Objects that an engine of its own has itself."""

_FLOWS = "STREAM|CHANGELOG"


def _entity(**values: Any) -> Create:
    return Create(**in_store(values))


def _schema(names: str, database: str, **values: Any) -> Create:
    return Create(names=(database, names), **values)


def _drop_schema(names: str, database: str, **values: Any) -> Drop:
    return Drop(names=(database, names), **values)


SERVER_FORMS: Mapping[str, tuple[Form[Definition], ...]] = {
    "use": (Form("USE kind:DATABASE|SCHEMA|ROLE|STORE|ORGANIZATION|COMPUTE_POOL <names:names>", Use),),
    "create": (
        # DuckDB has CREATE SECRET, SCHEMA and TABLE too: only WITH makes them statements of the dialect.
        Form(f"{_CREATE} kind:SECRET {_IF_NOT} <names:names> WITH ! <options:options>", Create),
        Form(f"{_CREATE} kind:SCHEMA {_IF_NOT} <names:one> IN DATABASE ! <database:one> {_WITH}", _schema),
        Form(
            f"{_CREATE} kind:{_FLOWS} {_IF_NOT} <names:names> [ <columns:parentheses> ] {_WITH} AS ! <select:rest>",
            CreateAs,
        ),
        Form(f"{_CREATE} kind:{_FLOWS} ! {_IF_NOT} <names:names> <columns:parentheses> {_WITH}", Create),
        Form(f"{_CREATE} kind:ENTITY ! {_IF_NOT} <names:path> {_IN_STORE} {_WITH}", _entity),
        Form(f"{_CREATE} kind:{_OBJECTS} ! {_IF_NOT} <names:names> {_WITH}", Create),
    ),
    "drop": (
        Form(f"DROP kind:ENTITY ! {_IF} <names:path> {_IN_STORE}", Drop),
        Form(f"DROP kind:SCHEMA {_IF} <names:one> IN DATABASE ! <database:one> [ CASCADE =cascade ]", _drop_schema),
        Form(
            f"DROP kind:SECRET|RELATION|{_FLOWS}|{_OBJECTS} {_IF} <names:names> {_CASCADE}",
            Drop,
        ),
    ),
    "start": (Form("START COMPUTE_POOL ! <name:one>", StartPool, start=True),),
    "stop": (Form("STOP COMPUTE_POOL ! <name:one>", StartPool, start=False),),
}
"""Without databases, roles, materialized views and options of tables, which an engine of its own has."""

FORMS: Mapping[str, tuple[Form[Definition], ...]] = {
    **SERVER_FORMS,
    "create": (
        Form(
            f"{_CREATE} kind:TABLE {_IF_NOT} <names:names> [ <columns:parentheses> ] WITH ! <options:options> "
            "[ AS <select:rest> ]",
            CreateAs,
        ),
        Form(f"{_CREATE} kind:MATERIALIZED_VIEW ! {_IF_NOT} <names:names> {_WITH} AS <select:rest>", CreateAs),
        Form(f"{_CREATE} kind:{_ENGINES_OBJECTS} ! {_IF_NOT} <names:names> {_WITH}", Create),
        *SERVER_FORMS["create"],
    ),
    "drop": (
        Form(
            f"DROP kind:MATERIALIZED_VIEW|{_ENGINES_OBJECTS} {_IF} <names:names> {_CASCADE}",
            Drop,
        ),
        *SERVER_FORMS["drop"],
    ),
}
