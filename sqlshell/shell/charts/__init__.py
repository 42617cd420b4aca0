"""Charts of results, as text."""
