"""Copies from the explorer to the clipboard and to files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sqlshell.errors import OutputError
from sqlshell.origin import Trusted
from sqlshell.output.sinks.command import output_to
from sqlshell.output.writer import Summary, WriterOptions, written
from sqlshell.output.writers.formats import EXTENSIONS, format_for_path, format_named
from sqlshell.result import Batch
from sqlshell.shell.explorer.grid import Grid
from sqlshell.shell.explorer.pages import Row
from sqlshell.shell.interactive.terminal import copy_text
from sqlshell.text import format_count

if TYPE_CHECKING:
    from sqlshell.shell.explorer.explorer import Explorer


def copy_cells(grid: Grid, what: str, options: WriterOptions) -> str:
    """Copy a cell (or the selection), a row or a column of the rows in memory; returns a message."""
    lines, columns = grid.selection()
    if what == "row":
        lines, columns = range(grid.row, grid.row + 1), grid.visible
    rows: list[Row]
    if what == "column":
        at = grid.current.at
        rows = [[row[at]] for _, row in grid.source.loaded_rows()]
        columns = [grid.current]
    else:
        here = [row for row in map(grid.line, lines) if row is not None]
        rows = [[row[shown.at] for shown in columns] for row in here]
    if len(rows) == 1 and len(columns) == 1:
        data = (rows[0][0] or "").encode()
    else:
        writer = format_named("tsv").factory(replace(options, header=len(columns) > 1))
        data = written(writer, [shown.column for shown in columns], rows)
    try:
        copy_text(data)
    except OutputError as error:
        return error.message
    missing = "" if grid.source.whole or what != "column" else " (of the rows in memory)"
    return f"copied {format_count(len(rows), 'row')} of {format_count(len(columns), 'column')}{missing}"


async def export_table(explorer: Explorer, path: Trusted) -> None:
    """Write the visible table to a file: visible columns in their order, filtered and sorted rows.

    Raises OutputError and the errors of fetching partitions.
    """
    grid = explorer.grid
    form = format_for_path(path)
    if form is None:
        raise OutputError(f"{path}: unknown file extension", f"extensions: {', '.join(EXTENSIONS)}")
    writer = form.factory(explorer.file_options)
    columns = grid.visible
    sink = output_to(path)
    written = 0
    try:
        sink.write(b"".join(writer.begin([shown.column for shown in columns])))
        async for rows in _batches(grid):
            part = [[row[shown.at] for shown in columns] for row in rows]
            sink.write(b"".join(writer.write(Batch(len(columns), rows=part))))
            written += len(part)
            explorer.message = f"writing: {format_count(written, 'row')}; Esc stops"
            explorer.app.invalidate()
        sink.write(b"".join(writer.end(Summary(written, True))))
    except BaseException:
        sink.abort()
        raise
    sink.close()
    explorer.message = f"wrote {format_count(written, 'row')} to {path}"


async def _batches(grid: Grid) -> AsyncIterator[list[Row]]:
    """The rows that can be reached, in batches."""
    pages = grid.source
    for number in pages.partitions():
        await pages.load(number)
        yield [row for row in map(pages.original, pages.rows_of(number)) if row is not None]
