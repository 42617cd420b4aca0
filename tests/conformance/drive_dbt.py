"""Runs commands of dbt in one process, in a virtual environment with dbt, and reports their outcomes.

Reads a list of commands, each a list of words, as JSON from stdin; writes a list of outcomes as JSON into the file that
the first argument names: {"success": bool, "error": text, "nodes": {name: [status, message]}}.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner


def outcome(command: list[str]) -> dict[str, Any]:
    done = dbtRunner().invoke(command)
    nodes = {}
    for item in getattr(done.result, "results", None) or []:
        name = item.node.name if hasattr(item, "node") else item.unique_id
        nodes[name] = [str(item.status), item.message or ""]
    return {"success": done.success, "error": str(done.exception or ""), "nodes": nodes}


def main() -> None:
    outcomes = [outcome(command) for command in json.load(sys.stdin)]
    Path(sys.argv[1]).write_text(json.dumps(outcomes))


if __name__ == "__main__":
    main()
