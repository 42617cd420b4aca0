"""Translates the interface's SQL into DuckDB's; `service/error_places.py` maps the positions of errors back."""
