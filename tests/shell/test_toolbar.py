"""The line at the bottom of the prompt."""

from __future__ import annotations

import pytest

from sqlshell.shell.interactive.look.toolbar import Typing, toolbar_text
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
