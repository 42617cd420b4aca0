"""This process: its event loop, its temporary files, its descriptors, its shutdown, reports of bugs, its DuckDBs."""
