"""History in a file of mode 0600, whole entries, safe to append to from several shells at once.

Each entry is a line with its time and a line per line of text, begun by `+`.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit.history import History

LONGEST = 10_000
"""Entries that are loaded; the file is cut down to them when it has twice as many."""


class FileHistory(History):
    """Keeps what is entered in `path`. Where the file cannot be used it is told once, and history lives in memory.

    An entry that begins with a blank is kept out of the file.
    """

    def __init__(self, path: Path, warn: Callable[[str], None]) -> None:
        super().__init__()
        self._path = path
        self._warn = warn
        self._usable = True

    def load_history_strings(self) -> Iterable[str]:
        """Entries, the latest first."""
        try:
            text = self._path.read_bytes().decode("utf-8", "replace")
        except FileNotFoundError:
            return []
        except OSError as error:
            self._fail(error)
            return []
        entries: list[str] = []
        lines: list[str] = []
        for line in [*text.split("\n"), ""]:
            if line.startswith("+"):
                lines.append(line[1:])
            elif lines:
                entries.append("\n".join(lines))
                lines = []
        if len(entries) > 2 * LONGEST:
            self._trim(entries[-LONGEST:])
        return reversed(entries[-LONGEST:])

    def store_string(self, string: str) -> None:
        if not self._usable or string[:1].isspace():
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # One write of an append-only file: entries of two shells never mix.
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with contextlib.closing(os.fdopen(handle, "wb", buffering=0)) as file:
                if os.name == "posix":
                    os.fchmod(file.fileno(), 0o600)
                file.write(_entry(string))
        except OSError as error:
            self._fail(error)

    def _trim(self, entries: list[str]) -> None:
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with contextlib.closing(os.fdopen(handle, "wb")) as file:
                file.writelines(map(_entry, entries))
            temporary.replace(self._path)

    def _fail(self, error: OSError) -> None:
        if self._usable:
            self._usable = False
            self._warn(f"the history {self._path} cannot be used: {error.strerror or error}")


def _entry(text: str) -> bytes:
    body = "".join(f"+{line}\n" for line in text.split("\n"))
    return f"\n# {time.time():.0f}\n{body}".encode("utf-8", "replace")
