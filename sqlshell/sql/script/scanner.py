"""Splits scripts into statements and backslash commands, piece by piece, with psql's lexical rules.

Each line is processed once: the state is kept from one line to the next, so that long statements and small pieces cost
no more than their length. Only the unfinished statement is kept. A command neither ends it nor belongs to
it: the reader decides whether a command sends the statement, clears it, or leaves it unchanged.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.origin import Text
from sqlshell.sql.analysis.lexed import Lexed, once_per_statement
from sqlshell.sql.script import lexical_rules
from sqlshell.sql.script.items import BackslashCommand, CopyLines, Item, State, Statement
from sqlshell.sql.script.unfinished import QuoteContinuation, UnfinishedStatement, may_have_body

__all__ = ["BackslashCommand", "CopyLines", "Item", "Scanner", "State", "Statement", "copies_from_stdin"]

_BYTE_ORDER_MARK: Final = "\ufeff"
_ESCAPE_STRING: Final = "\\'"
"""The end of E'…', in which a backslash escapes the next character."""
_BLOCK_COMMENT: Final = "*/"
"""The end of /* … */, which can be nested."""


STEPPED: Final = 4 << 10
"""Characters that are read token by token sooner than the pattern of a whole statement is compiled."""


class _Span(Struct):
    """A part of a script in which only its own end is significant: up to the text `closing`, or to that of
    _ESCAPE_STRING or _BLOCK_COMMENT. `state` is the scanner's state within it."""

    closing: str
    state: State
    depth: int = 1

    def skip(self, text: str, position: int) -> int:
        """Return the position behind the end of the span; -1 if it is not in the text."""
        if self.closing == _ESCAPE_STRING:
            end = _end(lexical_rules.ESCAPED_BODY, text, position)
            return end + 1 if text.startswith("'", end) else -1
        if self.closing == _BLOCK_COMMENT:
            for mark in lexical_rules.COMMENT_MARK.finditer(text, position):
                self.depth += 1 if mark.group() == "/*" else -1
                if not self.depth:
                    return mark.end()
            return -1
        # A doubled quote is read as the end of one span and the start of the next.
        end = text.find(self.closing, position)
        return end + len(self.closing) if end >= 0 else -1


