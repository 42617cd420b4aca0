"""COPY and \\copy: where the data is that is loaded into a table or written of one, and who reads or writes it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import shutil
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from msgspec.structs import replace

from sqlshell.client.http.upload import attachment
from sqlshell.errors import OutputError, StatementError, UsageError, reason
from sqlshell.origin import EMPTY, Trusted, service_text
from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.runtime.event_loops import in_daemon_thread
from sqlshell.runtime.files import expanded
from sqlshell.runtime.scratch import scratch
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.loading.spec import (
    LoadRequest,
    compression_of,
    copy_for_engine,
    format_of_data,
    is_engine_copy,
    request_of,
)
from sqlshell.shell.running.statement import submission_of
from sqlshell.shell.running.submitting import Submitter, Use
from sqlshell.sql.analysis.copy_statements import CopyStatement, read_copy
from sqlshell.sql.analysis.error_places import SHOWN
from sqlshell.sql.analysis.lexed import Lexed
from sqlshell.sql.script.items import Statement
from sqlshell.text import format_count

if TYPE_CHECKING:
    from sqlshell.shell.loading.load import Loader


PIECE: Final = 1 << 20
DATA: Final = "stdin"
"""The attachment that is the data of COPY … FROM STDIN."""

LARGEST: Final = 1 << 30
"""Bytes of the attachments that the local service accepts."""


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

        components = self._components
        by_engine = await is_engine_copy(copy, components.session.connection)
        if by_engine:
            sql, form = copy_for_engine(copy), copied_data()
        else:
            sql, form = _select(copy), copy_format(copy)
        if copy.stream and copy.place not in {"STDOUT", "PSTDOUT"}:
            raise UsageError(f"\\copy … TO {copy.place}: expected STDOUT, PSTDOUT, PROGRAM or a file")
        output = EMPTY if copy.stream else Trusted(f"|{copy.place}" if copy.program else copy.place)
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
            said = f"{format_count(written[0].rows, 'row')} written to {output}"
            components.diagnostics.report(said, file="" if copy.program else str(output))

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
        """Load from a file, a command, or stdin; `statement` as in _load(). Raises ShellError."""
        await self._recorded(copy, "", lambda: self._load(copy, statement=statement))

    async def load(self, copy: CopyStatement, data: Path) -> None:
        """Load data that stood in a script and are in a file now. Raises ShellError."""
        content = await asyncio.to_thread(_digest, data) if self._submitter.records else ""
        await self._recorded(copy, content, lambda: self._load_data(copy, data))

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
    def loader(self) -> Loader:
        from sqlshell.shell.loading.load import Loader

        return Loader(self._components, self._submitter)

    @property
    def _limit(self) -> int:
        return min(self._components.attachments.limit or LARGEST, LARGEST)

    async def _load(self, copy: CopyStatement, *, statement: bool = False) -> None:
        """Load from a file, a command, or the stdin of this process. With `statement` it is not \\copy but DuckDB's
        COPY, in which bytes are written as `a\\x62`, and `""` is NULL by default. Raises ShellError."""
        by_engine = await is_engine_copy(copy, self._components.session.connection)
        if not by_engine:
            copy.check()
        await self.loader.check(copy.source)
        if not (copy.stream or copy.program):
            path = expanded(copy.place)
            if by_engine and path.is_file() and path.stat().st_size <= self._limit:
                await self._send_data(copy, Trusted(copy.place))
                return
            copy.check()
            request = request_of(copy, Trusted(copy.place), Path(copy.place).name)
            if statement:
                nulls = request.force_null if copy.options.get("allow_quoted_nulls") == "false" else ("*",)
                request = replace(request, binary="escaped", force_null=nulls)
            await self._run(request)
            return
        if copy.stream and copy.place not in {"STDIN", "PSTDIN"}:
            raise UsageError(f"COPY FROM {copy.place}: expected STDIN, PSTDIN or a file")
        if copy.stream and self._components.position.reads_stdin:
            raise UsageError(
                "COPY FROM PSTDIN: the script itself is on stdin", "use FROM STDIN with the data after it, or -f FILE"
            )
        name = "the command's output" if copy.program else "stdin"
        # Wrong options are reported before a command runs or stdin is read.
        piped = None if by_engine else replace(request_of(copy, EMPTY, name, kept=False), ends=copy.stream)
        folder = scratch().folder("stdin")
        try:
            path = folder / "data"
            if copy.program:
                await self.loader.interruptible(_output_of(Trusted(copy.place), path))
            else:
                await in_daemon_thread(partial(_copy_stdin, self._components.streams.stdin, path), "stdin")
            if piped is None:
                await self._send_data(copy, Trusted(str(path)))
                return
            # They have no name that says how they are compressed.
            path = await asyncio.to_thread(path.rename, path.with_name(f"data{compression_of(path)}"))
            await self._run(replace(piped, path=Trusted(str(path))))
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _load_data(self, copy: CopyStatement, data: Path) -> None:
        """Load data that stood in a script and are in a file now. Raises ShellError."""
        if await is_engine_copy(copy, self._components.session.connection):
            await self.loader.check(copy.source)
            await self._send_data(copy, Trusted(str(data)))
            return
        copy.check()
        if await asyncio.to_thread(_has_data, data):
            await self.loader.check(copy.source)
            await self._run(request_of(copy, Trusted(str(data)), "STDIN", kept=False))

    async def _run(self, request: LoadRequest) -> None:
        # A pipe can be read only once, and may never end.
        if expanded(request.path).is_fifo():
            raise UsageError(f"{request.path} is a pipe, not a file", "load stdin: import - (in \\copy: FROM PSTDIN)")
        if request.format == "auto":
            request = replace(request, format=await asyncio.to_thread(format_of_data, Path(request.path)))
        await self.loader.run(request)

    async def _send_data(self, copy: CopyStatement, path: Trusted) -> None:
        """Send a COPY with its data, which the engine reads itself. Raises ShellError."""
        sql = copy_for_engine(copy)
        data = attachment(path, self._limit)
        data.name = DATA
        await self._submitter.send(submission_of(Lexed(service_text(sql, "the text of COPY")), [data]))
        rows = self._components.session.rows or 0
        self._components.diagnostics.report(f"{format_count(rows, 'row')} loaded into {copy.source}")


def _select(copy: CopyStatement) -> str:
    return copy.source if copy.query else f"SELECT {', '.join(copy.columns) or '*'} FROM {copy.source}"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _has_data(path: Path) -> bool:
    return path.stat().st_size > 0


async def _output_of(command: Trusted, path: Path) -> None:
    """Write what a command prints to a file. Raises OutputError if it fails."""
    with path.open("wb") as file:
        process = await asyncio.create_subprocess_shell(command, stdout=file)
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
            raise
    if code:
        raise OutputError(f"the command {command!r} failed with exit code {code}", "nothing was loaded")


def _copy_stdin(stdin: TextIO, path: Path) -> None:
    """Write stdin to a file. Raises UsageError."""
    try:
        with open(stdin.fileno(), "rb", buffering=0, closefd=False) as source, path.open("wb") as file:
            shutil.copyfileobj(source, file, PIECE)
    except OSError as error:
        raise UsageError(f"cannot read stdin: {reason(error)}") from None
