"""The interface's own statements, parsed. Everything else is the engine's SQL."""

from sqlshell.service.dialect.changing import (
    Alter,
    CreateFunction,
    DropFunction,
    InsertEntity,
    Restart,
    Test,
    Truncate,
    Update,
)
from sqlshell.service.dialect.looking import CanI, Describe, DescribeStatement, List, Print
from sqlshell.service.dialect.making import Create, CreateAs, Drop, StartPool, Use
from sqlshell.service.dialect.names import READS, WRITES, Names, bare, names_of, targets, written
from sqlshell.service.dialect.reader import Own, is_about_organizations, read, takes_long
from sqlshell.service.dialect.running import Application, DescribeQuery, Terminate, TerminateSession

__all__ = [
    "READS",
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
    "Drop",
    "DropFunction",
    "InsertEntity",
    "List",
    "Names",
    "Own",
    "Print",
    "Restart",
    "StartPool",
    "Terminate",
    "TerminateSession",
    "Test",
    "Truncate",
    "Update",
    "Use",
    "bare",
    "is_about_organizations",
    "names_of",
    "read",
    "takes_long",
    "targets",
    "written",
]
