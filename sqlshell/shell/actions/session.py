"""Effects on the session: its connection, options, context, attached files and history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlshell.errors import ShellError, UsageError
from sqlshell.humanize import format_count
from sqlshell.origin import Own
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.effects import SetContext
from sqlshell.shell.running.connection_manager import ConnectionManager
from sqlshell.shell.running.interruption import Interruption
from sqlshell.sql.analysis.transaction import Transaction


class SessionActions:
    """Each method raises ShellError."""

    def __init__(self, components: ShellComponents, connections: ConnectionManager, interruption: Interruption) -> None:
        self._components = components
        self._connections = connections
        self._interruption = interruption

    async def connect(self, target: Own, place: Sequence[Own]) -> None:
        """Connect to another target. If that fails, nothing has changed."""
        session = self._components.session
        try:
            connecting = self._components.environment.connect(target, session.connection, place)
            connection = await self._interruption.interruptible(connecting, "c")
        except ShellError as error:
            error.message = f"{error.message}; still connected to {session.target}"
            error.misplaces_rest = True
            raise
        await self._connections.use(connection)
        self._components.diagnostics.say(f"connected to {session.target}")

    def set_options(self, values: Mapping[str, object]) -> None:
        options = self._components.session.options
        vars(options).update(values)
        # The extension of a file comes before \\format.
        options.chosen |= values.keys() - {"format"}

    def set_context(self, effect: SetContext) -> None:
        state, context = self._components.session.state, effect.context
        if context.session_id != state.context.session_id:
            state.transaction = Transaction()
            context = context.in_session(context.session_id)
        state.context = context
        state.sources |= effect.sources

    def attach(self, path: Own) -> None:
        added = self._components.attachments.add(path)
        self._components.diagnostics.say(
            f"{added.path} ({added.size:,} bytes) is attached to the next statement that names {added.name!r}"
        )

    def detach(self) -> None:
        count = self._components.attachments.clear()
        self._components.diagnostics.say(f"{format_count(count, 'file')} detached")

    def clear_history(self) -> None:
        try:
            self._components.front_end.clear_history()
        except OSError as error:
            raise UsageError(f"cannot clear the history: {error.strerror or error}") from None
