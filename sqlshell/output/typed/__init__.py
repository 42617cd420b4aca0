"""Formats with typed columns, made by DuckDB: Parquet and Arrow."""
