"""DuckDB as a library, for every engine: results as text and files, data files, and its errors as Failures."""
