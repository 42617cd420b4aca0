"""Benchmarks of many INSERTs, compared with a loop of DuckDB in Python over the same statements."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.measure import Row, paired, run, service

SHELL = [sys.executable, "-m", "sqlshell", "-q"]
REFERENCE = [sys.executable, str(Path(__file__).with_name("reference.py"))]
COUNT = 10_000
TABLE = "create or replace table quantity (id integer, name varchar, amount double);\n"


def quantity(times: int = 3) -> Iterator[Row]:
    inserts = TABLE + "".join(f"insert into quantity values ({i}, 'name {i}', {i}.5);\n" for i in range(COUNT))
    with TemporaryDirectory(prefix="sqlshell-bench-") as name:
        yield _row("single-row INSERTs, embedded", [], inserts, Path(name), "", times)
        yield _row("single-row INSERTs into a file", ["ours.duckdb"], inserts, Path(name), "bare.duckdb", times)
    with TemporaryDirectory(prefix="sqlshell-bench-") as name, service("--data", name) as (url, folder):
        yield _row("single-row INSERTs to `serve --data`", [url], inserts, folder, "bare.duckdb", times)


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
