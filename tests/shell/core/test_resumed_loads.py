"""Loads of files: all that is said of the plan, of bad rows and of the outcome, and what a later load continues."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest

from sqlshell.errors import ConnectionBroken, Exit
from sqlshell.origin import Trusted
from sqlshell.shell.loading import send
from sqlshell.shell.loading.convert import Scan
from sqlshell.shell.loading.inspect import DataFile
from tests.shell.core.scripted import Answer, Core, failure
from tests.shell.core.test_loads import Tables
from tests.shell.sessions import connection

TWO = [["a", "INTEGER"], ["b", "VARCHAR"]]
RESUME = "--resume (in \\copy: WITH (RESUME))"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SQLSHELL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(
    command: str,
    columns: Sequence[Sequence[str]] = TWO,
    answers: dict[str, Answer] | None = None,
    *,
    storage: str = "here",
    verbose: int = 0,
) -> tuple[Core, list[str]]:
    """A shell after `\\copy …`, and the statements that it sent."""
    client = Tables([list(column) for column in columns], answers)

    async def work() -> Core:
        core = Core(client)
        core.session.state.connection = connection(client, journal=core.journal, storage_name=storage)
        core.session.connection.service.transport.extensions = frozenset({"attachments"})
        core.shell.diagnostics.verbose = verbose
        await core.shell.run_script([Trusted(f"\\copy {command}\n")], "x.sql")
        await core.shell.aclose()
        return core

    return asyncio.run(work()), client.sqls


PLAN = "  a BIGINT -> a INTEGER\n  b VARCHAR -> b VARCHAR\n"


def test_the_plan_of_a_load(folder: Path) -> None:
    (folder / "a.csv").write_text("a,b\n1,x\n")
    core, sent = load("t from a.csv (dry_run)", [*TWO, ["c", "DATE"], ["d", "DATE"]])
    defaults = "  columns that are not in the file and get their defaults: c, d\n"
    assert (core.err, sent) == (f"a.csv (csv, header) into t:\n{PLAN}{defaults}", [])
    core, sent = load("t from a.csv (create, dry_run)")
    plan = "  a BIGINT -> a BIGINT\n  b VARCHAR -> b VARCHAR\n"
    assert (core.err, sent) == (f"a.csv (csv, header) into a new table t:\n{plan}", [])


def test_the_plan_is_told_with_verbose(folder: Path) -> None:
    (folder / "a.csv").write_text("a,b\n1,x\n")
    core, _ = load("t from a.csv", verbose=1)
    assert core.err == f"a.csv (csv, header) into t:\n{PLAN}1 row loaded into t\n"
    assert load("t from a.csv")[0].err == "1 row loaded into t\n"


def test_the_names_of_a_plan_are_aligned(folder: Path) -> None:
    (folder / "w.csv").write_text("long name,b\n1,x\n")
    core, _ = load("t (a, b) from w.csv (header, dry_run)")
    assert (
        core.err == "w.csv (csv, header) into t:\n  long name BIGINT -> a INTEGER\n  b         VARCHAR -> b VARCHAR\n"
    )


def test_a_table_that_is_made_for_the_file(folder: Path) -> None:
    (folder / "a.csv").write_text("a,b c\n1,x\n")
    core, sent = load("t from a.csv (create)", [])
    assert sent == ['CREATE TABLE t (a BIGINT, "b c" VARCHAR)', "INSERT INTO t (a, \"b c\") VALUES\n(1, 'x')"]
    core, sent = load("t from a.csv (create)", [], {sent[0]: Answer(rows=(), error=failure("42P07", "it exists"))})
    assert len(sent) == 1
    assert core.err == "x.sql:1: error[42P07]: it exists\n"


def test_a_file_without_rows(folder: Path) -> None:
    (folder / "e.csv").write_text("")
    core, sent = load("t from e.csv")
    assert (core.err, sent, core.texts()["ROW_COUNT"]) == ("0 rows loaded into t\n", [], "0")


WRONG = "bad.csv, line {}, column \"a\": cannot convert '{}' to INTEGER"
BOTH = f"{WRONG.format(3, 'q')}; {WRONG.format(4, 'r')}"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "help: nothing was sent; use --max-errors 2 to skip them (in \\copy: WITH (MAX_ERRORS 2))\n"),
        (
            "(max_errors 1)",
            "help: nothing was sent; use --max-errors 2 to skip them (in \\copy: WITH (MAX_ERRORS 2))\n",
        ),
        (
            "(rejects 'r.csv')",
            "help: all of them are in r.csv; nothing was sent; use --max-errors 2 to skip them "
            "(in \\copy: WITH (MAX_ERRORS 2))\n",
        ),
    ],
)
def test_bad_rows_that_stop_a_load(folder: Path, options: str, said: str) -> None:
    (folder / "bad.csv").write_text("a,b\n1,x\nq,y\nr,z\n")
    core, sent = load(f"t from bad.csv {options}")
    assert core.err == f"x.sql:1: error: 2 rows of bad.csv cannot be loaded: {BOTH}\n{said}"
    assert (core.shell.exit, sent) == (Exit.STATEMENT, [])
    assert (folder / "r.csv").exists() is ("rejects" in options)


def test_bad_rows_that_are_skipped(folder: Path) -> None:
    (folder / "bad.csv").write_text("a,b\n1,x\nq,y\nr,z\n")
    lines = f"  {WRONG.format(3, 'q')};\n  {WRONG.format(4, 'r')}\n1 row loaded into t\n"
    core, sent = load("t from bad.csv (max_errors 2)")
    assert core.err == f"warning: 2 rows of bad.csv skipped:\n{lines}"
    assert sent == ["INSERT INTO t (a, b) VALUES\n(1, 'x')"]
    core, _ = load("t from bad.csv (max_errors 2, rejects 'r.csv')")
    assert core.err == f"warning: 2 rows of bad.csv skipped, written to r.csv:\n{lines}"
    assert (folder / "r.csv").read_text() == (
        "file,line,column,error,row\n"
        "bad.csv,3,a,cannot convert 'q' to INTEGER,\"q,y\"\n"
        "bad.csv,4,a,cannot convert 'r' to INTEGER,\"r,z\"\n"
    )


@pytest.mark.parametrize(("count", "more"), [(5, ""), (6, "; … and 1 more"), (905, "; … and 900 more")])
def test_only_five_bad_rows_are_shown(folder: Path, count: int, more: str) -> None:
    (folder / "bad.csv").write_text("a,b\n" + "q,y\n" * count)
    core, _ = load("t from bad.csv")
    shown = "; ".join(WRONG.format(number, "q") for number in range(2, 7))
    assert core.err.splitlines()[0] == f"x.sql:1: error: {count:,} rows of bad.csv cannot be loaded: {shown}{more}"


@pytest.mark.parametrize(
    ("options", "found", "remedy"),
    [
        (
            "",
            "at least 1,000 rows",
            "use --max-errors with a number above 1000 to skip them (in \\copy: WITH (MAX_ERRORS N))",
        ),
        (
            "(max_errors 1001, rejects 'r.csv')",
            "at least 1,002 rows",
            "use --max-errors with a number above 1002 to skip them (in \\copy: WITH (MAX_ERRORS N))",
        ),
        (
            "(max_errors 1098)",
            "at least 1,099 rows",
            "use --max-errors with a number above 1099 to skip them (in \\copy: WITH (MAX_ERRORS N))",
        ),
    ],
)
def test_bad_rows_beyond_the_limit_are_not_counted(folder: Path, options: str, found: str, remedy: str) -> None:
    (folder / "bad.csv").write_text("a\n" + "q\n" * 1099)
    core, sent = load(f"t (a) from bad.csv {options}")
    assert core.err.startswith(f"x.sql:1: error: {found} of bad.csv cannot be loaded: ")
    where = "the first 1,002 of them are in r.csv; " if "rejects" in options else ""
    assert core.err.endswith(f"help: {where}nothing was sent; {remedy}\n")
    assert sent == []


def test_bad_rows_with_several_errors_are_counted_once(folder: Path) -> None:
    (folder / "bad.csv").write_text("a,b\n" + "q,r\n" * 1099)
    columns = (("a", "INTEGER"), ("b", "INTEGER"))
    core, _ = load("t from bad.csv (max_errors 1099)", columns)
    assert core.err.startswith("warning: 1,099 rows of bad.csv skipped:\n")
    core, _ = load("t from bad.csv (max_errors 1098)", columns)
    assert core.err.startswith("x.sql:1: error: at least 1,099 rows of bad.csv cannot be loaded: ")


def test_the_remedy_for_one_bad_row(folder: Path) -> None:
    (folder / "bad.csv").write_text("a,b\nz,u\n")
    assert load("t from bad.csv")[0].err.endswith(
        "help: nothing was sent; use --max-errors 1 to skip it (in \\copy: WITH (MAX_ERRORS 1))\n"
    )
    (folder / "bad.csv").write_text('a,b\n1,x\n"",y\n')
    assert load("t from bad.csv")[0].err.endswith(
        "help: nothing was sent; use --with 'FORCE_NULL *' (in \\copy: WITH (FORCE_NULL *)) to load \"\" as NULL, or "
        "use --max-errors 1 to skip it (in \\copy: WITH (MAX_ERRORS 1))\n"
    )


@pytest.mark.parametrize(
    ("path", "said", "code"),
    [
        ("a.csv", "cannot write rejected rows to a.csv: it is the file to load\n", Exit.USAGE),
        (
            "none/r.csv",
            "cannot write to none/r.csv: no such file or directory\nhelp: create the directory first\n",
            Exit.STATEMENT,
        ),
    ],
)
def test_bad_rows_that_cannot_be_written(folder: Path, path: str, said: str, code: Exit) -> None:
    (folder / "a.csv").write_text("a,b\n1,x\nq,y\n")
    core, sent = load(f"t from a.csv (rejects '{path}')")
    assert (core.err, core.shell.exit, sent) == (f"x.sql:1: error: {said}", code, [])
    assert (folder / "a.csv").read_text() == "a,b\n1,x\nq,y\n"


PARTS = [
    "INSERT INTO t (a, b) VALUES\n(0, 'v0'),\n(1, 'v1'),\n(2, 'v2')",
    "INSERT INTO t (a, b) VALUES\n(3, 'v3'),\n(4, 'v4'),\n(5, 'v5')",
    "INSERT INTO t (a, b) VALUES\n(6, 'v6'),\n(7, 'v7'),\n(8, 'v8')",
]


@pytest.fixture
def parts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its rows are sent in PARTS."""
    monkeypatch.setattr(send, "STATEMENT", 20)
    path = folder / "a.csv"
    path.write_text("a,b\n" + "".join(f"{number},v{number}\n" for number in range(9)))
    return path


