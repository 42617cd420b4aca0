"""COPY and \\copy: finds out where the data is, and has it loaded."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from pathlib import Path
from typing import BinaryIO, Final, TextIO

from msgspec.structs import replace

from sqlshell.errors import OutputError, UsageError
from sqlshell.origin import EMPTY, Own
from sqlshell.runtime.paths import expanded
from sqlshell.runtime.scratch import scratch
from sqlshell.shell.loading.engine_copy import EngineCopyLoader
from sqlshell.shell.loading.loader import Loader
from sqlshell.shell.loading.request import LoadRequest, request_of
from sqlshell.shell.loading.sniffing import compression_of, format_of_data
from sqlshell.shell.scripts.position import Position
from sqlshell.sql.analysis.copy_statements import CopyStatement

PIECE: Final = 1 << 20


class Copier:
    """Carries out what a COPY says."""

    def __init__(self, loader: Loader, engine_copy: EngineCopyLoader, position: Position, stdin: TextIO) -> None:
        self._loader = loader
        self._engine_copy = engine_copy
        self._position = position
        self._stdin = stdin

    async def run(self, copy: CopyStatement, *, statement: bool = False) -> None:
        """Load from a file, a command, or the stdin of this process. With `statement` it is not \\copy but DuckDB's
        COPY, in which bytes are written as `a\\x62`, and `""` is NULL by default. Raises ShellError."""
        by_engine = await self._engine_copy.takes(copy)
        if not by_engine:
            copy.check()
        await self._loader.check(copy.source)
        if not (copy.stream or copy.program):
            if by_engine and self._engine_copy.fits(Own(copy.place)):
                await self._engine_copy.load(copy, Own(copy.place))
                return
            copy.check()
            request = request_of(copy, Own(copy.place), Path(copy.place).name)
            if statement:
                request = replace(request, binary="escaped")
                if copy.options.get("allow_quoted_nulls") != "false":
                    request = replace(request, force_null=("*",))
            await self._run(request)
            return
        if copy.stream and copy.place not in {"STDIN", "PSTDIN"}:
            raise UsageError(f"COPY FROM {copy.place}: expected STDIN, PSTDIN or a file")
        if copy.stream and self._position.reads_stdin:
            raise UsageError(
                "COPY FROM PSTDIN: the script itself is on stdin", "use FROM STDIN with the data after it, or -f FILE"
            )
        name = "the command's output" if copy.program else "stdin"
        # Wrong options are reported before a command runs or stdin is read.
        loaded = None if by_engine else replace(request_of(copy, EMPTY, name, kept=False), ends=copy.stream)
        folder = scratch().folder("stdin")
        try:
            path = folder / "data"
            if copy.program:
                await self._loader.interruptible(_output_of(Own(copy.place), path))
            else:
                await _kept(path, self._stdin)
            if loaded is None:
                await self._engine_copy.load(copy, Own(str(path)))
            else:
                await self._load(loaded, path)
        finally:
            for item in folder.iterdir():
                item.unlink()
            folder.rmdir()

    async def load(self, copy: CopyStatement, data: Path) -> None:
        """Load data that stood in a script and are in a file now. Raises ShellError."""
        if await self._engine_copy.takes(copy):
            await self._loader.check(copy.source)
            await self._engine_copy.load(copy, Own(str(data)))
            return
        copy.check()
        if not await asyncio.to_thread(_has_data, data):
            return
        await self._loader.check(copy.source)
        await self._run(request_of(copy, Own(str(data)), "STDIN", kept=False))

    async def _load(self, request: LoadRequest, path: Path) -> None:
        """Load data from a pipe, which have no name that says how they are compressed."""
        path = await asyncio.to_thread(path.rename, path.with_name(f"data{compression_of(path)}"))
        await self._run(replace(request, path=Own(str(path))))

    async def _run(self, request: LoadRequest) -> None:
        # A pipe can be read only once, and may never end.
        if await asyncio.to_thread(_is_pipe, request.path):
            raise UsageError(f"{request.path} is a pipe, not a file", "load stdin: import - (in \\copy: FROM PSTDIN)")
        if request.format == "auto":
            request = replace(request, format=await asyncio.to_thread(format_of_data, Path(request.path)))
        await self._loader.run(request)


def _is_pipe(path: Own) -> bool:
    return expanded(path).is_fifo()


def _has_data(path: Path) -> bool:
    return path.stat().st_size > 0


async def _output_of(command: Own, path: Path) -> None:
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
        raise OutputError(f"the command {command!r} exited with code {code}", "nothing was loaded")


async def _kept(path: Path, stdin: TextIO) -> None:
    """Write stdin to a file. A thread that waits for more keeps the program from nothing."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: OSError | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(UsageError(f"cannot read stdin: {error.strerror or error}"))

    def work() -> None:
        failed: OSError | None = None
        try:
            with open(stdin.fileno(), "rb", buffering=0, closefd=False) as source, path.open("wb") as file:
                _copy(source, file)
        except OSError as error:
            failed = error
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, failed)

    threading.Thread(target=work, name="stdin", daemon=True).start()
    await done


def _copy(source: BinaryIO, target: BinaryIO) -> None:
    while piece := source.read(PIECE):
        target.write(piece)
