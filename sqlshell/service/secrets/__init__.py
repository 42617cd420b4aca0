"""The encrypted vault of secrets, and the requests that the service makes to schema registries."""