def failing(number: int) -> dict[str, Answer]:
    return {PARTS[number]: Answer(rows=(), error=failure("23505", "twice."))}


def lost(number: int) -> dict[str, Answer]:
    return {PARTS[number]: Answer(rows=(), error=ConnectionBroken("broken"))}


def kept(folder: Path) -> dict[str, object]:
    [path] = (folder / "state" / "loads").iterdir()
    found = json.loads(path.read_text())
    return {name: found[name] for name in ("done", "unknown", "superseded")}


def nothing_kept(folder: Path) -> bool:
    return not any((folder / "state" / "loads").iterdir())


def test_a_load_that_failed_continues(folder: Path, parts: Path) -> None:
    core, sent = load("t from a.csv", answers=failing(1))
    assert sent == PARTS[:2]
    assert core.err == f"x.sql:1: error[23505]: twice; 3 rows of a.csv are in t\nhelp: continue with {RESUME}\n"
    assert (core.texts()["SQLSTATE"], core.texts()["ROW_COUNT"]) == ("23505", "0")
    assert kept(folder) == {"done": [[0, 3]], "unknown": [], "superseded": False}
    core, sent = load("t from a.csv (resume)")
    assert sent == PARTS[1:]
    assert core.err == "resuming after 3 rows\n6 rows loaded into t, after 3 of the earlier load\n"
    assert core.texts()["ROW_COUNT"] == "6"
    assert nothing_kept(folder)
    core, sent = load("t from a.csv (resume)")
    assert core.err == f"x.sql:1: error: there is no unfinished load of a.csv into t\nhelp: omit {RESUME}\n"
    assert (core.shell.exit, sent) == (Exit.USAGE, [])


