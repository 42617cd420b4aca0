"""The command line described for programs and people: JSON, shell completion, a man page."""
