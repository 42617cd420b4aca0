"""`python -m tests.terminal.looks [DIRECTORY]` captures ten moments of sqlshell and of other shells as pictures.

Each program runs in a terminal of 100 × 30 with 24-bit colors and sees the same rows: sqlshell and the DuckDB CLI in a
DuckDB file, pgcli and psql in a PostgreSQL that this command starts, litecli in an SQLite file, nushell in a JSON file.
What is not installed is left out. PATH decides which programs are found. Without `--only` it makes the pictures of
docs/looks.md.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from tests.benchmarks.peers import Cluster, postgres
from tests.terminal.svg import svg
from tests.terminal.terminal import Terminal

ROWS, COLUMNS = 30, 100
WIDE = 18
"""The columns of the wide table."""
DIRECTORY = Path(__file__).parents[2] / "docs" / "screens"
PICTURED: dict[str, tuple[str, ...]] = {
    "start": ("sqlshell", "duckdb", "pgcli"),
    "rows": ("sqlshell", "duckdb", "nushell", "pgcli"),
    "wide": ("sqlshell", "duckdb", "nushell"),
    "nested": ("sqlshell", "duckdb", "nushell"),
    "empty": ("sqlshell", "duckdb", "nushell"),
    "million": ("sqlshell", "duckdb", "harlequin"),
    "error": ("sqlshell", "duckdb", "nushell", "gh", "uv"),
    "progress": ("sqlshell", "duckdb"),
    "canceled": ("sqlshell", "duckdb"),
    "completion": ("sqlshell", "pgcli", "harlequin"),
    "details": ("sqlshell", "psql", "duckdb"),
}
"""The pictures of docs/looks.md."""

SHOP = """
create table customers as select i as id, 'Customer ' || i as name, i % 7 = 0 as vip from range(1, 1001) t(i);
create table orders as select i as id, i % 1000 + 1 as customer, timestamp '2026-01-01' + to_seconds(i * 211) as placed,
  ((i * 7919 % 100000) / 100.0 - 50)::decimal(10, 2) as total, case i % 5 when 0 then null else 'note ' || i end as note
  from range(1, 1000001) t(i);
create table recent as select o.id * 1999 as id, c.name, c.vip, o.placed, o.total - 100 as total, o.note
  from orders o join customers c on c.id = o.customer where o.id between 12 and 16 order by o.id;
create table wide as select {columns} from range(3) t(i);
create table nested as select i as id, ['red', 'green', 'blue'][: i % 3 + 1] as tags,
  {{'street': 'Main St ' || i, 'geo': {{'lat': 52.5::double + i, 'lon': 13.4::double}}}} as address,
  map {{'a': i, 'b': i * 2}} as counts
  from range(4) t(i);
"""

FEW = "select * from recent;"
LONG = "select count(*) from orders a, orders b where a.total * b.total > 3 and a.id <> b.id;"


def shop(columns: int = WIDE) -> str:
    """The statements that make the tables, in DuckDB's dialect."""
    return SHOP.format(columns=", ".join(f"'value ' || (i * {at}) as column_{at}" for at in range(columns)))


LIMITED = "-c statement_timeout=30s"
"""PostgreSQL goes on with a statement whose client was killed."""

Moments = dict[str, Sequence[str]]


@dataclass(frozen=True)
class Peer:
    """A program, and what is typed into it for each moment after it has started; "" is the start itself."""

    name: str
    command: Sequence[str]
    moments: Mapping[str, Sequence[str]]
    ready: str = ""
    """What is seen when it reads keys."""


def sql_moments(details: str, sample: str, completion: str) -> Moments:
    return {
        "start": (),
        "rows": (FEW + "\r",),
        "wide": ("select * from wide;\r",),
        "nested": ("select * from nested;\r",),
        "empty": ("select * from orders where id < 0;\r",),
        "million": ("select * from orders;\r",),
        "error": ("select o.id,\r", "o.totl\r", "from orders o;\r"),
        "progress": (LONG + "\r",),
        "canceled": (LONG + "\r", "\x03"),
        "completion": (completion,),
        "details": (details + "\r",),
        "sample": (sample + "\r",),
    }


def settled(terminal: Terminal, quiet: float = 2.5, most: float = 12.0) -> None:
    """Wait until the program has drawn nothing for `quiet` seconds, or `most` seconds are over."""
    until = time.monotonic() + most
    before = -1
    while time.monotonic() < until and before != len(terminal.written):
        before = len(terminal.written)
        terminal.screen_after(quiet)


def capture(peer: Peer, moment: str, home: Path) -> Terminal:
    """The terminal at one moment of a program that is started for it."""
    # Harlequin opens again with what was typed before.
    shutil.rmtree(home / ".cache", ignore_errors=True)
    env = {"COLORTERM": "truecolor", "LANG": "C.UTF-8", "LESS": "-SR", "PGOPTIONS": LIMITED, "PS1": "$ "}
    terminal = (
        Terminal(home, *peer.command, env=env, rows=ROWS, columns=COLUMNS)
        if peer.name == "sqlshell"
        else (Terminal(home, env=env, rows=ROWS, columns=COLUMNS, command=peer.command))
    )
    if peer.ready:
        terminal.wait(peer.ready, 60)
    settled(terminal, 8.0 if moment == "completion" else 4.0, 30.0)
    for text in peer.moments[moment]:
        terminal.type(text)
        settled(terminal, most=4.0 if moment in {"progress", "canceled"} else 20.0)
    return terminal


