"""Translates the interface's SQL into DuckDB's, and maps the positions of errors back."""
