"""Submitting statements and polling until they finish, one by one or several together."""
