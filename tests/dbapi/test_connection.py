"""Connections: transactions, the context, threads, errors, and the end."""

from __future__ import annotations

import copy
import gc
import pickle
import pydoc
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import sqlshell
from sqlshell import dbapi
from sqlshell.dbapi import Connection, connect
from sqlshell.dbapi.binding import BATCH_ROWS
from sqlshell.dbapi.exceptions import error_of
from sqlshell.errors import ProtocolError, ShellError, StatementError, UsageError, Where
from sqlshell.interface.sqlstate import CLASSES
from tests.conftest import Served, clean_environment


def test_the_module_is_that_of_the_pep() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")
    assert sqlshell.connect is connect
    assert issubclass(dbapi.Warning, Warning) and issubclass(dbapi.Error, Exception)
    assert Connection.Error is dbapi.Error
    assert all(hasattr(dbapi, name) for name in dbapi.__all__)
    assert all(getattr(sqlshell, name) is getattr(dbapi, name) for name in dbapi.__all__)
    assert set(dbapi.__all__) < set(dir(sqlshell))
    assert "connect(" in pydoc.plain(pydoc.render_doc(sqlshell))


def test_the_module_has_types() -> None:
    assert (Path(sqlshell.__file__).parent / "py.typed").is_file()
    # mypy reports a comment of these that it does not need.
    with pytest.raises(AttributeError):
        _ = sqlshell.nothing  # type: ignore[attr-defined]
    with sqlshell.connect(":memory:") as connection:
        number: int = connection.schema  # type: ignore[assignment]
    assert not number


def test_a_transaction_begins_by_itself(tmp_path: Path) -> None:
    file = str(tmp_path / "t.duckdb")
    with connect(file) as one:
        assert not one.in_transaction
        one.execute("create table t as select 1 as i")
        assert one.in_transaction
    with pytest.raises(ZeroDivisionError), connect(file) as two:
        two.execute("insert into t values (2)")
        raise ZeroDivisionError
    three = connect(file)
    three.execute("insert into t values (3)")
    three.rollback()
    three.execute("insert into t values (4)")
    three.commit()
    three.execute("insert into t values (5)")
    three.close()
    assert three.closed
    with connect(file, autocommit=True) as four:
        assert four.execute("select i from t order by i").fetchall() == [(1,), (4,)]
        assert not four.in_transaction
        four.execute("begin")
        assert four.in_transaction
        with pytest.raises(dbapi.ProgrammingError, match="autocommit cannot be changed in a transaction"):
            four.autocommit = False
        four.rollback()
        four.autocommit = False
        four.execute("select 1")
        assert four.in_transaction


def test_a_failed_transaction_is_not_committed(remote: Connection) -> None:
    remote.execute("create temp table t as select 1 as i")
    remote.commit()
    remote.execute("insert into t values (2)")
    with pytest.raises(dbapi.ProgrammingError):
        remote.execute("select * from nowhere")
    with pytest.raises(dbapi.InternalError) as caught:
        remote.execute("select 1")
    assert caught.value.sqlstate == "25P02"
    with pytest.raises(dbapi.InternalError, match=r"failed, and was rolled back: .*nowhere"):
        remote.commit()
    assert remote.execute("select * from t").fetchall() == [(1,)]


def test_the_context_is_read_and_set(remote: Connection) -> None:
    remote.autocommit = True
    remote.execute("select 1")
    assert (remote.database, remote.schema) == ("local", "main")
    remote.schema = "public"
    assert remote.execute("select current_schema()").fetchall() == [("public",)]
    remote.execute("use schema main")
    assert remote.schema == "main"
    remote.timezone = "Asia/Tokyo"
    assert remote.execute("select timestamptz '2024-01-01 00:00:00Z'").fetchall()[0][0].hour == 9
    assert remote.context.timezone == "Asia/Tokyo"
    remote.database = "nowhere"
    assert remote.schema == ""
    with pytest.raises(dbapi.ProgrammingError) as caught:
        remote.execute("select 1")
    assert caught.value.sqlstate == "3D002"
    with pytest.raises(dbapi.ProgrammingError, match="unknown time zone"):
        remote.timezone = "Mars/Olympus"


def test_threads_share_a_connection(remote: Connection) -> None:
    remote.execute("create temp table shared (i integer)")

    def work(number: int) -> int:
        cursor = remote.cursor()
        cursor.executemany("insert into shared values (?)", [(number,)] * 10)
        cursor.execute("select ? as n, i from range(3000) t(i)", [number])
        rows = cursor.fetchmany(10) + cursor.fetchall()
        assert {row[0] for row in rows} == {number}
        return len(rows)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(8))) == [3000] * 8
    assert remote.execute("select count(*) from shared").fetchall() == [(80,)]


