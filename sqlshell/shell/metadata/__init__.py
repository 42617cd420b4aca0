"""Metadata of the service: queries about it, details of relations, the catalog for completion."""
