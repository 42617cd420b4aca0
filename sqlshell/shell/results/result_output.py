"""The destination of results: the terminal, a file or a command, and the format."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, TextIO

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.client.statements.client import Observer
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import ShellError
from sqlshell.interface.types import Kind
from sqlshell.origin import EMPTY, Trusted
from sqlshell.output.copy import copy
from sqlshell.output.sinks.sink import OutputClosed, Sink, StreamSink
from sqlshell.output.text.cells import printable
from sqlshell.output.text.lines import folded
from sqlshell.output.writer import Role, Summary, Writer, WriterOptions, written
from sqlshell.output.writers.column_names import warn_of_names
from sqlshell.output.writers.formats import (
    Format,
    format_named,
)
from sqlshell.result import Column, Result, Rows
from sqlshell.runtime.streams import forces_colors
from sqlshell.shell.front_end import FrontEnd
from sqlshell.shell.results.format_choice import FormatChoice
from sqlshell.shell.running.statement import Running
from sqlshell.shell.session import Session
from sqlshell.sql.analysis.kinds import verb
from sqlshell.text import format_count

if TYPE_CHECKING:
    from sqlshell.output.copy_format import CopyFormat
    from sqlshell.sql.analysis.lexed import Lexed


class Destination(Struct):
    """A place that results share: its sink, the format by the extension of its file, and how many results it got."""

    sink: Sink
    form: Format | None = None
    results: int = 0


class ResultOutput:
    """Writes results one after another. `screen` creates a sink for a result on stdout: unbounded or not, scrollable or
    not.

    `plain` is the sink of `stdout`. A redirection opens its file at once, uses it for all
    results until the next redirection, and renames it to its final name when it ends.
    """

    def __init__(
        self,
        session: Session,
        front_end: FrontEnd,
        diagnostics: Diagnostics,
        screen: Callable[[bool, bool], Sink],
        stdout: TextIO,
        plain: StreamSink,
    ) -> None:
        self._session = session
        self._front_end = front_end
        self._stdout = stdout
        self._plain = plain
        self._diagnostics = diagnostics
        self._formats = FormatChoice(session, diagnostics, stdout)
        self._screen = screen
        self._stdout_results = Destination(plain)
        self._redirected: Destination | None = None
        self._copies: dict[Literal["tee", "log"], Destination] = {}
        """Additional destinations of results."""
        self._once = EMPTY
        self._browse_requested = False
        self._browse_error: ShellError | None = None
        self.reader_left = False
        """Whether the reader of stdout exited before the end of the output."""
        self._partial = False
        """Whether the output is useful although incomplete: rows of an unbounded result arrive only once."""

    @property
    def _shared(self) -> Destination:
        """Where results go unless one of them alone goes elsewhere."""
        return self._redirected or self._stdout_results

    @property
    def exporting(self) -> bool:
        """Whether the next result goes to a file or a command, perhaps as a copy."""
        return self._redirected is not None or bool(self._once) or bool(self._copies)

    @property
    def for_people(self) -> bool:
        """Whether results are currently in a format for the terminal: other text may be printed between them."""
        return not self._once and self._formats.chosen(self._shared.form).for_terminal

    def redirect(self, output: Trusted, *, once: bool = False, as_copy: bool = False) -> None:
        """Send the following results to a file or `|command`; "" is stdout. Raises OutputError.

        `once` applies to the next result only; `as_copy` writes a copy and also shows results.
        """
        if once:
            self.check(output)
            self._once = output
            return
        by_extension = self._formats.by_extension(output)
        if output:
            # \pset insert_table may follow.
            self._formats.chosen(by_extension).factory(replace(self._formats.options(), table="t"))
            self._formats.note_extension(output, by_extension)
        if as_copy:
            try:
                self._end_copy("tee")
            finally:
                if output:
                    self._copies["tee"] = Destination(_open(output), by_extension)
            return
        former, self._redirected = self._redirected, None
        try:
            if former is not None:
                self._written(former.sink)
        finally:
            # The command of the former output may have failed.
            self._stdout_results.results = 0
            self._partial = self._partial and "tee" in self._copies
            if output:
                self._redirected = Destination(_open(output), by_extension)

    def check(self, output: Trusted, form: CopyFormat | None = None, *, past_redirection: bool = False) -> None:
        """Refuse an output that cannot receive results, before there are any: a file, `|command`, or "" for stdout.
        `form` is the format of a COPY. Raises UsageError and OutputError."""
        if output:
            from sqlshell.output.sinks.command import check_output_to

            check_output_to(output)
        if form is not None:
            self._formats.check(form.format, shown=not output and (past_redirection or self._redirected is None))
        elif output:
            self._formats.check(self._formats.chosen(self._formats.by_extension(output)), shown=False)

    def check_next(self, statement: Lexed | None = None, output: Trusted = EMPTY) -> None:
        """Raise the error that rows of the next statement would meet, before it is sent; not for a `statement` that
        returns none. Without one, several results are expected. Raises UsageError and OutputError."""
        once = output or self._once
        chosen = self._formats.chosen(self._formats.by_extension(once) if once else self._shared.form)
        tee = self._copies.get("tee")
        copied = None if tee is None else tee.form or chosen
        if chosen.for_terminal and (copied is None or copied.for_terminal):
            return
        try:
            several = 1 if statement is not None else 2
            if not once:
                self._formats.check_several(chosen, self._shared.results + several, warns=False)
            self._formats.check(chosen, shown=not once and self._redirected is None)
            if tee is not None and copied is not None:
                self._formats.check_several(copied, tee.results + several, warns=False)
                self._formats.check(copied, shown=False)
        except ShellError:
            from sqlshell.sql.analysis.effects import first_without_rows

            if statement is None or not first_without_rows(statement):
                raise

    @property
    def takes_several(self) -> bool:
        """Whether the rows of several statements can be written."""
        try:
            self.check_next()
        except ShellError:
            return False
        return True

    async def show(
        self,
        result: Result,
        *,
        expanded: bool = False,
        output: Trusted = EMPTY,
        form: CopyFormat | None = None,
        past_redirection: bool = False,
    ) -> Summary:
        """Write one result. `output` sends only this one elsewhere, `past_redirection` to stdout. `form` is the format
        of a COPY. Raises OutputError and the errors of the batches.
        """
        if not past_redirection:
            output, self._once = output or self._once, EMPTY
        redirected = None if output or past_redirection else self._redirected
        by_extension = self._formats.by_extension(output) if output and form is None else None
        place = redirected.form if redirected is not None else by_extension
        format_ = self._formats.chosen(place, expanded) if form is None else form.format
        shown = not output and redirected is None
        if shown and form is None and self._explores(result, format_):
            self._browse_requested = True
            await result.batches.aclose()
            return Summary(result.row_count or 0, True)
        sink = redirected.sink if redirected is not None else None
        if shown:
            sink = self._plain if form is not None else self._opened(result, format_)
        if not output:
            shared = redirected or self._stdout_results
            shared.results += format_.several != "allowed"
            self._formats.check_several(format_, shared.results)
        else:
            self._formats.note_extension(output, by_extension)
        self._formats.check_terminal(format_, shown=shown)
        writer = await self._writer(result, format_, sink, form, expanded=expanded)
        if self._copies:
            result = self._with_copies(result, format_)
        # Opened last: what is refused above must not start a command or create a file.
        sink = sink or _open(output)
        summary = await self._copy(result, writer, sink, one_off=redirected is None)
        if form is not None and form.by_engine and result.changed_rows is not None:
            # A row may have several lines, and a header is not a row.
            summary = replace(summary, rows=result.changed_rows)
        return summary

    def _opened(self, result: Result, format_: Format) -> Sink:
        """The screen for a result, whose pager can open the explorer."""
        sideways = format_.name == "table" and self._session.options.wide == "scroll"
        sink = self._screen(result.endless is not None, sideways)
        can_refetch = self._session.connection.client.can_refetch
        if result.statement_id and can_refetch and result.endless is None and self._front_end.browse is not None:
            sink.offer(partial(self._browse, result.statement_id), _extent(result))
        return sink

    async def _writer(
        self, result: Result, format_: Format, sink: Sink | None, form: CopyFormat | None, *, expanded: bool
    ) -> Writer:
        """The writer of a result for a sink, None for one that is not open. Raises UsageError."""
        if format_.distinct_names and (form is None or form.header is not False):
            warn_of_names(result.columns, self._diagnostics.warn_here, fold_case=format_.folds_case)
        terminal = sink is not None and sink.terminal
        paint = self._front_end.paint if terminal or forces_colors(os.environ) else None
        if self._session.options.insert_table:
            await self._formats.find_engine()
        options = self._formats.shown_options(format_, paint, expanded and form is None, terminal=terminal)
        self._partial = self._partial or result.endless is not None
        if sink is not None and result.endless is not None and format_.name == "table" and live(self._session, sink):
            options = replace(options, layout="live")
        elif options.screen is not None and format_.name == "table" and self._is_plan(result):
            options = replace(options, layout="plan")
        return format_.factory(form.options(options) if form is not None else options)

    def _is_plan(self, result: Result) -> bool:
        """Whether a result is the plan of an EXPLAIN."""
        running = self._session.running
        texts = all(column.kind is Kind.TEXT for column in result.columns)
        return running is not None and texts and verb(running.statement) == "EXPLAIN"

    async def program_options(self) -> WriterOptions:
        """The options of results that are not shown on a screen."""
        await self._formats.find_engine()
        return self._formats.options()

    async def _copy(self, result: Result, writer: Writer, sink: Sink, *, one_off: bool) -> Summary:
        """Write all rows, and close a sink for this result alone. What was written of a result that fails is
        discarded, unless it is unbounded. Raises OutputError and the errors of the batches.
        """
        sink.freeze(lambda: writer.look)
        endless = result.endless is not None
        fetching = self._fetching(result, sink)
        try:
            with self._front_end.hiding_input() if endless and live(self._session, sink) else contextlib.nullcontext():
                # A copy is whole, also if the reader of the screen leaves.
                to_end = bool(self._copies) and not endless
                received = fetching.received if fetching is not None else None
                summary = await copy(result, writer, sink, received, to_end=to_end)
            sink.mark()
        except BaseException:
            if one_off:
                sink.close() if endless else sink.abort()
            elif not endless:
                sink.rewind()
            raise
        finally:
            if fetching is not None:
                self._front_end.progress.hide()
        if one_off:
            sink.close()
        self._note_reader(sink, read=summary.complete)
        if self._browse_error is not None:
            # Before, the pager would have covered it.
            self._diagnostics.error(self._browse_error)
            self._browse_error = None
        look = writer.look
        if look.shortened and (self._session.running is None or not self._session.interactive):
            them = "it" if look.shortened == 1 else "them"
            truncated = format_count(look.shortened, "value")
            self._diagnostics.note(f"{truncated} truncated; use \\pset maxwidth 0 to show {them} in full", always=True)
        if look.left_out and (self._session.running is None or not self._session.interactive):
            count = format_count(look.left_out, "column")
            self._diagnostics.note(f"{count} left out; use \\x or \\pset wide fold to show all", always=True)
        waited = sink.waited if one_off else 0.0
        return replace(summary, look=look, waited=waited)

    def _explores(self, result: Result, format_: Format) -> bool:
        """Whether a result at the prompt has too many columns for a table, and can be opened in the explorer."""
        options = self._session.options
        return (
            0 < options.browse <= len(result.columns)
            and format_.name == "table"
            and options.wide != "fold"
            and result.endless is None
            and self._session.running is not None
            and self._front_end.browse is not None
            and self._session.connection.client.can_refetch
        )

    async def _browse(self, statement_id: str) -> None:
        """Open a result in the explorer while the pager that shows it waits."""
        browse = self._front_end.browse
        fetched = self._session.connection.client.fetch(statement_id, self._session.context, Observer())
        try:
            async with contextlib.aclosing(fetched):
                async for result in fetched:
                    if result.columns and browse is not None:
                        await browse(result)
        except ShellError as error:
            self._browse_error = error

    def _fetching(self, result: Result, sink: Sink) -> Running | None:
        """Show that rows are fetched, if they go to a file: a terminal shows them, and so may a command."""
        running, progress = self._session.running, self._front_end.progress
        if running is None or not progress.live:
            return None
        shares_screen = sink.shares_terminal or sink.blocking or (sink is self._plain and self.piped)
        if shares_screen or result.endless is not None:
            progress.clear()
            return None
        running.begin_fetching(result.row_count)
        progress.show(running)
        return running

    def print(self, text: str, *, with_results: bool = False, own: bool = False, folds: bool = False) -> bool:
        """Write a text to stdout, or to the output of results; only `own` text may contain control sequences. `folds`
        wraps it between words at a terminal. Raises OutputError.

        Returns False if the reader has exited.
        """
        self._front_end.progress.clear()
        screen = StreamSink(self._stdout.buffer)
        redirected = self._redirected.sink if self._redirected and with_results else None
        if redirected is None and not own and self._stdout.isatty():
            text = printable(text, "\n\t")
            text = folded(text, shutil.get_terminal_size().columns) if folds else text
        try:
            (redirected or screen).write(text.encode("utf-8", "replace"))
        except OutputClosed:
            self._note_reader(redirected or screen, read=False)
            return False
        return True

    def take_browse_request(self) -> bool:
        """Whether the last result is to be opened in the explorer; False when asked again."""
        requested, self._browse_requested = self._browse_requested, False
        return requested

    def draw(self, text: str) -> None:
        """Write to the terminal, including control sequences."""
        self._front_end.progress.clear()
        self._stdout.write(text)
        self._stdout.flush()

    async def page(self, text: str) -> None:
        """Show a text on the screen like a result, through the pager if it is taller. Raises OutputError."""
        sink = self._screen(False, False)
        try:
            sink.write(text.encode("utf-8", "replace"))
            if sink.blocking:
                # Reading takes time, and background work continues.
                await asyncio.to_thread(sink.finish)
        except OutputClosed:
            self._note_reader(sink, read=False)
        sink.close()

    def _note_reader(self, sink: Sink, *, read: bool) -> None:
        self.reader_left = self.reader_left or (not read and isinstance(sink, StreamSink))

    @property
    def piped(self) -> bool:
        """Whether rows go to a reader that may exit before their end."""
        if self._redirected is not None:
            return False
        try:
            return stat.S_ISFIFO(os.fstat(self._stdout.fileno()).st_mode)
        except (OSError, ValueError):
            return False

    def screen_for(self, result: Result) -> Sink:
        """The sink in which a result would be shown."""
        return self._redirected.sink if self._redirected else self._screen(True, False)

    def rendered_table(self, columns: Sequence[Column], rows: Rows, changed: frozenset[tuple[int, int]]) -> str:
        """A table as text, with the cells of `changed` (row, column) highlighted; records if it is too wide."""
        format_ = self._formats.chosen()
        format_ = format_ if format_.for_terminal else format_named("table")
        options = self._formats.shown_options(format_, self._front_end.paint or _reversed, terminal=True)
        return written(format_.factory(replace(options, changed=changed)), columns, rows).decode("utf-8", "replace")

    def close(self) -> bool:
        """Finish redirections; returns False if one is a file that received no result. Raises OutputError."""
        with contextlib.ExitStack() as ends:
            # If one copy cannot be ended, the others are ended nevertheless.
            for name in self._copies:
                ends.callback(self._end_copy, name)
            former, self._redirected = self._redirected, None
            return former is None or self._written(former.sink)

    def _written(self, sink: Sink) -> bool:
        """Finish a sink. A file that would be empty is not changed; then returns False. Raises OutputError."""
        if sink.unused:
            sink.abort()
            self._diagnostics.warn(f"{sink.name} was not written: no statement returned a result")
            return False
        sink.close()
        return True

    def abort(self) -> None:
        """Leave a redirected file unchanged, unless rows of an unbounded result would be lost."""
        copied = self._copies.pop("tee", None)
        if copied is not None:
            copied.sink.close() if self._partial else copied.sink.abort()
        self._end_copy("log")
        if self._partial:
            self.close()
            return
        former, self._redirected = self._redirected, None
        if former is not None:
            former.sink.abort()

    def log(self, path: Trusted) -> None:
        """Append statements and results to a file; "" stops. Raises OutputError."""
        self._end_copy("log")
        if path:
            from sqlshell.output.sinks.file import AppendSink

            self._copies["log"] = Destination(AppendSink(path), format_named("table"))

    @property
    def logging(self) -> bool:
        return "log" in self._copies

    def note(self, text: str) -> None:
        """Write a text only to the log."""
        if self.logging:
            self._copies["log"].sink.write(printable(text, "\n\t").encode("utf-8", "replace"))

    def _with_copies(self, result: Result, format_: Format) -> Result:
        from sqlshell.shell.results.rows import CopiedBatches

        for name, place in self._copies.items():
            form = place.form or format_
            if name == "tee":
                place.results += 1
                self._formats.check_several(form, place.results)
            writer = form.factory(self._formats.options())
            result = replace(result, batches=CopiedBatches(result, writer, place.sink))
        return result

    def _end_copy(self, name: Literal["tee", "log"]) -> None:
        if name in self._copies:
            self._written(self._copies.pop(name).sink)


def live(session: Session, sink: Sink) -> bool:
    """Whether rows are shown in a view that is redrawn: on a terminal that supports it."""
    return session.interactive and sink.redraws


def _extent(result: Result) -> str:
    """How many rows a result has, as `12,000 rows`; "" if it is not known."""
    if result.row_count is None:
        return ""
    return f"{'first ' * result.limited}{format_count(result.row_count, 'row')}"


def _reversed(text: str, role: Role) -> str:
    return f"\x1b[7m{text}\x1b[0m" if role == "changed" else text


def _open(output: Trusted) -> Sink:
    # Most results go to stdout.
    from sqlshell.output.sinks.command import output_to

    return output_to(output)
