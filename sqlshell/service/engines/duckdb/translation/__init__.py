"""The interface's SQL rewritten for DuckDB, with the way back for error positions."""
