"""Where a text is said to be the person's own: in few places, which are listed here with why."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "sqlshell"
OWN = {
    "cli": "the command line",
    "configure": "the path of the config",
    "modes": "stdin, and the person's rc.sql",
    "output.pager": "the pager of the settings",
    "output.sink": "a |command without its |",
    "shell.ahead": "a statement of the script, looked at",
    "shell.buffer": "what is being written, behind the values that it has",
    "shell.commands.command": "the line that was typed, in parts",
    "shell.commands.learning": "the tour",
    "shell.commands.scripts": "the home folder, $SHELL, an exit code",
    "shell.commands.variables": "\\own, the environment, an answer of the person",
    "shell.editor": "what the person saved",
    "shell.interactive": "what the person typed",
    "shell.lexing": "parts of the line; the output of a command in backticks",
    "shell.look.explorer.keys": "what the person typed",
    "shell.look.local": "a scratch file",
    "shell.queries": "queries.toml",
    "shell.scripts": "a script that the person named",
    "shell.shell": "the line that was typed",
    "shell.variables": "the command line, checked numbers and codes",
    "sql.files": "a path in the person's own part of a statement",
    "sql.variables": "the value of a variable that is the person's own",
}
TEXT = {
    "shell.buffer": "what is being written, with the parts that it has",
    "sql.items": "a statement, with the parts that it has",
    "sql.scanner": "a statement, with the parts that it has",
}


def test_the_places_that_say_what_is_the_persons_own_are_known() -> None:
    own, text = set(), set()
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and module != "origin":
                own |= {module} if node.func.id == "Own" else set()
                text |= {module} if node.func.id == "Text" else set()
    assert own == OWN.keys()
    assert text == TEXT.keys()
