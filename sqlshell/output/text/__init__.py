"""Shared by tables and records for people: safe text, widths, shortening, fitting the screen."""
