"""Secrets, the encrypted vault, schema registries, and the requests that the service makes to them."""
