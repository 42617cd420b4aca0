"""The shell's access to the machine and the configuration: profiles, themes, saved queries, connections."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from sqlshell.origin import Own
from sqlshell.shell.connection import Connection


class Environment(Protocol):
    @property
    def queries(self) -> Path | None:
        """The file of saved queries; None if there is no directory for it."""

    def profiles(self) -> Sequence[str]:
        """The names of the profiles that \\c can connect to."""

    def themes(self) -> Sequence[str]:
        """The names of the themes. Raises UsageError for a broken theme file."""

    async def connect(self, target: Own, present: Connection, place: Sequence[Own] = ()) -> Connection:
        """Connect to a profile, a URL or a file, and check that the service responds. With a `place`, which is a user,
        a host and a port, the target is a database; "-" stands for what `present` has.

        Raises ShellError, and asyncio.CancelledError when it is canceled; then nothing is left open and `present` is
        unchanged.
        """

    async def local(self, present: Connection) -> tuple[Connection, Path]:
        """A database of this shell, and the directory for its files. Both are removed when the
        connection is released.
        """
