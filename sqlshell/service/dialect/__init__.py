"""The interface's own statements, parsed. Everything else is the engine's SQL."""

from sqlshell.service.dialect.alterations import (
    Alter,
    CreateFunction,
    DropFunction,
    InsertEntity,
    Load,
    Restart,
    Test,
    Truncate,
    Update,
)
from sqlshell.service.dialect.definitions import Create, CreateAs, Drop, StartPool, Use
from sqlshell.service.dialect.inspection import CanI, Describe, DescribeStatement, EngineObjects, List, Print
from sqlshell.service.dialect.names import READS, WRITES, Names, dotted, names_of, targets, without_literals
from sqlshell.service.dialect.reader import (
    INTERFACE,
    SERVER,
    Dialect,
    DialectStatement,
    Reading,
    is_about_organizations,
    read,
)
from sqlshell.service.dialect.running_queries import Application, DescribeQuery, Terminate, TerminateSession

__all__ = [
    "INTERFACE",
    "READS",
    "SERVER",
    "WRITES",
    "Alter",
    "Application",
    "CanI",
    "Create",
    "CreateAs",
    "CreateFunction",
    "Describe",
    "DescribeQuery",
    "DescribeStatement",
    "Dialect",
    "DialectStatement",
    "Drop",
    "DropFunction",
    "EngineObjects",
    "InsertEntity",
    "List",
    "Load",
    "Names",
    "Print",
    "Reading",
    "Restart",
    "StartPool",
    "Terminate",
    "TerminateSession",
    "Test",
    "Truncate",
    "Update",
    "Use",
    "dotted",
    "is_about_organizations",
    "names_of",
    "read",
    "targets",
    "without_literals",
]
