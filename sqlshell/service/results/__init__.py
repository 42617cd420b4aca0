"""Finished results: storing them, moving their instants to another time zone."""
