"""Checks whether a name is free, and whether a database or store could be opened.

The engine ignores the case of database names. Databases and stores share one namespace, and the names of the engine's
own databases are reserved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlshell.service.catalog import DUPLICATES, duplicate
from sqlshell.service.engines.engine import CatalogQuery
from sqlshell.service.failure import Failure
from sqlshell.service.organizations.organizations import Organization

UNREADABLE = "58030"


class NameTaken(Failure):
    """The name belongs to an object of another kind, so that IF NOT EXISTS has no effect."""


@contextmanager
def reserved_name(organization: Organization, kind: str, name: str) -> Iterator[None]:
    """Hold the lock while a database or store is created. Raises Failure if the name is not free."""
    with organization.changing:
        low = name.lower()
        if low in organization.engine.traits.reserved_names:
            raise NameTaken(DUPLICATES[kind], f"the name {name!r} is reserved; choose another name for the {kind}")
        catalog, engine = organization.catalog, organization.engine
        known = [
            (item, existing.name)
            for item in ("database", "store")
            for existing in catalog.objects(organization.id, item)
        ]
        known += [("database", row[0]) for row in engine.catalog(CatalogQuery("databases"))]
        for item, taken in known:
            if taken.lower() == low:
                if item == kind:
                    raise duplicate(kind, taken)
                raise NameTaken(
                    DUPLICATES[kind], f"{item} {taken!r} already exists; databases and stores share one namespace"
                )
        yield


def check_open(organization: Organization, kind: str, name: str) -> None:
    """Raises Failure if a database or store exists but could not be opened."""
    if reason := organization.broken.get((kind, name)):
        raise broken(kind, name, reason)


def check_named(organization: Organization, sql: str) -> None:
    """Raises Failure if a statement names a database that could not be opened."""
    for (kind, name), reason in organization.broken.items():
        if kind == "database" and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sql, re.I):
            raise broken(kind, name, reason)


def broken(kind: str, name: str, reason: str) -> Failure:
    return Failure(UNREADABLE, f"cannot open {kind} {name!r}: {reason}")
