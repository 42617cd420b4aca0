"""Splits a script into statements and backslash commands as it arrives."""
