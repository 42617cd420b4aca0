"""python -m tests.fuzzing [NUMBER]: statements of all roles, and what they changed (default 20,000)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.fuzzing.check import fuzz
from tests.fuzzing.world import World


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        try:
            ended = fuzz(world, number, derandomize=False)
        finally:
            world.close()
    for name, count in sorted(ended.items()):
        sys.stdout.write(f"{count:8,}  {name}\n")
    sys.stdout.write(f"{sum(ended.values()):8,}  statements, 0 differences\n")


if __name__ == "__main__":
    main()
