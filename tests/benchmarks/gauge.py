"""The figures that a change can break, each a ratio with its bound: `python -m tests.benchmarks gauge`.

They are measured in at most three minutes on two cores, before a large change and after it. What takes time is compared
by the processor time of the program and of its service, which hardly depends on what else the machine does; the seconds
by the clock stand beside it. A bound is what was reached, with a little air.
"""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.measure import Cost, Row, cost, peak_of, run, service
from tests.benchmarks.peers import has_postgres, postgres
from tests.benchmarks.prompt_jobs import LINES, TYPED, Pty, keep_catalog, script
from tests.benchmarks.service_jobs import EIGHT, many
from tests.benchmarks.throughput_jobs import BARE, COLUMNS, POSTGRES_ROWS

MB = 1_000_000
ROWS = 1_000_000
WIDE_ROWS = 300_000
INSERTS = 3_000
KEYS = 150
CLIENTS = 16

SHELL = [sys.executable, "-m", "sqlshell", "-q"]

NOBODY = "http://127.0.0.1:9"
"""A service that does not respond: the prompt does not need it."""

PROMPT = 'from prompt_toolkit import PromptSession; PromptSession(multiline=True).prompt("> ")'

LOOP = """
import sys, duckdb
with duckdb.connect() as database, open(sys.argv[1]) as script:
    for statement in script:
        database.execute(statement)
"""

Job = Callable[[], Cost]


def gauge() -> Iterator[Row]:
    jobs = (_start, _first_prompt, _repeated_rows, _distinct_rows, _columns, _csv, _served, _inserts, _key, _clients)
    with TemporaryDirectory(prefix="sqlshell-bench-") as name:
        folder = Path(name)
        for job in jobs:
            try:
                yield from job(folder)
            except SystemExit as error:
                yield _bounded(job.__name__.strip("_").replace("_", " "), str(error)[-100:], "", math.inf, 0)


def _start(folder: Path) -> Iterator[Row]:
    with service() as (url, _):
        remote = _of(folder, *SHELL, url, "-c", "select 1")
        yield _compared("`-c 'select 1'` on a service", remote, _imports(folder, "httpx"), 1.8, 7)
    embedded = _of(folder, *SHELL, "-c", "select 1")
    yield _compared("`-c 'select 1'`, embedded", embedded, _imports(folder, "duckdb, httpx"), 2.1, 7)


def _first_prompt(folder: Path) -> Iterator[Row]:
    def prompt() -> Cost:
        shell = Pty(folder, "-q", NOBODY)
        try:
            return Cost(shell.until(b"> "), shell.processor())
        finally:
            shell.close()

    yield _compared("first prompt", prompt, _imports(folder, "prompt_toolkit, httpx"), 0.5, 7)


def _repeated_rows(folder: Path) -> Iterator[Row]:
    yield from _wide_rows(folder, "repeated", "repeat('x', 5000)")


def _distinct_rows(folder: Path) -> Iterator[Row]:
    yield from _wide_rows(folder, "distinct", "rpad(md5(i::varchar), 5000, md5(i::varchar))")


def _wide_rows(folder: Path, what: str, value: str) -> Iterator[Row]:
    """The memory of an embedded service, and of the three processes of `serve` and its client."""
    sql = f"select i, {value} as s from range({WIDE_ROWS}) r(i)"
    job = f"{WIDE_ROWS:,} {what} rows of 5 kB to CSV: memory"
    yield _limited(f"{job}, embedded", cost([*SHELL, "-c", sql, "--format", "csv"], folder).peak, 400)
    with service() as (url, place):
        client = cost([*SHELL, url, "-c", sql, "--format", "csv"], folder).peak
        yield _limited(f"{job} of `serve` and its client", peak_of(place) + client, 700)


def _columns(folder: Path) -> Iterator[Row]:
    values = ", ".join(f"'value ' || (i * {number}) as c{number}" for number in range(2_000))
    (folder / "wide.sql").write_text(f"select {values} from range(10000) t(i)")
    bare = "import duckdb; duckdb.sql(open('wide.sql').read()).write_csv('bare.csv')"
    theirs = cost([sys.executable, "-c", bare], folder).peak
    ours = cost([*SHELL, "-f", "wide.sql", "--format", "csv"], folder).peak
    reference = f"{theirs / MB:.0f} MB (DuckDB in Python)"
    yield _bounded("2,000 columns × 10,000 texts to CSV: memory", f"{ours / MB:.0f} MB", reference, ours / theirs, 1.2)


