"""\\local: statements on the results that this shell remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlshell.errors import UsageError
from sqlshell.origin import Own, Text, own_text
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.running.interruption import Interruption
from sqlshell.shell.running.submission import submission_of
from sqlshell.shell.session import SessionState
from sqlshell.sql.analysis.files import refuse_files
from sqlshell.sql.script.items import Statement
from sqlshell.sql.script.splitting import split

if TYPE_CHECKING:
    from sqlshell.shell.local.local import LocalDatabase


class LocalActions:
    """Each connection has a local database, which is created when it is first used and closed with the connection."""

    def __init__(self, components: ShellComponents, interruption: Interruption) -> None:
        self._components = components
        self._interruption = interruption
        self._database: tuple[SessionState, LocalDatabase] | None = None

    async def run(self, sql: Own) -> None:
        """Run a statement, or the query buffer if `sql` is empty. Raises ShellError."""
        pending = None if sql else self._components.buffer.scanner.take()
        await self._run(pending.whole if pending is not None else own_text(sql))

    async def _run(self, text: Text) -> None:
        if not text.text.strip():
            raise UsageError("\\local requires a statement", "example: \\local select count(*) from _")
        components, session = self._components, self._components.session
        local = await self._local_database()
        filled = components.variables.substitute(text)
        sql = filled.text.strip().removesuffix(";")
        if filled.foreign and len(split(sql, commands=False)) > 1:
            raise UsageError(
                f"{filled.source} came from the service and contains several statements", "\\local runs one statement"
            )
        start = filled.text.index(sql)
        foreign = filled.part(start, start + len(sql)).foreign
        statement = Statement(sql, 0, 0, True, foreign=foreign)
        refuse_files(statement.lexed)
        # The statement may write files, and its input came from the service.
        await session.connection.policy.check(statement.lexed, components.front_end.ask)
        history = session.state.result_history
        await self._interruption.interruptible(local.prepare(statement.lexed, history), "local")
        components.buffer.remember(statement, local=True)
        seen = session.interactive and not components.result_output.exporting
        limit = (session.options.rowlimit or None) if seen else None
        show = history.recording(components.result_output.show, local.session.state)
        with self._interruption.using_foreground(local.foreground):
            await local.foreground.run(submission_of(statement.lexed, row_limit=limit), local.session.context, show)

    async def _local_database(self) -> LocalDatabase:
        state = self._components.session.state
        if self._database is not None and self._database[0] is state:
            return self._database[1]
        from sqlshell.shell.local.local import LocalDatabase

        connection, folder = await self._components.environment.local(state.connection)
        local = LocalDatabase(connection, folder, self._components)
        state.cleanup.push_async_callback(local.aclose)
        self._database = state, local
        return local
