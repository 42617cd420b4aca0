"""Benchmarks of data in and out, beside psql, the DuckDB CLI, DuckDB in Python and psycopg.

Each row prints seconds by the clock and, behind them, CPU seconds of the program and of its service. The ratio is that
of the clock; on a busy machine that of the CPU, which the name of the row has, is steadier.

What bounds the rows, in CPU seconds on a machine where psql takes 1.4 to write the million rows as CSV (two cores that
others use, too):

- CSV through `serve`, client 2.8: start and imports 0.9 (of which DuckDB 0.3; psql has none), DuckDB's lines 1.25 (of
  which two DOUBLE columns as text 0.5, timestamps 0.14, quoting 0.15, joining the parts of a line 0.3), and the rest
  copies, the file and the connection. Service 1.1, of which COPY to Parquet 0.65; it was 1.6 when the partitions of the
  first 16 MiB were rendered with the first one, and the file did not have PARQUET_VERSION V2 (30 MB instead of 7.5 MB).
- JSON partitions, client 2.9 (3.9 before): start and imports 0.7, csv_from_json 1.1 (1.7 before; separators 0.5, NULLs
  0.2, the comparison of the form 0.15), counting the rows 0.2. Rows with a backslash are cut out first, so that the
  others are not split. Service 2.8 (3.6 before): COPY to Parquet 0.65, rendering 1.2 (2.0 before, when each row became
  a Python string), of which two DOUBLE columns 0.45, and copies from process to process.
- Aligned table: rows that were padded in Python, from JSON partitions, took 10.5 beyond the start. DuckDB pads them
  now, from the result's file: 3.4, of which the lines 1.5, their way to Python, the checks for secrets and the file
  the rest. psql takes 5.6. Lines of about a MiB with a control character or an emoji still go through Python.
- Import: the client parses the CSV and writes a typed copy (sniffing 0.07, reading the CSV 0.5, Parquet 0.5, SHA-256 of
  the file 0.13), the service loads it (1.6, of which DuckDB's table 0.9; reading the copy takes 0.1 with every
  compression and version of Parquet that was tried). DuckDB's reader rounds fractions of integers silently: integers
  are texts to it, and the conversion compares each with its number written again (0.06; a scan for fractions took 0.2).
  Another scan looks for an empty field too many (0.13). PARQUET_VERSION V2 makes the copy 6 MB instead of 28.
- xlsx takes as long as a bare loop of XlsxWriter in constant memory over the same values, some 15 per 300,000 rows.
- Parquet file to CSV, embedded, 3.4: start and imports 1.1, writing the rows to a second Parquet file 0.8, so that the
  result can be read again (the DuckDB CLI does not do this), text from this file 1.3, of which DuckDB's lines 0.8. The
  second file took 0.15 longer with dictionaries for strings that hardly repeat; LZ4 instead of snappy gains nothing.
  COPY to CSV of DuckDB alone takes 1.1, the CLI 2.2.
- The same to Parquet: one COPY of the result's file, with the names and types of the columns, beside one of DuckDB. A
  footer with those names, written behind the pages of the embedded service's file, saved 0.55 and took 192 lines.
  What follows the start takes as long as all of the reference. jsonl, 3.9 (reference 1.6 to 2.0), has the same start
  and COPY, and 1.5 for the lines.
- Arrow, embedded: the service's COPY alone takes 0.8, where DuckDB's own stream of the Parquet file takes 0.3 with
  import. Twice that cannot be reached as long as a result is written when its statement runs; an in-memory table of
  DuckDB would take 0.3, but its size has no bound on disk. No form of the file changes this: the COPY takes 0.42 to
  0.45 with snappy, LZ4, zstd or no compression, 0.4 with PARQUET_VERSION V1 and 0.33 with large row groups and no
  dictionaries (75 MB instead of 10), a table in a database file 0.8, where DuckDB's whole stream takes 0.17. Of 0.95 in
  all the file's fetch is 0.11 and its stream 0.14. The stream kept in memory instead of the file takes 0.11 where the
  COPY takes 0.3, but its arrays have 131,072 rows, however wide these are: the memory would have no bound.
- `\\local` on 1 M rows: nothing that could be measured after the SELECT, since its table is a view of the file.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.measure import Cost, Row, cost, cpu_of, environment, peak_of, service
from tests.benchmarks.peers import DUCKDB, Cluster, postgres, versions
from tests.benchmarks.service_jobs import EIGHT

TIMES = 5
ROWS = 1_000_000
MEMORY = 400_000_000

SHELL = [sys.executable, "-m", "sqlshell", "-q"]
WITHOUT_FILES = [
    sys.executable,
    "-c",
    "from sqlshell.client.results import factory; factory.EXTENSION = 'none'; "
    "from sqlshell.__main__ import main; main()",
    "-q",
]
"""The shell, which reads JSON partitions even if the service has the result as a file."""

POSTGRES_ROWS = """
create table rows as
select i::int as id, (i * 7919) % 1000003 as code, 'customer ' || (i % 5000) as name,
       ((i % 100000) / 100.0)::numeric(10,2) as amount, i * 0.001::float8 as score, i % 3 = 0 as active,
       timestamp '2024-01-01' + i * interval '1 second' as created,
       case when i % 10 = 0 then null when i % 97 = 0 then 'said "hi", left' else 'note ' || i end as note