@pytest.mark.parametrize("by", ["cursor", "connection"])
def test_another_thread_cancels(remote: Connection, by: str) -> None:
    cursor = remote.cursor()
    stop = threading.Event()

    def cancel() -> None:
        while not stop.wait(0.05):
            (cursor if by == "cursor" else remote).cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        with pytest.raises(dbapi.OperationalError) as caught:
            cursor.execute("select count(*) from range(100000) a, range(100000) b, range(1000) c")
    finally:
        stop.set()
        thread.join()
    assert caught.value.sqlstate == "57000"
    assert caught.value.statement_id
    remote.rollback()
    assert remote.execute("select 1").fetchone() == (1,)


@pytest.mark.parametrize(
    ("sql", "kind", "state"),
    [
        ("selct 1", dbapi.ProgrammingError, "42601"),
        ("select * from nowhere", dbapi.ProgrammingError, "3D020"),
        ("select 'x'::int", dbapi.DataError, "22000"),
        ("insert into keys values (1)", dbapi.IntegrityError, "23000"),
        ("create store s with ('type' = kafka)", dbapi.NotSupportedError, "0A000"),
    ],
)
def test_errors_have_the_classes_of_the_pep(
    embedded: Connection, sql: str, kind: type[dbapi.Error], state: str
) -> None:
    embedded.execute("create or replace temp table keys as select 1 as i")
    embedded.execute("create unique index if not exists lone on keys (i)")
    with pytest.raises(kind) as caught:
        embedded.execute(sql)
    assert type(caught.value) is kind
    assert caught.value.sqlstate[:2] == state[:2]
    assert len(caught.value.statement_id) == 36
    assert caught.value.__cause__ is None


def test_each_error_has_a_class() -> None:
    for number in CLASSES:
        found = error_of(StatementError("no", where=Where(sql_state=f"{number}000")))
        assert isinstance(found, dbapi.DatabaseError)
    assert isinstance(error_of(ProtocolError("odd")), dbapi.InterfaceError)
    hinted = error_of(UsageError("wrong", "right"))
    assert (str(hinted), hinted.hint, hinted.__notes__) == ("wrong", "right", ["help: right"])

    def kinds(kind: type[ShellError]) -> set[type[ShellError]]:
        return {kind, *(each for below in kind.__subclasses__() for each in kinds(below))}

    assert all(isinstance(error_of(kind("x")), dbapi.Error) for kind in kinds(ShellError))


def test_what_is_closed_says_so(served: Served) -> None:
    connection = connect(served.url, token=served.token)
    cursor = connection.execute("select 1")
    other = connection.execute("select 1")
    cursor.close()
    cursor.close()
    with pytest.raises(dbapi.InterfaceError, match="the cursor is closed"):
        cursor.fetchone()
    connection.close()
    connection.close()
    other.close()
    for use in (connection.cursor, connection.commit, connection.rollback, connection.cancel):
        with pytest.raises(dbapi.InterfaceError, match="the connection is closed"):
            use()
    for fetch in (other.fetchone, other.fetchall, other.fetchmany, other.nextset):
        with pytest.raises(dbapi.InterfaceError, match="closed"):
            fetch()
    with pytest.raises(dbapi.InterfaceError), connection:
        raise AssertionError("not reached")


def test_an_attribute_is_checked_when_it_is_set(embedded: Connection) -> None:
    for name, value in (("schema", 5), ("timezone", None), ("autocommit", 5)):
        with pytest.raises(dbapi.ProgrammingError, match=f"^{name} must be "):
            setattr(embedded, name, value)
    with pytest.raises(dbapi.ProgrammingError, match=r"^autocommit must be True or False, not 1$"):
        connect(":memory:", autocommit=1)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="schemaa"):
        embedded.schemaa = "public"  # type: ignore[attr-defined]


def test_what_a_connection_shows_of_itself(served: Served) -> None:
    host = served.url.removeprefix("http://")
    with connect(f"http://:{served.token}@{host}/v2", autocommit=True) as connection:
        assert repr(connection) == f"<sqlshell.dbapi.sync.Connection '{served.url}', open>"
        connection.execute("begin")
        assert repr(connection).endswith(", in a transaction>")
    assert repr(connection).endswith(", closed>")


