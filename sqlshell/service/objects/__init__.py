"""Databases, schemas, relations, roles and the rest: making, changing, listing and describing them."""
