"""This process: event loop, files, memory, addresses, shutdown, bug reports, DuckDB."""