@pytest.mark.parametrize("use", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_connection_cannot_be_copied(embedded: Connection, use: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match="a connection cannot be copied or pickled: connect again"):
        use(embedded)
    with pytest.raises(TypeError, match="a cursor cannot be copied or pickled: create another one"):
        use(embedded.cursor())


def test_a_response_above_the_limit_names_it(served: Served) -> None:
    with (
        connect(served.url, token=served.token, autocommit=True, answer_limit=1) as connection,
        pytest.raises(dbapi.OperationalError, match="larger than 1 MiB, the answer_limit") as caught,
    ):
        connection.execute("select lpad('x', 2000000, 'x')").fetchall()
    assert caught.value.hint.startswith("to raise the limit, set answer_limit (in MiB) ")


def test_closing_ends_the_session(served: Served) -> None:
    with connect(served.url, token=served.token, autocommit=True) as watching:
        with connect(served.url, token=served.token) as connection:
            connection.execute("select 1")
            name = connection.context.session_id
            listed = watching.execute("list sessions").fetchall()
            assert name in {row[0] for row in listed}
        listed = watching.execute("list sessions").fetchall()
        assert name not in {row[0] for row in listed}


@pytest.mark.parametrize("commits_first", [False, True])
def test_a_transaction_that_is_lost_with_its_session_is_not_committed_in_part(
    served: Served, commits_first: bool
) -> None:
    with connect(served.url, token=served.token, autocommit=True) as other:
        other.execute("create or replace table halved as select 1 as i")
        with connect(served.url, token=served.token) as connection:
            connection.execute("insert into halved values (2)")
            other.execute(f"terminate session '{connection.context.session_id}'")
            if commits_first:
                with pytest.raises(dbapi.OperationalError) as lost:
                    connection.commit()
            else:
                with pytest.raises(dbapi.OperationalError) as lost:
                    connection.execute("insert into halved values (3)")
            assert lost.value.sqlstate == "40000"
            assert connection.in_transaction
            with pytest.raises(dbapi.InternalError) as ignored:
                connection.execute("insert into halved values (4)")
            assert ignored.value.sqlstate == "25P02"
            with pytest.raises(dbapi.InternalError, match="the transaction failed"):
                connection.commit()
            connection.execute("insert into halved values (5)")
            connection.commit()
        assert other.execute("from halved order by i").fetchall() == [(1,), (5,)]
        other.execute("drop table halved")


LONG = "select count(*) from range(10000000) a, range(1000000) b where hash(a.range) = hash(b.range + 1) + a.range"


def _is_running(connection: Connection) -> bool:
    running = connection._session._running
    return running is not None and bool(running.statement_id)


def test_closing_while_another_thread_waits_for_a_statement() -> None:
    connection = connect(":memory:", autocommit=True)

    def close() -> None:
        while not _is_running(connection):
            time.sleep(0.01)
        connection.close()

    closing = threading.Thread(target=close)
    closing.start()
    with pytest.raises(dbapi.InterfaceError, match="the connection is closed"):
        connection.execute(LONG)
    closing.join()
    assert connection.closed


FORKED = """
import os, sys, sqlshell
connection = sqlshell.connect(sys.argv[1], autocommit=True, **({"token": sys.argv[2]} if sys.argv[2] else {}))
cursor = connection.execute("select range from range(200000)")
assert cursor.fetchmany(5)
process = os.fork()
if not process:
    sys.exit(0)
os.waitpid(process, 0)
assert len(cursor.fetchall()) == 199995
print(connection.execute("select 3").fetchall())
"""


@pytest.mark.slow("another process")
@pytest.mark.parametrize("target", ["embedded", "http"])
def test_a_forked_process_that_exits_has_no_effect_on_its_parent(served: Served, tmp_path: Path, target: str) -> None:
    given = [":memory:", ""] if target == "embedded" else [served.url, served.token]
    command = [sys.executable, "-W", "ignore", "-c", FORKED, *given]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=clean_environment(tmp_path)
    )
    assert (done.returncode, done.stdout) == (0, "[(3,)]\n"), done.stderr


def test_threads_share_a_cursor(served: Served) -> None:
    with connect(served.url, token=served.token) as connection:
        cursor = connection.execute("select range from range(50000)")

        def read(_: int) -> list[int]:
            return [row[0] for rows in iter(lambda: cursor.fetchmany(97), []) for row in rows]

        with ThreadPoolExecutor(4) as threads:
            found = [number for part in threads.map(read, range(4)) for number in part]
        assert sorted(found) == list(range(50000))


