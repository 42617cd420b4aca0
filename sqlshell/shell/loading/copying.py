"""\\copy: files loaded into tables, and rows written to files."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sqlshell.errors import StatementError, UsageError
from sqlshell.origin import EMPTY, Own
from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.running.submitting import Submitter, Use
from sqlshell.sql.analysis.copy_statements import CopyStatement, read_copy
from sqlshell.sql.analysis.error_places import SHOWN
from sqlshell.sql.script.items import Statement

if TYPE_CHECKING:
    from pathlib import Path

    from sqlshell.shell.loading.load import Copier


class Copying:
    """COPY and \\copy. The code that loads files is imported when it is first used: it needs DuckDB."""

    def __init__(self, components: ShellComponents, submitter: Submitter) -> None:
        self._components = components
        self._submitter = submitter

    async def copy(self, copy: CopyStatement) -> None:
        """Carry out \\copy. Raises ShellError."""
        if copy.loads:
            await self.run(copy)
            return
        from sqlshell.output.copy_format import copied_data, copy_format
        from sqlshell.shell.loading.spec import copy_for_engine, is_engine_copy

        components = self._components
        by_engine = await is_engine_copy(copy, components.session.connection)
        if by_engine:
            sql, form = copy_for_engine(copy), copied_data()
        else:
            sql, form = _select(copy), copy_format(copy)
        if copy.stream and copy.place not in {"STDOUT", "PSTDOUT"}:
            raise UsageError(f"\\copy … TO {copy.place}: expected STDOUT, PSTDOUT, PROGRAM or a file")
        output = EMPTY if copy.stream else Own(f"|{copy.place}" if copy.program else copy.place)
        components.result_output.check(output, form, past_redirection=copy.place == "PSTDOUT")
        written: list[Summary] = []

        async def write(result: Result) -> Summary:
            past_redirection = copy.place == "PSTDOUT"
            show = components.result_output.show
            written.append(await show(result, output=output, form=form, past_redirection=past_redirection))
            return written[-1]

        statement = Statement(sql, 0, 0, True)
        buffer = components.buffer
        last, local = buffer.last, buffer.last_was_local
        try:
            if by_engine:
                # The engine itself judges a COPY.
                await self._submitter.submit(statement, Use(write), verbatim=True)
            else:
                with contextlib.nullcontext() if copy.query else self._about(copy):
                    await self._submitter.submit_query(statement, write, "copy")
        finally:
            # As in psql, even if it failed.
            buffer.repeat(last, local=local)
        if not written:
            if components.session.connection.offline is None:
                raise UsageError("\\copy: the statement ran, but did not return a result set")
        elif not copy.stream:
            components.diagnostics.report(f"COPY {written[0].rows}")

    async def copy_file(self, statement: Statement) -> bool:
        """Load the file of COPY … FROM 'file' if the service loads attachments: it does not read files of its own.

        False if the service runs the statement itself. Raises ShellError.
        """
        connection = self._components.session.connection
        if connection.embedded or connection.offline is not None:
            return False
        try:
            copy = read_copy(statement.text)
        except UsageError:
            return False
        if copy.wrong is None and (not copy.loads or copy.stream or ":" in statement.text or statement.foreign):
            return False
        if "copy" not in await connection.service.extensions():
            return False
        await self.run(copy, statement=True)
        return True

    async def run(self, copy: CopyStatement, *, statement: bool = False) -> None:
        """Load from a file, a command, or stdin; `statement` as in Copier.run(). Raises ShellError."""
        await self._recorded(copy, "", lambda: self.copier.run(copy, statement=statement))

    async def load(self, copy: CopyStatement, data: Path) -> None:
        """Load data that stood in a script and are in a file now. Raises ShellError."""
        content = await asyncio.to_thread(_digest, data) if self._submitter.records else ""
        await self._recorded(copy, content, lambda: self.copier.load(copy, data))

    async def _recorded(self, copy: CopyStatement, content: str, work: Callable[[], Awaitable[None]]) -> None:
        """Load, unless --resume skips it; `content` identifies the data, if they are part of the script."""
        text = repr((copy.source, copy.columns, copy.place, sorted(copy.options.items()), content))
        with self._about(copy):
            await self._submitter.once("copy", text, work)

    @contextlib.contextmanager
    def _about(self, copy: CopyStatement) -> Iterator[None]:
        """Inside the block, errors show the text that the user wrote, and not a statement that the shell made of it."""
        try:
            yield
        except StatementError as error:
            self._components.buffer.sent = Statement(copy.text, 0, 0, True)
            if (shown := SHOWN.search(error.message)) and shown[2] not in copy.text:
                error.message = SHOWN.sub("", error.message)
            error.where = replace(error.where, offset=None)
            raise

    @functools.cached_property
    def copier(self) -> Copier:
        from sqlshell.shell.loading.load import Copier, Loader

        loader = Loader(self._components, self._submitter)
        return Copier(self._components, self._submitter, loader)


def _select(copy: CopyStatement) -> str:
    return copy.source if copy.query else f"SELECT {', '.join(copy.columns) or '*'} FROM {copy.source}"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