def _csv(folder: Path) -> Iterator[Row]:
    _bare(folder, f"COPY ({EIGHT.format(rows=ROWS)}) TO 'rows.parquet'")()
    ours = _of(folder, *SHELL, "rows.parquet", "-c", "from rows", "--format", "csv", "-o", "ours.csv")
    copy = _bare(folder, "COPY (FROM 'rows.parquet') TO 'rows.csv'")
    yield _compared(f"Parquet file of {ROWS:,} × 8 to CSV, embedded", ours, copy, 2.3)


def _served(folder: Path) -> Iterator[Row]:
    """CSV out of `serve` beside psql, where PostgreSQL is installed, and CSV into it."""
    with service() as (url, place):
        if has_postgres():
            with postgres() as cluster:
                subprocess.run(cluster.psql("-c", POSTGRES_ROWS.format(rows=ROWS)), check=True)
                run([*SHELL, url, "-c", f"create table rows as {EIGHT.format(rows=ROWS)}"], folder)
                argv = [*SHELL, url, "-c", "select * from rows", "--format", "csv", "-o", "served.csv"]
                theirs = cluster.psql("--csv", "-o", "theirs.csv", "-c", "select * from rows")
                yield _compared(
                    f"{ROWS:,} × 8 to CSV through `serve`, beside psql",
                    lambda: cost(argv, folder, place),
                    lambda: cost(theirs, folder, cluster.pid),
                    1.6,
                )
        else:
            sys.stderr.write("PostgreSQL is not installed: CSV through `serve` is not measured beside psql\n")
        _bare(folder, f"COPY ({EIGHT.format(rows=ROWS)}) TO 'rows.csv'")()

        def loaded() -> Cost:
            run([*SHELL, url, "-c", f"create or replace table loaded ({COLUMNS})"], folder)
            return cost([*SHELL[:-1], "import", "-q", "rows.csv", url, "--table", "loaded"], folder, place)

        copied = _bare(folder, "ATTACH 'bare.duckdb' AS bare; CREATE OR REPLACE TABLE bare.loaded AS FROM 'rows.csv'")
        yield _compared(f"import of {ROWS:,} × 8 CSV into `serve`", loaded, copied, 2.5)


def _inserts(folder: Path) -> Iterator[Row]:
    text = "create table quantity (id integer, name varchar, amount double);\n"
    text += "".join(f"insert into quantity values ({i}, 'name {i}', {i}.5);\n" for i in range(INSERTS))
    (folder / "script.sql").write_text(text)
    ours = _of(folder, *SHELL, "-f", "script.sql", "--format", "csv")
    loop = _of(folder, sys.executable, "-c", LOOP, "script.sql")
    yield _compared(f"{INSERTS:,} INSERTs, embedded", ours, loop, 2.0)


def _key(folder: Path) -> Iterator[Row]:
    """The processor time of a key, beside that of prompt_toolkit without colors and completion."""
    keep_catalog(folder, NOBODY)
    spent = []
    for shell in (Pty(folder, "-q", NOBODY), Pty(folder, command=(sys.executable, "-c", PROMPT))):
        shell.reads()
        shell.quiet()
        shell.type(f"\x1b[200~{script(LINES)};\n\x1b[201~")
        shell.quiet()
        before = shell.processor()
        for number in range(KEYS):
            shell.key(TYPED[number % len(TYPED)])
        shell.quiet()
        spent.append((shell.processor() - before) / KEYS)
        shell.close()
    ours, theirs = spent
    reference = f"{theirs * 1000:.1f} ms (prompt_toolkit)"
    yield _bounded(f"a key among {LINES} lines, 10,000 objects", f"{ours * 1000:.1f} ms", reference, ours / theirs, 2.0)


def _clients(_: Path) -> Iterator[Row]:
    for row in many(CLIENTS):
        yield dataclasses.replace(row, bound=25.0, target="≤ 25")


def _of(folder: Path, *argv: str) -> Job:
    return lambda: cost(argv, folder)


def _imports(folder: Path, names: str) -> Job:
    return _of(folder, sys.executable, "-c", f"import {names}")


def _bare(folder: Path, sql: str) -> Job:
    return _of(folder, sys.executable, "-c", BARE, sql)


def _compared(job: str, ours: Job, reference: Job, bound: float, times: int = 3) -> Row:
    """The cheapest of some runs of each, in turns."""
    costs = [(ours(), reference()) for _ in range(times)]
    one, two = (min(found, key=_processor) for found in zip(*costs, strict=True))
    return _bounded(job, str(one), str(two), _processor(one) / _processor(two), bound)


def _processor(found: Cost) -> float:
    return found.cpu + found.server


def _limited(job: str, held: int, limit: int) -> Row:
    return _bounded(job, f"{held / MB:.0f} MB", f"{limit} MB", held / MB / limit, 1.0)


def _bounded(job: str, ours: str, reference: str, ratio: float, bound: float) -> Row:
    return Row(job, ours, reference, ratio, f"≤ {bound:g}", bound)
