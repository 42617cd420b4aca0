"""Restrictions of the engine's process: files, network, system calls."""
