"""Splits scripts into statements and backslash commands, piece by piece, by psql's lexical rules.

Every piece of text is looked at once: what the scanner is inside of is kept from one piece to the next, so that neither
long statements nor small pieces cost more than their length. Only the unfinished statement is held.
"""

from __future__ import annotations

import enum
import re
from typing import Final

from msgspec.structs import replace

from sqlshell.sql import patterns
from sqlshell.sql.bodies import Body
from sqlshell.sql.copydata import CopyData
from sqlshell.sql.items import Command, Item, State, Statement
from sqlshell.sql.spans import BlockComment, DollarString, EscapeString, LineComment, Quote, Span

__all__ = ["Command", "Item", "Scanner", "State", "Statement", "complete", "copies_in", "split"]

_LONGEST_WORD: Final = len("application") + 1
_BYTE_ORDER_MARK: Final = "\ufeff"


class _Joint(enum.Enum):
    """What came since an E'' string was closed: a quote goes on with it at once, or on a later line."""

    NONE = enum.auto()
    CLOSED = enum.auto()
    BLANK = enum.auto()
    NEW_LINE = enum.auto()


class Scanner:
    """Takes a script in pieces that may end anywhere, and gives back what is complete.

    `line` is the number of the script's first line; without `commands` a backslash is a character like any other.
    """

    def __init__(self, *, line: int = 1, commands: bool = True) -> None:
        self._line = line
        self._commands = commands
        self._base = 0  # characters before the text
        self._text = ""
        self._counted = 0  # where in the text the lines are counted up to
        self._held: list[str] = []  # what only the next piece decides about
        self._in_command = False  # what is held is a backslash command
        self._span: Span | None = None
        self._word = ""  # the start of a word that the last piece ended in
        self._parts: list[str] = []  # the statement's text from earlier pieces
        self._last: Statement | None = None  # a statement whose `;` ended the last piece: a `&` may yet follow
        self._copies = 0  # statements whose data come behind the present line, or have begun
        self._data: CopyData | None = None
        self._clear()

    def _clear(self) -> None:
        self._started = False
        self._taken = 0  # where the statement's text begins that is not in the parts yet
        self._start_line = self._start_offset = 0
        self._depth = 0
        self._body = Body()
        self._joint = _Joint.NONE
        self._parts.clear()

    @property
    def state(self) -> State:
        """What the text so far ends inside of; READY when nothing is pending but blanks and comments."""
        if self._data is not None:
            return State.COPY_DATA
        if self._in_command:
            return State.COMMAND
        if self._span and self._span.state:
            return self._span.state
        if self._depth:
            return State.PARENTHESIS
        return self._body.state or (State.STATEMENT if self._started or self._held else State.READY)

    @property
    def pending(self) -> str:
        """The text of the unfinished statement, "" when there is none."""
        self._parts[:] = ["".join(self._parts)]
        undecided = "" if self._in_command or (self._span and not self._started) else "".join(self._held)
        return self._parts[0] + undecided

    def feed(self, chunk: str) -> list[Item]:
        """The statements and commands that are complete with this piece of the script, in order. Raises nothing."""
        items: list[Item] = []
        position = 0
        while position < len(chunk):
            if self._data is not None:
                position = self._skip_data(chunk, position)
            elif self._copies:
                position = self._line_before_data(chunk, position, items)
            else:
                position = self._scan(chunk, position, items)
        return items

    def _skip_data(self, text: str, position: int) -> int:
        assert self._data is not None
        stop, closed = self._data.skip(text, position)
        self._line += text.count("\n", position, stop)
        self._base += stop - position
        if closed:
            self._copies -= 1
            self._data = CopyData() if self._copies else None
        return stop

    def _line_before_data(self, text: str, position: int, items: list[Item]) -> int:
        """The rest of a line on which a COPY ended: its data begin with the next one, whatever else began on this."""
        end = text.find("\n", position) + 1
        line = text[position : end or len(text)]
        start = 0
        while start < len(line):
            start = self._scan(line, start, items)
        if end:
            self._data = CopyData()
        return end or len(text)

    def _scan(self, chunk: str, start: int, items: list[Item]) -> int:
        """Read SQL and commands from `start`, as far as behind a COPY whose data follow; gives back where that is."""
        if self._in_command and "\n" not in chunk[start:]:
            self._held.append(chunk[start:])
            return len(chunk)
        text = self._text = "".join([*self._held, chunk[start:]]) if self._held else chunk
        before = len(text) - len(chunk)
        position = 0 if self._held else start
        self._held.clear()
        self._in_command = False
        self._counted = self._taken = position
        self._base -= position
        copies = self._copies
        if self._base + position == 0 and text.startswith(_BYTE_ORDER_MARK):
            position = 1
        if self._last is not None:
            items.append(self._last)
            self._last = None
            position = self._terminated(text, position, items)
        consumed = len(text)
        while position < len(text):
            if not self._started and not self._span:
                position = _end(patterns.BETWEEN, text, position)
                whole = patterns.WHOLE_STATEMENT.match(text, position)
                if whole and text[position] not in ".!" and not _unusual(whole[1]):
                    start, stop = whole.span(1)
                    written = text[start:stop].rstrip(patterns.BLANKS)
                    items.append(Statement(written, self._line_at(start), self._base + start, True))
                    position = self._terminated(text, stop + 1, items)
                    continue
            gone_to = self._step(text, position, items)
            if gone_to is None:
                self._held.append(text[position:])
                break
            position = gone_to
            if self._copies > copies:
                consumed = position
                break
        self._line_at(position)
        if self._started:
            self._parts.append(text[self._taken : position])
        self._base += position
        self._text = ""
        return consumed - before

    def close(self) -> list[Item]:
        """What the end of the script completes: the last statement needs no `;`. The scanner is done with after it."""
        items = self.feed("\n")
        if self._started:
            items.append(self._statement("", terminated=False))
        self._span = self._data = None
        self._copies = 0
        self._word = ""
        self._held.clear()
        return items

    def forget(self) -> None:
        """Let the text of the unfinished statement go, for a reader who only wants the state."""
        self._parts.clear()

    def _line_at(self, position: int) -> int:
        self._line += self._text.count("\n", self._counted, position)
        self._counted = position
        return self._line

    def _start(self, position: int) -> None:
        self._started = True
        self._taken = position
        self._start_line = self._line_at(position)
        self._start_offset = self._base + position
        self._body = Body(self._text[position])

    def _terminated(self, text: str, position: int, items: list[Item]) -> int:
        """Past the `;` of the last item: a `&` right behind it belongs to it."""
        if position == len(text):
            last = items.pop()
            assert isinstance(last, Statement)
            self._last = last
        elif text[position] == "&":
            last = items.pop()
            assert isinstance(last, Statement)
            items.append(replace(last, background=True))
            return position + 1
        return position

    def _statement(self, rest: str, *, terminated: bool) -> Statement:
        text = "".join([*self._parts, rest]).rstrip(patterns.BLANKS)
        statement = Statement(text, self._start_line, self._start_offset, terminated)
        self._copies += self._body.copies_in and terminated
        self._clear()
        return statement

    def _step(self, text: str, position: int, items: list[Item]) -> int | None:
        """Goes on by a token or less; gives back where that ends, and None when it takes more text to say."""
        if self._span:
            stop, closed = self._span.skip(text, position)
            if closed:
                self._joint = _Joint.CLOSED if isinstance(self._span, EscapeString) else self._joint
                self._span = None
            return stop if closed or stop > position else None
        if self._word:
            return self._word_on(text, position)
        start = self._before_token(text, position)
        if start > position or start == len(text):
            return start
        first = text[start]
        if first in "-/\\" and start + 1 == len(text):
            return None
        if first in ".!" and not self._started and self._commands and "\n" not in text[start:]:
            self._in_command = True
            return None
        if text.startswith("--", start):
            self._span = LineComment()
            return start + 2
        if text.startswith("/*", start):
            self._span = BlockComment()
            self._joint = _Joint.NONE
            return start + 2
        if first == "\\":
            return self._backslash(text, start, items)
        if not self._started:
            if first in ".!" and self._commands:
                dotted = patterns.DOTTED.match(text, start)
                if dotted is not None:
                    return self._dotted(text, dotted, items)
            self._start(start)
        return self._token(text, start, first, items)

    def _before_token(self, text: str, position: int) -> int:
        """Past everything that cannot matter."""
        if not self._started:
            return _end(patterns.BLANK_OR_SEMICOLON, text, position)
        if self._joint is _Joint.NONE and not self._body.watching:
            return _end(patterns.UNTIL_TOKEN, text, position)
        blank = _end(patterns.BLANK, text, position)
        end = _end(patterns.BETWEEN_WORDS, text, blank)
        if end > blank:
            self._break()
        elif self._joint is not _Joint.NONE and blank > position:
            new_line = self._joint is _Joint.NEW_LINE or patterns.LINE_END.search(text, position, blank)
            self._joint = _Joint.NEW_LINE if new_line else _Joint.BLANK
        return end

    def _break(self) -> None:
        self._joint = _Joint.NONE
        self._body.other()

    def _token(self, text: str, start: int, first: str, items: list[Item]) -> int:
        match first:
            case "'" if self._joint in (_Joint.CLOSED, _Joint.NEW_LINE):
                self._span = EscapeString()
            case "'" | '"' | "`":
                self._span = Quote(first)
            case "$":
                self._span = DollarString()
            case "(":
                self._depth += 1
            case ")":
                self._depth = max(0, self._depth - 1)
            case ";" if not self._depth and not self._body.state:
                items.append(self._statement(text[self._taken : start], terminated=True))
                return self._terminated(text, start + 1, items)
            case _ if patterns.WORD.match(text, start):
                return self._word_on(text, start)
        self._break()
        return start + 1

    def _word_on(self, text: str, position: int) -> int:
        """A word, or the rest of one that an earlier piece began with."""
        end = _end(patterns.WORD_REST, text, position)
        word = self._word + text[position : min(end, position + _LONGEST_WORD)]
        if end == len(text):
            self._word = word[:_LONGEST_WORD]
            return end
        self._word = ""
        if word in ("e", "E") and text[end] == "'":
            self._break()
            self._span = EscapeString()
            return end + 1
        self._joint = _Joint.NONE
        self._body.word(word, self._depth)
        return end

    def _backslash(self, text: str, start: int, items: list[Item]) -> int | None:
        named = patterns.COMMAND.match(text, start) if self._commands else None
        if not named:
            if not self._started:
                self._start(start)
            self._break()
            if text[start + 1] not in ";:\\" or not self._commands:
                return start + 1
            self._parts.append(text[self._taken : start])
            self._taken = start + 1
            return start + 2
        line_end = text.find("\n", start)
        if line_end < 0:
            self._in_command = True
            return None
        statement = self._statement(text[self._taken : start], terminated=True) if self._started else None
        name, stop = named[1], named.end()
        # Another shell reads the rest of that line, and its backslashes are its own.
        end = line_end if name == "!" else _end(patterns.ARGUMENTS, text, stop)
        if name == "copy":
            self._copies += copies_in(f"copy {text[stop:end]}")
        items.append(
            Command(name, text[stop:end].strip(patterns.BLANKS), self._line_at(start), statement, self._base + start)
        )
        return end + 2 if text.startswith("\\\\", end) else end

    def _dotted(self, text: str, named: re.Match[str], items: list[Item]) -> int:
        """A command of another shell, which takes the rest of its line."""
        start, stop = named.span()
        line_end = text.find("\n", stop)
        args = text[stop:line_end].strip(patterns.BLANKS).removesuffix(";").rstrip(patterns.BLANKS)
        items.append(Command(named[0], args, self._line_at(start), None, self._base + start))
        return line_end


def _unusual(statement: str) -> bool:
    """Whether it may have semicolons in a body, or data behind it."""
    if statement[0] not in "cC":
        return False
    if patterns.FUNCTION.match(statement):
        return "begin" in statement.lower()
    return statement[:4].lower() == "copy" and "stdin" in statement.lower()


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return found.end() if found else position


def split(text: str, *, commands: bool = True) -> list[Item]:
    """Everything in a whole script, in order."""
    scanner = Scanner(commands=commands)
    return [*scanner.feed(text), *scanner.close()]


def copies_in(statement: str) -> bool:
    """Whether a statement is COPY … FROM STDIN, whose data come from where it was written."""
    if "stdin" not in statement.lower():
        return False
    scanner = Scanner(commands=False)
    scanner.feed(f"{statement}\n;\n")
    return scanner.state is State.COPY_DATA


def complete(text: str) -> bool:
    """Whether nothing in the text is unfinished: it ends in a `;` or a backslash command, or is blank."""
    scanner = Scanner()
    scanner.feed(text + "\n")
    return scanner.state is State.READY
