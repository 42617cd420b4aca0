"""This process: its event loop, its temporary files, its memory, its descriptors, its shutdown, reports of bugs, its DuckDBs."""
