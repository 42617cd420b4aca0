"""The rights that a statement requires under `serve`, from DuckDB's parse tree and bound plan."""
