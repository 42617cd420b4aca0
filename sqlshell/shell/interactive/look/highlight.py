"""Highlights the text that is being edited line by line, so that a key costs one line and not the whole text."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles.pygments import pygments_token_to_classname

from sqlshell.shell.interactive.editing.continuation import Continuations
from sqlshell.sql import keywords
from sqlshell.sql.lexer import SqlshellLexer
from sqlshell.sql.script.scanner import State

KEPT = 5_000
BEGINNINGS = frozenset(
    word.split()[0]
    for word in (
        *keywords.STATEMENTS,
        *keywords.LOCAL_STATEMENTS,
        "DESC",
        "TABLE",
        "BEGIN",
        "END",
        "EXECUTE",
        "PREPARE",
        "ABORT",
    )
)
"""First words of statements."""

MAX_LINES_BACK = 200
"""Maximum lines to go back for the beginning of a string or comment."""

_LEXER = SqlshellLexer()
_QUOTES = frozenset({State.SINGLE_QUOTE, State.DOUBLE_QUOTE, State.BACK_QUOTE, State.DOLLAR_QUOTE})
_INSIDE = _QUOTES | {State.BLOCK_COMMENT}


class LineLexer(Lexer):
    """Lexes lines separately; a line that begins inside a string or comment is lexed from its beginning."""

    def __init__(self, lines: Continuations) -> None:
        self._lines = lines
        self._known: dict[str, StyleAndTextTuples] = {}

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        text, given = document.text, document.lines
        unclosed = self._unclosed(text, given)

        def line(number: int) -> StyleAndTextTuples:
            if number >= len(given):
                return []
            if unclosed is not None and number == unclosed[0]:
                return _marked(drawn(number), unclosed[1])
            return drawn(number)

        def drawn(number: int) -> StyleAndTextTuples:
            first = number
            while first and number - first < MAX_LINES_BACK and self._lines.before(text, first) in _INSIDE:
                first -= 1
            if first == number:
                fragments = self._lexed(given[number])
                return _doubted(fragments) if self._lines.before(text, number) is State.READY else fragments
            whole = sql_fragments("\n".join(given[first : number + 1]))
            return _last_line(whole)

        return line

    def _unclosed(self, text: str, given: list[str]) -> tuple[int, int] | None:
        """The line and column of the quote or the parenthesis that is not closed at the end of the text."""
        if (opened := self._lines.parenthesis(text)) is not None:
            return text.count("\n", 0, opened), opened - text.rfind("\n", 0, opened) - 1
        if self._lines.before(text, len(given)) not in _QUOTES:
            return None
        first = len(given) - 1
        while first and len(given) - first < MAX_LINES_BACK and self._lines.before(text, first) in _INSIDE:
            first -= 1
        parts = sql_fragments("\n".join(given[first:]))
        before = "".join(fragment[1] for fragment in parts[:-1])
        return first + before.count("\n"), len(before) - before.rfind("\n") - 1

    def _lexed(self, line: str) -> StyleAndTextTuples:
        fragments = self._known.get(line)
        if fragments is None:
            if len(self._known) > KEPT:
                self._known.clear()
            fragments = self._known[line] = sql_fragments(line)
        return fragments


def sql_fragments(text: str) -> StyleAndTextTuples:
    """The parts of a text in SQL, each with its style."""
    return [
        (f"class:{pygments_token_to_classname(kind)}", part) for _, kind, part in _LEXER.get_tokens_unprocessed(text)
    ]


def _marked(fragments: StyleAndTextTuples, column: int) -> StyleAndTextTuples:
    """The same line with the character at a column marked as an error."""
    marked: StyleAndTextTuples = []
    for fragment in fragments:
        style, part = fragment[0], fragment[1]
        if 0 <= column < len(part):
            marked += [(style, part[:column]), (f"{style} class:error", part[column]), (style, part[column + 1 :])]
        else:
            marked.append((style, part))
        column -= len(part)
    return [fragment for fragment in marked if fragment[1]]


def _doubted(fragments: StyleAndTextTuples) -> StyleAndTextTuples:
    """The same line with its first word marked if no statement begins with it and it is no longer being typed."""
    for number, fragment in enumerate(fragments):
        style, part = fragment[0], fragment[1]
        if part.isspace() or "comment" in style:
            continue
        whole = part.upper() in BEGINNINGS or not part[:1].isalpha() or number == len(fragments) - 1
        if whole:
            return fragments
        return [*fragments[:number], (f"{style} class:error underline", part), *fragments[number + 1 :]]
    return fragments


def _last_line(fragments: StyleAndTextTuples) -> StyleAndTextTuples:
    last: StyleAndTextTuples = []
    for fragment in fragments:
        style, part = fragment[0], fragment[1]
        if "\n" in part:
            last = []
            part = part.rpartition("\n")[2]
        last.append((style, part))
    return last
