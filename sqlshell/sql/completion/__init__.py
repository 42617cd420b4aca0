"""What can be completed at the cursor: grammar, scopes, known names, ranked suggestions."""
