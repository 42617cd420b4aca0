"""Translates the interface's SQL into DuckDB's."""
