"""The backslash commands and their arguments."""

from __future__ import annotations

from msgspec.structs import replace

from sqlshell.shell.commands import (
    display,
    files,
    general,
    guides,
    jobs,
    lists,
    query_buffer,
    records,
    relations,
    results,
    scripts,
    transfer,
    variables,
)
from sqlshell.shell.commands.command import Command, table

GROUPS: tuple[tuple[str, tuple[Command, ...]], ...] = (
    ("General", general.COMMANDS),
    ("Objects", (*relations.COMMANDS, *lists.COMMANDS)),
    ("Running statements", query_buffer.COMMANDS),
    ("Display options", display.COMMANDS),
    ("Exploring results", results.COMMANDS),
    ("Scripts and files", scripts.COMMANDS),
    ("Loading and copying", transfer.COMMANDS),
    ("Variables and conditions", variables.COMMANDS),
    ("Transcripts, logs and named queries", records.COMMANDS),
    ("Background and earlier statements", jobs.COMMANDS),
    ("The service's files and version", files.COMMANDS),
    ("Learning and troubleshooting", guides.COMMANDS),
)
"""The groups of commands, each with its title."""

BUILTIN: tuple[Command, ...] = tuple(replace(item, group=title) for title, commands in GROUPS for item in commands)

__all__ = ["BUILTIN", "GROUPS", "Command", "table"]
