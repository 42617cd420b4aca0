"""sqlshell: the SQL shell for statement-execution services."""

__version__ = "0.1.0"
