"""Benchmarks of memory: many wide rows, thousands of columns, one enormous value."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.measure import Row, held_by, peak_of, run, service

SHELL = [sys.executable, "-m", "sqlshell", "-q"]
MB = 1_000_000
WIDE = "select i, repeat(chr(97 + (i % 26)::int), 5000) as s from range({rows}) t(i)"
REPEATED = "select i, repeat('x', 5000) as s from range({rows}) t(i)"
CELL = "select repeat('x', 200000000) as x"
BARE = 'import duckdb; duckdb.connect().execute("select to_json(x) from ({})").fetchall()'
RESTED = 5.0
"""Seconds after which a service that nobody reads from is looked at."""


def memory_jobs() -> Iterator[Row]:
    yield from wide_rows(WIDE, "of 5 kB")
    yield from wide_rows(REPEATED, "with the same 5 kB")
    yield from many_columns()
    yield from enormous_value()


def wide_rows(sql: str, what: str, rows: int = 1_000_000) -> Iterator[Row]:
    sql = sql.format(rows=rows)
    with service() as (url, folder):
        before = run([*SHELL, url, "-c", "select 1"], folder)[1]
        start = held_by(folder)
        client = run([*SHELL, url, "-c", sql, "--format", "csv"], folder)[1] - before
        most = peak_of(folder) - start
        time.sleep(RESTED)
        after = held_by(folder) - start
        embedded = run([*SHELL, "-c", sql, "--format", "csv"], folder)[1]
    job = f"{rows:,} rows {what} to CSV: "
    yield _limited(f"{job}memory of the client, above its start", client, 250)
    yield _limited(f"{job}memory of the service", most, 250)
    yield _limited(f"{job}memory of the service {RESTED:g} s later", after, 100)
    yield _limited(f"{job}memory of an embedded service and its client", embedded, 400)


def many_columns(columns: int = 2_000, rows: int = 10_000) -> Iterator[Row]:
    duckdb = str(Path(sys.executable).with_name("duckdb"))
    with TemporaryDirectory(prefix="sqlshell-bench-") as name:
        folder = Path(name)
        for what, value in (("integers", "i + {}"), ("texts", "'value ' || (i * {})")):
            values = ", ".join(f"{value.format(number)} as c{number}" for number in range(columns))
            (folder / "wide.sql").write_text(f"select {values} from range({rows}) t(i)")
            theirs = run([duckdb, "-csv", "-f", "wide.sql"], folder)[1]
            ours = run([*SHELL, "-f", "wide.sql", "--format", "csv"], folder)[1]
            yield _compared(f"{columns:,} columns × {rows:,} {what} to CSV", ours, theirs, "DuckDB's CLI", "≤ 1.2")


def enormous_value() -> Iterator[Row]:
    with service() as (url, folder):
        theirs = run([sys.executable, "-c", BARE.format(CELL)], folder)[1]
        embedded = run([*SHELL, "-c", CELL, "--format", "csv"], folder)[1]
        drawn = run([*SHELL, "-c", CELL], folder)[1]
        # The limit of a response from elsewhere is lower by default.
        client = run(["env", "SQLSHELL_ANSWER_LIMIT=300", *SHELL, url, "-c", CELL, "--format", "csv"], folder)[1]
        served = peak_of(folder)
    reference = "DuckDB in Python, as JSON"
    yield _compared("one value of 200 MB to CSV, embedded", embedded, theirs, reference, "≤ 1.5")
    yield _compared("the same as a table", drawn, theirs, reference, "≤ 1.5")
    yield _compared("one value of 200 MB from a service: the client", client, theirs, reference, "≤ 1.5")
    yield _compared("and the service", served, theirs, reference, "≤ 1.5")


def _limited(job: str, held: int, limit: int) -> Row:
    return Row(job, f"{held / MB:.0f} MB", f"{limit} MB", held / MB / limit, "≤ 1")


def _compared(job: str, ours: int, theirs: int, name: str, target: str) -> Row:
    return Row(job, f"{ours / MB:.0f} MB", f"{theirs / MB:.0f} MB ({name})", ours / theirs, target)
