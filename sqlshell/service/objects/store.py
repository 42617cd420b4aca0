"""Stores and their entities, which are data files. `service/stores/` looks after the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import field

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import missing
from sqlshell.service.dialect.forms import Form
from sqlshell.service.dialect.lexer import Names
from sqlshell.service.engines.engine import LocalEngine, LocalSession, Outcome, Rights
from sqlshell.service.failure import Failure
from sqlshell.service.objects.kind import (
    CREATE,
    IF_EXISTS,
    IF_NOT_EXISTS,
    OPTIONS,
    PARTS,
    DialectStatement,
    Execution,
    Kind,
    Listed,
    Needs,
    OfKind,
    Place,
    Result,
    Work,
)
from sqlshell.service.objects.names import reserved_name
from sqlshell.service.objects.relation import column_rows, describe_relation
from sqlshell.service.objects.result_rows import BOOLEAN, OWNED, TIMES, Facts, columns, keep, text
from sqlshell.service.objects.scope import Scope
from sqlshell.service.stores import stores
from sqlshell.service.stores.entities import check_options, create_entity, drop_entity, insert_record
from sqlshell.sql.identifiers import qualified

_DESCRIBED = columns(
    *("Metadata", "Uri", "Details", "TlsEnabled=tls", "VerifyHostName=verify", "SchemaRegistryName=registry", "Path"),
    tls=BOOLEAN,
    verify=BOOLEAN,
)
"""The columns of DESCRIBE STORE; clients read them by position."""


class Store(Kind):
    name, plural = "store", "stores"
    verbs = ("create", "use", "update", "test", "drop", "describe")
    is_services = True
    listing = columns("Name", "Type", "State", "Message", "IsDefault=default", "Owner", *TIMES, "Uri", "Writable")
    relation = columns("name", "type", "status=state", "status_message=message", "uri", *OWNED)

    def create(self, asked: OfKind, execution: Execution) -> None:
        detail = stores.read_options(asked.options, execution.organizations)
        with reserved_name(execution.organization, self.name, asked.name):
            stores.add(execution.organization, asked.name, detail, execution.is_canceled)

    def update(self, asked: OfKind, execution: Execution) -> None:
        execution.get(self.name, asked.name)
        if {"uri", "uris"} & asked.options.keys():
            execution.check_unused(self.name, asked.name)
        stores.change(execution.organization, asked.name, asked.options, execution.is_canceled)

    def test(self, name: str, execution: Execution) -> str:
        return stores.test(execution.organization, name)

    def drop(self, asked: OfKind, execution: Execution) -> None:
        execution.get(self.name, asked.name)
        execution.check_unused(self.name, asked.name)
        stores.drop(execution.organization, asked.name)
        execution.sessions.leave_dropped_object(execution.organization.id, self.name, asked.name)

    def facts(self, scope: Scope) -> list[Facts]:
        rows: list[Facts] = []
        for item in scope.kept(self.name):
            state, reason = "ready", ""
            try:
                with stores.open_store(scope.organization, item.name):
                    pass
            except Failure as failure:
                state, reason = "broken", failure.message
            default = scope.session is not None and scope.session.store == item.name
            facts = {"state": state, "message": reason, "default": default}
            rows.append(scope.facts(item) | facts | {"writable": bool(item.detail.get("writable"))})
        return rows

    def describe(self, asked: OfKind, execution: Execution) -> Outcome:
        """One row, as clients of the interface scan it; a directory has neither TLS nor a schema registry."""
        facts = next((item for item in self.facts(execution.scope) if item["name"] == asked.name), None)
        if facts is None:
            raise missing(self.name, asked.name)
        metadata = {item.name: facts.get(item.key) for item in self.listing if item.key not in {"uri", "writable"}}
        metadata = {key: value if isinstance(value, bool) else text(value) for key, value in metadata.items()}
        row = {
            "metadata": metadata,
            "uri": facts["uri"],
            "details": {"Writable": facts["writable"]},
            "tls": False,
            "verify": False,
            "path": facts["uri"],
        }
        return keep(_DESCRIBED, [row], execution.sink)


_IN_STORE = "[ IN STORE <store:one> ]"


class InsertEntity(DialectStatement, frozen=True):
    names: Names
    value: tuple[str, ...]
    store: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def needs(self) -> Needs:
        return Needs(parts=() if self.store else PARTS[:3])

    def run(self, execution: Execution) -> Outcome:
        execution.begin_change(Rights.DATA, "INSERT INTO ENTITY")
        check_options(self.options)
        session = execution.session
        if not self.store and session.connection.resolve(self.names) in session.organization.streams.known:
            message = f'"{self.names[-1]}" is a stream, not an entity of a store; use INSERT INTO without ENTITY'
            raise Failure(sqlstate.UNSUPPORTED, message)
        store, entity = _entity(self.names, self.store, execution)
        insert_record(execution.organization, store, entity, self.value[0])
        return Outcome(message="INSERT 1")


class Print(DialectStatement, frozen=True):
    """PRINT ENTITY: shows its rows. `options` are those of WITH; an option without a value is "true"."""

    names: Names
    store: str = ""
    from_beginning: bool = False
    options: Mapping[str, str] = field(default_factory=dict)

    def needs(self) -> Needs:
        return Needs(Work.ENGINE, ("compute_pool",) if self.store else PARTS, database=True)

    def run(self, execution: Execution) -> Result:
        session, organization = execution.session, execution.organization
        relation = session.connection.resolve(self.names)
        if not self.store and relation in organization.streams.known:
            sql = f"SELECT * FROM {qualified(*relation)}"
            feed = cast(LocalSession, session.connection).stream_query(sql, [relation], execution.options)
            assert feed is not None
            return feed, 0 if self.from_beginning else cast(LocalEngine, organization.engine).head(relation)
        store, entity = stores.split_name(self.names, self.store or session.store, organization.store_names)
        stores.mount(organization, store, entity, execution.is_canceled)
        sql = f"SELECT * FROM {qualified(store, 'main', entity)}"
        return session.connection.run(sql, execution.options, execution.sink)


class Entity(Kind):
    name, plural = "entity", "entities"
    verbs = ("create", "update", "drop", "describe")
    syntax = (
        ("create", f"{CREATE} KIND ! {IF_NOT_EXISTS} <names:path> {_IN_STORE} {OPTIONS}"),
        # Clients omit an empty WITH.
        ("update", f"UPDATE KIND <names:path> {_IN_STORE} {OPTIONS}"),
        ("drop", f"DROP KIND ! {IF_EXISTS} <names:path> {_IN_STORE}"),
        ("describe", f"DESCRIBE KIND COLUMNS <names:path> {_IN_STORE} =only_columns"),
        ("describe", f"DESCRIBE KIND <names:path> {_IN_STORE}"),
    )
    listing = columns("Name", "IsLeaf=leaf")
    details = columns("Store", "Type", "Path", "Size", "ModifiedAt=modified")
    relation = columns("store_name=store", "name", "size", "modified_at=modified")
    costly = True

    def forms(self) -> Iterator[Form[DialectStatement]]:
        yield from super().forms()
        insert = f"INSERT INTO ENTITY <names:path> {_IN_STORE} VALUE|VALUES ! <value:texts> {OPTIONS}"
        yield Form(insert, _insert)
        beginning = "[ WITH <options:flags> ] [ FROM BEGINNING =from_beginning ]"
        yield Form(f"PRINT ENTITY ! <names:path> {_IN_STORE} {beginning}", _print)

    def made(self, **values: Any) -> DialectStatement:
        return super().made(**(values if values["verb"] == "describe" else _in_store(values)))

    def parts(self, asked: OfKind) -> tuple[str, ...]:
        if asked.store:
            return ()
        return PARTS[:3] if asked.verb == "describe" else ("store",)

    def create(self, asked: OfKind, execution: Execution) -> None:
        store, entity = _entity(asked.names, asked.store, execution)
        create_entity(execution.organization, store, entity, asked.options, takes_over=asked.if_not_exists)

    def update(self, asked: OfKind, execution: Execution) -> None:
        """Check the options and change nothing: the options of topics do not apply to files."""
        store, entity = _entity(asked.names, asked.store, execution)
        if entity not in stores.entities(execution.organization, store):
            raise missing(self.name, f"{store}.{entity}")
        check_options(asked.options)

    def drop(self, asked: OfKind, execution: Execution) -> None:
        store, entity = _entity(asked.names, asked.store, execution)
        drop_entity(execution.organization, store, entity)

    def facts(self, scope: Scope) -> list[Facts]:
        return entities(scope)

    def listed(self, place: Place, execution: Execution) -> Listed:
        names, session = place.names, execution.session
        store = place.store or (names[-1] if place.kind == "store" else session.store)
        folder = list(names) if place.kind == "entity" else []
        if folder and not place.store and folder[0] in execution.organization.store_names:
            store = folder.pop(0)
        of_all = () if store else columns("Store")
        details = [item for item in self.details if item not in of_all]
        return (*self.listing, *of_all), details, entities(execution.scope, store, folder or None)

    def describe(self, asked: OfKind, execution: Execution) -> Outcome:
        organization, names, connection = execution.organization, asked.names, execution.session.connection
        if not asked.store and len(names) <= 3 and connection.resolve(names) in organization.streams.known:
            return describe_relation(asked, execution, only_columns=asked.only_columns)
        store, scope = asked.store or execution.session.store, Scope(organization)
        if not asked.store and names[0] in organization.store_names and len(names) > 1:
            store, names = names[0], names[1:]
        dotted = ".".join(names)
        # The parts of the name may be folders, or the two sides of the dot in a file name.
        found = [item for item in entities(scope, store) if str(item["name"]).replace("/", ".") == dotted]
        if not found:
            found = [item for item in entities(scope, store, names[:-1]) if item["name"] == names[-1]]
        if len(found) > 1:
            message = f'entity "{dotted}" exists in several stores; add IN STORE name'
            raise Failure(sqlstate.INVALID_PARAMETER, message)
        if not found:
            raise missing(self.name, f"{store}.{dotted}" if store else dotted)
        if not asked.only_columns:
            return self.described(dotted, found, execution)
        store, entity = str(found[0]["store"]), str(found[0]["path"])
        stores.mount(organization, store, entity, execution.is_canceled)
        return column_rows(connection.columns((store, "main", entity), execution.options), execution.sink)


def entities(scope: Scope, store: str = "", folder: Sequence[str] | None = None) -> list[Facts]:
    """The entities of a store, or of all stores: all files by path, or the files and folders inside a folder."""
    rows: dict[tuple[str, str], Facts] = {}
    inside = "".join(f"{part}/" for part in folder or ())
    for place in [store] if store else sorted(scope.organization.store_names):
        try:
            files = stores.entities(scope.organization, place)
        except Failure:
            if store:
                raise
            # A broken store does not hide the others.
            continue
        for path, state in files.items():
            if not path.startswith(inside):
                continue
            name, deeper, _ = path.removeprefix(inside).partition("/") if folder is not None else (path, "", "")
            facts: Facts = {"name": name, "store": place, "leaf": not deeper, "path": inside + name, "type": "folder"}
            if not deeper:
                facts = {**facts, "type": "file", "size": str(state.st_size), "modified": state.st_mtime}
            rows.setdefault((place, name), facts)
    return list(rows.values())


def _entity(names: Names, store: str, execution: Execution) -> tuple[str, str]:
    """The store and name of an entity that is to be changed. Raises Failure."""
    session = execution.session
    if len(names) == 1 and not (store or session.store):
        raise Failure(
            sqlstate.NO_STORE, f'no store selected for entity "{names[0]}"; add IN STORE name, or run USE STORE'
        )
    entity = stores.split_name(names, store or session.store, execution.organization.store_names)
    execution.get("store", entity[0])
    return entity


def _in_store(values: dict[str, Any]) -> dict[str, Any]:
    """The fields of a statement about an entity; `store` may also be given as an option."""
    options = dict(values.get("options", {}))
    store = options.pop("store", "")
    if store and values.get("store", store) != store:
        raise Failure("22023", f"IN STORE \"{values['store']}\" and option 'store' = {store!r} name different stores")
    return {"store": store, **values, "options": options}


def _insert(**values: Any) -> InsertEntity:
    if len(values["value"]) > 1:
        message = "INSERT INTO ENTITY accepts one record; use one statement for each record"
        raise Failure(sqlstate.UNSUPPORTED, message)
    return InsertEntity(**_in_store(values))


def _print(**values: Any) -> Print:
    beginning = str(values.get("options", {}).get("from_beginning", "false"))
    return Print(**{"from_beginning": beginning.lower() == "true", **values})
