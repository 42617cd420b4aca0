"""Stores: directories of data files, and their entities."""
