"""The benchmarks of the program, each against a reference in the same run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import sqlparse

from sqlshell.sql.script.scanner import Scanner
from tests.benchmarks.client_jobs import connector, faults, polling, stream
from tests.benchmarks.cluster_jobs import cluster
from tests.benchmarks.engine_jobs import engines
from tests.benchmarks.hostile.jobs import hostile
from tests.benchmarks.measure import Row, paired, run, service
from tests.benchmarks.memory_jobs import memory_jobs
from tests.benchmarks.prompt_jobs import prompt_jobs
from tests.benchmarks.quantity_jobs import quantity
from tests.benchmarks.result_jobs import result_jobs
from tests.benchmarks.service_jobs import kills, service_jobs
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


def statements(times: int = 5, count: int = 1_000) -> Iterator[Row]:
    with service() as (url, folder):
        script = b"select 1;\n" * count
        ours, reference = paired(
            lambda: run([*SHELL, url, "--format", "csv"], folder, script)[0],
            lambda: run([*REFERENCE, "posts", url, str(count)], folder)[0],
            times,
        )
        yield Row(
            f"{count:,} `select 1;` piped in",
            f"{ours:.2f} s",
            f"{reference:.2f} s (bare httpx POSTs)",
            ours / reference,
            "≤ 1.5",
        )


def script(size: int) -> str:
    """A script of about `size` characters: inserts, comments, quotes of every kind, functions."""
    block = (
        "-- orders of the day; not the end\n"
        "insert into orders (id, name, note) values (1, 'O''Brien; Ltd', 'a; b'), (2, 'x', null);\n"
        "/* a comment; /* inside */ more */ select \"od;d\", count(*) from orders where name like '%;%' group by 1;\n"
        "create function f() as $$ select 1; select 2; $$;\n"
        "update orders set note = E'it\\'s; fine' where id in (select id from orders where note is null);\n"
    )
    return block * (size // len(block) + 1)


def splitting(size: int = 50_000_000, reference_size: int = 1_000_000) -> Iterator[Row]:
    text = script(size)[:size]
    first = text[:reference_size]
    began = time.perf_counter()
    sqlparse.split(first)
    reference = (time.perf_counter() - began) / len(first)
    with TemporaryDirectory(prefix="sqlshell-bench-") as folder:
        path = Path(folder, "script.sql")
        path.write_text(text)
        del text
        scanner = Scanner()
        count = 0
        began = time.perf_counter()
        with path.open() as file:
            while chunk := file.read(1 << 16):
                count += sum(1 for _ in scanner.items(chunk))
        count += sum(1 for _ in scanner.items(None))
        ours = (time.perf_counter() - began) / size
    yield Row(
        f"{size // 1_000_000} MB script split ({count:,} statements)",
        f"{1e-6 / ours:.1f} MB/s",
        f"{1e-6 / reference:.2f} MB/s (sqlparse.split, 1 MB)",
        reference / ours,
        "≥ 30 × faster",
    )


def _milliseconds(job: str, ours: float, reference: float, name: str, target: str) -> Row:
    return Row(job, f"{ours * 1000:.0f} ms", f"{reference * 1000:.0f} ms (`{name}`)", ours / reference, target)


JOBS: dict[str, Callable[..., Iterator[Row]]] = {
    "startup": startup,
    "export": export,
    "memory": memory,
    "wide": memory_jobs,
    "statements": statements,
    "quantity": quantity,
    "splitting": splitting,
    "service": service_jobs,
    "kills": kills,
    "hostile": hostile,
    "faults": faults,
    "polling": polling,
    "connector": connector,
    "stream": stream,
    "interactive": prompt_jobs,
    "results": result_jobs,
    "throughput": throughput,
    "cluster": cluster,
    "engines": engines,
}
