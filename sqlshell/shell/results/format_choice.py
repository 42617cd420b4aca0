"""The format of a result, by the options and the extension of its file, and the options of its writer."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TextIO

from msgspec.structs import replace

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import OutputError, ShellError, UsageError
from sqlshell.output.sinks.sink import uncompressed
from sqlshell.output.writer import DisplayFormat, Role, Screen, WriterOptions
from sqlshell.output.writers.formats import EXTENSIONS, Format, check_compression, format_for_path, format_named
from sqlshell.output.writers.styles import AUTO
from sqlshell.runtime.streams import shows_unicode
from sqlshell.shell.options import Options
from sqlshell.shell.session import Session


class FormatChoice:
    """Chooses formats for results, and refuses what cannot be written."""

    def __init__(self, session: Session, diagnostics: Diagnostics, stdout: TextIO) -> None:
        self._session = session
        self._diagnostics = diagnostics
        self._stdout = stdout
        self._engine = ""
        """The engine for which INSERT statements are written, "" for DuckDB."""

    def chosen(self, by_extension: Format | None = None, expanded: bool = False) -> Format:
        """Return the format that was set explicitly, else that of the extension of a file, else the default."""
        options = self._session.options
        chosen = format_named(options.format)
        if by_extension is not None and "format" not in options.chosen:
            chosen = by_extension
        if (expanded or options.expanded == "on") and chosen.name == "table":
            chosen = format_named("vertical")
        return chosen

    def by_extension(self, output: str) -> Format | None:
        """Return the format for the extension of a file; None for a `|command` and a file without an extension.

        Raises UsageError for an unknown extension, unless a format was set, and for a compressed file of a format that
        is compressed already or read at random.
        """
        if not output or output.startswith("|"):
            return None
        form = format_for_path(output)
        options = self._session.options
        ending = Path(uncompressed(output)).suffix
        if form is None and ending and "format" not in options.chosen and options.format == Options().format:
            raise UsageError(
                f"{output}: unknown file extension {ending}",
                f"extensions: {', '.join(EXTENSIONS)}; for other names set the format with --format or \\format",
            )
        check_compression(self.chosen(form), output)
        return form

    def note_extension(self, output: str, form: Format | None) -> None:
        """Say that a format that was set explicitly is not that of the file's extension."""
        chosen = self.chosen(form)
        if form is not None and form.name not in {chosen.name, "table"}:
            self._diagnostics.note(f"{output} is written in the format {chosen.name}, which was set explicitly")

    def check(self, format_: Format, *, shown: bool) -> None:
        """Raise UsageError if the format lacks a package or an option, and OutputError as check_terminal() does."""
        self.check_terminal(format_, shown=shown)
        format_.factory(self.options())

    def check_terminal(self, format_: Format, *, shown: bool) -> None:
        """Raise OutputError for a binary format that is `shown` on a terminal."""
        if format_.binary and shown and self._stdout.isatty():
            raise OutputError(
                f"the {format_.name} format is binary and cannot be shown on a terminal", "write it to a file: -o FILE"
            )

    def check_several(self, format_: Format, count: int, *, warns: bool = True) -> None:
        """Raise OutputError where result number `count` would spoil the output."""
        if count > 1 and format_.several == "refused":
            raise OutputError(
                f"several results cannot share one {format_.name} output", "write each to its own file: \\g FILE"
            )
        if count == 2 and warns and format_.several != "allowed":
            self._diagnostics.warn_here(
                f"the output contains several {format_.name} documents, which many programs cannot read; "
                "use jsonl, or write each to its own file with \\g FILE"
            )

    async def find_engine(self) -> None:
        """Find out for which engine INSERT statements are written."""
        with contextlib.suppress(ShellError):
            if self._session.options.insert_table:
                self._engine = await self._session.connection.service.engine()

    def options(self) -> WriterOptions:
        """Return the options of results that are not for a screen."""
        options = self._session.options
        return WriterOptions(
            options.null,
            options.table_style,
            options.header,
            field_separator=options.fieldsep,
            record_separator=options.recordsep,
            footer=options.footer,
            expanded=options.expanded == "on",
            table=options.insert_table,
            engine=self._engine,
            spreadsheet_safe=options.csv_safe,
        )

    def shown_options(
        self,
        format_: Format,
        paint: Callable[[str, Role], str] | None,
        expanded: bool = False,
        *,
        terminal: bool = False,
    ) -> WriterOptions:
        """Return the options of results that are shown, for a terminal those by which tables fit it."""
        options, screen = self._session.options, None
        made = self.options()
        width = shutil.get_terminal_size().columns if terminal else 0
        # The default at the prompt is for what is read there.
        longest = options.maxwidth if terminal or "maxwidth" in options.chosen else 0
        if terminal and options.table_style == AUTO:
            # The types of a list that the shell has made say nothing.
            types = options.types and self._session.running is not None
            screen = Screen(width, shows_unicode(os.environ), types, cuts=longest > 0)
        layout: Literal["", "auto", "fold"] = ""
        if terminal and format_.name == "table":
            # Folding is never a default: it was requested.
            layout = "fold" if options.wide == "fold" else "auto" if options.expanded == "auto" else ""
        display = self._display_format(format_, screen, longest) if format_.for_terminal else None
        expanded = expanded or made.expanded
        return replace(made, paint=paint, expanded=expanded, screen=screen, layout=layout, width=width, display=display)

    def _display_format(self, format_: Format, screen: Screen | None, longest: int) -> DisplayFormat | None:
        """The changes of values for people; None if there are none."""
        options, zone, indent = self._session.options, self._session.context.timezone, format_.name == "vertical"
        if not (longest or options.numericlocale or zone or indent or screen):
            return None
        grouping = None
        if options.numericlocale:
            from sqlshell.output.text.display import locale_grouping

            grouping = locale_grouping()
        ellipsis = screen.ellipsis if screen is not None else "…"
        return DisplayFormat(longest, grouping, zone, indent, screen is not None, ellipsis)
