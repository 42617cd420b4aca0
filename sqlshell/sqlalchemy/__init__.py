"""The SQLAlchemy dialect `sqlshell`, on the DB-API."""

from sqlshell.sqlalchemy.dialect import SqlshellDialect

__all__ = ["SqlshellDialect"]
