"""The table of settings, and their values from flags, environment variables and profiles."""
