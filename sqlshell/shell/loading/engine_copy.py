"""COPY whose data the service's engine reads and writes itself: the shell sends the statement as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sqlshell.client.http.upload import attachment
from sqlshell.humanize import format_count
from sqlshell.origin import Own, service_text
from sqlshell.runtime.paths import expanded
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.connection import Connection
from sqlshell.shell.loading.request import CHOSEN, COMPRESSIONS, format_of
from sqlshell.shell.running.submission import submission_of
from sqlshell.shell.running.submitting import Submitter
from sqlshell.sql.analysis.copy_statements import OWN, CopyStatement
from sqlshell.sql.analysis.lexed import Lexed

DATA: Final = "stdin"
"""The attachment that is the data of COPY … FROM STDIN."""

LARGEST: Final = 1 << 30
"""Bytes of the attachments that the local service accepts."""


def engine_understands(copy: CopyStatement) -> bool:
    """Whether nothing in a COPY is sqlshell's own: neither its options nor a format that only it reads and writes."""
    if OWN & set(copy.options):
        return False
    if copy.stream or copy.program:
        return copy.options.get("format", "text") not in CHOSEN.keys() - {"csv", "text"}
    compressed = Path(copy.place).suffix.lower() in COMPRESSIONS
    form = copy.options.get("format", "") or format_of(copy.place) or "text"
    named = "format" in copy.options or not format_of(copy.place)
    return named and not compressed and form not in CHOSEN.keys() - {"csv", "text"}


def copy_for_engine(copy: CopyStatement) -> str:
    """A \\copy as the COPY that the engine carries out."""
    columns = f" ({', '.join(copy.columns)})" if copy.columns else ""
    source = f"({copy.source}\n)" if copy.query else f"{copy.source}{columns}"
    return f"COPY {source} {'FROM STDIN' if copy.loads else 'TO STDOUT'} {copy.tail}".rstrip()


async def is_engine_copy(copy: CopyStatement, connection: Connection) -> bool:
    """Whether the engine reads or writes the data of a COPY."""
    if connection.offline is not None or not engine_understands(copy):
        return False
    return await connection.service.engine_copies_data()


class EngineCopyLoader:
    """Sends a COPY with its data, if the engine reads them."""

    def __init__(self, components: ShellComponents, submitter: Submitter) -> None:
        self._session = components.session
        self._limit = components.attachments.limit or LARGEST
        self._diagnostics = components.diagnostics
        self._submitter = submitter

    async def takes(self, copy: CopyStatement) -> bool:
        """Whether the engine reads the data of a COPY … FROM itself."""
        return await is_engine_copy(copy, self._session.connection)

    def fits(self, place: Own) -> bool:
        """Whether a file is one, and may be an attachment."""
        path = expanded(place)
        return path.is_file() and path.stat().st_size <= min(self._limit, LARGEST)

    async def load(self, copy: CopyStatement, path: Own) -> None:
        """Raises ShellError."""
        sql = copy_for_engine(copy)
        data = attachment(path, self._limit)
        data.name = DATA
        await self._submitter.send(submission_of(Lexed(service_text(sql, "the text of COPY")), [data]))
        rows = self._session.rows or 0
        self._diagnostics.report(f"{format_count(rows, 'row')} loaded into {copy.source}")
