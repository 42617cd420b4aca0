"""Benchmarks of engines that are external servers: the service beside the bare client of each, on the same server.

Needs PostgreSQL with psql, and the packages psycopg, pyspark-client and pysail. `--rows N` makes the results smaller.

What 1 M rows × 8 of PostgreSQL to CSV cost, in CPU seconds on two cores at a load of 15 (the least of five runs in
alternation; psql 0.66, PostgreSQL 0.45 for it):

- Before, with JSON partitions: client 1.65, service 1.11 to 1.15, PostgreSQL 0.46. The client's start is 0.25; all else
  is JSON to CSV in one thread, after the statement. Of the service, reading the lines of COPY took 0.5.
- With a Parquet file: client 1.52, service 1.04, PostgreSQL 0.48. What the client does beyond its start is mostly
  DuckDB's lines (0.55), in two threads. Of the service, reading takes 0.2: a list that holds a million lines until they
  are joined took 0.3 more than one buffer. While it reads, another thread parses (0.3 in Arrow) and writes Parquet
  (0.2, half of it snappy).
- DuckDB as the parser takes less (0.15), but its Parquet writer 0.5, and 420 to 490 MB of memory where Arrow needs 170.
  Columns that are all strings take 0.15 more than typed ones; no compression saves 0.03 of it, for twice the bytes.
- Without dictionaries of strings, writing takes 0.15 instead of 0.25, the file is no larger, and the client does not
  read it once more to measure the strings (0.08). To count `\\N` in the text took the service 0.06.
- What remains of the client is its start, the download (0.07) and the lines (0.6): of these, looking for characters
  that require quotes takes 0.15.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.measure import Row, environment, paired, peak_of, processes, run, service
from tests.benchmarks.peers import Cluster, postgres
from tests.benchmarks.service_jobs import client, read_all
from tests.benchmarks.service_jobs import run as run_statement
from tests.benchmarks.throughput_jobs import POSTGRES_ROWS, SHELL
from tests.service import sail

ROWS = 10_000_000
TIMES = 3
CLIENTS = 64
STATEMENTS = 20
"""Statements of each of the many clients."""

EIGHT_OF_SPARK = """
select cast(i as int) as id, (i * 7919) % 1000003 as code, concat('customer ', cast(i % 5000 as string)) as name,
       cast((i % 100000) / 100 as decimal(10,2)) as amount, i * cast(0.001 as double) as score, i % 3 = 0 as active,
       timestamp_seconds(1704067200 + i) as created,
       case when i % 10 = 0 then null when i % 97 = 0 then 'said "hi", left'
            else concat('note ', cast(i as string)) end as note
from range({rows}) as t(i)
"""
"""Eight mixed columns, as in the other benchmarks."""

PYSPARK = """
import os
import pyspark
# It looks for a distribution of Spark otherwise, which the client does not have.
os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)
from pyspark.sql import SparkSession
"""

BARE_SPARK = f"""{PYSPARK}
import sys, time
import duckdb
spark = SparkSession.builder.remote(sys.argv[1]).create()
spark.sql("select 1").toArrow()
began = time.perf_counter()
rows = spark.sql(sys.argv[2]).toArrow()
values = ", ".join(f'"{{name}}"::VARCHAR' for name in rows.column_names)
duckdb.execute(f"COPY (SELECT to_json([{{values}}]) FROM rows) TO 'bare.json' (FORMAT csv, QUOTE '', HEADER false)")
print(time.perf_counter() - began)
"""
"""toArrow(), and the rows as JSON arrays of strings, as the service hands them out."""

SMALL_SPARK = f"""{PYSPARK}
import statistics, sys, time
from concurrent.futures import ThreadPoolExecutor
def statements(count):
    spark = SparkSession.builder.remote(sys.argv[1]).create()
    spark.sql("select 1").toArrow()
    found = []
    for number in range(count):
        began = time.perf_counter()
        spark.sql(f"select {{number}}").toArrow()
        found.append(time.perf_counter() - began)
    return found
with ThreadPoolExecutor(int(sys.argv[2])) as threads:
    every = [item for each in threads.map(statements, [int(sys.argv[3])] * int(sys.argv[2])) for item in each]
print(statistics.median(every))
"""

SMALL_POSTGRESQL = """
import statistics, sys, time
from concurrent.futures import ThreadPoolExecutor
import psycopg
def statements(count):
    with psycopg.connect(sys.argv[1], autocommit=True) as connection:
        connection.execute("select 1").fetchall()
        found = []
        for number in range(count):
            began = time.perf_counter()
            connection.execute(f"select {number}").fetchall()
            found.append(time.perf_counter() - began)
    return found
with ThreadPoolExecutor(int(sys.argv[2])) as threads:
    every = [item for each in threads.map(statements, [int(sys.argv[3])] * int(sys.argv[2])) for item in each]
