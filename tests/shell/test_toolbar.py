"""The line at the bottom of the prompt."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.shell.interactive.look.toolbar import Typing, open_text, toolbar_text
from sqlshell.shell.results.rows import text_table
from tests.shell.sessions import session


@pytest.mark.parametrize(
    ("typing", "shown"),
    [
        (Typing.MENU, " Tab next │ F2 menu off "),
        (Typing.CHOSEN, " Tab next │ Enter accepts │ F2 menu off "),
    ],
)
def test_enter_accepts_an_item_only_if_one_is_chosen(typing: Typing, shown: str) -> None:
    assert "".join(text for _, text in toolbar_text(session(), 80, typing)) == shown


def test_a_statement_does_not_end_inside_parentheses() -> None:
    shown = toolbar_text(session(), 80, Typing.OPEN, call=open_text(2))
    assert "".join(text for _, text in shown) == " ( open since line 2; Alt-Enter sends │ ^C discards "


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (47, " \\? help │ ^R history │ Tab complete │ ^D exit "),
        (46, " \\? help │ ^R history │ Tab complete "),
        # Nothing is left out in the middle, even if what follows has room.
        (17, " \\? help "),
        (9, " \\? help "),
        (8, "  "),
    ],
)
def test_keys_are_shown_as_far_as_they_fit(columns: int, shown: str) -> None:
    assert "".join(text for _, text in toolbar_text(session(), columns, Typing.NOTHING)) == shown


def test_the_key_for_the_last_result_is_named_once_there_is_one() -> None:
    at_rest = session()
    assert "F5" not in "".join(text for _, text in toolbar_text(at_rest, 80, Typing.NOTHING))

    async def show(result: Result) -> Summary:
        return Summary(1, True)

    shown = at_rest.state.result_history.recording(show, at_rest.state)

    async def run() -> None:
        await shown(replace(text_table(["a"], [["1"]]), statement_id="id"))

    asyncio.run(run())
    assert "F5 browse result" in "".join(text for _, text in toolbar_text(at_rest, 80, Typing.NOTHING))
