"""Engines, without the service around them."""
