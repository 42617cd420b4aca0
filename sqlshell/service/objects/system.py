"""The system relations `deltastream.sys.…`, refreshed before a statement that names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from sqlshell.service.engines.duckdb.contents import SYSTEM
from sqlshell.service.engines.engine import Listing, PublishingEngine
from sqlshell.service.objects import inventory
from sqlshell.service.objects.inventory import Scope
from sqlshell.service.objects.result_rows import NUMBER, Facts, ShownColumn, columns, listed
from sqlshell.service.organizations.sessions import Session

NAME = SYSTEM

_OWNED = ("owner", "created_at=created", "updated_at=updated")
_RELATIONS: Mapping[str, tuple[tuple[ShownColumn, ...], Callable[[Scope], list[Facts]]]] = {
    "databases": (columns("name", "state", *_OWNED), inventory.databases),
    "schemas": (columns("database_name=database", "name", *_OWNED), inventory.schemas),
    "relations": (
        columns(
            *("database_name=database", "schema_name=schema", "name", "fqn", "relation_type=type", "type"),
            *("primary_key", "description", "state", *_OWNED),
        ),
        inventory.relations,
    ),
    "stores": (
        columns("name", "type", "status=state", "status_message=message", "uri", *_OWNED),
        inventory.all_stores,
    ),
    "entities": (
        columns("store_name=store", "name", "size", "modified_at=modified"),
        inventory.entities,
    ),
    "compute_pools": (
        columns(
            *("name", "state", "size", "intended_state=intended", "actual_state=actual", "timeout_min"),
            *_OWNED,
            timeout_min=NUMBER,
        ),
        inventory.pools,
    ),
    "functions": (
        columns("name", "signature", "type", "language", "source_name", "class_name", *_OWNED),
        inventory.functions,
    ),
    "function_sources": (
        columns("name", "file", "language", "description", "status=state", *_OWNED),
        inventory.sources("function_source"),
    ),
    "descriptor_sources": (
        columns("name", "file", "type", "description", "status=state", *_OWNED),
        inventory.sources("descriptor_source"),
    ),
    "schema_registries": (
        columns("name", "type", "status=state", "status_message=message", "url", *_OWNED),
        inventory.recorded("schema_registry"),
    ),
    "secrets": (
        columns("name", "type", "description", "region", "status=state", "status_message=message", *_OWNED),
        inventory.recorded("secret"),
    ),
}
_QUERIES = columns(
    *("id", "name", "version", "intended_state=intended", "current_state=state", "state", "sql_state"),
    *_OWNED,
    version=NUMBER,
)


COLUMNS: Mapping[str, Sequence[tuple[str, str]]] = {
    name: [(column.name, column.type) for column in shown]
    for name, shown in ({name: shown for name, (shown, _) in _RELATIONS.items()} | {"queries": _QUERIES}).items()
}
"""The columns of all relations: names and interface types."""


def publish(session: Session, sql: str, queries: Callable[[], Sequence[Facts]]) -> None:
    """Refresh the system relations that a statement may read. In a thread. Raises Failure.

    `queries` returns the facts about the latest statements. Every role may read the relations, so that they
    do not contain the texts of statements.
    """
    organization = session.organization
    here = Scope(organization, role=session.role)
    tables: dict[str, Listing] = {}
    low = sql.lower()
    named = {name for name in (*_RELATIONS, "queries") if name in low}
    # A statement that names none of them may read them through a list of relations or dynamic SQL.
    for name in named or {*_RELATIONS, "queries"} - {"entities"}:
        if name == "queries":
            tables[name] = listed(_QUERIES, queries())
        else:
            shown, find = _RELATIONS[name]
            tables[name] = listed(shown, find(here))
    cast(PublishingEngine, organization.engine).publish(tables)
