"""Scripts as chunks of text, read as they arrive."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import errno
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from sqlshell.errors import OutputError, UsageError
from sqlshell.origin import Own
from sqlshell.sql.script.scanner import Item, Scanner, Statement

CHUNK = 1 << 16
MOST_COUNTED = 16
"""Chunks of a script that are read to count what was not run."""


def read_script(path: Own) -> Iterator[Own]:
    """The text of a file in chunks, `-` being stdin. Raises UsageError when it cannot be read or is not text."""
    try:
        if path == "-":
            # Without a buffer: Python aborts at its end where a thread still waits in that of stdin.
            with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as stdin:
                yield from decoded(stdin, "stdin")
            return
        with Path(path).expanduser().open("rb") as file:
            yield from decoded(file, path)
    except FileNotFoundError:
        raise UsageError(f"no such script: {path}") from None
    except OSError as error:
        name = "stdin" if path == "-" else path
        reason = "it is closed" if error.errno == errno.EBADF else error.strerror or error
        raise UsageError(f"cannot read {name}: {reason}") from None


def decoded(stream: BinaryIO, name: str) -> Iterator[Own]:
    """UTF-8 text from a stream, as much as has arrived each time; `name` is for errors."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    read = stream.read1 if isinstance(stream, BufferedReader) else stream.read
    lines = 1
    while True:
        chunk = read(CHUNK)
        if b"\0" in chunk:
            raise UsageError(f"{name} is a binary file, not a script", "a script must be UTF-8 text")
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            line = lines + error.object[: error.start].count(b"\n")
            raise UsageError(
                f"{name}:{line}: invalid UTF-8", "a script must be UTF-8 text; iconv converts other encodings"
            ) from None
        lines += chunk.count(b"\n")
        if text:
            yield Own(text)
        if not chunk:
            return


async def arrival(chunks: Iterator[Own]) -> Own | None:
    """The next chunk, None behind the last one, while other work goes on. Raises what reading raises.

    The thread that waits for it keeps neither the loop nor the program from ending: nobody knows when more will come.
    """
    loop = asyncio.get_running_loop()
    coming: asyncio.Future[Own | None] = loop.create_future()

    def settle(chunk: Own | None, error: Exception | None) -> None:
        if coming.done():
            return
        if error is not None:
            coming.set_exception(error)
        else:
            coming.set_result(chunk)

    def wait() -> None:
        chunk: Own | None = None
        failed: Exception | None = None
        try:
            chunk = next(chunks, None)
        except Exception as error:
            failed = error
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, chunk, failed)

    threading.Thread(target=wait, name="script", daemon=True).start()
    return await coming


def next_to(script: str, path: Own) -> Own:
    """A path that a script names, seen from the folder that the script is in."""
    given = Path(path).expanduser()
    return path if given.is_absolute() or script == "-" else Own(str(Path(script).parent / given))


def write_text(path: Own, text: str) -> None:
    """Write a file. Raises OutputError."""
    try:
        Path(path).expanduser().write_text(text, encoding="utf-8")
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise OutputError(f"cannot write {path}: {reason or error}") from None


def work_in(folder: Own) -> None:
    """Change the folder that names of files are seen from. Raises UsageError."""
    try:
        os.chdir(Path(folder).expanduser())
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{folder}: {reason}") from None


def left_out(scanner: Scanner, items: Sequence[Item], arriving: Iterable[str], *, surely: bool) -> str:
    """How many statements and commands of a script are not run: `items`, those that the scanner has, those that arrive.

    `surely` says that no more than that will come. "" when there are none.
    """
    left = [*items]
    while found := scanner.read():
        left += found
    chunks = iter(arriving)
    for _ in range(MOST_COUNTED):
        chunk = next(chunks, None)
        left += scanner.items(chunk)
        if chunk is None:
            break
    else:
        surely = False
    statements = sum(isinstance(item, Statement) for item in left)
    counts = [
        f"{count:,} {what}{'' if count == 1 else 's'}"
        for count, what in ((statements, "statement"), (len(left) - statements, "command"))
        if count
    ]
    verb = "was" if len(left) == 1 else "were"
    return f"{'' if surely else 'at least '}{' and '.join(counts)} {verb} not run" if counts else ""
