"""Suggestions from the history, found without searching all of it for each key."""

from __future__ import annotations

from prompt_toolkit.auto_suggest import AutoSuggest, Suggestion
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.history import History


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
