"""Attacks on a running service, each beside a client of another organization that only wants to work."""
