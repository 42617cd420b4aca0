"""Stores: folders of data files, their entities, and copies for the engine."""
