"""The explorer: a result as a table to scroll, filter and sort."""
