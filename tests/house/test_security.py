"""Each promise in SECURITY.md names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACE = re.compile(r"`((?:\w+/)*(?:test_\w+\.py)?|(?:\w+/)+)(?:::(\w+))?`")
HEADINGS = ("What is not promised",)


def promises() -> list[str]:
    """The list items of SECURITY.md, but for those that promise nothing."""
    sections = re.split(r"^## ", (ROOT / "SECURITY.md").read_text(), flags=re.M)[1:]
    kept = [text for text in sections if not text.startswith(HEADINGS)]
    return [" ".join(item.split()) for text in kept for item in re.findall(r"^- (.*?)(?=^- |\Z)", text, re.M | re.S)]


def missing(promise: str) -> list[str]:
    """What a promise names that is not there; the promise itself where it names no test."""
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
        if name and not re.search(rf"^(?:async )?def {name}\w*\(", file.read_text(), re.M):
            wrong.append(f"{file.name}::{name}")
    if not named and "tests.benchmarks" not in promise:
        wrong.append(promise)
    return wrong


def test_each_promise_names_its_test() -> None:
    found = promises()
    assert len(found) > 50
    assert [wrong for promise in found for wrong in missing(promise)] == []
