"""What a backslash command may look at. It changes nothing of it: what is to be done, it returns as an effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct

from sqlshell.client.service import Service
from sqlshell.diagnostics import Diagnostics
from sqlshell.shell.environment import Environment
from sqlshell.shell.front_end import FrontEnd
from sqlshell.shell.records.journal import Journal
from sqlshell.shell.results.outlet import Outlet
from sqlshell.shell.running.attachments import Attachments
from sqlshell.shell.running.background import Background
from sqlshell.shell.scripts.buffer import Buffer
from sqlshell.shell.scripts.variables import Variables
from sqlshell.shell.session import Session


class Described(Protocol):
    """A command as help and completion show it."""

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


class Port(Struct, frozen=True, eq=False):
    """The shell as a command sees it."""

    session: Session
    variables: Variables
    buffer: Buffer
    outlet: Outlet
    attachments: Attachments
    front_end: FrontEnd
    environment: Environment
    diagnostics: Diagnostics
    progressed: Callable[[float | None, str], None]
    """Shows how far a command has come: a share (0 to 1, or None) and a text."""
    known_commands: Callable[[], Mapping[str, Described]]

    @property
    def commands(self) -> Mapping[str, Described]:
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
