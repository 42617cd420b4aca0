"""Benchmarks of exploring a large result: time to open it, memory."""

from __future__ import annotations

import os
import re
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from tests.benchmarks.measure import TOKEN, Row, service
from tests.benchmarks.prompt_jobs import Pty
from tests.benchmarks.service_jobs import EIGHT

LARGE = 10_000_000
SCREENS = 40
"""Places between the first and the last row that are looked at on the way."""


def result_jobs() -> Iterator[Row]:
    with service("--partition-rows", "10000") as (url, folder):
        yield from _explorer(url, folder)


def _explorer(url: str, folder: Path) -> Iterator[Row]:
    shell = Pty(folder, "-q", url)
    shell.until(b">")
    shell.quiet()
    shell.type("select 1 as a;\r")
    shell.until(b"1 row")
    shell.quiet()
    shell.type("\\browse\r")
    shell.until(b"row 1 of 1 ")
    shell.quiet()
    empty = _memory(shell.pid)
    shell.type("q")
    shell.quiet()
    shell.type(EIGHT.format(rows=LARGE).replace("\n", " ").strip() + " \\g | head -c 100 > /dev/null\r")
    shell.until(b"rows", 300)
    shell.quiet(1.0)
    shell.type("\\jobs 1\r")
    shell.quiet(1.0)
    opened, first = [], _first_partition(url, shell)
    for _ in range(5):
        shell.type("\\browse")
        shell.quiet(0.3)
        began = time.perf_counter()
        os.write(shell.descriptor, b"\r")
        shell.until(b"row 1 of 10,000,000", 10)
        opened.append(time.perf_counter() - began)
        shell.quiet()
        shell.type("q")
        shell.quiet()
    spent = statistics.median(opened)
    yield Row(
        f"explorer of {LARGE:,} rows: from Enter to the screen, the first partition's way in it",
        f"{spent * 1000:.0f} ms",
        f"{first * 1000:.0f} ms (httpx fetches that partition) + 200 ms",
        spent / (first + 0.2),
        "≤ 1",
    )
    shell.type("\\browse\r")
    shell.until(b"row 1 of 10,000,000")
    for number in [*range(SCREENS + 1), *reversed(range(SCREENS))]:
        at = max(1, LARGE * number // SCREENS)
        shell.type(f":{at}\r")
        # Only what changes is written, so that silence says that it is drawn.
        shell.quiet(0.15)
    used = _memory(shell.pid)
    shell.close()
    yield Row(
        "the shell's memory after walking to the end and back, beside an explorer of one row",
        f"{used / 2**20:.0f} MiB",
        f"{empty / 2**20:.0f} MiB + 50 MB",
        used / (empty + 50_000_000),
        "≤ 1",
    )


def _first_partition(url: str, shell: Pty) -> float:
    """Seconds that the first partition of the last result takes without us."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=url, headers=headers, timeout=120, trust_env=False) as wire:
        listed = wire.post("/v2/statements", json={"statement": "LIST QUERIES"}).json()
        known = [row[0] for row in listed["data"] if row[0] and re.fullmatch(r"[0-9a-f-]{36}", row[0])]
        for statement in reversed(known):
            found = wire.get(f"/v2/statements/{statement}").json()
            if (
                found.get("sqlState") == "00000"
                and sum(part["rowCount"] for part in (found.get("metadata") or {}).get("partitionInfo") or []) == LARGE
            ):
                spent = []
                for _ in range(5):
                    began = time.perf_counter()
                    wire.get(f"/v2/statements/{statement}", params={"partitionID": 0}).json()
                    spent.append(time.perf_counter() - began)
                return statistics.median(spent)
    raise SystemExit("the large result is not there")


def _memory(pid: int) -> int:
    status = Path("/proc", str(pid), "status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024