class Scanner:
    """Accepts a script in pieces that may end anywhere, and returns complete items. A line is read when it is complete.

    If `commands` is False, a backslash is an ordinary character. With `keeps_data` the data of COPY … FROM STDIN are
    items too.

    After feed() and close(), call read() until it returns nothing. At a command the reader may take() the statement.
    """

    def __init__(self, *, commands: bool = True, keeps_data: bool = False) -> None:
        self._line = 1
        self._commands = commands
        self._base = 0  # characters before the text
        self._keeps_data = keeps_data
        self._partial: list[str] = []  # the beginning of a line
        self._waiting: deque[str] = deque()  # whole lines that have not been processed
        self._text = ""  # lines that are being processed
        self._position = 0  # position in the text at which the next read() begins
        self._counted = 0  # position in the text up to which lines are counted
        self._line_start = 0  # characters before the line
        self._closing = False
        self._completed = False  # whether end_line() has added the last line break
        self._span: _Span | None = None
        self._copies = 0  # COPY statements whose data follow the line, even if another statement has begun on it
        self._in_data = False
        self.unfinished = UnfinishedStatement()
        self.comment_line = 0
        """The line in which the last block comment that state() may report began."""

    @property
    def state(self) -> State:
        """The construct that contains the end of the last complete line; READY if only whitespace and comments are
        pending."""
        if self._in_data:
            return State.COPY_DATA
        if self._span:
            return self._span.state
        if self.unfinished.opened:
            return State.PARENTHESIS
        return self.unfinished.body.state or (State.STATEMENT if self.unfinished.started else State.READY)

    @property
    def since_parenthesis(self) -> int:
        """The characters from the last parenthesis that is open to the end of the last complete line; 0 if none is."""
        opened = self.unfinished.opened
        return self._base - opened[-1] if opened else 0

    @property
    def pending(self) -> str:
        """The text of the unfinished statement, "" if there is none."""
        self.unfinished.parts[:] = ["".join(self.unfinished.parts)]
        return self.unfinished.parts[0]

    def feed(self, piece: str) -> None:
        """Add the next piece of the script."""
        self._completed = False
        end = piece.rfind("\n") + 1
        if end:
            self._waiting.append("".join([*self._partial, piece[:end]]))
            self._partial = []
        if end < len(piece):
            self._partial.append(piece[end:])

    def end_line(self) -> bool:
        """Complete the last line, for a script that does not end with a line break; return whether there was one."""
        if not self._partial:
            return False
        self.feed("\n")
        self._completed = True
        return True

    def close(self) -> None:
        """End the script; this also ends its last statement, which does not need a `;`."""
        if not self._completed:
            self.feed("\n")
        self._closing = True

    def read(self) -> list[Item]:
        """Return the next complete items: up to and including the next command; nothing if more text is needed."""
        items: list[Item] = []
        while self._text or self._begin(items):
            self._scan(items)
            if items and isinstance(items[-1], BackslashCommand):
                return items
        if self._closing:
            self._closing = False
            if self.unfinished.started:
                items.append(self._statement("", terminated=False))
            self._span = None
            if self._keeps_data:
                items += [CopyLines("", self._line, self._base, True, cut=True)] * self._copies
            self._copies, self._in_data = 0, False
        return items

    def _begin(self, items: list[Item]) -> bool:
        """Take the next lines; return whether there are any that are not data."""
        while self._waiting:
            text = self._waiting.popleft()
            if not self._in_data:
                self._text = text
                self._position = 1 if self._base == 0 and text.startswith(_BYTE_ORDER_MARK) else 0
                self._line_start += self._position
                return True
            end = lexical_rules.DATA_END.search(text)
            stop = end.end() if end else len(text)
            if self._keeps_data:
                items.append(CopyLines(text[:stop], self._line, self._base, end is not None))
            self._line += text.count("\n", 0, stop)
            self._base += stop
            self._line_start = self._base
            if end:
                self._copies -= 1
                self._in_data = self._copies > 0
                self._wait(text[stop:])
        return False

    def _wait(self, rest: str) -> None:
        if rest:
            self._waiting.appendleft(rest)

    def _scan(self, items: list[Item]) -> None:
        """Process the text up to the next command, or up to the end of the line of a COPY."""
        text, position = self._text, self._position
        while position < len(text):
            if self._copies:
                line_end = text.index("\n", position) + 1
                self._wait(text[line_end:])
                text = self._text = text[:line_end]
            if not self.unfinished.started and not self._span:
                position = _end(lexical_rules.BETWEEN, text, position)
                fast = len(text) - position > STEPPED
                whole = lexical_rules.whole_statement().match(text, position) if fast else None
                if whole and text[position] not in ".!" and not may_have_body(whole[1]):
                    start, stop = whole.span(1)
                    written = text[start:stop].rstrip(lexical_rules.BLANKS)
                    ending = text[start + len(written) : stop + 1]
                    line = self._line_at(start)
                    offset = self._base + start
                    column = offset - self._line_start + 1
                    items.append(Statement(written, line, offset, True, ending=ending, column=column))
                    position = self._terminated(text, stop + 1, items)
                    continue
            position = self._step(text, position, items)
            if items and isinstance(items[-1], BackslashCommand):
                self._position = position
                return
        self._line_at(position)
        if self.unfinished.started:
            self.unfinished.parts.append(text[self.unfinished.taken : position])
        self._base += position
        self._text = ""
        self._position = self._counted = self.unfinished.taken = 0
        self._in_data = self._copies > 0

    def items(self, piece: str | None) -> Iterator[Item]:
        """feed(), or close() for None, and everything that read() returns, for a reader that never calls take()."""
        if piece is None:
            self.close()
        else:
            self.feed(piece)
        while items := self.read():
            yield from items

    def take(self) -> Statement | None:
        """Remove and return the unfinished statement, which a command ends instead of `;`. None if there is none."""
        return self._statement("", terminated=True) if self.unfinished.started else None

    def return_to(self, mark: UnfinishedStatement) -> None:
        """Continue the unfinished statement as it was at an earlier command; `mark` is a copy of it."""
        self.unfinished = mark.copy()
        self.unfinished.taken = self._position

    def discard_text(self) -> None:
        """Discard the text of the unfinished statement, for a reader that only needs the state."""
        self.unfinished.parts.clear()

    def _line_at(self, position: int) -> int:
        if lines := self._text.count("\n", self._counted, position):
            self._line += lines
            self._line_start = self._base + self._text.rindex("\n", self._counted, position) + 1
        self._counted = position
        return self._line

    def _start(self, position: int) -> None:
        self.unfinished.started = True
        self.unfinished.taken = position
        self.unfinished.line = self._line_at(position)
        self.unfinished.offset = self._base + position
        self.unfinished.column = self.unfinished.offset - self._line_start + 1

    def _terminated(self, text: str, position: int, items: list[Item]) -> int:
        """Process the text after the `;` of the last item: a `&` directly after it belongs to it."""
        last = items[-1]
        if text[position] == "&" and isinstance(last, Statement):
            items[-1] = replace(last, background=True)
            return position + 1
        return position

    def _statement(self, rest: str, *, terminated: bool, sign: str = "") -> Statement:
        whole = "".join([*self.unfinished.parts, rest])
        text = whole.rstrip(lexical_rules.BLANKS)
        now = self.unfinished
        settled = min(now.substituted, len(text))
        # The command that takes it is not part of it; after one within it, the text is no longer that of the script.
        taken = terminated and not sign
        column = 0 if settled or now.escaped or now.left_out > taken else now.column
        foreign = Text(text, now.foreign).part(0, len(text)).foreign if now.foreign else ()
        ending = whole[len(text) :] + sign if sign else ""
        failed, copies = now.has_failed_command, now.copies + now.body.copies_from_stdin
        statement = Statement(
            text, now.line, now.offset, terminated, False, settled, foreign, failed, ending, column, copies
        )
        self._copies += copies if terminated else 0
        self.unfinished = UnfinishedStatement()
        return statement

    def _step(self, text: str, position: int, items: list[Item]) -> int:
        """Process at most one token and return the position after it."""
        if self._span:
            end = self._span.skip(text, position)
            if end < 0:
                return len(text)
            if self._span.closing == _ESCAPE_STRING:
                self.unfinished.joint = QuoteContinuation.CLOSED
            self._span = None
            return end
        start = self._before_token(text, position)
        if start > position or start == len(text):
            return start
        first = text[start]
        if text.startswith("--", start):
            return _end(lexical_rules.LINE, text, start)
        if text.startswith("/*", start):
            self._span = _Span(_BLOCK_COMMENT, State.BLOCK_COMMENT)
            self.comment_line = self._line_at(start)
            self.unfinished.joint = QuoteContinuation.NONE
            return start + 2
        if first == "\\":
            return self._backslash(text, start, items)
        if not self.unfinished.started:
            if first in ".!" and self._commands:
                dotted = lexical_rules.DOTTED.match(text, start)
                if dotted is not None:
                    return self._dotted(text, dotted, items)
            self._start(start)
        return self._token(text, start, first, items)

    def _before_token(self, text: str, position: int) -> int:
        """Skip everything that is not significant."""
        if not self.unfinished.started:
            return _end(lexical_rules.BLANK_OR_SEMICOLON, text, position)
        if self.unfinished.joint is QuoteContinuation.NONE and not self.unfinished.body.watching:
            return _end(lexical_rules.UNTIL_TOKEN, text, position)
        blank = _end(lexical_rules.BLANK, text, position)
        end = _end(lexical_rules.BETWEEN_WORDS, text, blank)
        if end > blank:
            self._break()
        elif self.unfinished.joint is not QuoteContinuation.NONE and blank > position:
            new_line = self.unfinished.joint is QuoteContinuation.NEW_LINE or lexical_rules.LINE_END.search(
                text, position, blank
            )
            self.unfinished.joint = QuoteContinuation.NEW_LINE if new_line else QuoteContinuation.BLANK
        return end

    def _break(self, token: str = "") -> None:
        self.unfinished.joint = QuoteContinuation.NONE
        self.unfinished.body.other(token)

    def _token(self, text: str, start: int, first: str, items: list[Item]) -> int:
        end = start + 1
        match first:
            case "'" if self.unfinished.joint in (QuoteContinuation.CLOSED, QuoteContinuation.NEW_LINE):
                self._span = _Span(_ESCAPE_STRING, State.SINGLE_QUOTE)
            case "'" | '"' | "`":
                self._span = _Span(first, State(first))
            case "$" if tag := lexical_rules.DOLLAR_TAG.match(text, start):
                # Without a second `$` it may be a parameter.
                end = tag.end()
                self._span = _Span(tag[0], State.DOLLAR_QUOTE) if tag[1] else None
            case "(":
                self.unfinished.opened.append(self._base + start)
            case ")" if self.unfinished.opened:
                self.unfinished.opened.pop()
            case ";" if not self.unfinished.opened and not self.unfinished.body.state:
                items.append(self._statement(text[self.unfinished.taken : start], terminated=True, sign=";"))
                return self._terminated(text, start + 1, items)
            case _ if word := lexical_rules.WORD.match(text, start):
                end = word.end()
                if word[0] not in ("e", "E") or text[end] != "'":
                    self.unfinished.joint = QuoteContinuation.NONE
                    self.unfinished.body.word(word[0], len(self.unfinished.opened))
                    return end
                self._span = _Span(_ESCAPE_STRING, State.SINGLE_QUOTE)
                first, end = "", end + 1
        self._break(first)
        return end

    def _backslash(self, text: str, start: int, items: list[Item]) -> int:
        named = lexical_rules.COMMAND.match(text, start) if self._commands else None
        if not named:
            if not self.unfinished.started:
                self._start(start)
            self._break()
            if text[start + 1] not in ";:\\" or not self._commands:
                return start + 1
            if text[start + 1] == ";":
                self.unfinished.end_part()
            self.unfinished.parts.append(text[self.unfinished.taken : start])
            self.unfinished.taken = start + 1
            self.unfinished.escaped = True
            return start + 2
        line_end = text.index("\n", start)
        name, stop = named[1], named.end()
        # Another shell reads the rest of that line, and its backslashes are its own.
        end = line_end if name == "!" else _end(lexical_rules.ARGUMENTS, text, stop)
        if name in {"?", "help"} and lexical_rules.NAMED_COMMAND.fullmatch(text, stop, line_end):
            # The argument may be written as it is typed.
            end = line_end
        items.append(
            BackslashCommand(name, text[stop:end].strip(lexical_rules.BLANKS), self._line_at(start), self._base + start)
        )
        separated = text.startswith("\\\\", end)
        if name == "copy":
            self._copies += copies_from_stdin(f"copy {text[stop:end]}")
        if self.unfinished.started:
            self.unfinished.omit(text[self.unfinished.taken : start], separated=separated)
            self.unfinished.taken = end + 2 if separated else end
        return end + 2 if separated else end

    def _dotted(self, text: str, named: re.Match[str], items: list[Item]) -> int:
        """A command of another shell, which includes the rest of its line."""
        start, stop = named.span()
        line_end = text.find("\n", stop)
        args = text[stop:line_end].strip(lexical_rules.BLANKS).removesuffix(";").rstrip(lexical_rules.BLANKS)
        items.append(BackslashCommand(named[0], args, self._line_at(start), self._base + start))
        return line_end


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


@once_per_statement
def copies_from_stdin(statement: Lexed) -> bool:
    """Whether a COPY … FROM STDIN, whose data follows it, is the last statement of a text or on its last line."""
    if "stdin" not in statement.text.lower():
        return False
    scanner = Scanner(commands=False)
    _ = [*scanner.items(f"{statement.text}\n;\n")]
    return scanner.state is State.COPY_DATA
