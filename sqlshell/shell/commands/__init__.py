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
    ("General", general.COMMANDS),
    ("Objects", (*relations.COMMANDS, *looking.COMMANDS)),
    ("Running statements", running.COMMANDS),
    ("Display options", display.COMMANDS),
    ("Exploring results", results.COMMANDS),
    ("Scripts and files", scripts.COMMANDS),
    ("Variables and conditions", variables.COMMANDS),
    ("Records and named queries", records.COMMANDS),
    ("Background and earlier statements", jobs.COMMANDS),
    ("The service's files and version", files.COMMANDS),
    ("Learning and troubleshooting", learning.COMMANDS),
)
"""The groups of commands, each with its title."""

BUILTIN: tuple[Command, ...] = tuple(replace(item, group=title) for title, commands in GROUPS for item in commands)

__all__ = ["BUILTIN", "GROUPS", "Command", "table"]
