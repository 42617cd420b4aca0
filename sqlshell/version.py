"""The version of sqlshell."""

__version__ = "0.2.0"
