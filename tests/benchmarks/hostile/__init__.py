"""Attacks on a running service, and their effect on a client of another organization."""
