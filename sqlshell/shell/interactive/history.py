"""History in files of mode 0600: one for each target, and a shared one. Several shells may append entries.

Each entry is a line with its time, followed by its lines of text, each after a `+`. A line with `failed` and this time
follows later if it failed. Strings that follow the name of a secret are removed before an entry is written.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct
from prompt_toolkit.auto_suggest import AutoSuggest, Suggestion
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.history import History

from sqlshell.errors import reason
from sqlshell.runtime.files import replace_private, write_all
from sqlshell.sql.analysis.secrets import redacted

LONGEST = 10_000
"""Maximum entries that are loaded; a file with twice as many is truncated to them."""

_FAILED = re.compile(r"^# failed (\S+)$", re.MULTILINE)


class HistoryEntry(Struct, frozen=True):
    """An entry, its time in seconds since 1970, and whether a statement or command in it failed."""

    time: float
    text: str
    failed: bool = False


class FileHistory(History):
    """Stores entries in `path` and in `shared`. If a file cannot be used, a warning is printed once.

    An entry that begins with a space is not written to the files, and neither is one that continues a statement that
    began with one. `unfinished` returns the statement that the next entry continues.
    """

    def __init__(
        self,
        path: Path,
        warn: Callable[[str], None],
        shared: Path | None = None,
        redact: Callable[[str], str] = redacted,
        unfinished: Callable[[], str] = lambda: "",
    ) -> None:
        super().__init__()
        self._redact = redact
        self._path = path
        self._shared = shared
        self._warn = warn
        self._usable = True
        self._unfinished = unfinished
        self._hidden = False
        """Whether the statement began with a space in an earlier entry."""
        self._last = 0.0
        """The time of the last entry that was stored; 0 if the last text was not."""
        self.paused = False
        """Whether what is typed are rows of COPY, which are not stored."""

    def load_history_strings(self) -> Iterable[str]:
        """The entries, the latest first: those of this target, and after them those of all targets."""
        return reversed([entry.text for entry in self.entries()])

    def entries(self) -> list[HistoryEntry]:
        """The entries of this target, the oldest first."""
        own = self._read(self._path)
        if self._shared is None or len(own) > LONGEST // 10:
            return own
        since = own[0].time if own else time.time()
        return [entry for entry in self._read(self._shared) if entry.time < since] + own

    def all_entries(self) -> list[HistoryEntry]:
        """The entries of all targets, the oldest first."""
        return self._read(self._shared or self._path)

    def append_string(self, string: str) -> None:
        if not self.paused:
            super().append_string(string)

    def store_string(self, string: str) -> None:
        before, self._last = self._unfinished(), 0.0
        if not before:
            self._hidden = string[:1].isspace()
        if not self._usable or self._hidden or string[:1].isspace() or not string.strip():
            return
        kept = self._redacted(string, before)
        if not kept:
            return
        self._last = time.time()
        self._append(_entry(HistoryEntry(self._last, kept)))

    def note_failure(self) -> None:
        """Record that what was typed last failed."""
        if self._last:
            self._append(_failure(self._last))

    def _redacted(self, string: str, before: str) -> str:
        """The entry without its secrets, "" if they cannot be recognized, because their names may be in an earlier
        entry.
        """
        if not before:
            return self._redact(string)
        whole, head = self._redact(f"{before}\n{string}"), f"{self._redact(before)}\n"
        return self._redact(whole[len(head) :]) if whole.startswith(head) else ""

    def use_file(self, path: Path) -> None:
        """Use the history of another target."""
        self._path = path
        self._loaded_strings = list(self.load_history_strings())

    def clear(self) -> None:
        """Clear this target's entries: in its file, in the shared file, and in memory. Raises OSError."""
        gone = {(entry.time, entry.text) for entry in self._read(self._path)}
        self._path.unlink(missing_ok=True)
        if self._shared is not None:
            self._rewrite(self._shared, [e for e in self._read(self._shared) if (e.time, e.text) not in gone])
        self._loaded_strings.clear()

    def _append(self, written: bytes) -> None:
        for path in (self._path, self._shared):
            if path is not None:
                self._append_to(path, written)

    def _append_to(self, path: Path, written: bytes) -> None:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # One write to a file opened for appending: entries of two shells are never mixed.
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with contextlib.closing(os.fdopen(handle, "wb", buffering=0)) as file:
                if os.name == "posix":
                    os.fchmod(file.fileno(), 0o600)
                write_all(file.write, written)
        except OSError as error:
            self._fail(path, error)

    def _read(self, path: Path) -> list[HistoryEntry]:
        try:
            text = path.read_bytes().decode("utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self._fail(path, error)
            return []
        entries: list[HistoryEntry] = []
        lines: list[str] = []
        moment, failed = 0.0, set(_FAILED.findall(text))
        for line in [*text.split("\n"), ""]:
            if line.startswith("+"):
                lines.append(line[1:])
                continue
            if lines:
                entries.append(HistoryEntry(moment, "\n".join(lines), f"{moment:.6f}" in failed))
                lines = []
            if line.startswith("# "):
                with contextlib.suppress(ValueError):
                    moment = float(line[2:])
        if len(entries) > 2 * LONGEST:
            self._rewrite(path, entries[-LONGEST:])
        return entries[-LONGEST:]

    def _rewrite(self, path: Path, entries: list[HistoryEntry]) -> None:
        with contextlib.suppress(OSError):
            replace_private(path, b"".join(map(_entry, entries)))

    def _fail(self, path: Path, error: OSError) -> None:
        if self._usable:
            self._usable = False
            self._warn(f"cannot use the history {path}: {reason(error)}")


def _entry(entry: HistoryEntry) -> bytes:
    body = "".join(f"+{line}\n" for line in entry.text.split("\n"))
    written = f"\n# {entry.time:.6f}\n{body}".encode("utf-8", "replace")
    return written + _failure(entry.time) if entry.failed else written


def _failure(moment: float) -> bytes:
    return f"# failed {moment:.6f}\n".encode()


def matching(entries: Iterable[HistoryEntry], typed: str) -> list[HistoryEntry]:
    """Entries with these letters in order, each text once, the latest first; entries that contain the letters in
    succession come first.
    """
    low = typed.lower()
    together: dict[str, HistoryEntry] = {}
    apart: dict[str, HistoryEntry] = {}
    for entry in reversed(list(entries)):
        text = entry.text.lower()
        if low in text:
            together.setdefault(entry.text, entry)
            continue
        rest = iter(text)
        if all(char in rest for char in low):
            apart.setdefault(entry.text, entry)
    return [*together.values(), *apart.values()]


def suggest_at_once(buffer: Buffer, suggestions: AutoSuggest) -> None:
    """Have a suggestion drawn together with the key before it. prompt_toolkit looks for one after it has drawn the key,
    and draws everything again."""

    def suggest(changed: Buffer) -> None:
        changed.suggestion = suggestions.get_suggestion(changed, changed.document)

    buffer.auto_suggest = None
    buffer.on_text_insert += suggest


class SuggestFromHistory(AutoSuggest):
    """Suggests the rest of the latest line of the history that begins as the line does that is being typed.

    While a line grows, the search continues where it was.
    """

    def __init__(self) -> None:
        self._entries: list[str] = []
        self._lines: list[str] = []
        self._typed = ""
        self._at = 0

    def get_suggestion(self, buffer: Buffer, document: Document) -> Suggestion | None:
        typed = document.text[document.text.rfind("\n") + 1 :]
        if not typed.strip():
            return None
        if self._changed(buffer.history) or not self._typed or not typed.startswith(self._typed):
            self._at = 0
        self._typed = typed
        lines = self._lines
        self._at = next((at for at in range(self._at, len(lines)) if lines[at].startswith(typed)), len(lines))
        return Suggestion(lines[self._at][len(typed) :]) if self._at < len(lines) else None

    def _changed(self, history: History) -> bool:
        entries = history.get_strings()
        if (
            len(entries) == len(self._entries)
            and entries[-1:] == self._entries[-1:]
            and entries[:1] == self._entries[:1]
        ):
            return False
        self._entries = entries
        self._lines = [line for entry in reversed(entries) for line in reversed(entry.splitlines())]
        return True
