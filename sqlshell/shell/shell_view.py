"""The read-only view of the shell for backslash commands. A command changes nothing; it returns an effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from sqlshell.client.service import Service
from sqlshell.shell.components import CommandComponents
from sqlshell.shell.records.journal import Journal
from sqlshell.shell.running.background import Background


class CommandInfo(Protocol):
    """A command as shown in help and completion."""

    @property
    def name(self) -> str: ...

    @property
    def usage(self) -> str: ...

    @property
    def help(self) -> str: ...

    @property
    def summary(self) -> str: ...

    @property
    def aliases(self) -> tuple[str, ...]: ...

    @property
    def group(self) -> str: ...


class ShellView(CommandComponents, frozen=True, eq=False):
    """The shell as seen by a command."""

    show_progress: Callable[[float | None, str], None]
    """Shows the progress of a command: a share (0 to 1, or None) and a text."""
    known_commands: Callable[[], Mapping[str, CommandInfo]]

    @property
    def commands(self) -> Mapping[str, CommandInfo]:
        """The backslash commands by name."""
        return self.known_commands()

    @property
    def service(self) -> Service:
        return self.session.connection.service

    @property
    def journal(self) -> Journal:
        return self.session.connection.journal

    @property
    def background(self) -> Background:
        return self.session.state.background
