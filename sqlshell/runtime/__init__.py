"""This process: event loop, temporary files, memory, descriptors, addresses, shutdown, bug reports, DuckDB."""