def test_a_load_of_which_no_row_arrived(folder: Path, parts: Path) -> None:
    core, _ = load("t from a.csv", answers=failing(0))
    assert core.err == "x.sql:1: error[23505]: twice; 0 rows of a.csv are in t\n"
    core, sent = load("t from a.csv")
    assert (core.err, sent) == ("9 rows loaded into t\n", PARTS)


def test_a_load_that_begins_again_says_what_is_there(folder: Path, parts: Path) -> None:
    load("t from a.csv", answers=failing(1))
    warning = (
        "warning: an earlier load of a.csv left 3 rows in t; this load starts from the beginning; to continue the "
        f"earlier one, use {RESUME}\n"
    )
    core, sent = load("t from a.csv", answers=failing(0))
    assert core.err.startswith(warning)
    assert kept(folder) == {"done": [], "unknown": [], "superseded": False}
    load("t from a.csv", answers=lost(1))
    core, sent = load("t from a.csv")
    assert core.err == (
        "warning: an earlier load of a.csv left 3 rows in t, and it is unknown whether rows 4 to 6 arrived; this load "
        f"starts from the beginning; to continue the earlier one, use {RESUME}\n9 rows loaded into t\n"
    )
    assert sent == PARTS


def test_a_load_that_began_again_and_sent_nothing(folder: Path, parts: Path) -> None:
    load("t from a.csv", answers=failing(1))
    load("t from a.csv", [["other", "INTEGER"]])
    assert kept(folder) == {"done": [[0, 3]], "unknown": [], "superseded": True}
    core, sent = load("t from a.csv (resume)")
    assert core.err == (
        "x.sql:1: error: cannot resume the load of a.csv into t: the last load restarted from the beginning and "
        f"stopped before it sent a row\nhelp: omit {RESUME}; if the table still contains rows 1 to 3 of the load "
        "before it, add --if-unknown skip (in \\copy: WITH (IF_UNKNOWN skip))\n"
    )
    assert sent == []
    core, sent = load("t from a.csv (resume, if_unknown skip)", answers=failing(2))
    assert sent == PARTS[1:]
    assert kept(folder) == {"done": [[0, 6]], "unknown": [], "superseded": False}
    load("t from a.csv", [["other", "INTEGER"]])
    assert load("t from a.csv (resume, if_unknown send)")[1] == PARTS


