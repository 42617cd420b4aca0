"""Commands that copy, pivot, draw, browse or query a result: the last one, or that of the statement before them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlshell.errors import UsageError
from sqlshell.origin import EMPTY
from sqlshell.output.writer import Summary, written
from sqlshell.output.writers.formats import format_named
from sqlshell.result import Column, Result, Rows
from sqlshell.runtime.streams import forces_colors
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.commands.command import Args, command
from sqlshell.shell.results.rows import collect, result_of
from sqlshell.text import format_count

if TYPE_CHECKING:
    from sqlshell.shell.charts.charts import Chart

MOST_ROWS = 200_000
"""Maximum number of rows to copy, pivot or draw."""


@command("clip", "[FORMAT]", sends=True)
async def clip(shell: CommandShell, args: Args) -> None:
    """Copy a result to the clipboard, as TSV or FORMAT. It uses the terminal (OSC 52), so it works over ssh."""
    form = format_named(args[0] if args else "tsv")
    copied: list[str] = []

    async def take(result: Result) -> Summary:
        from sqlshell.shell.interactive.terminal import copy_text

        summary, rows = await collect(result, MOST_ROWS)
        writer = form.factory(await shell.result_output.program_options())
        data = written(writer, result.columns, rows)
        if not summary.complete:
            raise UsageError(
                f"too many rows to copy: more than {MOST_ROWS:,}", "write them to a file with \\g FILE instead"
            )
        copy_text(data)
        copied.append(f"{format_count(summary.rows, 'row')} copied ({format_count(len(data), 'byte')})")
        return summary

    await shell.use_result(args.name, take)
    for message in copied[-1:]:
        shell.say(message)


@command(
    "crosstab",
    "[ROW] [COLUMN] [VALUE]",
    aliases=("crosstabview",),
    sends=True,
    data=("ROW", "COLUMN", "VALUE"),
)
async def show_crosstab(shell: CommandShell, args: Args) -> None:
    """Pivot a result: ROW becomes the rows, COLUMN the columns, VALUE the cells.

    Columns are given by name, or by number from 1. The default is the first three columns."""
    turned: list[Result] = []

    async def take(result: Result) -> Summary:
        from sqlshell.output.changes import with_hex
        from sqlshell.shell.results.crosstab import crosstab

        summary, rows = await collect(result, MOST_ROWS)
        if not summary.complete:
            raise UsageError(f"too many rows to pivot: more than {MOST_ROWS:,}", "aggregate them with GROUP BY first")
        shown = shell.session.options.null
        null = "NULL" if shown is None else shown
        turned.append(crosstab(result.columns, with_hex(rows, result.columns), args, null))
        return summary

    await shell.use_result(args.name, take)
    for table in turned[-1:]:
        await shell.show(table)


@command("chart", "[KIND] [COLUMN...]", sends=True, data=("KIND", "COLUMN"))
async def show_chart(shell: CommandShell, args: Args) -> None:
    """Draw a result as a chart: \\chart [bar|line|scatter|hist|heat] [X] [Y...]

    Columns are given by name, or by number from 1. Omitted arguments are chosen to fit the data."""
    words = list(args)
    figures: list[Chart] = []

    async def take(result: Result) -> Summary:
        figure = await _whole_chart(result, words)
        summary = Summary(result.row_count or 0, True)
        if figure is None:
            summary, rows = await collect(result, MOST_ROWS)
            figure = await _chart_of_rows(result.columns, rows, words)
            if not summary.complete:
                figure.notes.append(f"the chart shows only the first {MOST_ROWS:,} rows")
        figures.append(figure)
        return summary

    await shell.use_result(args.name, take)
    from sqlshell.shell.charts.drawing import as_text

    wanted = shell.session.interactive or forces_colors(os.environ)
    colors = wanted and shell.front_end.paint is not None
    size = shutil.get_terminal_size((80, 24))
    for figure in figures:
        shell.print(as_text(figure, min(size.columns, 120), size.lines - 4, colors=colors), with_results=True, own=True)
        for note in figure.notes:
            shell.say(note)


async def _whole_chart(result: Result, words: Sequence[str]) -> Chart | None:
    """The chart of all rows of a large result, None if its service does not have it as a file, or every row has a place
    in the chart. Then its rows can still be read."""
    if result.whole is None or (result.row_count or 0) <= MOST_ROWS:
        return None
    from sqlshell.shell.charts.drawn_rows import chart

    table = await result.whole.table()
    if table is None:
        return None
    figure, failed = None, True
    try:
        figure = await chart(table, result.columns, words)
        failed = False
    finally:
        table.close()
        if failed or figure is not None:
            await result.batches.aclose()
    return figure


async def _chart_of_rows(columns: Sequence[Column], rows: Rows, words: Sequence[str]) -> Chart:
    from sqlshell.output.typed.text_table import text_table
    from sqlshell.shell.charts.drawn_rows import chart

    table = await text_table(result_of(columns, rows))
    try:
        figure = await chart(table, columns, words)
    finally:
        table.close()
    # There are fewer rows than an axis has places.
    assert figure is not None
    return figure


@command("browse", sends=True)
async def browse(shell: CommandShell, args: Args) -> None:
    """Browse a result in full screen. Search, sort, filter, copy, view full values; ? lists the keys.

    Partitions are fetched when you scroll to them, so large results open immediately."""
    if not shell.session.interactive or shell.front_end.browse is None or os.environ.get("TERM", "dumb") == "dumb":
        raise UsageError(
            "\\browse requires an interactive terminal with cursor control", "use \\g FILE to write a result to a file"
        )
    await shell.use_result(args.name, shell.front_end.browse)


@command("local", "[SQL...]", sends=True, verbatim=True)
async def local(shell: CommandShell, args: Args) -> None:
    """Query the last results with DuckDB's SQL: \\local select city, sum(n) from _ group by all

    The query runs on your machine. _ is the last result, _1 the one before it, up to _9; columns keep their types.
    Without SQL, the query buffer is run. The output is a result like any other.
    """
    await shell.local(args.trusted(0) if args else EMPTY)
