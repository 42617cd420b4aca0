"""A result shown in the explorer."""

from __future__ import annotations

from prompt_toolkit.styles import BaseStyle

from sqlshell.errors import UsageError
from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.shell.explorer.explorer import Explorer
from sqlshell.shell.explorer.keys import bindings
from sqlshell.shell.explorer.pages import Pages


async def browse(result: Result, style: BaseStyle | None) -> Summary:
    """Until the person leaves; the summary is complete. Raises UsageError, and what reading the first rows raises."""
    if not result.columns:
        raise UsageError("the statement returned no result set to browse")
    if result.endless is not None:
        await result.batches.aclose()
        raise UsageError("cannot browse an unbounded result", "use \\g to show it, or --max-rows to limit it")
    pages = Pages(result)
    await pages.open()
    explorer = Explorer(pages, style)
    await explorer.run(bindings(explorer))
    return Summary(pages.total, True)
