"""Runs each attack in a separate process, and measures its effect on a client of another organization."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from tests.benchmarks.hostile.attacks import ATTACKS
from tests.benchmarks.measure import TOKEN, Row, environment, service

QUIET_SECONDS = 2.0
QUIET = 3
"""Seconds that the client is alone before each attack, and how many of those it is compared with."""

ATTACK_SECONDS = 4.0
BEFORE = 1.0
"""Seconds that an attack goes on before the other client is looked at."""

SETTLED_SECONDS = 12.0
"""Seconds after an attack in which the service's memory has to be back."""

MIB = 1 << 20
MORE = 100
"""MiB that the service may hold above its start once an attack is over."""

TARGET = f"p99 ≤ 3, no error, back to ≤ +{MORE} MiB"
PARTITION_ROWS = 10_000


def hostile() -> Iterator[Row]:
    """All attacks, or those whose names have a text of SQLSHELL_ATTACKS (with commas between) in them."""
    wanted = [text for text in os.environ.get("SQLSHELL_ATTACKS", "").split(",") if text]
    chosen = [name for name in ATTACKS if not wanted or any(text in name for text in wanted)]
    with TemporaryDirectory(prefix="sqlshell-hostile-") as data:
        options = ("--data", data, "--threads", "2", "--memory", "1GB", "--partition-rows", str(PARTITION_ROWS))
        with service(*options) as (url, folder):
            attacker, bystander = _tokens(url)
            process = int(folder.joinpath("pid").read_text())
            _client(url, bystander, 0, folder)
            quiet = [_client(url, bystander, QUIET_SECONDS, folder)["taken"] for _ in range(QUIET)]
            start = memory(process)
            for name in chosen:
                quiet = [*quiet[1:], _client(url, bystander, QUIET_SECONDS, folder)["taken"]]
                alone = p99([one for window in quiet for one in window])
                yield _beside(name, url, attacker, bystander, folder, process, start, alone)


def _beside(
    name: str, url: str, attacker: str, bystander: str, folder: Path, process: int, start: int, alone: float
) -> Row:
    with _attack(name, url, attacker, folder) as attack:
        time.sleep(BEFORE)
        beside = _client(url, bystander, ATTACK_SECONDS, folder)
        most = memory(process) - start
        did = _result(attack)
    after = memory(process) - start
    until = time.monotonic() + SETTLED_SECONDS
    while after > MORE * MIB and time.monotonic() < until:
        time.sleep(0.5)
        after = memory(process) - start
    taken = p99(beside["taken"])
    failures = beside["failures"]
    told = f"{taken * 1000:.0f} ms, {len(failures)} errors, {most / MIB:+.0f} MiB, later {after / MIB:+.0f} MiB"
    message = ", ".join(f"{what}: {number:,}" for what, number in did.items())
    if failures:
        sys.stderr.write(f"{name}: {failures[0]}\n")
    return Row(f"beside: {name} ({message})", told, f"{alone * 1000:.0f} ms (quiet)", taken / alone, TARGET)


def p99(taken: list[float]) -> float:
    return sorted(taken)[max(0, int(len(taken) * 0.99) - 1)]


def memory(process: int) -> int:
    """The bytes that a process and its children hold, pages that they share counted once (Linux)."""
    held = 0
    for one in _family(process):
        try:
            text = Path("/proc", str(one), "smaps_rollup").read_text()
        except (OSError, ProcessLookupError):
            continue
        held += int(text.partition("\nPss:")[2].split()[0]) * 1024
    return held


def _family(process: int) -> list[int]:
    found = [process]
    for task in Path("/proc", str(process), "task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in children:
            found += _family(int(child))
    return found


@contextmanager
def _attack(name: str, url: str, token: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    # After everybody else: what the attacker itself computes is no part of what is measured.
    argv = ["nice", "-n", "19", sys.executable, "-m", "tests.benchmarks.hostile.attacks", name, url]
    argv.append(str(BEFORE + ATTACK_SECONDS + 1))
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=_environment(token, folder))
    try:
        assert process.stdout is not None
        if process.stdout.readline() != "begun\n":
            raise SystemExit(f"{name} did not begin")
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _result(process: subprocess.Popen[str]) -> dict[str, int]:
    out, _ = process.communicate(timeout=60)
    if process.returncode:
        raise SystemExit(f"{process.args!r} failed")
    return dict(json.loads(out))


def _client(url: str, token: str, seconds: float, folder: Path) -> dict[str, Any]:
    argv = [sys.executable, "-m", "tests.benchmarks.hostile.bystander", url, str(seconds)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=True, env=_environment(token, folder))
    return dict(json.loads(done.stdout))


def _environment(token: str, folder: Path) -> dict[str, str]:
    return environment(folder) | {"SQLSHELL_TOKEN": token}


def _tokens(url: str) -> tuple[str, str]:
    """A token for each of two organizations: of the attacker, and of the one beside."""
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False) as wire:

        def run(sql: str, **more: str) -> Any:
            answer = wire.post("/v2/statements", json={"statement": sql} | more)
            while answer.status_code == 202:
                time.sleep(0.02)
                answer = wire.get(f"/v2/statements/{answer.json()['statementID']}")
            if answer.status_code != 200 or answer.json()["sqlState"] != "00000":
                raise SystemExit(f"{sql}: {answer.text}")
            return answer.json()["data"]

        made = []
        for name in ("attackers", "others"):
            run(f"create organization {name}")
            token = run("create api_token t with ('role' = 'owner')", organization=name)[0][1]
            made.append(str(token))
        return made[0], made[1]
