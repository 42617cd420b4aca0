"""What the service has: queries about it, details of relations, the catalog for completion."""
