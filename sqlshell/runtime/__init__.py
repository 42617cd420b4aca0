"""This process: event loop, temporary files, memory, descriptors, shutdown, reports of bugs, DuckDB instances."""
