"""Restrictions of such a process: files, network, system calls."""
