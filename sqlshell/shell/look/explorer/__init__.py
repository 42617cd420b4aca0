"""A result as a table to walk through: its partitions are read when their rows are looked at."""
