"""The places that read a statement's tokens are few, and are listed here with reasons. All others use a Lexed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "sqlshell"
LEXER = "sqlshell.sql.analysis.tokens"
READERS = {
    "sql.analysis.lexed": "a statement on its way, once",
    "sql.completion.expected": "what is being typed",
    "service.engines.duckdb.copying": "COPY, and the names of files in a statement",
    "service.engines.duckdb.translation.text": "a statement that is rewritten for the engine",
    "service.engines.files.texts": "the message about CREATE, DROP and ALTER, once it has run",
    "service.dialect.lexer": "a statement of the dialect",
    "service.objects.listing": "the condition of a LIST",
    "shell.interactive.editing.formatter": "what is being typed",
    "shell.records.saved_queries": "a saved query, before its arguments are in it",
}


@pytest.mark.slow("reads all modules")
def test_the_places_that_run_the_lexer_are_known() -> None:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            lexer = isinstance(node, ast.ImportFrom) and node.module == LEXER and node
            if lexer and any(alias.name == "tokens" for alias in lexer.names):
                found.add(".".join(path.relative_to(PACKAGE).with_suffix("").parts))
    assert found == READERS.keys()