SLOW = "select count(*) from range(10000) a(i), range(10000) b(j) where i + j > 100"


def test_threads_that_share_a_cursor_wait_for_each_others_statements(remote: Connection) -> None:
    cursor = remote.cursor()
    with ThreadPoolExecutor(1) as threads:
        execution = threads.submit(cursor.execute, SLOW)
        while not cursor.statement_id and not execution.done():
            time.sleep(0.001)
        assert cursor.fetchall() == [(99_994_849,)]
        assert execution.result() is cursor


def test_threads_that_share_a_cursor_wait_for_the_end_of_executemany(remote: Connection) -> None:
    remote.execute("create temp table many (i integer)")
    cursor = remote.cursor()
    ended: list[str] = []

    def rows() -> Iterator[tuple[int]]:
        yield from ((number,) for number in range(BATCH_ROWS + 1))
        thread.start()
        # An execute() that does not wait ends meanwhile.
        thread.join(0.3)
        ended.append("rows")

    def execute() -> None:
        cursor.execute("select 42")
        ended.append("execute")

    thread = threading.Thread(target=execute)
    cursor.executemany("insert into many values (?)", rows())
    thread.join()
    assert ended == ["rows", "execute"]
    assert cursor.fetchall() == [(42,)]
    assert remote.execute("select count(*) from many").fetchall() == [(BATCH_ROWS + 1,)]


def test_rows_of_executemany_that_come_from_its_own_cursor_are_refused(embedded: Connection) -> None:
    cursor = embedded.execute("select range from range(10)")
    with pytest.raises(dbapi.ProgrammingError, match="no result"):
        cursor.executemany("select ?", cursor)


def test_a_connection_that_is_not_closed_is_reported() -> None:
    connection = connect(":memory:")
    before = threading.active_count()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        del connection
        gc.collect()
    assert [str(each.message) for each in said if each.category is ResourceWarning] == [
        'a connection was not closed; call close(), or use "with" or "async with"'
    ]
    said.clear()
    gc.collect()
    assert threading.active_count() < before


FORKS = """
import atexit, os, sys, warnings
import sqlshell
warnings.simplefilter("ignore")
connection = sqlshell.connect(":memory:", autocommit=True)
connection.execute("create table t as select 1 as i")
for use in (True, False):
    child = os.fork()
    if not child:
        if use:
            try:
                connection.execute("select 1")
            except sqlshell.dbapi.InterfaceError as error:
                print(error)
            connection.close()
        sys.stdout.flush()
        # As the end of the interpreter, which DuckDB does not survive in a forked process.
        atexit._run_exitfuncs()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
print(connection.execute("select i from t").fetchall())
connection.close()
"""


def test_a_forked_process_cannot_use_the_connection_and_leaves_it_alone() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "the connection belongs to the parent process\n[(1,)]\n", done.stderr


UNREAD = """
import asyncio, gc, sqlshell

LARGE = "select i, i * 2 as j, 'row ' || i as text from range(400000) t(i)"

async def main():
    async with await sqlshell.aconnect(":memory:") as connection:
        cursor = await connection.execute(LARGE)
        assert await cursor.fetchmany(3)
        other = await connection.execute(LARGE)
        assert await other.fetchone()
    async with await sqlshell.aconnect(":memory:") as connection:
        cursor = await connection.execute(LARGE)
        assert await cursor.fetchone()
        del cursor
        gc.collect()

asyncio.run(main())
for ending in ("closed", "dropped", "left"):
    connection = sqlshell.connect(":memory:")
    cursor = connection.execute(LARGE)
    assert cursor.fetchone()
    if ending == "closed":
        connection.close()
    elif ending == "dropped":
        del connection, cursor
        gc.collect()
"""


@pytest.mark.slow("a large result")
def test_a_connection_can_be_closed_with_unread_rows(tmp_path: Path) -> None:
    home = clean_environment(tmp_path, {"PYTHONWARNINGS": "ignore::ResourceWarning"})
    command = [sys.executable, "-X", "dev", "-c", UNREAD]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=home)
    said = [line for line in done.stderr.splitlines() if not line.startswith("Executing <")]
    assert (done.returncode, said) == (0, [])


def test_the_message_of_an_error_does_not_steer_a_terminal() -> None:
    with connect(autocommit=True) as connection, pytest.raises(dbapi.Error) as raised:
        connection.execute("select error(chr(27) || ']0;x' || chr(7) || chr(8238) || chr(10) || 'end')")
    assert "\\x1b]0;x\\x07\\u202e\nend" in str(raised.value)
