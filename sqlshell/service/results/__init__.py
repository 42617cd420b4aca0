"""Finished results: storing them, serving their partitions."""
