"""The places that declare text to be the user's own are few, and are listed here with reasons."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "sqlshell"
OWN = {
    "dbapi.cursors": "a file that the program named",
    "launch.commands": "the command line",
    "launch.modes": "the command line",
    "launch.configure": "the path of the config",
    "launch.connector": "the URL of a database that \\c names",
    "launch.invocation": "stdin, the files of --stats and --checkpoint, and the person's rc.sql",
    "output.sinks.pager": "the pager of the settings",
    "output.sinks.command": "a |command without its |",
    "shell.running.dry_run": "the arguments of a command of a script, to check them; a condition that is false",
    "shell.scripts.batch": "BEGIN, COMMIT and ROLLBACK of --single-transaction",
    "shell.scripts.buffer": "what is being written, behind the values that it has",
    "shell.loading.copying": "a file or command that \\copy names, a scratch file",
    "shell.commands.command": "the line that was typed, in parts",
    "shell.commands.guides": "the tour",
    "shell.commands.scripts": "the home folder, $SHELL, an exit code",
    "shell.commands.variables": "\\trust, the environment, an answer of the person",
    "shell.interactive.editor": "what the person saved",
    "shell.interactive.loop": "what the person typed",
    "shell.commands.lexing": "parts of the line; the output of a command in backticks",
    "shell.explorer.keys": "what the person typed",
    "shell.loading.spec": "a file that an option of \\copy names",
    "shell.records.saved_queries": "queries.toml",
    "shell.scripts.reading": "a script that the person named",
    "shell.shell": "the line that was typed; the arguments of a command of a script; a condition that is false",
    "shell.scripts.variables": "the command line, checked numbers and codes",
    "sql.analysis.files": "a path in the person's own part of a statement",
    "sql.variables": "the value of a variable that is the person's own",
}
TEXT = {
    "shell.running.dry_run": "the arguments of a command, which keep what they are made of",
    "shell.scripts.buffer": "what is being written, with the parts that it has",
    "sql.script.items": "a statement, with the parts that it has",
    "sql.script.scanner": "a statement, with the parts that it has",
}


def test_the_places_that_say_what_is_the_persons_own_are_known() -> None:
    own, text = set(), set()
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and module != "origin":
                own |= {module} if node.func.id == "Trusted" else set()
                text |= {module} if node.func.id == "Text" else set()
    assert own == OWN.keys()
    assert text == TEXT.keys()
