"""Where results go: the terminal, a file or a command, and in which format."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from msgspec.structs import replace

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import UsageError
from sqlshell.origin import NOWHERE, Own
from sqlshell.output.copy import copy, warn_of_names
from sqlshell.output.sinks import file
from sqlshell.output.sinks.sink import AppendSink, CommandSink, FileSink, OutputClosed, Sink, StreamSink, command_in
from sqlshell.output.text.cells import printable
from sqlshell.output.writer import Role, Summary, Writer, WriterOptions
from sqlshell.output.writers.formats import EXTENSIONS, Format, format_for_path, format_named
from sqlshell.result import Batch, Column, Result, Rows
from sqlshell.shell.front_end import FrontEnd
from sqlshell.shell.session import Options, Session


class Outlet:
    """Writes results one after another. `screen` makes a sink for one on stdout: endless or not, to be scrolled or not.

    A redirection opens its file at once, keeps it for all results until the next, and moves it in place when it ends.
    """

    def __init__(
        self,
        session: Session,
        front_end: FrontEnd,
        diagnostics: Diagnostics,
        screen: Callable[[bool, bool], Sink],
        stdout: TextIO,
    ) -> None:
        self._session = session
        self._front_end = front_end
        self._stdout = stdout
        self._diagnostics = diagnostics
        self._screen = screen
        self._redirected: Sink | None = None
        self._shared = 0
        self._by_ending: Format | None = None
        self.browse = False
        """Whether the person left the pager of the last result for the explorer."""
        self.unread = False
        """Whether the reader of stdout left before the end of what it was given."""
        self._once = NOWHERE
        self._copies: dict[str, tuple[Sink, Format | None]] = {}
        """Where results go besides: what \\tee and \\log opened."""
        self._partial = False
        """Whether what is redirected is of worth as it is: rows of an endless result come once."""

    @property
    def exporting(self) -> bool:
        """Whether results go somewhere else than to the terminal."""
        return self._redirected is not None

    @property
    def for_people(self) -> bool:
        """Whether results are written in a format for people now, so that a text may stand beside them."""
        return not self._once and self._format(expanded=False, by_ending=self._by_ending).audience == "people"

    def redirect(self, output: Own, *, once: bool = False, too: bool = False) -> None:
        """Send the following results to a file or `|command`; "" is stdout. Raises OutputError.

        `once` is for the next result alone, `too` writes a copy there and shows them as well.
        """
        if once:
            self.check(output)
            self._once = output
            return
        by_ending = self.by_ending(output)
        if too:
            self._end_copy("tee")
            if output:
                self._copies["tee"] = _open(output), by_ending
            return
        self.close()
        self._shared = 0
        self._by_ending = None
        self._partial = False
        if output:
            self._redirected = _open(output)
            self._by_ending = by_ending

    def check(self, output: Own) -> None:
        """Refuse what could take no result, before there is one. Raises UsageError and OutputError."""
        self.by_ending(output)
        if output and not output.startswith("|"):
            file.check(output)
        elif output:
            command_in(output)

    def by_ending(self, output: str) -> Format | None:
        """The format that the ending of a file chooses; None for a `|command` and a file without an ending.

        Raises UsageError for an ending that is no format's, unless a format was chosen.
        """
        if not output or output.startswith("|"):
            return None
        found = format_for_path(output)
        options = self._session.options
        ending = Path(output).suffix
        if found is None and ending and not options.format_chosen and options.format == Options().format:
            raise UsageError(
                f"{output}: unknown file extension {ending}",
                f"extensions: {' '.join(EXTENSIONS)}; for other names set the format with --format or \\format",
            )
        return found

    async def show(self, result: Result, *, expanded: bool = False, output: Own = NOWHERE) -> Summary:
        """Write one result. `output` sends this one alone elsewhere. Raises OutputError and what the batches raise."""
        once, self._once = self._once, NOWHERE
        output = output or once
        if output:
            by_ending = self.by_ending(output)
            sink, form, one_off = _open(output), self._format(expanded, by_ending), True
        elif self._redirected is not None:
            sink, form, one_off = self._redirected, self._format(expanded, self._by_ending), False
        else:
            form, one_off = self._format(expanded, None), True
            sideways = form.name == "table" and self._session.options.wide == "scroll"
            sink = self._screen(result.endless is not None, sideways)
        if not form.concatenates and not output:
            self._shared += 1
            if self._shared == 2:
                self._diagnostics.warn_here(f"several results in one {form.name} output: use jsonl or csv")
        self._partial = self._partial or result.endless is not None
        if form.audience == "programs":
            warn_of_names(result, self._diagnostics.warn_here)
        looks = self._looks(self._front_end.paint if sink.terminal else None)
        writer = self._writer(form, looks, sink, expanded=expanded)
        if result.endless is not None and form.name == "table" and live(self._session, sink):
            from sqlshell.output.sinks.live import LiveTableWriter

            writer = LiveTableWriter(looks)
        shaped = writer = self._shaped(writer, form, result.columns)
        if self._copies:
            result = self._with_copies(result, form)
        try:
            summary = await copy(result, writer, sink)
        except BaseException:
            if one_off:
                sink.close() if result.endless is not None else sink.abort()
            elif result.endless is None and isinstance(sink, FileSink):
                sink.rewind()
            raise
        if isinstance(sink, FileSink):
            sink.mark()
        if one_off:
            sink.close()
        self._note_reader(sink, read=summary.complete)
        self.browse = getattr(sink, "browse", False)
        self._tell_shortened(shaped)
        return replace(summary, waited=getattr(sink, "waited", 0.0)) if one_off else summary

    def print(self, text: str, *, with_results: bool = False, own: bool = False) -> bool:
        """Write a text on stdout, or where results go; only `own` text may steer a terminal. Raises OutputError.

        False where nobody reads it any more.
        """
        screen = StreamSink(self._stdout.buffer)
        redirected = self._redirected if with_results else None
        if redirected is None and not own and self._stdout.isatty():
            text = printable(text, "\n\t")
        try:
            (redirected or screen).write(text.encode("utf-8", "replace"))
        except OutputClosed:
            self._note_reader(redirected or screen, read=False)
            return False
        return True

    def draw(self, text: str) -> None:
        """Write to the terminal as it stands, with what steers it."""
        self._stdout.write(text)
        self._stdout.flush()

    async def page(self, text: str) -> None:
        """Show a text on the screen as a result would be, through the pager where it is taller. Raises OutputError."""
        sink = self._screen(False, False)
        try:
            sink.write(text.encode("utf-8", "replace"))
            if sink.blocking:
                # A person reads for long, and what runs in the background goes on.
                await asyncio.to_thread(sink.finish)
        except OutputClosed:
            self._note_reader(sink, read=False)
        sink.close()

    def _note_reader(self, sink: Sink, *, read: bool) -> None:
        self.unread = self.unread or (not read and isinstance(sink, StreamSink))

    @property
    def piped(self) -> bool:
        """Whether rows go to a reader who may leave before their end."""
        if self._redirected is not None:
            return False
        try:
            return stat.S_ISFIFO(os.fstat(self._stdout.fileno()).st_mode)
        except (OSError, ValueError):
            return False

    def screen_for(self, result: Result) -> Sink:
        """Where a result would be shown."""
        return self._redirected or self._screen(True, False)

    def drawn(self, columns: Sequence[Column], rows: Rows, changed: frozenset[tuple[int, int]]) -> str:
        """A table as text, the cells of `changed` (row, column) marked."""
        form = self._format(expanded=False, by_ending=None)
        form = form if form.audience == "people" else format_named("table")
        writer = form.factory(replace(self._looks(self._front_end.paint or _reversed), changed=changed))
        batch = Batch(len(columns), rows=rows)
        summary = Summary(len(rows), True)
        chunks = [*writer.begin(columns), *writer.write(batch), *writer.end(summary)]
        return b"".join(chunks).decode("utf-8", "replace")

    def close(self) -> bool:
        """Finish what is redirected; False where that is a file that no result was written to. Raises OutputError."""
        for name in list(self._copies):
            self._end_copy(name)
        sink, self._redirected = self._redirected, None
        return sink is None or self._written(sink)

    def _written(self, sink: Sink) -> bool:
        """Finish a sink. A file that would have nothing in it stays as it was, which is False. Raises OutputError."""
        if isinstance(sink, FileSink) and sink.unused:
            sink.abort()
            self._diagnostics.warn(f"{sink.name} was not written: no statement returned a result")
            return False
        sink.close()
        return True

    def abort(self) -> None:
        """Leave a redirected file as it was before, unless rows of an endless result would be lost."""
        copied = self._copies.pop("tee", None)
        if copied is not None:
            copied[0].close() if self._partial else copied[0].abort()
        self._end_copy("log")
        if self._partial:
            self.close()
            return
        sink, self._redirected = self._redirected, None
        if sink is not None:
            sink.abort()

    def _writer(self, form: Format, looks: WriterOptions, sink: Sink, *, expanded: bool) -> Writer:
        """The writer of a format; tables that are too wide for a terminal become what is set."""
        options = self._session.options
        if form.name == "table" and sink.terminal and (options.expanded == "auto" or options.wide == "fold"):
            from sqlshell.output.text.binary import HexWriter
            from sqlshell.output.writers.fitting import AutoWriter, FoldWriter

            width = shutil.get_terminal_size().columns
            # Folding is never a default: who asks for it gets it.
            return HexWriter(FoldWriter(looks, width) if options.wide == "fold" else AutoWriter(looks, width))
        return form.factory(looks)

    def _shaped(self, writer: Writer, form: Format, columns: Sequence[Column]) -> Writer:
        """The writer with what is done to values for people; itself where nothing is."""
        options, zone = self._session.options, self._session.context.timezone
        nested = form.name == "vertical" and not all(column.kind.numeric for column in columns)
        asked = options.maxwidth or options.numericlocale or nested
        if form.audience != "people" or not (asked or any("TIMESTAMP" in column.type for column in columns)):
            return writer
        from sqlshell.output.text.display_format import DisplayFormat, DisplayWriter, locale_grouping

        grouping = locale_grouping() if options.numericlocale else None
        return DisplayWriter(writer, DisplayFormat(options.maxwidth, grouping, zone, form.name == "vertical"))

    def _tell_shortened(self, writer: Writer) -> None:
        count = getattr(writer, "shortened", 0)
        if count:
            what = "1 cell" if count == 1 else f"{count:,} cells"
            self._diagnostics.say(f"{what} shortened; \\pset maxwidth 0 shows all")

    def _looks(self, paint: Callable[[str, Role], str] | None) -> WriterOptions:
        options = self._session.options
        return WriterOptions(options.null, options.table_style, options.header, paint)

    def log(self, path: Own) -> None:
        """Write statements and results behind what a file has; "" ends it. Raises OutputError."""
        self._end_copy("log")
        if path:
            self._copies["log"] = AppendSink(path), format_named("table")

    @property
    def logging(self) -> bool:
        return "log" in self._copies

    def note(self, text: str) -> None:
        """Something for the log alone."""
        if self.logging:
            self._copies["log"][0].write(printable(text, "\n\t").encode("utf-8", "replace"))

    def _with_copies(self, result: Result, form: Format) -> Result:
        from sqlshell.shell.results.copied import Copied

        for sink, own in self._copies.values():
            writer = (own or form).factory(self._looks(None))
            result = replace(result, batches=Copied(result, writer, sink))
        return result

    def _end_copy(self, name: str) -> None:
        if name in self._copies:
            self._written(self._copies.pop(name)[0])

    def _format(self, expanded: bool, by_ending: Format | None) -> Format:
        options = self._session.options
        chosen = format_named(options.format)
        if by_ending is not None and not options.format_chosen:
            chosen = by_ending
        if (expanded or options.expanded == "on") and chosen.name == "table":
            chosen = format_named("vertical")
        return chosen


def live(session: Session, sink: Sink) -> bool:
    """Whether rows are shown in a view that is drawn over: on a terminal that can."""
    return session.interactive and isinstance(sink, StreamSink) and sink.terminal


def _reversed(text: str, role: Role) -> str:
    return f"\x1b[7m{text}\x1b[0m" if role == "changed" else text


def _open(output: Own) -> Sink:
    if output.startswith("|"):
        return CommandSink(command_in(output))
    return FileSink(output)
