"""PostgreSQL's own regression scripts through sqlshell and through psql: `python -m tests.regress DIR [SCRIPT...]`.

DIR is src/test/regress of PostgreSQL's source, of the version of the server. Each script runs in two databases that are
copies of one with the tables of test_setup.sql, and what it returns is compared statement by statement: rows as CSV,
errors by their sqlState. Both are as psql gives them; only a boolean is `true` in one and `t` in the other, and a
repeated name of a column has a number, as docs/output.md says.

A statement followed by a backslash command that prints (\\d) is not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlshell.sql.script.items import BackslashCommand, Statement
from sqlshell.sql.script.splitting import split
from tests.service.postgresql import program, running

SCRIPTS = ("select*", "join", "numeric", "timestamptz", "jsonb", "arrays", "with")
BEFORE = ("test_setup", "create_index", "create_misc", "create_view")
"""The scripts that create what others read."""

BASE = "base"
ZONE = "PST8PDT"
SETTINGS = {
    "datestyle": "'Postgres, MDY'",
    "intervalstyle": "postgres_verbose",
    "lc_messages": "'C'",
    "lc_monetary": "'C'",
    "lc_numeric": "'C'",
    "lc_time": "'C'",
}
"""As pg_regress sets them."""

MARK = "=== statement"
BOOLEANS = {("t", "true"), ("f", "false")}
_MARKED = re.compile(rf"^{MARK} (\d+)$", re.M)
_STATE = re.compile(r"(?:ERROR|FATAL):  (\w{5})$|error\[(\w{5})\]", re.M)
_VERBOSITY = re.compile(r"^\\set (?:VERBOSITY|SHOW_CONTEXT)\b.*$", re.M)
_PRINTS = re.compile(r"d\w*\+?|s[fv]\+?|l\+?|z|gdesc|crosstabview|gx|x|a|t|echo|qecho|errverbose|conninfo")


@dataclass(frozen=True)
class Marked:
    """A script with a mark before each statement, on both streams, and the statements by number; those of `uncounted`
    are followed by commands whose output is the shell's own."""

    text: str
    statements: Sequence[str]
    uncounted: frozenset[int]


@dataclass(frozen=True)
class Answer:
    """What a shell printed after each mark, and the sqlStates of its errors."""

    rows: Mapping[int, list[list[str]]]
    states: Mapping[int, list[str]]


def marked(script: str) -> Marked:
    script = _VERBOSITY.sub("", script)
    pieces: list[str] = []
    statements: list[str] = []
    uncounted: set[int] = set()
    at = 0
    for item in split(script):
        if isinstance(item, Statement):
            number = len(statements)
            pieces += [script[at : item.offset], f"\n\\echo {MARK} {number}\n\\warn {MARK} {number}\n"]
            at = item.offset
            statements.append(item.text)
        elif isinstance(item, BackslashCommand) and _PRINTS.fullmatch(item.name):
            uncounted.add(len(statements) - 1)
    return Marked("".join([*pieces, script[at:]]), statements, frozenset(uncounted))


def answer(argv: Sequence[str], environment: Mapping[str, str], folder: Path) -> Answer:
    done = subprocess.run(argv, env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=1200)
    if not _MARKED.search(done.stdout):
        raise SystemExit(f"{argv[0]}: {done.stderr[:2000]}")
    rows = {number: [*csv.reader(text.splitlines(keepends=True))] for number, text in _segments(done.stdout)}
    states = {number: [one or other for one, other in _STATE.findall(text)] for number, text in _segments(done.stderr)}
    return Answer(rows, states)


def _segments(text: str) -> Iterator[tuple[int, str]]:
    found = [*_MARKED.finditer(text)]
    ends = [item.start() for item in found[1:]] + [len(text)]
    for item, end in zip(found, ends, strict=True):
        yield int(item[1]), text[item.end() + 1 : end]


def same_rows(psql: list[list[str]], ours: list[list[str]]) -> bool:
    return len(psql) == len(ours) and all(
        # A line without anything is one empty value.
        len(row or [""]) == len(other or [""])
        and all(
            one == two or (one, two) in BOOLEANS or (not number and re.fullmatch(rf"{re.escape(one)}_\d+", two))
            for one, two in zip(row or [""], other or [""], strict=True)
        )
        for number, (row, other) in enumerate(zip(psql, ours, strict=True))
    )


