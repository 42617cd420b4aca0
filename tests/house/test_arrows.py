"""Imports go in one direction: import-linter's contracts in pyproject.toml."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow("reads the imports of all modules")

ROOT = Path(__file__).parents[2]


def test_import_contracts_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], capture_output=True, text=True, timeout=120, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def imports() -> dict[str, set[str]]:
    """Each module of the package with those that it imports, in functions and for types alone too."""
    paths = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in (ROOT / "sqlshell").rglob("*.py")}
    modules = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    found: dict[str, set[str]] = {name: set() for name in modules}
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found[name] |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                found[name] |= (inner & modules.keys()) or {node.module}
    return {name: others & modules.keys() - {name} for name, others in found.items()}


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = imports()
    assert len(graph) > 100
    TopologicalSorter(graph).prepare()  # Raises CycleError with the modules of a circle.
