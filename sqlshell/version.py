"""The version of sqlshell."""

__version__ = "0.1.0"