from generate_series(0::bigint, {rows} - 1) t(i)
"""
"""The rows of EIGHT."""

COLUMNS = (
    "id int, code bigint, name varchar, amount decimal(10,2), score double precision, active boolean, "
    "created timestamp, note varchar"
)

BARE = "import sys, duckdb; duckdb.connect().execute(sys.argv[1])"

TIMED = """
import resource, sys, time
def used():
    times = resource.getrusage(resource.RUSAGE_SELF)
    return times.ru_utime + times.ru_stime
def timed(job):
    began, cpu = time.perf_counter(), used()
    job()
    print(time.perf_counter() - began, used() - cpu)
"""

CONSUME = """
def consume(stream):
    # Reads an Arrow C stream to its end without looking at it.
    import ctypes
    from sqlshell.interface.arrow import Array, Stream, _pointer
    capsule = stream.__arrow_c_stream__()
    found = Stream.from_address(_pointer(capsule, b"arrow_array_stream"))
    while True:
        array = Array()
        assert not found.get_next(ctypes.byref(found), ctypes.byref(array))
        if not array.release:
            break
        array.release(ctypes.byref(array))
"""

DBAPI = """
import sqlshell
cursor = sqlshell.connect(sys.argv[1]).cursor()
cursor.execute("select 1").fetchall()
"""
TO_PYTHON = TIMED + DBAPI + "timed(lambda: cursor.execute(sys.argv[2]).fetchall())"
TO_ARROW = TIMED + CONSUME + DBAPI + "timed(lambda: consume(cursor.execute(sys.argv[2]).fetch_arrow()))"

PSYCOPG = f"""{TIMED}
import psycopg
cursor = psycopg.connect(sys.argv[1]).cursor()
cursor.execute("select 1").fetchall()
timed(lambda: cursor.execute(sys.argv[2]).fetchall())
"""

DUCKDB_ARROW = f"""{TIMED}{CONSUME}
import duckdb
connection = duckdb.connect(sys.argv[1])
timed(lambda: consume(connection.sql(sys.argv[2])))
"""


Job = Callable[[], Cost]


def throughput() -> Iterator[Row]:
    sys.stdout.write(f"{versions()}\n")
    with postgres() as cluster, TemporaryDirectory(prefix="sqlshell-bench-") as name:
        folder = Path(name)
        subprocess.run(cluster.psql("-c", POSTGRES_ROWS.format(rows=ROWS)), check=True)
        subprocess.run(cluster.psql("-c", f"create table loaded ({COLUMNS})"), check=True)
        cost([sys.executable, "-c", BARE, f"COPY ({EIGHT.format(rows=ROWS)}) TO 'rows.parquet'"], folder)
        cost([sys.executable, "-c", BARE, "COPY (FROM 'rows.parquet') TO 'rows.csv'"], folder)
        with service() as (url, place):
            cost([*SHELL, url, "-c", f"create table rows as {EIGHT.format(rows=ROWS)}"], folder)
            cost([*SHELL, url, "-c", f"create table loaded ({COLUMNS})"], folder)
            yield from _served(url, place, cluster, folder)
            yield from _loading(url, place, cluster, folder)
            yield from _programs(url, place, cluster, folder)
        yield from _embedded(folder)
    yield from _large()


def _served(url: str, place: Path, cluster: Cluster, folder: Path) -> Iterator[Row]:
    query = "select * from rows"

    def ours(shell: Sequence[str], form: str) -> Job:
        argv = [*shell, url, "-c", query, "--format", form, "-o", f"ours.{form}"]
        return lambda: cost(argv, folder, place)

    def theirs(*options: str) -> Job:
        return lambda: cost(cluster.psql(*options, "-c", query), folder, cluster.pid)

    csv = theirs("--csv", "-o", "theirs.csv")
    million = f"{ROWS // 1_000_000} M × 8"
    yield _compared(f"{million} to CSV through `serve`", ours(SHELL, "csv"), csv, "psql --csv", "≤ 1.2")
    yield _compared(f"{million} to CSV, JSON partitions", ours(WITHOUT_FILES, "csv"), csv, "psql --csv", "≤ 2.0")
    table = theirs("-o", "theirs.txt")
    yield _compared(f"{million} to an aligned table in a file", ours(SHELL, "table"), table, "psql", "≤ 1.0")


def _loading(url: str, place: Path, cluster: Cluster, folder: Path) -> Iterator[Row]:
    def ours() -> Cost:
        cost([*SHELL, url, "-c", "truncate loaded"], folder)
        return cost([*SHELL[:-1], "import", "-q", "rows.csv", url, "--table", "loaded"], folder, place)

    def theirs() -> Cost:
        subprocess.run(cluster.psql("-c", "truncate loaded"), check=True)
        return cost(cluster.psql("-c", r"\copy loaded from rows.csv csv header"), folder, cluster.pid)

    yield _compared("import of 1 M × 8 CSV into `serve`", ours, theirs, r"psql \copy", "≤ 1.5")


def _programs(url: str, place: Path, cluster: Cluster, folder: Path) -> Iterator[Row]:
    query = "select * from rows"
    yield _compared(
        "DB-API: 1 M × 8 typed rows to Python",
        lambda: _told([sys.executable, "-c", TO_PYTHON, url, query], folder, place),
        lambda: _told([sys.executable, "-c", PSYCOPG, cluster.dsn, query], folder, cluster.pid),
        "psycopg fetchall",
        "≤ 1.5",
    )
    from_file = "select * from 'rows.parquet'"
    duckdb = [sys.executable, "-c", DUCKDB_ARROW, ":memory:", from_file]
    for what, server, target, sql in (
        ("embedded", None, ":memory:", from_file),
        ("through `serve`", place, url, query),
    ):
        argv = [sys.executable, "-c", TO_ARROW, target, sql]
        yield _compared(
            f"DB-API: 1 M × 8 to Arrow, {what}",
            partial(_told, argv, folder, server),
            partial(_told, duckdb, folder),
            "DuckDB's own Arrow",
            "≤ 2",
        )


def _embedded(folder: Path) -> Iterator[Row]:
    def ours(form: str) -> Job:
        argv = [*SHELL, "rows.parquet", "-c", "from rows", "--format", form, "-o", f"ours.{form}"]
        return lambda: cost(argv, folder)

    def theirs(path: str) -> Job:
        argv = [sys.executable, "-c", BARE, f"COPY (FROM 'rows.parquet') TO '{path}'"]
        return lambda: cost(argv, folder)

    def cli() -> Cost:
        with (folder / "theirs.csv").open("wb") as file:
            return cost([DUCKDB, "-csv", "-c", "from 'rows.parquet'"], folder, stdout=file.fileno())

    yield _compared("1 M × 8 Parquet file to CSV, embedded", ours("csv"), cli, "duckdb -csv", "≤ 1.5")
    for form, target in (("parquet", "≤ 2"), ("jsonl", "≤ 2")):
        try:
            yield _compared(f"the same to {form}", ours(form), theirs(f"theirs.{form}"), "DuckDB's COPY", target)
        except SystemExit as error:
            sys.stdout.write(f"{form}: {error}\n")


def _large() -> Iterator[Row]:
    """Ten times the rows take ten times as long, in bounded memory."""
    with service() as (url, place):

        def export(rows: int) -> Cost:
            sql = f"{EIGHT.format(rows=rows).strip()} \\g ours.csv"
            return cost([*SHELL, url, "--format", "csv", "-c", sql], place, place)

        held = peak_of(place)
        ten = export(10 * ROWS)
        peak = ten.peak + peak_of(place)
        small, large = [], [ten]
        for turn in range(TIMES):
            small.append(export(ROWS))
            large += [export(10 * ROWS)] if turn % 2 else []
    one, ten = _median(small), _median(large)
    yield Row("10 M × 8 to CSV", str(ten), f"{one} × 10", ten.seconds / one.seconds / 10, "≤ 1.05")
    yield Row(
        "its memory, client and service",
        f"{peak / 1e6:.0f} MB",
        f"{MEMORY / 1e6:.0f} MB ({held / 1e6:.0f} MB before it)",
        peak / MEMORY,
        "≤ 1",
    )


def _compared(job: str, ours: Job, reference: Job, name: str, target: str) -> Row:
    """Both in turns, after one run of each that does not count."""
    ours()
    reference()
    first: list[Cost] = []
    second: list[Cost] = []
    for number in range(TIMES):
        order = [(first, ours), (second, reference)]
        for kept, run in order if number % 2 else reversed(order):
            kept.append(run())
    one, two = _median(first), _median(second)
    ratio = (one.cpu + one.server) / (two.cpu + two.server)
    return Row(f"{job} (CPU {ratio:.2f} ×)", str(one), f"{two} ({name})", one.seconds / two.seconds, target)


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(*(statistics.median(values) for values in zip(*costs, strict=True)))


def _told(argv: Sequence[str], folder: Path, server: Path | int | None = None) -> Cost:
    """The costs that a Python program prints of itself, without its start."""
    before = cpu_of(server)
    found = subprocess.run(argv, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False)
    if found.returncode:
        raise SystemExit(f"{argv[3:]} failed: {found.stderr}")
    # DuckDB draws its progress above it.
    seconds, cpu = map(float, found.stdout.splitlines()[-1].split())
    return Cost(seconds, cpu, cpu_of(server) - before)
