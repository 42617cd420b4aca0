"""Scripts as chunks of text, read as they arrive."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from sqlshell.errors import UsageError

CHUNK = 1 << 16


def read_script(path: str) -> Iterator[str]:
    """The text of a file in chunks, `-` being stdin. Raises UsageError when it cannot be read or is not text."""
    if path == "-":
        yield from decoded(sys.stdin.buffer, "stdin")
        return
    try:
        with Path(path).expanduser().open("rb") as file:
            yield from decoded(file, path)
    except FileNotFoundError:
        raise UsageError(f"there is no script {path}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


def decoded(stream: BinaryIO, name: str) -> Iterator[str]:
    """UTF-8 text from a stream, as much as has arrived each time; `name` is for errors."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    read = stream.read1 if isinstance(stream, BufferedReader) else stream.read
    lines = 1
    while True:
        chunk = read(CHUNK)
        if b"\0" in chunk:
            raise UsageError(f"{name} is a binary file, not a script", "a script is UTF-8 text")
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            line = lines + error.object[: error.start].count(b"\n")
            raise UsageError(
                f"{name}:{line}: this is not UTF-8 text", "convert it with iconv, or is it binary?"
            ) from None
        lines += chunk.count(b"\n")
        if text:
            yield text
        if not chunk:
            return