@contextlib.contextmanager
def base(source: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A server with the database that scripts begin with; yields the directory of its socket, and an environment."""
    with running(f"shared_buffers=128MB -c timezone={ZONE}") as folder, tempfile.TemporaryDirectory() as home:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": home,
            "LC_ALL": "C.UTF-8",
            "PGHOST": folder,
            "PGUSER": "postgres",
            "PGTZ": ZONE,
            "PG_ABS_SRCDIR": str(source),
            "PG_LIBDIR": str(Path(program("postgres")).parent.parent / "lib"),
            "PG_DLSUFFIX": ".so",
        }
        _psql(environment, "postgres", "-c", f"CREATE DATABASE {BASE} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
        for name, value in SETTINGS.items():
            _psql(environment, "postgres", "-c", f"ALTER DATABASE {BASE} SET {name} TO {value}")
        for script in BEFORE:
            _psql(environment, BASE, "-f", str(source / "sql" / f"{script}.sql"))
        yield folder, environment


def _psql(environment: Mapping[str, str], database: str, *given: str) -> None:
    subprocess.run(["psql", "-X", "-q", "-d", database, *given], env=environment, capture_output=True, check=False)


def _copy(environment: Mapping[str, str], name: str) -> None:
    _psql(
        environment,
        "postgres",
        "-c",
        f"DROP DATABASE IF EXISTS {name}",
        "-c",
        f"CREATE DATABASE {name} TEMPLATE {BASE}",
    )
    for setting, value in SETTINGS.items():
        _psql(environment, "postgres", "-c", f"ALTER DATABASE {name} SET {setting} TO {value}")


def compare(script: Path, folder: str, environment: Mapping[str, str]) -> tuple[int, int, int]:
    """Run a script both ways and print what differs; returns the numbers of statements, of those with psql's rows, and
    of those with psql's sqlStates too."""
    made = marked(script.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / script.name
        # The same name, which both shells may put into their messages.
        place.write_text(made.text, encoding="utf-8")
        for database in ("by_psql", "by_sqlshell"):
            _copy(environment, database)
        psql = ["psql", "-X", "-q", "--csv", "-v", "VERBOSITY=sqlstate", "-d", "by_psql", "-f", str(place)]
        url = f"postgresql://postgres@/by_sqlshell?host={folder}"
        sqlshell = [sys.executable, "-m", "sqlshell", url, "-q", "--format", "csv", "--on-error", "continue"]
        sqlshell += ["--timezone", ZONE, "--yes", "-f", str(place)]
        expected = answer(psql, environment, Path(name))
        found = answer(sqlshell, {**environment, "PYTHONPATH": str(Path.cwd())}, Path(name))
    counted = [number for number in range(len(made.statements)) if number not in made.uncounted]
    rows = [number for number in counted if same_rows(expected.rows.get(number, []), found.rows.get(number, []))]
    states = [number for number in rows if expected.states.get(number) == found.states.get(number)]
    for number in sorted({*counted} - {*states}):
        sys.stdout.write(f"--- {script.name} {number}: {made.statements[number][:400]}\n")
        for who, told in (("psql", expected), ("sqlshell", found)):
            shown = told.rows.get(number)
            sys.stdout.write(f"{who}: {told.states.get(number)} {shown[:5] if shown else shown}\n")
    return len(counted), len(rows), len(states)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="src/test/regress of PostgreSQL's source")
    parser.add_argument("scripts", nargs="*", default=SCRIPTS, help="names or patterns of scripts, without .sql")
    given = parser.parse_args()
    source = given.directory.absolute()
    found = sorted({path for name in given.scripts for path in (source / "sql").glob(f"{name}.sql")})
    if not found:
        raise SystemExit(f"{source / 'sql'} has none of these scripts")
    totals = [0, 0, 0]
    lines: list[str] = []
    with base(source) as (folder, environment):
        for script in found:
            numbers = compare(script, folder, environment)
            totals = [total + number for total, number in zip(totals, numbers, strict=True)]
            lines.append(f"{script.stem:22} {numbers[0]:6} {numbers[1]:6} {numbers[2]:6}\n")
    sys.stdout.write(f"{'script':22} {'all':>6} {'rows':>6} {'errors':>6}\n" + "".join(lines))
    sys.stdout.write(f"{'together':22} {totals[0]:6} {totals[1]:6} {totals[2]:6}\n")
    return 0 if totals[0] == totals[2] else 1


if __name__ == "__main__":
    sys.exit(main())
