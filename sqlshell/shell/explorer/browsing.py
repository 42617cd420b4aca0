"""Shows a result in the explorer, at the place where it was left."""

from __future__ import annotations

import time
from collections import OrderedDict

from prompt_toolkit.styles import BaseStyle

from sqlshell.errors import UsageError
from sqlshell.output.writer import Summary, WriterOptions
from sqlshell.result import Result
from sqlshell.shell.explorer.explorer import Explorer
from sqlshell.shell.explorer.grid import Grid, GridPosition
from sqlshell.shell.explorer.keys import bindings
from sqlshell.shell.explorer.pages import Pages

MOST_PLACES = 50


class RememberedPositions:
    """Where the user left results, by statementID."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, GridPosition] = OrderedDict()

    def restore(self, result: Result, grid: Grid) -> None:
        place = self._known.get(result.statement_id)
        if place is not None:
            grid.restore(place)

    def keep(self, result: Result, grid: Grid) -> None:
        if result.statement_id:
            self._known[result.statement_id] = grid.position
            self._known.move_to_end(result.statement_id)
            while len(self._known) > MOST_PLACES:
                self._known.popitem(last=False)


async def browse(
    result: Result,
    style: BaseStyle | None,
    places: RememberedPositions | None = None,
    file_options: WriterOptions | None = None,
) -> Summary:
    """Run the explorer until the user leaves it; the returned summary is complete. Raises UsageError, and the errors of
    reading the first rows.
    """
    if not result.columns:
        raise UsageError("the statement returned no result set to browse")
    if result.endless is not None:
        await result.batches.aclose()
        raise UsageError("cannot browse an unbounded result", "use \\g to show it, or --max-rows to limit it")
    pages = Pages(result)
    await pages.open()
    explorer = Explorer(pages, style, file_options or WriterOptions())
    places = places or RememberedPositions()
    places.restore(result, explorer.grid)
    began = time.monotonic()
    try:
        await explorer.run(bindings(explorer))
    finally:
        await pages.close()
    places.keep(result, explorer.grid)
    return Summary(pages.total, True, waited=time.monotonic() - began)
