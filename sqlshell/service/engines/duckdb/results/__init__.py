"""Rows out of DuckDB: rendering, large results as files, COPY."""
