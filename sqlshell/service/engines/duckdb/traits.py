"""DuckDB's capabilities for the service."""

from __future__ import annotations

from typing import Final

from sqlshell.service.engines.engine import Capabilities

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


def version() -> str:
    """The name and version of the installed DuckDB, without importing it."""
    # importlib.metadata imports the package email, which an engine's process never needs.
    from importlib.metadata import version as installed

    return f"DuckDB {installed('duckdb')}"
