"""Whole scripts split as by other tools: `tests/data/splits`, licenses in `tests/data/licences`."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from sqlshell.sql.script.scanner import BackslashCommand, CopyLines, Scanner, Statement
from sqlshell.sql.script.splitting import split

pytestmark = pytest.mark.usefixtures("both_ways")

DATA: Final = Path(__file__).parent.parent / "data" / "splits"
LEADING_COMMENT: Final = re.compile(r"\s*(?:--[^\n]*|/\*(?:(?!\*/).)*\*/)", re.DOTALL)

SENDING: Final = {"g", "G", "gx", "gexec", "gset", "gdesc", "crosstab", "crosstabview", "watch"}

NOT_AS_USQL: Final = {
    # psql takes a backslash inside parentheses for a command: it is how a person gets out of them.
    " select 1 (  \\g ) \n ;": (["select 1 ("], [("\\g", ")")], "="),
    # In psql `$tag$$` closes `$$`: its first `$` is not the closing tag's.
    "select $$\n\\v(\n$tag$$zz$$\\g$$\\g": (["select $$\n\\v(\n$tag$$zz$$"], [("\\g", "$$"), ("\\g", "")], "="),
}
"""The inputs that are split otherwise than usql splits them: statements, commands, state."""


def read(name: str) -> Iterator[Any]:
    path = DATA / name
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def bare(statement: str) -> str:
    while comment := LEADING_COMMENT.match(statement):
        statement = statement[comment.end() :]
    return statement.strip().removesuffix(";").strip()


@pytest.mark.parametrize(
    ("name", "scripts", "statements"), [("sqlfluff.jsonl.gz", 623, 3_793), ("deltastream-examples.jsonl", 13, 81)]
)
def test_scripts_are_split_as_psql_and_parsers_split_them(name: str, scripts: int, statements: int) -> None:
    seen = 0
    for script in read(name):
        text = script["text"]
        encoded = text.encode()
        items = [item for item in split(text) if isinstance(item, Statement)]
        expected = [bare(encoded[start:end].decode()) for start, end in script["offsets"]]
        assert [bare(item.text) for item in items] == expected, script["path"]
        for item in items:
            assert text[item.offset : item.offset + len(item.text)] == item.text
            assert item.line == text.count("\n", 0, item.offset) + 1
        scripts -= 1
        seen += len(items)
    assert (scripts, seen) == (0, statements)


def test_scripts_in_characters_are_split_like_whole_ones() -> None:
    for script in [*read("sqlfluff.jsonl.gz")][::10]:
        scanner = Scanner()
        items = [item for piece in (*script["text"], None) for item in scanner.items(piece)]
        assert items == split(script["text"]), script["path"]


def without_semicolon(statement: str) -> str:
    return statement.strip().removesuffix(";").strip()


def test_shell_input_is_split_as_usql_splits_it() -> None:
    inputs = [*read("usql.jsonl")]
    assert len(inputs) == 84
    for row in inputs:
        scanner = Scanner()
        statements, commands = [], []
        # The line's end is what a person types it with.
        for item in scanner.items(row["text"] + "\n"):
            assert not isinstance(item, CopyLines)
            statement = item if isinstance(item, Statement) else scanner.take() if item.name in SENDING else None
            statements += [statement.text] if statement else []
            commands += [("\\" + item.name, item.args)] if isinstance(item, BackslashCommand) else []
        found = (statements, commands, scanner.state.value)
        named = [command.split("|", 1) for command in row["commands"] if not command.startswith("|")]
        expected = (
            # A `;` alone is no statement here: there is nothing to send.
            [without_semicolon(statement) for statement in row["statements"] if statement != ";"],
            [(name, args.strip()) for name, args in named],
            row["state"],
        )
        assert found == NOT_AS_USQL.get(row["text"], expected), row["text"]
