"""Parts of a script in which only their own end is significant: strings, quoted identifiers, comments.

A span skips over pieces of text until it is closed. It keeps its state between two pieces; it stops before a character
whose meaning depends on the next piece.
"""

from __future__ import annotations

from typing import Protocol

from sqlshell.sql.script import lexical_rules
from sqlshell.sql.script.items import State


class Span(Protocol):
    @property
    def state(self) -> State | None:
        """The scanner's state within the span, for the prompt; None for the state around the span."""

    def skip(self, text: str, position: int) -> tuple[int, bool]:
        """The end of the span in `text`, as far as it is known, and whether the span is closed there."""


class Quote:
    """Up to the same quote. A doubled quote is read as the end of one span and the start of the next."""

    def __init__(self, quote: str) -> None:
        self._quote = quote
        self.state = State(quote)

    def skip(self, text: str, position: int) -> tuple[int, bool]:
        end = text.find(self._quote, position)
        return (end + 1, True) if end >= 0 else (len(text), False)


class EscapeString:
    """E'…', in which a backslash escapes the next character."""

    state = State.SINGLE_QUOTE

    def skip(self, text: str, position: int) -> tuple[int, bool]:
        match = lexical_rules.ESCAPED_BODY.match(text, position)
        end = match.end() if match else position
        return (end + 1, True) if text.startswith("'", end) else (end, False)


class LineComment:
    state = None

    def skip(self, text: str, position: int) -> tuple[int, bool]:
        match = lexical_rules.LINE_END.search(text, position)
        return (match.start(), True) if match else (len(text), False)


class BlockComment:
    """/* … */, which can be nested."""

    state = State.BLOCK_COMMENT

    def __init__(self) -> None:
        self._depth = 1

    def skip(self, text: str, position: int) -> tuple[int, bool]:
        for mark in lexical_rules.COMMENT_MARK.finditer(text, position):
            position = mark.end()
            self._depth += 1 if mark.group() == "/*" else -1
            if not self._depth:
                return position, True
        half = len(text) > position and text[-1] in "/*"
        return len(text) - half, False


class DollarString:
    """From after the first `$` of `$tag$ … $tag$`. Without a second `$` it is closed at once: it may be a parameter."""

    def __init__(self) -> None:
        self.state: State | None = None
        self._tag: list[str] = []
        self._closing = ""
        self._matched = 0

    def skip(self, text: str, position: int) -> tuple[int, bool]:
        if not self._closing:
            pattern = lexical_rules.DOLLAR_TAG_REST if self._tag else lexical_rules.DOLLAR_TAG
            match = pattern.match(text, position)
            if match:
                self._tag.append(match.group())
                position = match.end()
            if position == len(text):
                return position, False
            if text[position] != "$":
                return position, True
            position += 1
            self.state = State.DOLLAR_QUOTE
            self._closing = f"${''.join(self._tag)}$"
        return self._skip_body(text, position)

    def _skip_body(self, text: str, position: int) -> tuple[int, bool]:
        closing, end = self._closing, len(text)
        if self._matched:
            wanted = min(len(closing) - self._matched, end - position)
            # A tag contains no `$`: if the closing tag is incomplete, no other can have begun before.
            if closing.startswith(text[position : position + wanted], self._matched):
                self._matched += wanted
                return position + wanted, self._matched == len(closing)
            self._matched = 0
        closing_at = text.find(closing, position)
        if closing_at >= 0:
            return closing_at + len(closing), True
        last = text.rfind("$", max(position, end - len(closing) + 1))
        if last >= 0 and closing.startswith(text[last:]):
            self._matched = end - last
        return end, False
