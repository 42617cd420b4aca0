"""Completion at the cursor: grammar, scopes, known names, ranked suggestions."""
