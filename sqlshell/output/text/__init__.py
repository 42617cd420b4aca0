"""Shared by tables and records for people: safe text, widths, colors, shortening, nested values."""
