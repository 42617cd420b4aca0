"""The local service: the interface on DuckDB, its options, its storage, and the catalog of named objects."""
