"""What is expected of printed text, in files of tests/golden: SQLSHELL_GOLDEN=write writes them, for review.

A file of sessions has scripts, each line behind `> `, and below each what it prints: lines of stdout behind `1 `, those
of stderr behind `2 `. A new case is a script in the file; the switch adds what it prints.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def agree(place: str, text: str) -> None:
    """Compare a text with the file in tests/golden, or write the file."""
    path = FOLDER / place
    if os.environ.get("SQLSHELL_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()


def run_sessions(place: str, run: Callable[[str], Sequence[str]]) -> None:
    """Run each script of a file; `run` returns what one prints to stdout and stderr, and what else is of interest."""
    scripts = [*_scripts((FOLDER / place).read_text())]
    assert scripts
    agree(place, "\n".join(_session(script, run(script)) for script in scripts))


def _scripts(text: str) -> Iterator[str]:
    for is_script, lines in itertools.groupby(text.splitlines(), lambda line: line.startswith(">")):
        if is_script:
            yield "".join(f"{line[2:]}\n" for line in lines)


def _session(script: str, texts: Sequence[str]) -> str:
    parts = ((">", script), *enumerate(texts, 1))
    return "".join(f"{mark} {line}".rstrip() + "\n" for mark, text in parts for line in _lines(text))


def _lines(text: str) -> list[str]:
    assert not text or text.endswith("\n"), text
    return text.split("\n")[:-1]
