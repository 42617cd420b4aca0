"""Completion of commands: each line of completion.txt has a text with a cursor and the suggestions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from sqlshell.launch.connector import Connector
from sqlshell.origin import Trusted, trusted_text
from sqlshell.shell.commands.arguments import arguments, commands_named
from sqlshell.shell.interactive.editing.completer import ShellCompleter
from sqlshell.sql.completion.catalog import Catalog
from tests.commands.test_fuzz import room
from tests.sql.test_completion import contents

TABLE = Path(__file__).with_name("completion.txt")
FILES = ("script.sql", "my file.sql", "data.parquet", "work.duckdb", "sub/inner.sql")


def rows() -> Iterator[tuple[str, str]]:
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            text, _, choices = line.rpartition(" => ")
            yield text.replace("\\n", "\n"), choices


UNASKED = (
    ("\\theme |", "default, paper"),
    ("\\pset |", "format, expanded"),
    ("\\pset expanded |", "off, on, auto"),
    ("\\format |", "table"),
    ("select * from orders o join customers c on |", "o.customer_id = c.id"),
    ("\\format |csv", "-"),
    ("\\format\t|", "-"),
    ("\\d |", "-"),
    ("\\i |", "-"),
    ("select |", "-"),
    ("select * from orders |", "-"),
)
"""The choices that are shown while a person types, before a letter of the next word."""


def wrong(completer: ShellCompleter, text: str, choices: str, *, asked: bool = True) -> str:
    """What is wrong with the choices for a text, "" for nothing; `asked` are those at Tab."""
    cursor = text.rindex("|")
    document = Document(text[:cursor] + text[cursor + 1 :], cursor)
    event = CompleteEvent(not asked, completion_requested=asked)
    found = [item.text for item in completer.get_completions(document, event)]
    if choices == "-":
        return f"{text!r} => {found[:6]}, not nothing" if found else ""
    wanted = choices.split(", ")
    never = [word[1:] for word in wanted if word.startswith("~")]
    first = [word for word in wanted if not word.startswith("~")]
    if found[: len(first)] != first or set(found) & set(never):
        return f"{text!r} => {found[:8]}, not {choices}"
    return ""


def test_commands_and_their_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    async def tried() -> list[str]:
        async with room(tmp_path / ".room", interactive=True) as there:
            shell = there.shell
            monkeypatch.chdir(tmp_path)
            shell.session.state.context = replace(shell.session.context, database="local", schema="main")
            there.front_end.catalog = Catalog(contents())
            monkeypatch.setattr(Connector, "profiles", lambda self: ["staging", "work"])
            monkeypatch.setattr(Connector, "themes", lambda self: ["default", "paper"])
            shell.variables.set(Trusted("who"), trusted_text(Trusted("me")))
            shell.session.options.completion = True
            completer = ShellCompleter(
                shell.session,
                there.front_end.catalog,
                partial(commands_named, shell.commands),
                partial(arguments, shell),
                list,
            )
            wanted = [(*row, True) for row in rows()] + [(*row, False) for row in UNASKED]
            found = (wrong(completer, text, choices, asked=asked) for text, choices, asked in wanted)
            return [*filter(None, found)]

    (tmp_path / ".room").mkdir()
    found = asyncio.run(tried())
    assert not found, "\n".join(found)


def test_the_table_is_as_long_as_promised() -> None:
    assert len(list(rows())) >= 80
