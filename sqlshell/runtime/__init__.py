"""This process: its event loop, its temporary files, its descriptors, its shutdown, reports of bugs, and DuckDB
instances that reach only the files they are given."""
