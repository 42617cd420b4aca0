"""The local service: the interface, implemented on DuckDB."""