POSTGRES_SHOP = """
create table customers as select i as id, 'Customer ' || i as name, i % 7 = 0 as vip from generate_series(1, 1000) i;
create table orders as select i as id, i % 1000 + 1 as customer, timestamp '2026-01-01' + i * 211 * interval '1 s' as
  placed, ((i * 7919::bigint % 100000) / 100.0 - 50)::numeric(10, 2) as total,
  case i % 5 when 0 then null else 'note ' || i end as note
  from generate_series(1, 1000000) i;
create table recent as select o.id * 1999 as id, c.name, c.vip, o.placed, o.total - 100 as total, o.note
  from orders o join customers c on c.id = o.customer where o.id between 12 and 16 order by o.id;
create table wide as select {columns} from generate_series(0, 2) i;
create table nested as select i as id, (array['red', 'green', 'blue'])[1 : i % 3 + 1] as tags,
  jsonb_build_object('street', 'Main St ' || i, 'geo', jsonb_build_object('lat', 52.5 + i, 'lon', 13.4)) as address,
  jsonb_build_object('a', i, 'b', i * 2) as counts from generate_series(0, 3) i;
"""


def peers(home: Path, cluster: Cluster) -> Iterator[Peer]:
    """The programs that are installed, sqlshell first."""
    database = "sales.duckdb"
    with duckdb.connect(str(home / database)) as connection:
        connection.execute(shop())
    yield Peer("sqlshell", (database,), sql_moments("\\d+ orders", "\\demo", "select date_tr"))
    if found := shutil.which("duckdb"):
        # The wrapper of the Python package ends with a traceback on Ctrl-C.
        found = next(map(str, Path(found).parents[1].glob("lib/python*/site-packages/duckdb_cli/duckdb")), found)
        few = sql_moments("describe orders;", "", "select date_tr\t")
        # The DuckDB CLI may be older than the engine, and cannot open its files then.
        database = "older/sales.duckdb"
        (home / "older").mkdir()
        subprocess.run([found, database], input=shop(), text=True, check=True, cwd=home)
        yield Peer("duckdb", (found, database), few)
    if found := shutil.which("nu"):
        tables = {
            "rows": FEW,
            "wide": "select * from wide",
            "nested": "select * from nested",
            "empty": "select * from orders where id < 0",
        }
        with duckdb.connect(str(home / "sales.duckdb")) as connection:
            for name, sql in tables.items():
                connection.execute(f"copy ({sql.rstrip(';')}) to '{home}/{name}.json' (array true)")
        moments: Moments = {name: ("clear\r", f"open {name}.json\r") for name in tables}
        moments |= {
            "start": (),
            "error": ("clear\r", "open rows.json | select totl\r"),
            "completion": ("clear\r", "date to\t"),
        }
        yield Peer("nushell", (found, "--no-config-file", "-i"), moments)
    if found := shutil.which("harlequin"):
        kept = ("rows", "wide", "nested", "empty", "million")
        moments = {name: (sql_moments("", "", "")[name][0].rstrip("\r"), "\n") for name in kept}
        moments |= {
            "start": (),
            "error": ("select o.id, o.totl from orders o;", "\n"),
            # Its menu is that of the word where it was opened.
            "completion": ("select ", "date_", "tr"),
        }
        yield Peer("harlequin", (found, "--locale", "C", "older/sales.duckdb"), moments, "Query Editor")
    if found := shutil.which("litecli"):
        # Of itself a connection of sqlite3 ends a transaction, and stays open.
        opened = contextlib.closing(sqlite3.connect(home / "sales.sqlite"))
        with duckdb.connect(str(home / "sales.duckdb")) as connection, opened as file, file:
            for name in ("customers", "orders", "recent", "wide", "nested"):
                rows = connection.sql(f"select columns(*)::varchar from {name}")
                file.execute(f"create table {name} ({', '.join(rows.columns)})")
                file.executemany(f"insert into {name} values ({', '.join('?' * len(rows.columns))})", rows.fetchall())
        moments = sql_moments(".schema orders", "", "select date_tr")
        del moments["progress"], moments["canceled"]
        yield Peer("litecli", (found, "sales.sqlite"), moments)
    shell = ("bash", "--norc", "--noprofile")
    for name, typed in (("gh", "gh pr lst\r"), ("uv", "uv pip instal ruff\r")):
        if shutil.which(name):
            yield Peer(name, shell, {"error": (typed,)})
    columns = ", ".join(f"'value ' || (i * {at}) as column_{at}" for at in range(WIDE))
    subprocess.run(cluster.psql(), input=POSTGRES_SHOP.format(columns=columns), text=True, check=True)
    for name in ("psql", "pgcli"):
        if found := shutil.which(name):
            yield Peer(name, (found, cluster.dsn), sql_moments("\\d+ orders", "", "select date_tr\t"))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", nargs="?", type=Path, default=DIRECTORY)
    parser.add_argument("--only", default="", help="programs and moments, separated by commas: duckdb,rows")
    parser.add_argument("--text", action="store_true", help="write the screens as text too")
    given = parser.parse_args()
    only = set(filter(None, given.only.split(",")))
    given.directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, postgres() as cluster:
        home = Path(name)
        for peer in peers(home, cluster):
            for moment in peer.moments:
                if not ({peer.name, moment} & only if only else peer.name in PICTURED.get(moment, ())):
                    continue
                terminal = capture(peer, moment, home)
                (given.directory / f"{moment}-{peer.name}.svg").write_text(svg(terminal, ROWS, COLUMNS))
                if given.text:
                    (given.directory / f"{moment}-{peer.name}.txt").write_text(terminal.screen() + "\n")
                terminal.process.kill()
                terminal.close()
                sys.stdout.write(f"{moment}-{peer.name}\n")
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
