"""The backslash commands, in the order in which `\\?` shows them."""

from __future__ import annotations

from sqlshell.shell.commands import (
    display,
    files,
    general,
    jobs,
    learning,
    looking,
    records,
    results,
    running,
    scripts,
    variables,
)
from sqlshell.shell.commands.command import Command, table

BUILTIN: tuple[Command, ...] = (
    *general.COMMANDS,
    *looking.COMMANDS,
    *display.COMMANDS,
    *running.COMMANDS,
    *results.COMMANDS,
    *scripts.COMMANDS,
    *variables.COMMANDS,
    *records.COMMANDS,
    *jobs.COMMANDS,
    *files.COMMANDS,
    *learning.COMMANDS,
)

__all__ = ["BUILTIN", "Command", "table"]
