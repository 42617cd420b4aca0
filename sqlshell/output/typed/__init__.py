"""Formats with typed columns, made by DuckDB: Parquet and Arrow; results without a file as tables of DuckDB."""