print(statistics.median(every))
"""


def engines(rows: int = ROWS) -> Iterator[Row]:
    with sail.running() as url:
        engine = ("--engine", "spark", "--engine-url", url)
        yield from _large(url, engine, rows)
        yield _memory(engine, rows)
        yield from _small("Sail", engine, "pyspark", partial(_printed, SMALL_SPARK, url))
    with postgres() as cluster:
        engine = ("--engine", "postgresql", "--engine-url", _url(cluster))
        yield _to_csv(cluster, engine, rows // 10)
        yield from _small("PostgreSQL", engine, "psycopg", partial(_printed, SMALL_POSTGRESQL, cluster.dsn))


def _url(cluster: Cluster) -> str:
    return f"postgresql://postgres@127.0.0.1:{cluster.port}/postgres"


def _printed(program: str, *argv: str) -> float:
    """The number that a program in Python prints."""
    with TemporaryDirectory(prefix="sqlshell-bench-") as folder:
        done = subprocess.run(
            [sys.executable, "-c", program, *argv],
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment(Path(folder)),
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"the reference failed: {done.stderr[-1000:]}")
    return float(done.stdout.split()[-1])


def _read(url: str, sql: str) -> float:
    """The seconds of a SELECT and of reading all its partitions."""
    with client(url) as wire:
        began = time.perf_counter()
        found = run_statement(wire, sql)
        read_all(url, found["statementID"], list(range(len(found["metadata"]["partitionInfo"]))))
        return time.perf_counter() - began


def _large(server: str, engine: tuple[str, ...], rows: int) -> Iterator[Row]:
    sql = EIGHT_OF_SPARK.format(rows=rows)
    with service(*engine) as (url, _):
        ours, reference = paired(
            lambda: _read(url, sql), lambda: _printed(BARE_SPARK, server, sql), TIMES if rows > 1_000_000 else 1
        )
    yield Row(
        f"Sail: SELECT of {rows:,} rows × 8, every partition read",
        f"{ours:.2f} s",
        f"{reference:.2f} s (toArrow() and JSON in one process)",
        ours / reference,
        "≤ 2",
    )


def _memory(engine: tuple[str, ...], rows: int) -> Row:
    def peak(count: int) -> float:
        with service(*engine) as (url, folder):
            _read(url, EIGHT_OF_SPARK.format(rows=count))
            return peak_of(folder) / (1 << 20)

    tenth, whole = peak(rows // 10), peak(rows)
    job = f"Sail: the most memory of the service, {rows:,} rows × 8"
    return Row(job, f"{whole:.0f} MiB", f"{tenth:.0f} MiB ({rows // 10:,} rows)", whole / tenth, "≤ 1.1")


def _to_csv(cluster: Cluster, engine: tuple[str, ...], rows: int) -> Row:
    run(cluster.psql("-c", POSTGRES_ROWS.format(rows=rows)), Path.cwd())
    sql = "select * from rows"
    with service(*engine) as (url, folder):
        ours, reference = paired(
            lambda: run([*SHELL, url, "-c", sql, "--format", "csv", "-o", "ours.csv"], folder)[0],
            lambda: run(cluster.psql("--csv", "-c", sql, "-o", "psql.csv"), folder)[0],
            TIMES,
        )
        sizes = {folder.joinpath(name).read_bytes().count(b"\n") for name in ("ours.csv", "psql.csv")}
    if sizes != {rows + 1}:
        raise SystemExit(f"{sizes} lines instead of {rows + 1}")
    job = f"PostgreSQL: {rows:,} rows × 8 to CSV"
    return Row(job, f"{ours:.2f} s", f"{reference:.2f} s (psql --csv)", ours / reference, "≤ 1.5")


def _small(product: str, engine: tuple[str, ...], name: str, bare: Callable[[str, str], float]) -> Iterator[Row]:
    """One client, and many at the same time: the median of a small statement."""
    with service(*engine) as (url, folder):

        def statements(session: str, count: int) -> list[float]:
            with client(url) as wire:
                run_statement(wire, "select 1", session)
                found = []
                for number in range(count):
                    began = time.perf_counter()
                    run_statement(wire, f"select {number}", session)
                    found.append(time.perf_counter() - began)
            return found

        for clients, count in ((1, 10 * STATEMENTS), (CLIENTS, STATEMENTS)):
            with ThreadPoolExecutor(clients) as threads:
                sessions = [f"bench{number}" for number in range(clients)]
                every = sorted(item for each in threads.map(statements, sessions, [count] * clients) for item in each)
            reference = bare(str(clients), str(count))
            ours = statistics.median(every)
            added = f"{1000 * (ours - reference):+.1f} ms"
            late = f", p99 {1000 * every[len(every) * 99 // 100]:.0f} ms, {len(processes(folder))} process"
            yield Row(
                f"{product}: `select 1`, {clients} client{'s' * (clients > 1)}",
                f"{1000 * ours:.1f} ms ({added}{late * (clients > 1)})",
                f"{1000 * reference:.2f} ms ({name})",
                ours / reference,
                "+ ≤ 5 ms" if clients == 1 else "",
            )
