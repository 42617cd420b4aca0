"""The backslash commands and their arguments."""

from __future__ import annotations

from msgspec.structs import replace

from sqlshell.shell.commands import (
    display,
    files,
    general,
    jobs,
    learning,
    looking,
    records,
    relations,
    results,
    running,
    scripts,
    variables,
)
from sqlshell.shell.commands.command import Command, table

GROUPS: tuple[tuple[str, tuple[Command, ...]], ...] = (
    ("Help and where this is", general.COMMANDS),
    ("Looking around", (*relations.COMMANDS, *looking.COMMANDS)),
    ("Ending a statement", running.COMMANDS),
    ("How results are shown", display.COMMANDS),
    ("Looking at a result", results.COMMANDS),
    ("Scripts and files", scripts.COMMANDS),
    ("Variables and conditions", variables.COMMANDS),
    ("Records and named queries", records.COMMANDS),
    ("Statements that outlive their prompt", jobs.COMMANDS),
    ("The service's files and version", files.COMMANDS),
    ("Learning and repairing", learning.COMMANDS),
)
"""Titles, each with its commands."""

BUILTIN: tuple[Command, ...] = tuple(replace(item, group=title) for title, commands in GROUPS for item in commands)

__all__ = ["BUILTIN", "GROUPS", "Command", "table"]
