"""Each promise in SECURITY.md names a test that exists and that README's command runs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACE = re.compile(r"`((?:\w+/)*(?:test_\w+\.py)?|(?:\w+/)+)(?:::(\w+))?`")
LEFT_OUT = re.compile(r"\[?pytest\.mark\.(slow|conformance|fuzz)\b")
HEADINGS = ("What is not promised",)


def promises() -> list[str]:
    """The list items of SECURITY.md, but for those that promise nothing."""
    sections = re.split(r"^## ", (ROOT / "SECURITY.md").read_text(), flags=re.M)[1:]
    kept = [text for text in sections if not text.startswith(HEADINGS)]
    return [" ".join(item.split()) for text in kept for item in re.findall(r"^- (.*?)(?=^- |\Z)", text, re.M | re.S)]


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


def wrong(promise: str) -> list[str]:
    """What a promise names that is not there, or is left out of README's command; itself where it names no test.

    A folder is named where most of its tests check the promise.
    """
    wrong, file, named = [], Path(), 0
    for path, name in PLACE.findall(promise):
        if path:
            file = ROOT / "tests" / path
            if not file.exists():
                wrong.append(path)
                continue
        if not path and not name:
            continue
        named += 1
        if not file.is_dir() and left_out(file, name):
            wrong.append(f"{file.name}::{name}")
    if not named and "tests.benchmarks" not in promise:
        wrong.append(promise)
    return wrong


def test_each_promise_names_its_test() -> None:
    found = promises()
    assert len(found) > 50
    assert [each for promise in found for each in wrong(promise)] == []


def test_each_slow_test_says_why() -> None:
    silent = re.compile(r"mark\.slow\b(?!\(\"[a-zA-Z])")
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    assert [path.name for path in tests if silent.search(path.read_text())] == []
