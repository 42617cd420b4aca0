"""Each promise in SECURITY.md has tests that exist and that README's command runs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROMISE = re.compile(r"^\d+\. \*\*(.+?)\*\*", re.M)
LEFT_OUT = re.compile(r"\[?pytest\.mark\.(slow|conformance|fuzz)\b")


def checked() -> dict[str, list[str]]:
    """The tests of each promise, whose paths are relative to tests/: promises.txt."""
    found: dict[str, list[str]] = {}
    promise = ""
    for line in (Path(__file__).parent / "promises.txt").read_text().splitlines():
        if line.startswith(" "):
            found[promise].append(line.strip())
        elif line:
            promise = line
            found[promise] = []
    return found


def left_out(file: Path, name: str) -> bool:
    """Whether README's command leaves out the tests of a file whose names begin so, or there is none."""
    tree = ast.parse(file.read_text()).body
    functions = [node for node in tree if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    found = [node for node in functions if node.name.startswith(name or "test_")]
    marks = [
        node.value for node in tree if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    marks += [decorator for node in found for decorator in node.decorator_list]
    return not found or any(LEFT_OUT.match(ast.unparse(mark)) for mark in marks)


def wrong(test: str) -> bool:
    """Whether a test is not there, or is left out of README's command.

    A folder is named where most of its tests check the promise.
    """
    path, _, name = test.partition("::")
    file = ROOT / "tests" / path
    return not file.exists() or (not file.is_dir() and left_out(file, name))


def test_each_promise_has_its_tests() -> None:
    found = checked()
    assert PROMISE.findall((ROOT / "SECURITY.md").read_text()) == list(found)
    assert all(found.values())
    assert [test for tests in found.values() for test in tests if wrong(test)] == []


def test_each_slow_test_says_why() -> None:
    silent = re.compile(r"mark\.slow\b(?!\(\"[a-zA-Z])")
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    assert [path.name for path in tests if silent.search(path.read_text())] == []
