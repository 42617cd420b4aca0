"""The command line described for programs and people: JSON, shell completion."""
