"""`\\local`: SQL on recent results in a DuckDB database of this shell."""
