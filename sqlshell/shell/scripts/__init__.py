"""Scripts: reading them, the query buffer, variables, `\\if`."""
