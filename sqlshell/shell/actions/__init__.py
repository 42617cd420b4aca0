"""Carrying out what backslash commands ask for."""
