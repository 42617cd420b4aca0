"""Statements of PostgreSQL's dumps on the local service."""

from __future__ import annotations

from msgspec.structs import replace

from sqlshell.client.statements.polling import SESSIONS
from sqlshell.shell.components import ShellComponents
from sqlshell.sql.analysis.dump_statements import translated_dump
from sqlshell.sql.script.items import Statement


class Dumps:
    """Translates what pg_dump writes; says once per shell that some of it is skipped."""

    def __init__(self, components: ShellComponents) -> None:
        self._components = components
        self._noted = False

    async def translated(self, item: Statement) -> Statement:
        """A statement of a script as the local service has it; without text if it means nothing there."""
        connection = self._components.session.connection
        if not self._components.position.in_file or item.foreign:
            return item
        translated = translated_dump(item.text, embedded=connection.embedded)
        if translated is None or connection.offline is not None:
            return item
        if not connection.embedded and self._components.modes.rehearsal == "dry-run":
            # Which service it is would have to be asked.
            return item
        if not connection.embedded and SESSIONS not in await connection.service.extensions():
            return item
        if not translated and not self._noted:
            self._noted = True
            self._components.diagnostics.note("settings, owners and extensions of PostgreSQL are skipped")
        return replace(item, text=translated)
