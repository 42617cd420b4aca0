"""Where results go: the terminal, a file or a command, and in which format."""

from __future__ import annotations

from collections.abc import Callable

from sqlshell.diagnostics import Diagnostics
from sqlshell.output.copy import copy, warn_of_names
from sqlshell.output.formats import Format, Summary, WriterOptions, format_for_path, format_named
from sqlshell.output.sink import FileSink, PipeSink, Sink, StreamSink
from sqlshell.result import Result
from sqlshell.shell.session import Session


class Outlet:
    """Writes results one after another. `screen` makes a sink for one result on stdout, an endless one or not.

    A redirection opens its file at once, keeps it for all results until the next, and moves it in place when it ends.
    """

    def __init__(self, session: Session, diagnostics: Diagnostics, screen: Callable[[bool], Sink]) -> None:
        self._session = session
        self._diagnostics = diagnostics
        self._screen = screen
        self._redirected: Sink | None = None
        self._shared = 0
        self._by_ending: Format | None = None
        self._partial = False
        """Whether what is redirected is of worth as it is: rows of an endless result come once."""

    @property
    def exporting(self) -> bool:
        """Whether results go somewhere else than to the terminal."""
        return self._redirected is not None

    def redirect(self, output: str) -> None:
        """Send the following results to a file or `|command`; "" is stdout. Raises OutputError."""
        self.close()
        self._shared = 0
        self._by_ending = None
        self._partial = False
        if output:
            self._redirected = _open(output)
            self._by_ending = format_for_path(output)

    async def show(self, result: Result, *, expanded: bool = False, output: str = "") -> Summary:
        """Write one result. `output` sends this one alone elsewhere. Raises OutputError and what the batches raise."""
        if output:
            sink, form, one_off = _open(output), self._format(expanded, format_for_path(output)), True
        elif self._redirected is not None:
            sink, form, one_off = self._redirected, self._format(expanded, self._by_ending), False
        else:
            sink, form, one_off = self._screen(result.endless is not None), self._format(expanded, None), True
        if not form.concatenates and not output:
            self._shared += 1
            if self._shared == 2:
                self._diagnostics.warn(f"several results in one {form.name} output: jsonl or csv can hold them")
        self._partial = self._partial or result.endless is not None
        if form.audience == "programs":
            warn_of_names(result, self._diagnostics.warn)
        options = self._session.options
        terminal = isinstance(sink, StreamSink) and sink.terminal
        paint = self._session.paint if terminal else None
        looks = WriterOptions(options.null, options.table_style, options.header, paint)
        writer = form.factory(looks)
        if result.endless is not None and form.name == "table" and live(self._session, sink):
            from sqlshell.output.live import LiveTable

            writer = LiveTable(looks)
        try:
            summary = await copy(result, writer, sink)
        except BaseException:
            if one_off:
                sink.close() if result.endless is not None else sink.abort()
            raise
        if one_off:
            sink.close()
        return summary

    def close(self) -> None:
        """Finish what is redirected. Raises OutputError."""
        sink, self._redirected = self._redirected, None
        if sink is not None:
            sink.close()

    def abort(self) -> None:
        """Leave a redirected file as it was before, unless rows of an endless result would be lost."""
        if self._partial:
            self.close()
            return
        sink, self._redirected = self._redirected, None
        if sink is not None:
            sink.abort()

    def _format(self, expanded: bool, by_ending: Format | None) -> Format:
        options = self._session.options
        chosen = format_named(options.format)
        if by_ending is not None and not options.format_chosen:
            chosen = by_ending
        if (expanded or options.expanded) and chosen.name == "table":
            chosen = format_named("vertical")
        return chosen


def live(session: Session, sink: Sink) -> bool:
    """Whether rows are shown in a view that is drawn over: on a terminal that can."""
    return session.interactive and isinstance(sink, StreamSink) and sink.terminal


def _open(output: str) -> Sink:
    if output.startswith("|"):
        return PipeSink(output[1:].strip())
    return FileSink(output)
