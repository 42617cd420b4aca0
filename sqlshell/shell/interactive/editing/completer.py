"""Completion in prompt_toolkit: asks sql/completion for suggestions, and shows kind and type next to each."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence

from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples

from sqlshell.output.text.cells import is_unsafe, printable
from sqlshell.output.text.type_names import simple_type
from sqlshell.runtime.streams import shows_unicode
from sqlshell.shell.commands.arguments import SHOWN, files
from sqlshell.shell.interactive.history import HistoryEntry, matching
from sqlshell.shell.interactive.look.highlight import sql_fragments
from sqlshell.shell.session import Session
from sqlshell.sql.completion.catalog import Catalog
from sqlshell.sql.completion.expected import Expected
from sqlshell.sql.completion.suggestions import Place, Suggestion, suggestions

LONGEST_DETAIL = 60

OUTCOME = len("  2001-02-03 04:05 failed   ")
"""The width of what stands beside an entry of the history."""

FEW = frozenset({"join", "theme", "pset", "format", "chart"})
"""Kinds of suggestions with so few items that the menu shows all of them before a letter is typed: conditions of a
join, and arguments of these commands."""

Arguments = Callable[[str, str, Sequence[str]], Iterable[Suggestion]]
"""The suggestions for an argument of a command, given its name, the typed part, and the previous arguments."""


class ShellCompleter(Completer):
    """`commands` returns the commands that begin with the typed text."""

    def __init__(
        self,
        session: Session,
        catalog: Catalog,
        commands: Callable[[str], Iterable[Suggestion]],
        arguments: Arguments,
        history: Callable[[], list[HistoryEntry]],
    ) -> None:
        self._session = session
        self._catalog = catalog
        self._commands = commands
        self._arguments = arguments
        self._history = history
        self.searching = False
        """Whether the history is being searched, so that the typed text are letters of an entry."""
        self.unmatched = False
        """Whether no entry has these letters."""
        self.began_with = ""
        """The text before the search began."""

    def stop_searching(self) -> None:
        self.searching = self.unmatched = False

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        if self.searching:
            yield from self._entries(document)
            return
        if not self._session.options.completion and not complete_event.completion_requested:
            return
        begun = complete_event.completion_requested or _worth_it(document)
        if not begun and not _after_blank(document):
            return
        context = self._session.context
        place = Place(self._catalog, context.database, context.schema, self._other)
        start, suggested = suggestions(document.text, document.cursor_position, place)
        if not begun:
            suggested = [item for item in suggested if item.kind in FEW]
        typed = document.text[start : document.cursor_position]
        for item in suggested[:SHOWN]:
            # A name with a line break would begin a new line, which could be a command.
            if item.text == typed or is_unsafe(item.text):
                continue
            detail = printable(simple_type(item.detail) if item.kind == "column" else item.detail or item.kind)
            detail = _shortened(detail, LONGEST_DETAIL)
            shown = printable(f"\\{item.text}" if item.kind == "command" else item.text)
            yield Completion(item.text, start - document.cursor_position, display=shown, display_meta=detail)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """The completions, made in a thread and handed over together: one by one costs more than making them."""
        for item in await asyncio.to_thread(lambda: [*self.get_completions(document, complete_event)]):
            yield item

    def _entries(self, document: Document) -> Iterator[Completion]:
        # The last line alone is searched for and replaced, as at psql's continuation prompt.
        start = self.began_with.rfind("\n") + 1
        found = matching(self._history(), document.text[start:])[:SHOWN]
        self.unmatched = not found
        widest = max(20, get_app().output.get_size().columns - OUTCOME)
        for number, entry in enumerate(found):
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.time))
            outcome: StyleAndTextTuples = [("", when)]
            if entry.failed:
                outcome.append(("class:entry class:error", " failed"))
            text = _shortened(printable(" ".join(entry.text[:1000].split())), widest)
            shown = _with_matches(text, document.text[start:])
            # Enter accepts the first one, unless another one is chosen.
            look = "class:entry" if number else "class:hit"
            yield Completion(entry.text, min(0, start - document.cursor_position), shown, outcome, look, "class:hit")

    def _other(self, wanted: Expected) -> Iterable[Suggestion]:
        if "path" in wanted.kinds:
            # Inside a string, quotes in a name are doubled.
            names = files(wanted.prefix.replace("''", "'"))
            return [Suggestion(name.replace("'", "''"), "directory" if inside else "file") for name, inside in names]
        if "variable" in wanted.kinds:
            return self._arguments("unset", wanted.prefix, ())
        if "command" in wanted.kinds:
            return self._commands(wanted.prefix)
        return self._arguments(wanted.within, wanted.prefix, wanted.qualifier)


def _shortened(text: str, most: int) -> str:
    ellipsis = "…" if shows_unicode(os.environ) else "..."
    return text if len(text) <= most else f"{text[: most - len(ellipsis)]}{ellipsis}"


def _with_matches(text: str, typed: str) -> StyleAndTextTuples:
    """A text in the colors of SQL, with the typed letters marked."""
    low, letters = text.lower(), typed.lower()
    at = low.find(letters)
    marked = set(range(at, at + len(letters)))
    if at < 0:
        marked, place = set(), -1
        for letter in letters:
            place = low.find(letter, place + 1)
            marked.add(place)
    return [
        (f"{look} bold underline" if number in marked else look, text[number])
        for number, look in enumerate(look for look, part, *_ in sql_fragments(text) for _ in part)
    ]


def _after_blank(document: Document) -> bool:
    """Whether nothing of the next word has been typed."""
    return document.char_before_cursor == " " and document.is_cursor_at_the_end


def _worth_it(document: Document) -> bool:
    """Whether to show the menu while typing: in a word, after a dot or a backslash."""
    before = document.char_before_cursor
    return bool(before) and (before.isalnum() or before in '_.\\"@$/:')
