"""The local service: the interface, implemented on DuckDB; its options, its storage, and the catalog of named objects."""
