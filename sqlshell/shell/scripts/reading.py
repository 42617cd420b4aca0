"""Reads scripts as chunks of text, as they arrive."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, TextIO

from sqlshell.errors import UsageError, reason
from sqlshell.origin import Trusted
from sqlshell.output.sinks.sink import write_error
from sqlshell.runtime.files import expanded
from sqlshell.sql.script.scanner import CopyLines, Item, Scanner, Statement
from sqlshell.text import not_run

CHUNK = 1 << 16
MOST_COUNTED = 16
"""Maximum chunks of a script that are read to count statements that were not run."""


def read_script(path: Trusted, stdin: TextIO) -> Iterator[Trusted]:
    """The text of a file in chunks, `-` for `stdin`. Raises UsageError if it cannot be read or is not text."""
    try:
        if path == "-":
            # Without a buffer: Python aborts at exit if a thread still waits for the buffer of stdin.
            with open(stdin.fileno(), "rb", buffering=0, closefd=False) as file:
                yield from decode(file, "stdin")
            return
        with expanded(path).open("rb") as file:
            yield from decode(file, path)
    except OSError as error:
        raise UsageError(f"cannot read {'stdin' if path == '-' else path}: {reason(error)}") from None


def decode(stream: BinaryIO, name: str) -> Iterator[Trusted]:
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
                f"{name}:{line}: invalid UTF-8",
                "a script must be UTF-8 text; convert it with: iconv -f latin1 -t UTF-8 FILE > NEW_FILE",
            ) from None
        lines += chunk.count(b"\n")
        if text:
            yield Trusted(text)
        if not chunk:
            return


def relative_to_script(script: str, path: Trusted) -> Trusted:
    """A path in a script, relative to the directory of the script."""
    given = expanded(path)
    return path if given.is_absolute() or script == "-" else Trusted(str(Path(script).parent / given))


def write_text(path: Trusted, text: str) -> None:
    """Write a file, whole or not at all. Raises OutputError."""
    from sqlshell.output.sinks.file import FileSink

    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise write_error(path, error) from None
    sink = FileSink(path)
    try:
        sink.write(data)
    except BaseException:
        sink.abort()
        raise
    sink.close()


def change_working_folder(folder: Trusted) -> None:
    """Change the working directory. Raises UsageError."""
    try:
        os.chdir(expanded(folder))
    except (OSError, RuntimeError) as error:
        raise UsageError(f"cannot change to {folder}: {reason(error)}") from None


def skipped_message(scanner: Scanner, items: Sequence[Item], arriving: Iterable[str], *, surely: bool) -> str:
    """A message about the statements and commands of a script that are not run: `items`, those that the scanner has,
    and those that arrive.

    `surely` says that no more will arrive. "" if there are none.
    """
    left = [*items]
    while further := scanner.read():
        left += further
    chunks = iter(arriving)
    for _ in range(MOST_COUNTED):
        chunk = next(chunks, None)
        left += scanner.items(chunk)
        if chunk is None:
            break
    else:
        surely = False
    left = [item for item in left if not isinstance(item, CopyLines)]
    statements = sum(isinstance(item, Statement) for item in left)
    before = "" if surely else "at least "
    return not_run((statements, "statement"), (len(left) - statements, "command"), before=before)
