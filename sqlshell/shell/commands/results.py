"""Looking at a result once more: copied, turned, drawn, browsed, asked. Each works on the last result, or ends a
statement and works on its own."""

from __future__ import annotations

import os
import shutil

from sqlshell.errors import UsageError
from sqlshell.origin import NOWHERE
from sqlshell.output.sinks.file import check
from sqlshell.output.sinks.sink import FileSink
from sqlshell.output.writer import Summary, WriterOptions
from sqlshell.output.writers.formats import format_named
from sqlshell.result import Batch, Result
from sqlshell.shell.commands.command import Args, command
from sqlshell.shell.effects import Effect, LocalSql, Many, Print, Say, Show, Use
from sqlshell.shell.port import Port
from sqlshell.shell.results.rows import collect

MOST_ROWS = 200_000
"""Rows that are copied or turned at most."""


@command("clip", "[FORMAT]", sends=True)
async def clip(port: Port, args: Args) -> Use:
    """Copy a result to the clipboard, as TSV or FORMAT. The terminal does it (OSC 52), over ssh too."""
    form = format_named(args[0] if args else "tsv")
    told: list[Effect] = []

    async def take(result: Result) -> Summary:
        from sqlshell.shell.interactive.clipboard import copy_text

        summary, rows = await collect(result, MOST_ROWS)
        writer = form.factory(WriterOptions(port.session.options.null))
        chunks = [*writer.begin(result.columns), *writer.write(Batch(len(result.columns), rows=rows))]
        data = b"".join([*chunks, *writer.end(summary)])
        if not summary.complete:
            raise UsageError(f"more than {MOST_ROWS:,} rows are too many for a clipboard", "\\g FILE writes them")
        copy_text(data)
        told.append(Say(f"{summary.rows:,} row{'' if summary.rows == 1 else 's'} copied ({len(data):,} bytes)"))
        return summary

    return Use(take, lambda: told[-1] if told else None)


@command(
    "crosstab",
    "[ROW] [COLUMN] [VALUE]",
    aliases=("crosstabview",),
    sends=True,
    data=("ROW", "COLUMN", "VALUE"),
)
async def turn(port: Port, args: Args) -> Use:
    """Show a result as a cross table. One column's values are rows, a second's columns, a third's cells.

    Columns are named, or numbered from 1; without names they are the first three."""
    turned: list[Effect] = []

    async def take(result: Result) -> Summary:
        from sqlshell.output.text.binary import binary_columns, with_hex
        from sqlshell.shell.results.crosstab import crosstab

        summary, rows = await collect(result, MOST_ROWS)
        if not summary.complete:
            raise UsageError(f"more than {MOST_ROWS:,} rows are too many to turn", "group them first")
        turned.append(Show(crosstab(result.columns, with_hex(rows, binary_columns(result.columns)), args)))
        return summary

    return Use(take, lambda: turned[-1] if turned else None)


@command("chart", "[WORD...]", sends=True, data=("WORD",))
async def draw(port: Port, args: Args) -> Use:
    """Draw a result: \\chart [bar|line|scatter|hist|heat] [X] [Y...] [to FILE.svg]

    Columns are named, or numbered from 1; what is left out is chosen. to FILE.svg writes a picture."""
    words = list(args)
    picture = NOWHERE
    if len(words) > 1 and words[-2].lower() == "to":
        args.own(-2)
        picture, words = args.own(-1), words[:-2]
        if not picture.lower().endswith(".svg"):
            raise UsageError(f"{picture} is no SVG file", "\\chart line day total to days.svg")
        check(picture)
    made: list[Effect] = []

    async def take(result: Result) -> Summary:
        from sqlshell.shell.charts.charts import chart
        from sqlshell.shell.charts.drawing import drawn
        from sqlshell.shell.charts.picture import svg

        summary, rows = await collect(result, MOST_ROWS)
        figure = chart(result.columns, rows, words)
        if not summary.complete:
            figure.said.append(f"only the first {MOST_ROWS:,} rows are drawn")
        if picture:
            sink = FileSink(picture)
            sink.write(svg(figure).encode())
            sink.close()
            made.append(Say(f"{picture} is written"))
        else:
            colours = port.session.interactive and port.front_end.paint is not None
            size = shutil.get_terminal_size((80, 24))
            made.append(Print(drawn(figure, min(size.columns, 120), size.lines - 4, colours=colours), True, own=True))
        made.extend(map(Say, figure.said))
        return summary

    return Use(take, lambda: Many(made))


@command("browse", aliases=("explore",), sends=True)
async def browse(port: Port, args: Args) -> Use:
    """Walk through a result on the whole screen: search, sort, filter, copy, values in full; ? lists the keys.

    Its partitions are fetched when they are looked at, so that large results open at once."""
    if not port.session.interactive or port.front_end.browse is None or os.environ.get("TERM", "dumb") == "dumb":
        raise UsageError(
            "\\browse is for a person at a terminal that can be drawn on", "\\g FILE writes a result to a file"
        )
    return Use(port.front_end.browse)


@command("local", "[TEXT...]", sends=True)
async def local(port: Port, args: Args) -> LocalSql:
    """Run SQL of DuckDB on the last results, here: \\local select city, sum(n) from _ group by all

    _ is the last result, _1 the one before it, up to _9; they are typed. What comes out is a result like any other."""
    return LocalSql(args.own(0) if args else NOWHERE)


COMMANDS = (clip, turn, draw, browse, local)
