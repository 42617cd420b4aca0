"""Names that are taken, and objects that cannot be opened.

The engine takes names of databases for the same when they differ in case alone. Databases and stores share their names,
and those that are the engine's own belong to nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlshell.service.engines.duckdb.contents import RESERVED
from sqlshell.service.engines.engine import Failure
from sqlshell.service.objects.catalog import DUPLICATES, duplicate
from sqlshell.service.organizations.organizations import Organization

UNREADABLE = "58030"


class Taken(Failure):
    """The name is that of something else, so that IF NOT EXISTS does not help."""


@contextmanager
def naming(organization: Organization, kind: str, name: str) -> Iterator[None]:
    """Make a database or store of this name, while nobody else makes one. Raises Failure where the name is taken."""
    with organization.changing:
        low = name.lower()
        if low in RESERVED:
            raise Taken(DUPLICATES[kind], f"{name!r} is a reserved name: choose another one for the {kind}")
        catalog, engine = organization.catalog, organization.engine
        known = [
            (item, found.name) for item in ("database", "store") for found in catalog.objects(organization.id, item)
        ]
        known += [("database", row[0]) for row in engine.read_listing(engine.listing("databases", "", "", (), ()))]
        for item, found in known:
            if found.lower() == low:
                if item == kind:
                    raise duplicate(kind, found)
                raise Taken(
                    DUPLICATES[kind], f"{found!r} is the name of a {item}: databases and stores share their names"
                )
        yield


def check_open(organization: Organization, kind: str, name: str) -> None:
    """Raises Failure for a database or store that is there and could not be opened."""
    if reason := organization.broken.get((kind, name)):
        raise broken(kind, name, reason)


def check_named(organization: Organization, sql: str) -> None:
    """Raises Failure where a text names a database that could not be opened."""
    for (kind, name), reason in organization.broken.items():
        if kind == "database" and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sql, re.I):
            raise broken(kind, name, reason)


def broken(kind: str, name: str, reason: str) -> Failure:
    return Failure(UNREADABLE, f"{kind} {name!r} cannot be opened: {reason}")