def test_rows_of_which_it_is_unknown_whether_they_arrived(folder: Path, parts: Path) -> None:
    core, sent = load("t from a.csv", answers=lost(1))
    assert sent == PARTS[:2]
    assert core.err == (
        "x.sql:1: error: broken; 3 rows of a.csv are in t; rows 4 to 6: unknown\n"
        "help: nothing was sent again; check the table; continue with --resume --if-unknown skip or send (in \\copy: "
        "WITH (RESUME, IF_UNKNOWN skip or send))\n"
    )
    assert kept(folder) == {"done": [[0, 3]], "unknown": [[3, 6]], "superseded": False}
    core, sent = load("t from a.csv (resume)")
    assert core.err == (
        "x.sql:1: error: rows 4 to 6 of a.csv: it is unknown whether they are in t\n"
        "help: check the table: if it contains all of these rows, use --if-unknown skip (in \\copy: WITH (IF_UNKNOWN "
        "skip)); otherwise delete those that it contains, and use --if-unknown send (in \\copy: WITH (IF_UNKNOWN "
        "send))\n"
    )
    assert (core.shell.exit, sent) == (Exit.USAGE, [])


@pytest.mark.parametrize(("unknown", "rows", "first"), [("skip", 6, 2), ("send", 3, 1)])
def test_the_user_says_whether_rows_arrived(folder: Path, parts: Path, unknown: str, rows: int, first: int) -> None:
    load("t from a.csv", answers=lost(1))
    core, sent = load(f"t from a.csv (resume, if_unknown {unknown})")
    assert sent == PARTS[first:]
    assert core.err == f"resuming after {rows} rows\n{9 - rows} rows loaded into t, after {rows} of the earlier load\n"
    assert nothing_kept(folder)


def test_one_row_of_which_it_is_unknown_whether_it_arrived(folder: Path) -> None:
    (folder / "a.csv").write_text("a,b\n0,v\n")
    lost = {"INSERT INTO t (a, b) VALUES\n(0, 'v')": Answer(rows=(), error=ConnectionBroken("broken"))}
    core, _ = load("t from a.csv", answers=lost)
    assert core.err.startswith("x.sql:1: error: broken; 0 rows of a.csv are in t; row 1: unknown\nhelp: nothing was")


def test_progress_that_is_kept_nowhere(folder: Path, parts: Path) -> None:
    core, _ = load("t from a.csv", answers=lost(1), storage="")
    assert core.err == (
        "x.sql:1: error: broken; 3 rows of a.csv are in t; rows 4 to 6: unknown\n"
        "help: nothing was sent again; check the table\n"
    )
    core, _ = load("t from a.csv", answers=failing(1), storage="")
    assert core.err == "x.sql:1: error[23505]: twice; 3 rows of a.csv are in t\n"
    core, sent = load("t from a.csv (resume)", storage="")
    assert core.err == (
        "x.sql:1: error: cannot resume the load of a.csv: the progress of loads from stdin, from a command, or into a "
        f"database in memory is not stored\nhelp: omit {RESUME}\n"
    )
    assert (sent, (folder / "state").exists()) == ([], False)


