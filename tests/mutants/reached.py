"""Records which lines of the package run during a test, in all processes: a shared map with a byte for each line.

Imported by every interpreter of a copy of the tree while its map exists. A map and no file that is written to: it
outlives closed descriptors, forks, sandboxes and SIGKILL.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
from types import CodeType
from typing import Any

MAP, INDEX = "reached.map", "reached.json"
"""Files in the copy's virtual environment. The index tells at which byte of the map a file's lines begin."""


class Reached:
    """The map of a copy: `prefix` is its virtual environment."""

    def __init__(self, prefix: str) -> None:
        with open(os.path.join(prefix, INDEX), encoding="utf-8") as index:  # noqa: PTH118, PTH123 (runs at each start)
            self.offsets: dict[str, int] = json.load(index)
        descriptor = os.open(os.path.join(prefix, MAP), os.O_RDWR)  # noqa: PTH118
        self.map = mmap.mmap(descriptor, 0)
        os.close(descriptor)

    def begin(self) -> None:
        """Forget what was reached; every process tells again what it reaches."""
        number = (self.map[0] + 1) % 256
        self.map[:] = bytes([number]) + bytes(len(self.map) - 1)

    def lines(self) -> dict[str, list[int]]:
        held = bytes(self.map)
        ordered = sorted(self.offsets.items(), key=lambda file: file[1])
        ends = [offset for _, offset in ordered[1:]] + [len(held)]
        return {
            file: hit
            for (file, offset), end in zip(ordered, ends, strict=True)
            if (hit := [at - offset for at in range(offset, end) if held[at]])
        }


def begin_here() -> None:
    """For the process that calls begin(), which need not look whether anybody did."""
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
    monitoring.set_events(4, monitoring.events.LINE)
    monitoring.restart_events()


def install(reached: Reached) -> None:
    if sys.version_info < (3, 12):
        raise RuntimeError("sys.monitoring is part of Python 3.12 and later")
    monitoring: Any = sys.monitoring
    disable, shared, offsets = monitoring.DISABLE, reached.map, reached.offsets
    number = shared[0]

    def line(code: CodeType, line: int) -> object:
        offset = offsets.get(code.co_filename)
        if offset is not None:
            shared[offset + line] = 1
        return disable

    def entered(code: CodeType, _: int) -> object:
        nonlocal number
        if code.co_filename not in offsets:
            return disable
        if shared[0] != number:
            number = shared[0]
            monitoring.restart_events()
        return None

    events = monitoring.events
    monitoring.use_tool_id(4, "tests.mutants")
    for event, callback in ((events.LINE, line), (events.PY_START, entered), (events.PY_RESUME, entered)):
        monitoring.register_callback(4, event, callback)
    monitoring.set_events(4, events.LINE | events.PY_START | events.PY_RESUME)


if os.path.exists(os.path.join(sys.prefix, MAP)):  # noqa: PTH110, PTH118
    install(Reached(sys.prefix))
