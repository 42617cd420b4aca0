"""Runs scripts: text that arrives in chunks in, statements and commands out, in order."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from sqlshell.errors import (
    CannotResume,
    ConnectionFailed,
    Exit,
    Interrupted,
    NotAuthenticated,
    ShellError,
    StatementError,
    Unread,
    Unreadable,
    UsageError,
)
from sqlshell.origin import EMPTY, Own
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.running.failures import AlreadyReported, Failures, cause_of
from sqlshell.shell.running.item_runner import ItemRunner
from sqlshell.shell.running.submitting import Submitter
from sqlshell.shell.scripts.inline_copy import InlineCopy
from sqlshell.shell.scripts.reading import next_chunk, read_script, relative_to_script, skipped_message
from sqlshell.shell.scripts.script_place import ScriptPlace
from sqlshell.sql.script.scanner import BackslashCommand, Item, State

DEEPEST_INCLUDE = 50
NOT_CONNECTED = (ConnectionFailed, NotAuthenticated)
"""Errors of \\c, which changes nothing if it fails."""


class ScriptRunner:
    """Runs scripts, and the scripts that they include."""

    def __init__(
        self, components: ShellComponents, items: ItemRunner, submitter: Submitter, copy: InlineCopy, failures: Failures
    ) -> None:
        self._components = components
        self._buffer = components.buffer
        self._position = components.position
        self._items = items
        self._submitter = submitter
        self._copy = copy
        self._failures = failures
        self._leaving = False
        self._ended_by: ShellError | None = None
        """The error that ended the last script before its end."""

    def read(self, path: Own) -> Iterator[Own]:
        """The text of a script in chunks, `-` for stdin. Raises UsageError if it cannot be read or is not text."""
        return read_script(path, self._components.streams.stdin)

    async def run(
        self,
        chunks: Iterable[Own],
        name: str,
        *,
        stop: bool | None = None,
        typed: bool = False,
        send: bool = True,
        words: tuple[Own, ...] | None = None,
    ) -> bool:
        """Run a script that arrives in chunks of text; `name` is used in its errors. False if the shell should exit.

        A \\q ends only the script, unless the user `typed` it.

        With `stop`, or according to on_error (None), a failure ends the script; a lost connection and an interruption
        always do. Errors are reported, and the first exit code is kept in `exit`. The end of the script also sends its
        last statement. A `typed` text continues the previous one, and its rest is sent only with `send`. `words` are
        the arguments of the script's only command, which are not parsed.
        """
        depth = self._components.conditions.depth
        buffer = contextlib.nullcontext() if typed else self._buffer.separate()
        command_text = chunks[0] if isinstance(chunks, list) and not name else None
        data = contextlib.nullcontext() if typed else self._copy.of_script(command_text)
        place = contextlib.nullcontext() if typed else self._showing_place(chunks, name)
        with buffer, data, place, self._position.within(name), self._failures.stopping_on_failure(stop):
            try:
                continues = await self._run_chunks(chunks, name, send=send, words=words)
                if self._leaving:
                    return not typed
                if continues is None and not typed:
                    self._close_conditions(depth)
                return continues is not False
            finally:
                await self._submitter.end_batch()
                self._leaving = False
                if not typed:
                    with contextlib.suppress(UsageError):
                        self._components.conditions.close(depth)

    @contextlib.contextmanager
    def _showing_place(self, chunks: Iterable[Own], name: str) -> Iterator[None]:
        """Inside the block, a terminal shows which statement of this script runs; not those of included scripts."""
        progress = self._components.front_end.progress
        if not progress.live or progress.script is not None or self._components.session.interactive:
            yield
            return
        progress.script = ScriptPlace.of(chunks, name)
        try:
            yield
        finally:
            progress.script = None
            progress.hide()

    async def include(self, path: Own, *, relative: bool = False) -> None:
        """Run a script; with `relative`, its name is relative to the current script. Raises AlreadyReported."""
        if relative:
            path = relative_to_script(self._position.script, path)
        if len(self._position.scripts) > DEEPEST_INCLUDE:
            raise UsageError(
                f"{path}: scripts are nested more than {DEEPEST_INCLUDE} levels deep",
                "check whether the script includes itself",
            )
        chunks = self.read(path)
        # If the file cannot be opened, the error belongs to the including script.
        first = next(chunks, EMPTY)
        with self._failures.separate_exit_code():
            self._ended_by = None
            await self.run(itertools.chain([first], chunks), path)
            failed, ended_by = self._failures.exit, self._ended_by
        if failed != Exit.DONE:
            raise AlreadyReported(failed, ended_by)

    def leave(self) -> None:
        """End the running script; for typed text, exit the shell."""
        self._leaving = True

    def _close_conditions(self, depth: int) -> None:
        try:
            self._components.conditions.close(depth)
        except UsageError as error:
            self._failures.report(error)

    async def _run_chunks(
        self, chunks: Iterable[Own], name: str, *, send: bool, words: tuple[Own, ...] | None
    ) -> bool | None:
        """None at the end of the script; before it, whether the shell continues."""
        arriving = iter(chunks)
        at_end = False
        while not at_end:
            # Reading may block: first process what is due on the event loop, such as an interruption.
            await asyncio.sleep(0)
            try:
                chunk = await self._next_chunk(arriving)
                at_end = chunk is None and not self._buffer.scanner.end_line()
                if chunk is not None:
                    self._buffer.scanner.feed(chunk)
                elif at_end and (send or self._buffer.ends_by_variable()):
                    self._end_last_statement()
            except ShellError as error:
                self._failures.report(error)
                return True
            while items := self._buffer.scanner.read():
                for number, item in enumerate(items):
                    item = item if words is None else _with_words(item, words)
                    self._position.at(item.line)
                    try:
                        await self._submitter.start_batch(items, number, stop=self._failures.stopping)
                        await self._items.run(item)
                    except ShellError as error:
                        self._failures.report(error)
                        if isinstance(error, Unread):
                            return False
                        ends = self._failures.ends_script(error)
                        self._abandon_unfinished(item, warns=not ends)
                        if ends:
                            # After a \c that failed, the script that includes this one is still where it was.
                            self._ended_by = None if error.misplaces_rest else error
                            ran = await self._submitter.end_batch()
                            self._skip(items[number + 1 + ran :], arriving, name, item, error)
                            interactive = self._components.session.interactive
                            return interactive or not isinstance(cause_of(error), Interrupted | CannotResume)
                    if self._leaving:
                        return True
        return None

    async def _next_chunk(self, arriving: Iterator[Own]) -> Own | None:
        """The next part of the script; None at its end. Raises ShellError."""
        if self._components.session.state.background.running_count:
            chunk = await next_chunk(arriving)
        else:
            chunk = next(arriving, None)
        place = self._components.front_end.progress.script
        if chunk is not None and place is not None and len(self._position.scripts) == 1:
            place.arrived(chunk)
        return chunk

    def _end_last_statement(self) -> None:
        """The script ends: its last statement needs no `;`. Raises StatementError if the end cuts it off."""
        scanner = self._buffer.scanner
        if self._components.at_prompt and scanner.unfinished.has_failed_command:
            return
        if (cut_off := self._unterminated()) is not None:
            raise cut_off
        scanner.close()

    def _skip(self, items: Sequence[Item], arriving: Iterable[Own], name: str, failed: Item, error: ShellError) -> None:
        """A failure ends the script: discard `items` and the rest, and report what was not run."""
        if isinstance(error, Unreadable):
            # The rest may be data.
            self._buffer.clear()
            return
        with self._keeping_unfinished(failed, error):
            waits = name == "stdin"
            if left := skipped_message(self._buffer.scanner, items, () if waits else arriving, surely=not waits):
                self._components.diagnostics.warn(left)
            self._buffer.clear()

    def _unterminated(self) -> StatementError | None:
        """The error of a statement that the end of the script would cut off, or of statements in a comment that it
        cuts off. If statements run, the service reports the former.
        """
        scanner = self._buffer.scanner
        started = scanner.unfinished.started
        in_comment = scanner.state is State.BLOCK_COMMENT and not started
        if not self._components.conditions.active or not (in_comment or self._components.modes.dry_run):
            return None
        from sqlshell.shell.running.dry_run import unterminated

        error = unterminated(scanner.state)
        if error is not None:
            self._position.at(scanner.comment_line if in_comment else scanner.unfinished.line or self._position.line)
            if in_comment:
                error.hint, error.in_command = "the text after /* was not run; end the comment with */", True
            self._buffer.clear()
        return error

    def _abandon_unfinished(self, item: Item, *, warns: bool) -> None:
        """A command failed: the statement that it would have sent goes back to the user, or is discarded.

        A statement that the command would have left unchanged is not sent at the end of the script. `warns`: warn the
        user of a statement that is discarded.
        """
        unfinished = self._buffer.scanner.unfinished
        if not isinstance(item, BackslashCommand) or not unfinished.started:
            return
        command = self._items.command(item)
        if self._components.at_prompt or command is None or not command.sends_with(item.args):
            unfinished.has_failed_command = True
        else:
            self._buffer.scanner.take()
            if warns:
                self._components.diagnostics.warn(f"the unfinished statement before \\{item.name} was discarded")

    @contextlib.contextmanager
    def _keeping_unfinished(self, item: Item, error: ShellError) -> Iterator[None]:
        """Inside the block, the statement around a command that could not connect at the prompt is set aside."""
        scanner = self._buffer.scanner
        kept = scanner.unfinished.copy()
        keeps = self._components.at_prompt and isinstance(item, BackslashCommand) and isinstance(error, NOT_CONNECTED)
        if not keeps or not kept.started:
            yield
            return
        # The end of the command's line.
        kept.parts.append("\n")
        scanner.take()
        yield
        self._buffer.scanner.return_to(kept)


def _with_words(item: Item, words: tuple[Own, ...]) -> Item:
    """A command with arguments that are not parsed; any other item as it is."""
    if not isinstance(item, BackslashCommand):
        return item
    from sqlshell.shell.commands.command import quoted_word

    return replace(item, args=" ".join(map(quoted_word, words)), words=words)
