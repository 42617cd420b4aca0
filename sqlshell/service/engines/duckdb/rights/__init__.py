"""What a statement may do under `serve`, judged by DuckDB's parse tree and bound plan."""
