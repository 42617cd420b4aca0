"""Looking at results: SQL on them, charts of them, a table to walk through."""
