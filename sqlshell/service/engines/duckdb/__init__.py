"""DuckDB: an instance, its sessions, its errors."""

from typing import Final

from sqlshell.service.engines.duckdb.catalog import HIDDEN, INITIAL_SCHEMA, RESERVED
from sqlshell.service.engines.engine import Capabilities, Traits

CAPABILITIES: Final = Capabilities(
    transactions=True,
    temporary_tables=True,
    streams=True,
    applications=True,
    cancel=True,
    progress=True,
    typed_results=True,
    roles=True,
    databases=True,
    store_entities=True,
    attachments=True,
    plans=True,
)

TRAITS: Final = Traits(
    initial_schema=INITIAL_SCHEMA,
    hidden_databases=HIDDEN,
    reserved_names=RESERVED,
    interface_sql=True,
    awaited=False,
)


def version() -> str:
    """The name and version of the installed DuckDB, without importing it."""
    # importlib.metadata imports the package email, which an engine's process never needs.
    from importlib.metadata import version as installed

    return f"DuckDB {installed('duckdb')}"
