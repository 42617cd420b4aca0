"""All attacks by name. `python -m tests.benchmarks.hostile.attacks NAME URL SECONDS` makes one, with the token in
SQLSHELL_TOKEN, prints "begun" when it has prepared itself, and at the end what it did as JSON."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys

from tests.benchmarks.hostile.sql import SQL
from tests.benchmarks.hostile.target import Attack, Target
from tests.benchmarks.hostile.wire import WIRE

ATTACKS: dict[str, Attack] = {**WIRE, **SQL}


def main() -> None:
    name, url, seconds = sys.argv[1:]
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    target = Target(url, os.environ["SQLSHELL_TOKEN"], float(seconds))
    asyncio.run(_attack(ATTACKS[name], target))
    sys.stdout.write(json.dumps(target.counts))


async def _attack(attack: Attack, target: Target) -> None:
    await attack(target)


if __name__ == "__main__":
    main()
