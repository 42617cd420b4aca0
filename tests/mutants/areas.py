"""The areas of mutation tests: paths of packages and modules, and of the tests that should notice changes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Area(NamedTuple):
    code: tuple[str, ...]
    tests: tuple[str, ...]


_PROGRAM = ("tests/test_*.py",)
_CLIENT = (
    *("tests/test_together.py", "tests/test_copy.py", "tests/test_reader.py", "tests/test_credentials.py"),
    *("tests/shell/test_whole_rows.py", "tests/dbapi/test_ways.py"),
)
_TEXT = ("tests/commands/test_completion.py", "tests/commands/test_foreign.py")
_OUTPUT = (
    "tests/test_copy.py",
    "tests/test_reader.py",
    "tests/test_bad_files.py",
    "tests/client/test_whole_results.py",
)

AREAS = {
    "client": Area(("sqlshell/client",), ("tests/client", "tests/faults", *_CLIENT)),
    "sql": Area(("sqlshell/sql",), ("tests/sql", "tests/shell", *_TEXT)),
    "output": Area(("sqlshell/output",), ("tests/output", *_OUTPUT)),
    "shell": Area(("sqlshell/shell",), ("tests/shell", "tests/commands", "tests/terminal", *_PROGRAM)),
    "service": Area(("sqlshell/service",), ("tests/service", "tests/sql/test_judge.py", "tests/commands", *_PROGRAM)),
    "launch": Area(("sqlshell/launch", "sqlshell/config", "sqlshell/runtime"), ("tests/commands", *_PROGRAM)),
}


def files(root: Path, patterns: tuple[str, ...], name: str) -> list[Path]:
    """The files of an area in the tree at `root`; `name` is what those in folders are called."""
    found: set[Path] = set()
    for pattern in patterns:
        for path in root.glob(pattern):
            found.update(path.rglob(name) if path.is_dir() else [path])
    return sorted(found)