@pytest.mark.parametrize(
    ("changed", "what"),
    [("file", "the file"), ("table", "the table or an option"), ("option", "the table or an option")],
)
def test_what_must_not_change_before_a_load_continues(folder: Path, parts: Path, changed: str, what: str) -> None:
    load("t from a.csv", answers=failing(1))
    if changed == "file":
        parts.write_text(f"{parts.read_text()}9,v9\n")
    columns = [["a", "BIGINT"], ["b", "VARCHAR"]] if changed == "table" else TWO
    core, sent = load(
        f"t from a.csv (resume{', delimiter $,$'.replace('$', chr(39)) * (changed == 'option')})", columns
    )
    assert core.err == (
        f"x.sql:1: error: cannot resume the load of a.csv: {what} has changed since the earlier load\n"
        f"help: omit {RESUME}\n"
    )
    assert sent == []


def test_ctrl_c_during_a_load(folder: Path, parts: Path) -> None:
    client = Tables(TWO)

    async def work() -> Core:
        core = Core(client)
        core.session.state.connection = connection(client, journal=core.journal, storage_name="here")
        core.session.connection.service.transport.extensions = frozenset({"attachments"})

        def step(what: str) -> None:
            if what == "submit" and len(client.sqls) == 2:
                core.shell.statement_runner.interrupt()

        client.on_step = step
        await core.shell.run_script([Trusted("\\copy t from a.csv\n")], "x.sql")
        return core

    core = asyncio.run(work())
    assert core.shell.exit == Exit.INTERRUPTED
    assert core.err == f"x.sql:1: error: interrupted; 6 rows of a.csv are in t\nhelp: continue with {RESUME}\n"
    # The statement that was running has ended, and none follows it.
    assert client.sqls == PARTS[:2]
    assert kept(folder) == {"done": [[0, 6]], "unknown": [], "superseded": False}


def test_dates_with_two_meanings_are_a_warning(folder: Path) -> None:
    (folder / "d.csv").write_text("d\n01/02/2024\n03/04/2024\n")
    core, _ = load("t from d.csv", [["d", "DATE"]])
    assert core.err.startswith('warning: d.csv, column "d": ')
    assert core.err.endswith("\n2 rows loaded into t\n")


@pytest.mark.parametrize(
    ("of", "step"),
    [(DataFile, "look"), (Scan, "run"), (Scan, "date_warnings"), (Scan, "rejects"), (Scan, "rows")],
)
def test_ctrl_c_while_a_file_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, of: type[object], step: str
) -> None:
    (folder / "a.csv").write_text("a,b\n1,x\n")
    began, interrupts = threading.Event(), list[int]()

    def never(source: object, *_: object) -> None:
        began.set()
        # DuckDB hears the first of two calls only if it runs a statement by then.
        while len(interrupts) < 2:
            time.sleep(0.001)
        raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")

    monkeypatch.setattr(of, step, never)
    monkeypatch.setattr(DataFile, "interrupt", lambda source: interrupts.append(1))
    client = Tables([list(column) for column in TWO], None)

    async def work() -> Core:
        core = Core(client)
        core.session.state.connection = connection(client, journal=core.journal, storage_name="here")
        core.session.connection.service.transport.extensions = frozenset({"attachments"})
        running = asyncio.ensure_future(core.shell.run_script([Trusted("\\copy t from a.csv\n")], "x.sql"))
        assert await asyncio.to_thread(began.wait, 30)
        assert core.shell.statement_runner.interrupt()
        await running
        await core.shell.aclose()
        return core

    core = asyncio.run(work())
    # A busy machine may need more of them.
    assert len(interrupts) >= 2
    assert (core.shell.exit, client.sqls) == (Exit.INTERRUPTED, [])
    assert "interrupted" in core.err and "bug" not in core.err


def test_a_read_that_duckdb_interrupts_by_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a.csv").write_text("a,b\n1,x\n")

    def interrupted(source: Scan) -> None:
        raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")

    monkeypatch.setattr(Scan, "run", interrupted)
    core, sent = load("t from a.csv")
    assert (core.shell.exit, sent) == (Exit.INTERRUPTED, [])
    assert "interrupted; no row of a.csv was sent" in core.err
