"""The place from which objects are listed, and who owns them since when.

Every object is owned by the role that may create it. The engine does not record when relations and schemas were
created, so that the service does; without a record, they are as old as their database.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable

from msgspec import Struct

from sqlshell.service.catalog import Object, owning_role
from sqlshell.service.dialect.changes import Change
from sqlshell.service.dialect.lexer import Names
from sqlshell.service.engines.engine import CatalogQuery, Rows
from sqlshell.service.organizations.organizations import Organization
from sqlshell.service.organizations.sessions import Session
from sqlshell.service.storage.storage import StorageError

NOTED = "noted"
"""The kind of catalog objects that record the times of relations and schemas; their names are JSON lists."""

MOST_NOTED = 20_000
"""The number of relations and schemas of an organization, the latest, whose creation times are recorded."""


class Scope(Struct, frozen=True):
    """The place from which objects are listed: an organization, the role that asks, and optionally a session."""

    organization: Organization
    session: Session | None = None
    role: str = ""

    def catalog(self, kind: str, database: str = "", **more: object) -> Rows:
        """The engine's objects outside of stores, as the session sees them if there is one. Raises Failure."""
        query = CatalogQuery(kind, database, hidden=set(self.organization.store_names), **more)  # type: ignore[arg-type]
        return self.session.catalog(query) if self.session else self.organization.engine.catalog(query)

    def kept(self, kind: str) -> list[Object]:
        """The objects of a kind that the service keeps."""
        return self.organization.catalog.objects(self.organization.id, kind)

    @property
    def database(self) -> str:
        return self.session.connection.database if self.session else ""

    @property
    def schema(self) -> str:
        return self.session.connection.schema if self.session else ""

    def owned(self, item: Object | None) -> dict[str, object]:
        """The owner and the times of an object; without a record it is as old as the organization."""
        owner = owning_role(self.session.role if self.session else self.role)
        if item is not None:
            return {"owner": owner, "created": item.created, "updated": item.updated}
        created = self.organization.catalog.organization_created(self.organization.id)
        return {"owner": owner, "created": created, "updated": created}

    def facts(self, item: Object) -> dict[str, object]:
        """What is kept of an object, with its owner and times."""
        detail = {
            key: value if isinstance(value, list | dict) else str(value)
            for key, value in item.detail.items()
            if key != "sealed"
        }
        return {**detail, "name": item.name, **self.owned(item)}

    def noted(self) -> Callable[..., dict[str, object]]:
        """A function that returns the owner and times of a relation or schema with this full name."""
        known = {tuple(json.loads(item.name)): item for item in self.kept(NOTED)}
        by_database = {item.name: self.owned(item) for item in self.kept("database")}
        oldest = self.owned(None)

        def owner_and_times(*name: str) -> dict[str, object]:
            item = known.get(name)
            return dict(by_database.get(name[0], oldest)) if item is None else self.owned(item)

        return owner_and_times


def note(session: Session, change: Change) -> None:
    """Record when a statement of the engine created, changed or dropped something.

    Errors, such as a full disk, are ignored, because the statement has already been run.
    """
    if change.verb == "insert":
        return
    if change.kind == "schema":
        whole: Names = (session.connection.database, *change.names)[-2:]
    else:
        whole = session.full_name(change.names)
    organization, key = session.organization, json.dumps(whole)
    with contextlib.suppress(StorageError):
        if change.verb == "drop":
            organization.catalog.forget(organization.id, NOTED, key)
        elif change.verb == "alter":
            organization.catalog.note_change(organization.id, NOTED, key)
        else:
            organization.catalog.note(organization.id, NOTED, key, MOST_NOTED, again=not change.if_not_exists)
