"""The backslash commands and their arguments."""

from __future__ import annotations

from types import ModuleType

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

_MODULES: tuple[tuple[str, tuple[ModuleType, ...]], ...] = (
    ("General", (general,)),
    ("Objects", (relations, lists)),
    ("Running statements", (query_buffer,)),
    ("Display options", (display,)),
    ("Exploring results", (results,)),
    ("Scripts and files", (scripts,)),
    ("Loading and copying", (transfer,)),
    ("Variables and conditions", (variables,)),
    ("Transcripts, logs and named queries", (records,)),
    ("Background and earlier statements", (jobs,)),
    ("The service's files and version", (files,)),
    ("Learning and troubleshooting", (guides,)),
)
"""The groups of commands: the title of each, and the modules that declare its commands, in their order."""

BUILTIN: tuple[Command, ...] = tuple(
    replace(item, group=title)
    for title, modules in _MODULES
    for module in modules
    for item in vars(module).values()
    if isinstance(item, Command)
)

__all__ = ["BUILTIN", "Command", "table"]
