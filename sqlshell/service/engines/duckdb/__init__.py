"""DuckDB: an instance, its sessions, its errors."""

from sqlshell.service.engines.duckdb.catalog import CAPABILITIES

__all__ = ["CAPABILITIES"]
