"""The backslash commands, in the order in which `\\?` shows them."""

from __future__ import annotations

from sqlshell.shell.commands import display, files, general, jobs, learning, scripts
from sqlshell.shell.commands.command import Command, table

BUILTIN: tuple[Command, ...] = (
    *general.COMMANDS,
    *display.COMMANDS,
    *scripts.COMMANDS,
    *jobs.COMMANDS,
    *files.COMMANDS,
    *learning.COMMANDS,
)

__all__ = ["BUILTIN", "Command", "table"]
