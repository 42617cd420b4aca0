"""The list of commands: names and as many arguments as there is room for, with the first sentence of the help."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sqlshell.shell.commands import BUILTIN
from sqlshell.shell.commands.help_text import overview


@pytest.mark.parametrize(
    ("usage", "head"),
    [
        ("", "\\copy"),
        ("TABLE", "\\copy TABLE"),
        ("TABLE FROM FILES", "\\copy TABLE FROM FILES"),
        ("TABLE FROM FILE [A]", "\\copy TABLE FROM …"),
        ("TABLE AT FILE [A]", "\\copy TABLE AT FILE [A]"),
        ("TABLE SOMETHING_LONG [WITH]", "\\copy TABLE …"),
        ("TABLE SOMETHING_LONG AT", "\\copy TABLE …"),
        ("SOMETHING_THAT_IS_LONG AT", "\\copy …"),
        ("SOMETHING_THAT_IS_TOO_LONG", "\\copy …"),
    ],
)
def test_arguments_are_shown_as_long_as_there_is_room(usage: str, head: str) -> None:
    lines = overview(
        [replace(BUILTIN[0], name="copy", usage=usage, help="Does it. And more.", group="Group")], 80
    ).splitlines()
    assert lines[-2:] == ["Group", f"  {head.ljust(23)} Does it"]
