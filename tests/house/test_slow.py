"""tests/slow.txt names tests that exist: one that was renamed would run with README's command, whatever it takes."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

from tests.slow import slow_tests

ROOT = Path(__file__).parent.parent.parent


@functools.cache
def parametrized(file: str) -> dict[str, bool]:
    """The functions of a file of tests, and whether each has parameters of its own."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {
        node.name: any("parametrize" in ast.unparse(decorator) for decorator in node.decorator_list)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }


def test_every_slow_test_exists() -> None:
    unknown = []
    for name in slow_tests():
        test, bracket, _ = name.partition("[")
        file, _, function = test.partition("::")
        tests = parametrized(file) if (ROOT / file).exists() else {}
        if function not in tests or (tests[function] and not bracket):
            unknown.append(name)
    assert not sorted(unknown), "write the list again: python -m tests.slow"
