"""The system relations `deltastream.sys.…`, made anew before a statement that names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlshell.service.engines.contents import SYSTEM
from sqlshell.service.organizations import Organization
from sqlshell.service.pools import DEFAULT
from sqlshell.service.records import Record

NAME = SYSTEM
Table = tuple[Sequence[str], Sequence[Sequence[str | None]]]


def publish(organization: Organization, latest: Sequence[Record]) -> None:
    """Write what the organization has now. In a thread. Raises Failure."""
    engine, catalog = organization.engine, organization.catalog
    hidden = organization.store_names
    streams = organization.streams.known
    owners = catalog.owners(organization.id)
    pools = {
        item.name: "running" if item.detail["running"] else "stopped"
        for item in catalog.objects(organization.id, "compute_pool")
    }
    relations = engine.read_listing(engine.listing("relations", "", "", streams, hidden))
    tables: Mapping[str, Table] = {
        "relations": (
            ("database_name", "schema_name", "name", "type"),
            [(row[3], row[1], row[0], row[2]) for row in relations],
        ),
        "databases": (("name",), engine.read_listing(engine.listing("databases", "", "", (), hidden))),
        "schemas": (
            ("database_name", "name"),
            [(row[1], row[0]) for row in engine.read_listing(engine.listing("schemas", "", "", (), hidden))],
        ),
        "stores": (
            ("name", "type", "uri"),
            [
                (item.name, item.detail["type"], item.detail["uri"])
                for item in catalog.objects(organization.id, "store")
            ],
        ),
        "queries": (
            # Every role reads these: what a statement says is for its own token and for owners, see LIST QUERIES.
            ("id", "state", "sql_state", "owner"),
            [(item.statement_id, item.status, item.state, owners.get(item.owner, item.owner)) for item in latest],
        ),
        "compute_pools": (
            ("name", "state"),
            sorted(({DEFAULT: "running"} | pools).items()),
        ),
        "function_sources": (
            ("name", "file"),
            [(item.name, item.detail["file"]) for item in catalog.objects(organization.id, "function_source")],
        ),
    }
    engine.publish(tables)
