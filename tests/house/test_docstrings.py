"""Docstrings name what exists: a parameter or attribute that was renamed is renamed in them too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

IDENTIFIER = re.compile(r"`([A-Za-z_]\w*)`")

KNOWN = {
    *("sqlshell", "serve", "doctor", "config", "less", "with"),
    *("token", "profile", "default", "database", "timeout", "read_only", "SQLSHELL_TOKEN", "NAME"),
    *("batch", "description", "sqlState", "statementID", "createdOn", "created_on", "UUID", "nextval", "Cw"),
    *("disable_numparse", "preserve_whitespace", "file_row_number"),
    *("a_1", "a_2", "_1", "column1", "x_id"),
}
"""What is not a name of a module: programs, settings, words of the interface and of other libraries, examples."""


def docstrings(tree: ast.AST) -> list[ast.Constant]:
    """The docstrings of modules, classes and functions, and those below a constant or attribute."""
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]


def unknown(source: str) -> Iterator[tuple[int, str]]:
    """The identifiers in backticks in the docstrings of a module that occur nowhere else in it, with their lines."""
    tree = ast.parse(source)
    texts = docstrings(tree)
    names = set()
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "asname"):
            if isinstance(name := getattr(node, field, None), str):
                names |= set(name.split("."))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in texts:
            names |= set(re.findall(r"\w+", node.value))
    for text in texts:
        for found in IDENTIFIER.finditer(str(text.value)):
            if found[1] not in names | KNOWN:
                yield text.lineno + str(text.value).count("\n", 0, found.start()), found[1]


@pytest.mark.slow("reads all modules")
def test_identifiers_in_docstrings_exist() -> None:
    stale = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted((ROOT / "sqlshell").rglob("*.py"))
        for line, name in unknown(path.read_text())
    ]
    assert not stale


def test_a_renamed_parameter_is_found() -> None:
    assert [*unknown('def f(new):\n    """Text.\n\n    `new` and `old`."""')] == [(4, "old")]
    assert [*unknown('x = \'word\'\n"""The `word` of `serve`."""')] == []
