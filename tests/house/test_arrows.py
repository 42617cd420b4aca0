"""Imports run one way: import-linter's contracts in pyproject.toml."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_import_contracts_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], capture_output=True, text=True, timeout=120, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


KNOWN_CIRCLES = [
    {"output.binary", "output.delimited", "output.formats", "output.json", "output.table", "output.vertical"},
    {"service.app", "service.legacy"},
    {
        *("shell.commands.command", "shell.foreground", "shell.hooks", "shell.look.local", "shell.past", "shell.port"),
        *("shell.actions", "shell.replaying", "shell.shell", "shell.submitting", "shell.watching"),
    },
]
"""Modules that import each other, TYPE_CHECKING included: no circle may be added to them, none may grow."""


def test_no_import_circle_is_added() -> None:
    root = Path(__file__).parents[2] / "sqlshell"
    paths = {".".join(path.relative_to(root.parent).with_suffix("").parts): path for path in root.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    imports: dict[str, set[str]] = {}
    for name, path in modules.items():
        found = imports.setdefault(name, set())
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= (inner & modules.keys()) or ({node.module} & modules.keys())

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for other in imports[waiting.pop()] - seen:
                seen.add(other)
                waiting.append(other)
        return seen

    everything = {name: reached(name) for name in modules}
    for name, seen in everything.items():
        circle = {other.removeprefix("sqlshell.") for other in seen if name in everything[other]} - {""}
        assert not circle or any(circle <= known for known in KNOWN_CIRCLES), sorted(circle)
