"""pytest's side: records what each test reaches, or runs the chosen tests in the chosen order.

The environment names the files: MUTANTS_CHOSEN holds the tests to run, MUTANTS_TOLD receives what came of them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.reached import MAP, Reached, begin_here

_CHOSEN, _TOLD = os.environ.pop("MUTANTS_CHOSEN", ""), os.environ.pop("MUTANTS_TOLD", "")

_told: dict[str, dict[str, Any]] = {}
_reached = Reached(sys.prefix) if Path(sys.prefix, MAP).exists() else None


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    if _CHOSEN:
        order = {name: number for number, name in enumerate(json.loads(Path(_CHOSEN).read_text()))}
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])


def _forget() -> None:
    """Empty the caches of functions: what a test finds in one is run by another that begins alone."""
    for name, module in list(sys.modules.items()):
        if name.startswith("sqlshell."):
            for value in list(vars(module).values()):
                if callable(clear := getattr(value, "cache_clear", None)):
                    clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if _reached is not None:
        _forget()
        _reached.begin()
        begin_here()
    begun = time.monotonic()
    told: dict[str, Any] = {"outcome": "passed"}
    _told[item.nodeid] = told
    result = yield
    told["seconds"] = round(time.monotonic() - begun, 3)
    if _reached is not None:
        told["lines"] = _reached.lines()
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.outcome != "passed":
        _told[report.nodeid]["outcome"] = report.outcome


def pytest_sessionfinish() -> None:
    if _TOLD:
        Path(_TOLD).write_text(json.dumps(_told))
