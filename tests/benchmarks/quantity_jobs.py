"""Benchmarks of many small statements, compared with a loop of DuckDB in Python over the same statements."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.delay import away
from tests.benchmarks.measure import Row, paired, run, service

SHELL = [sys.executable, "-m", "sqlshell", "-q"]
REFERENCE = [sys.executable, str(Path(__file__).with_name("reference.py"))]
COUNT = 10_000
TABLE = "create or replace table quantity (id integer, name varchar, amount double);\n"
AWAY_SECONDS = 0.02


def quantity(times: int = 3) -> Iterator[Row]:
    inserts = TABLE + "".join(f"insert into quantity values ({i}, 'name {i}', {i}.5);\n" for i in range(COUNT))
    selects = "select 1;\n" * COUNT
    with TemporaryDirectory(prefix="sqlshell-bench-") as name:
        yield _row("single-row INSERTs, embedded", [], inserts, Path(name), "", times)
        yield _row("single-row INSERTs into a file", ["ours.duckdb"], inserts, Path(name), "bare.duckdb", times)
        yield _row("`select 1;`, embedded", [], selects, Path(name), "", times)
    with TemporaryDirectory(prefix="sqlshell-bench-") as name, service("--data", name) as (url, folder):
        yield _row("single-row INSERTs to `serve --data`", [url], inserts, folder, "bare.duckdb", times)
    with service() as (url, folder):
        yield _row("`select 1;` to `serve`", [url], selects, folder, "", times)
        with away(url, AWAY_SECONDS) as far:
            began = time.perf_counter()
            run([*SHELL, far, "--format", "csv"], folder, b"select 1;\n" * 1000)
            seconds = time.perf_counter() - began
        yield Row("1,000 `select 1;`, network delay 20 ms each way", f"{seconds:.2f} s", "5 s", seconds / 5, "≤ 1")


def _row(what: str, target: Sequence[str], script: str, folder: Path, database: str, times: int) -> Row:
    path = folder / "script.sql"
    path.write_text(script)
    argv = [*SHELL, *target, "-f", str(path), "--format", "csv"]
    ours, reference = paired(
        lambda: run(argv, folder)[0],
        lambda: run([*REFERENCE, "loop", database or ":memory:", str(path)], folder)[0],
        times,
    )
    told = f"{reference:.2f} s (a loop of DuckDB in Python, {'a file' if database else 'in memory'})"
    return Row(f"{COUNT:,} {what}", f"{ours:.2f} s", told, ours / reference, "≤ 2")
