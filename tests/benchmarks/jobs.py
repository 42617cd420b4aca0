"""The benchmarks of the program, each against a reference in the same run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.benchmarks.client_jobs import faults, stream
from tests.benchmarks.cluster_jobs import cluster
from tests.benchmarks.engine_jobs import engines
from tests.benchmarks.hostile.jobs import hostile
from tests.benchmarks.measure import Row, paired, run, service
from tests.benchmarks.prompt_jobs import prompt_jobs
from tests.benchmarks.quantity_jobs import quantity
from tests.benchmarks.result_jobs import result_jobs
from tests.benchmarks.service_jobs import kills
from tests.benchmarks.throughput_jobs import throughput

SHELL = [sys.executable, "-m", "sqlshell", "-q"]
REFERENCE = [sys.executable, str(Path(__file__).with_name("reference.py"))]

MIXED = """
select i::integer as id, (i * 7919) % 1000003 as code, 'customer ' || (i % 5000) as name,
       (i % 100000) / 100::decimal(10,2) as amount, i * 0.001::double as score, i % 3 = 0 as active,
       timestamp '2024-01-01' + to_seconds(i) as created,
       case when i % 10 = 0 then null when i % 97 = 0 then 'said "hi", left' else 'note ' || i end as note
from range({rows}) t(i)
"""
"""Eight mixed columns: integers, a decimal, a double, a boolean, a timestamp, texts, NULLs, and some quoting."""


def startup(times: int = 15) -> Iterator[Row]:
    with service() as (url, folder):
        ours, reference = paired(
            lambda: run([*SHELL, url, "-c", "select 1"], folder)[0],
            lambda: run([sys.executable, "-c", "import httpx"], folder)[0],
            times,
        )
        yield _milliseconds("`-c 'select 1'` on a remote service", ours, reference, "import httpx", "≤ 1.8")
        ours, reference = paired(
            lambda: run([*SHELL, "-c", "select 1"], folder)[0],
            lambda: run([sys.executable, "-c", "import duckdb, httpx"], folder)[0],
            times,
        )
        yield _milliseconds("`-c 'select 1'` on the embedded service", ours, reference, "import duckdb, httpx", "≤ 1.8")


def export(times: int = 5, rows: int = 1_000_000) -> Iterator[Row]:
    with service() as (url, folder):
        sql = MIXED.format(rows=rows)
        ours, reference = paired(
            lambda: run([*SHELL, url, "-c", sql, "-o", "ours.csv"], folder)[0],
            lambda: run([*REFERENCE, "export", url, sql, "reference.csv"], folder)[0],
            times,
        )
        yield Row(
            f"{rows:,} rows × 8 columns to CSV",
            f"{ours:.2f} s",
            f"{reference:.2f} s (httpx, msgspec, csv.writer in turn)",
            ours / reference,
            "≤ 0.8",
        )


def memory() -> Iterator[Row]:
    with service() as (url, folder):

        def peak(rows: int) -> float:
            argv = [*SHELL, url, "--format", "csv", "-c", MIXED.format(rows=rows)]
            return run(argv, folder)[1] / (1 << 20)

        one, ten = peak(1_000_000), peak(10_000_000)
        yield Row(
            "10,000,000 rows × 8 columns to CSV: peak memory of the client",
            f"{ten:.0f} MiB",
            f"{one:.0f} MiB (1 M rows)",
            ten / one,
            "0.9 to 1.1, < 150 MB",
        )


def _milliseconds(job: str, ours: float, reference: float, name: str, target: str) -> Row:
    return Row(job, f"{ours * 1000:.0f} ms", f"{reference * 1000:.0f} ms (`{name}`)", ours / reference, target)


JOBS: dict[str, Callable[..., Iterator[Row]]] = {
    "startup": startup,
    "export": export,
    "memory": memory,
    "quantity": quantity,
    "kills": kills,
    "hostile": hostile,
    "faults": faults,
    "stream": stream,
    "interactive": prompt_jobs,
    "results": result_jobs,
    "throughput": throughput,
    "cluster": cluster,
    "engines": engines,
}
