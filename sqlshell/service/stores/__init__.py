"""Stores: directories of data files, their entities, and copies for the engine."""
