"""`python -m tests.terminal.looks [DIRECTORY]` captures ten moments of sqlshell and of other shells as pictures.

Each program runs in a terminal of 100 × 30 with 24-bit colors and sees the same rows: sqlshell and the DuckDB CLI in a
DuckDB file, pgcli and psql in a PostgreSQL that this command starts,
nushell in a JSON file. What is not installed is left out and named. PATH decides which programs are found.
"""

from __future__ import annotations

import argparse
import shutil
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
DIRECTORY = Path(__file__).parents[2] / "docs" / "looks"

SHOP = """
create table customers as select i as id, 'Customer ' || i as name, i % 7 = 0 as vip from range(1, 1001) t(i);
create table orders as select i as id, i % 1000 + 1 as customer, timestamp '2026-01-01' + to_seconds(i * 211) as placed,
  ((i * 7919 % 100000) / 100.0 - 50)::decimal(10, 2) as total, case i % 5 when 0 then null else 'note ' || i end as note
  from range(1, 1000001) t(i);
create table wide as select {columns} from range(3) t(i);
create table nested as select i as id, ['red', 'green', 'blue'][: i % 3 + 1] as tags,
  {{'street': 'Main St ' || i, 'geo': {{'lat': 52.5 + i, 'lon': 13.4}}}} as address,
  map {{'a': i, 'b': i * 2}} as counts
  from range(4) t(i);
"""

FEW = (
    "select o.id, c.name, c.vip, o.placed, o.total, o.note from orders o join customers c on c.id = o.customer"
    " where o.id between 999998 and 1000002 or o.id <= 3 order by o.id limit 5;"
)
LONG = "select count(*) from orders a, orders b where a.total * b.total > 3 and a.note <> b.note;"


def shop(columns: int = 24) -> str:
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


def sql_moments(details: str, sample: str, completion: str) -> Moments:
    return {
        "start": (),
        "rows": (FEW + "\r",),
        "wide": ("select * from wide;\r",),
        "nested": ("select * from nested;\r",),
        "empty": ("select * from orders where id < 0;\r",),
        "million": ("select * from orders;\r",),
        "error": ("select o.id,\r       o.totl\r  from orders o;\r",),
        "progress": (LONG + "\r",),
        "canceled": (LONG + "\r", "\x03"),
        "completion": (completion,),
        "details": (details + "\r",),
        "sample": (sample + "\r",),
    }


def settled(terminal: Terminal, quiet: float = 1.0, most: float = 8.0) -> None:
    """Wait until the program has drawn nothing for `quiet` seconds, or `most` seconds are over."""
    until = time.monotonic() + most
    before = -1
    while time.monotonic() < until and before != len(terminal.written):
        before = len(terminal.written)
        terminal.screen_after(quiet)


def capture(peer: Peer, moment: str, home: Path) -> Terminal:
    """The terminal at one moment of a program that is started for it."""
    env = {"COLORTERM": "truecolor", "LANG": "C.UTF-8", "LESS": "-SR", "PGOPTIONS": LIMITED}
    terminal = (
        Terminal(home, *peer.command, env=env, rows=ROWS, columns=COLUMNS)
        if peer.name == "sqlshell"
        else (Terminal(home, env=env, rows=ROWS, columns=COLUMNS, command=peer.command))
    )
    settled(terminal, 4.0, 30.0)
    for text in peer.moments[moment]:
        terminal.type(text)
        settled(terminal, most=4.0 if moment in {"progress", "canceled"} else 10.0)
    return terminal


POSTGRES_SHOP = """
create table customers as select i as id, 'Customer ' || i as name, i % 7 = 0 as vip from generate_series(1, 1000) i;
create table orders as select i as id, i % 1000 + 1 as customer, timestamp '2026-01-01' + i * 211 * interval '1 s' as
  placed, (i * 7919::bigint % 100000) / 100.0 - 50 as total, case i % 5 when 0 then null else 'note ' || i end as note
  from generate_series(1, 1000000) i;
create table wide as select {columns} from generate_series(0, 2) i;
create table nested as select i as id, (array['red', 'green', 'blue'])[1 : i % 3 + 1] as tags,
  jsonb_build_object('street', 'Main St ' || i, 'geo', jsonb_build_object('lat', 52.5 + i, 'lon', 13.4)) as address,
  jsonb_build_object('a', i, 'b', i * 2) as counts from generate_series(0, 3) i;
"""


def peers(home: Path, cluster: Cluster) -> Iterator[Peer]:
    """The programs that are installed, sqlshell first."""
    database = str(home / "shop.duckdb")
    with duckdb.connect(database) as connection:
        connection.execute(shop())
    yield Peer("sqlshell", (database,), sql_moments("\\d+ orders", "\\demo", "select date_trunc("))
    if found := shutil.which("duckdb"):
        few = sql_moments("describe orders;", "", "select date_tr\t")
        few["error"] = ("select o.id,\r", "o.totl\r", "from orders o;\r")
        # The DuckDB CLI may be older than the engine, and cannot open its files then.
        database = str(home / "older" / "shop.duckdb")
        (home / "older").mkdir()
        subprocess.run([found, database], input=shop(), text=True, check=True)
        yield Peer("duckdb", (found, database), few)
    if found := shutil.which("nu"):
        database = str(home / "shop.duckdb")
        tables = {
            "rows": FEW,
            "wide": "select * from wide",
            "nested": "select * from nested",
            "empty": "select * from orders where id < 0",
        }
        with duckdb.connect(database) as connection:
            for name, sql in tables.items():
                connection.execute(f"copy ({sql.rstrip(';')}) to '{home}/{name}.json' (array true)")
        moments: Moments = {name: (f"open {name}.json\r",) for name in tables}
        moments |= {"start": (), "error": ("open rows.json | select totl\r",), "completion": ("date to\t",)}
        yield Peer("nushell", (found, "--no-config-file", "-i"), moments)
    if found := shutil.which("harlequin"):
        kept = ("rows", "wide", "nested", "empty", "million")
        moments = {name: (sql_moments("", "", "")[name][0].rstrip("\r"), "\n") for name in kept}
        moments |= {
            "start": (),
            "error": ("select o.id, o.totl from orders o;", "\n"),
            "completion": ("select date_tr",),
        }
        yield Peer("harlequin", (found, str(home / "older" / "shop.duckdb")), moments)
    columns = ", ".join(f"'value ' || (i * {at}) as column_{at}" for at in range(24))
    subprocess.run(cluster.psql(), input=POSTGRES_SHOP.format(columns=columns), text=True, check=True)
    for name in ("psql", "pgcli"):
        if found := shutil.which(name):
            yield Peer(name, (found, cluster.dsn), sql_moments("\\d+ orders", "", "select date_tr\t"))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", nargs="?", type=Path, default=DIRECTORY)
    parser.add_argument("--only", default="", help="programs and moments, separated by commas: duckdb,rows")
    given = parser.parse_args()
    only = set(filter(None, given.only.split(",")))
    given.directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, postgres() as cluster:
        home = Path(name)
        for peer in peers(home, cluster):
            for moment in peer.moments:
                if not {peer.name, moment} & only and only:
                    continue
                terminal = capture(peer, moment, home)
                (given.directory / f"{moment}-{peer.name}.svg").write_text(svg(terminal, ROWS, COLUMNS))
                (given.directory / f"{moment}-{peer.name}.txt").write_text(terminal.screen() + "\n")
                terminal.process.kill()
                terminal.close()
                sys.stdout.write(f"{moment}-{peer.name}\n")
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
