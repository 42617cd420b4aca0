"""Statements of PostgreSQL's dumps on the local service."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from sqlshell.errors import StatementError, Where
from sqlshell.interface import sqlstate
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.metadata.table_columns import table_columns
from sqlshell.sql.analysis.dump_statements import (
    begins_dump,
    drops_constraints,
    refused,
    rounds_numbers,
    translated_dump,
)
from sqlshell.sql.analysis.dump_values import DumpValues, dump_values, translated_values
from sqlshell.sql.script.items import Statement


class Dumps:
    """Translates what pg_dump writes; says once per shell that some of it is skipped."""

    def __init__(self, components: ShellComponents) -> None:
        self._components = components
        self._noted = False
        self._types: dict[str, Sequence[tuple[str, str]]] = {}
        """The columns of the tables that rows are inserted into, by name, until a statement may change them."""

    async def translated(self, item: Statement) -> Sequence[Statement]:
        """The equivalents of a script's statement on the local service; none if it has no effect there. Raises
        StatementError for one without an equivalent.
        """
        connection, position = self._components.session.connection, self._components.position
        if not position.in_file or item.foreign:
            return [item]
        position.in_dump = in_dump = position.in_dump or begins_dump(item.text)
        values = dump_values(item.lexed)
        if values is None and item.text[:6].lower() != "insert":
            self._types.clear()
        warnings = _losses(item.text) if in_dump and values is None else []
        translated = translated_dump(item.text, embedded=connection.embedded, in_dump=in_dump)
        what = refused(item.text) if in_dump else ""
        if (values is None and translated is None and not what and not warnings) or connection.offline is not None:
            return [item]
        dry_run = self._components.modes.dry_run
        if not connection.embedded and dry_run:
            # Which service it is would have to be asked.
            return [item]
        if not await connection.service.on_duckdb():
            return [item]
        for warning in warnings:
            self._components.diagnostics.warn_here(warning)
        if what:
            raise StatementError(
                f"the local service does not support PostgreSQL's {what}", where=Where(sqlstate.UNSUPPORTED)
            )
        if translated and item.text[:6].lower() == "insert":
            item = replace(item, text=translated[0], column=0)
            values = dump_values(item.lexed)
        if values is not None:
            return [item if dry_run else await self._with_values(item, values)]
        if translated is None:
            return [item]
        if not translated and not self._noted:
            self._noted = True
            self._components.diagnostics.note("settings, owners, privileges and extensions of PostgreSQL are skipped")
        return [replace(item, text=text, column=0) for text in translated]

    async def _with_values(self, item: Statement, values: DumpValues) -> Statement:
        """An INSERT with the values that PostgreSQL's texts of arrays and bytes stand for."""
        if values.table not in self._types:
            try:
                self._types[values.table] = await table_columns(self._components.session, values.table)
            except StatementError:
                # The INSERT fails with the reason.
                return item
        known = self._types[values.table]
        by_name = {name.lower(): type_ for name, type_ in known}
        types = [by_name.get(name.lower(), "") for name in values.columns] or [type_ for _, type_ in known]

        def type_of(column: int) -> str:
            return types[column] if column < len(types) else ""

        # Elsewhere than in a dump, the texts of bytes are the engine's.
        translated = translated_values(item.lexed, values, type_of, with_bytes=self._components.position.in_dump)
        return item if translated == item.text else replace(item, text=translated, column=0)


def _losses(statement: str) -> list[str]:
    """The warnings about information in a dump's statement that the local service cannot keep."""
    losses = []
    if rounds_numbers(statement):
        losses.append(
            "numeric without a precision is DECIMAL(18,3) here, which rounds further digits; "
            "write a precision, such as numeric(38,10), to keep them"
        )
    if drops_constraints(statement):
        losses.append("the domain is a plain type here, without its constraints and default")
    return losses
