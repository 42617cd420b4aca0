"""Cases that are data: a file of tests/data/cases has sections, and in these a case a line.

A section begins with `## ` and its name; what is before the first one is a remark. The parts of a case are separated by
` │ `, and `⏎` is a line break.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

FOLDER = Path(__file__).parent / "data" / "cases"


def lines(file: str, section: str) -> list[str]:
    """The cases of a section that have one part."""
    return list(_sections(file)[section])


def rows(file: str, section: str) -> list[list[str | None]]:
    """The parts of each case of a section; one that is NULL is None."""
    return [[None if part == "NULL" else part for part in line.split(" │ ")] for line in lines(file, section)]


def texts(file: str, section: str) -> list[tuple[str, ...]]:
    """The parts of each case of a section, where NULL is a text like any other."""
    return [tuple(line.split(" │ ")) for line in lines(file, section)]


def params(file: str, section: str) -> list[ParameterSet]:
    """The cases of a section for pytest.mark.parametrize, named by the first words of their first part."""
    return [pytest.param(*parts, id="-".join(re.findall(r"\w+", parts[0])[:2])) for parts in texts(file, section)]


@cache
def _sections(file: str) -> dict[str, tuple[str, ...]]:
    parts = re.split(r"^## (.+)\n", (FOLDER / f"{file}.txt").read_text(encoding="utf-8"), flags=re.M)
    return {
        name: tuple(line.replace("⏎", "\n") for line in body.split("\n") if line)
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }
