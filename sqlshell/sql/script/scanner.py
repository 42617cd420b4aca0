"""Splits scripts into statements and backslash commands, piece by piece, with psql's lexical rules.

Each piece of text is processed once: the state is kept from one piece to the next, so that long statements and small
pieces cost no more than their length. Only the unfinished statement is kept. A command neither ends it nor belongs to
it: the reader decides whether a command sends the statement, clears it, or leaves it unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from sqlshell.origin import Text
from sqlshell.sql.analysis.lexed import Lexed, once_per_statement
from sqlshell.sql.script import lexical_rules
from sqlshell.sql.script.bodies import may_have_body
from sqlshell.sql.script.items import BackslashCommand, CopyLines, Item, State, Statement
from sqlshell.sql.script.pieces import Pieces
from sqlshell.sql.script.spans import BlockComment, DollarString, EscapeString, LineComment, Quote, Span
from sqlshell.sql.script.unfinished import QuoteContinuation, UnfinishedStatement

__all__ = ["BackslashCommand", "CopyLines", "Item", "Scanner", "State", "Statement", "copies_from_stdin"]

_LONGEST_WORD: Final = len("application") + 1
_BYTE_ORDER_MARK: Final = "\ufeff"


class Scanner:
    """Accepts a script in pieces that may end anywhere, and returns complete items.

    `line` is the number of the script's first line; if `commands` is False, a backslash is an ordinary character.

    After feed() and close(), call read() until it returns None. At a command the reader may take() the statement.
    """

    def __init__(self, *, line: int = 1, commands: bool = True, keeps_data: bool = False) -> None:
        self._line = line
        self._commands = commands
        self._base = 0  # characters before the text
        self._keeps_data = keeps_data
        self._pieces = Pieces(keeps_data=keeps_data)  # text that has not been processed
        self._text = ""  # text that is being processed
        self._position = 0  # position in the text at which the next read() begins
        self._counted = 0  # position in the text up to which lines are counted
        self._line_start = 0  # characters before the line
        self._closing = False
        self._held: list[str] = []  # text whose meaning depends on the next piece
        self._in_command = False  # the pending text is a backslash command
        self._span: Span | None = None
        self._word = ""  # the start of a word that continues from the last piece
        self._last: Statement | None = None  # a statement whose `;` ended the last piece: a `&` may follow
        self.unfinished = UnfinishedStatement()
        self.comment_line = 0
        """The line in which the last block comment that state() may report began."""

    @property
    def state(self) -> State:
        """The construct that contains the end of the text so far; READY if only whitespace and comments are pending."""
        if self._pieces.in_data:
            return State.COPY_DATA
        if self._in_command:
            return State.COMMAND
        if self._span and self._span.state:
            return self._span.state
        if self.unfinished.depth:
            return State.PARENTHESIS
        return self.unfinished.body.state or (State.STATEMENT if self.unfinished.started or self._held else State.READY)

    @property
    def pending(self) -> str:
        """The text of the unfinished statement, "" if there is none."""
        self.unfinished.parts[:] = ["".join(self.unfinished.parts)]
        undecided = "" if self._in_command or (self._span and not self.unfinished.started) else "".join(self._held)
        return self.unfinished.parts[0] + undecided

    def feed(self, piece: str) -> None:
        """Add the next piece of the script."""
        self._pieces.feed(piece)

    def close(self) -> None:
        """End the script; this also ends its last statement, which does not need a `;`."""
        self._pieces.feed("\n")
        self._closing = True

    def read(self) -> list[Item]:
        """The next complete items: up to and including the next command; nothing if more text is needed."""
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
                items += [CopyLines("", self._line, self._base, True, cut=True)] * self._pieces.copies
            self._pieces.end()
            self._word = ""
            self._held.clear()
        return items

    def _begin(self, items: list[Item]) -> bool:
        """Whether there is text to process."""
        piece = self._pieces.take()
        for text, last in self._pieces.kept:
            items.append(CopyLines(text, self._line, self._base, last))
        self._line += self._pieces.lines
        self._base += self._pieces.skipped
        if self._pieces.lines:
            self._line_start = self._base
        if self._in_command and "\n" not in piece:
            self._held.append(piece)
            self._pieces.note_processed(piece)
            return bool(piece) and self._begin(items)
        self._text = "".join([*self._held, piece]) if piece else ""
        if self._text:
            self._held.clear()
            self._in_command = False
            self._counted = self.unfinished.taken = 0
            self._position = 1 if self._base == 0 and self._text.startswith(_BYTE_ORDER_MARK) else 0
            self._line_start += self._position
        return bool(self._text)

    def _scan(self, items: list[Item]) -> None:
        """Process the text up to the next command, or up to the end of a COPY whose line is not complete."""
        text, position = self._text, self._position
        if self._last is not None:
            items.append(self._last)
            self._last = None
            position = self._terminated(text, position, items)
        while position < len(text):
            if self._pieces.must_return:
                self._pieces.give_back(text[position:])
                break
            if not self.unfinished.started and not self._span:
                position = _end(lexical_rules.BETWEEN, text, position)
                whole = lexical_rules.whole_statement().match(text, position)
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
            gone_to = self._step(text, position, items)
            if gone_to is None:
                self._held.append(text[position:])
                break
            position = gone_to
            if items and isinstance(items[-1], BackslashCommand):
                self._position = position
                return
        if position == len(text):
            self._pieces.note_processed(text)
        self._used_up(position)

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

    def _used_up(self, position: int) -> None:
        self._line_at(position)
        if self.unfinished.started:
            self.unfinished.parts.append(self._text[self.unfinished.taken : position])
        self._base += position
        self._text = ""
        self._position = self._counted = self.unfinished.taken = 0

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
        self._pieces.copies += copies if terminated else 0
        self.unfinished = UnfinishedStatement()
        return statement

    def _step(self, text: str, position: int, items: list[Item]) -> int | None:
        """Process at most one token and return the position after it; None if more text is needed."""
        if self._span:
            stop, closed = self._span.skip(text, position)
            if closed:
                self.unfinished.joint = (
                    QuoteContinuation.CLOSED if isinstance(self._span, EscapeString) else self.unfinished.joint
                )
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
        if first in ".!" and not self.unfinished.started and self._commands and "\n" not in text[start:]:
            self._in_command = True
            return None
        if text.startswith("--", start):
            self._span = LineComment()
            return start + 2
        if text.startswith("/*", start):
            self._span = BlockComment()
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
        match first:
            case "'" if self.unfinished.joint in (QuoteContinuation.CLOSED, QuoteContinuation.NEW_LINE):
                self._span = EscapeString()
            case "'" | '"' | "`":
                self._span = Quote(first)
            case "$":
                self._span = DollarString()
            case "(":
                self.unfinished.depth += 1
            case ")":
                self.unfinished.depth = max(0, self.unfinished.depth - 1)
            case ";" if not self.unfinished.depth and not self.unfinished.body.state:
                items.append(self._statement(text[self.unfinished.taken : start], terminated=True, sign=";"))
                return self._terminated(text, start + 1, items)
            case _ if lexical_rules.WORD.match(text, start):
                return self._word_on(text, start)
        self._break(first)
        return start + 1

    def _word_on(self, text: str, position: int) -> int:
        """Process a word, or the rest of one that began in an earlier piece."""
        end = _end(lexical_rules.WORD_REST, text, position)
        word = self._word + text[position : min(end, position + _LONGEST_WORD)]
        if end == len(text):
            self._word = word[:_LONGEST_WORD]
            return end
        self._word = ""
        if word in ("e", "E") and text[end] == "'":
            self._break()
            self._span = EscapeString()
            return end + 1
        self.unfinished.joint = QuoteContinuation.NONE
        self.unfinished.body.word(word, self.unfinished.depth)
        return end

    def _backslash(self, text: str, start: int, items: list[Item]) -> int | None:
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
        line_end = text.find("\n", start)
        if line_end < 0:
            self._in_command = True
            return None
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
            self._pieces.copies += copies_from_stdin(f"copy {text[stop:end]}")
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
