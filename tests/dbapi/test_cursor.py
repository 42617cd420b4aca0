"""Cursors: rows, what is told of them, several results, files, streams."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from sqlshell.dbapi import BINARY, DATETIME, NUMBER, ROWID, STRING, Connection, InterfaceError, ProgrammingError
from sqlshell.dbapi import Error as DatabaseApiError


def test_rows_in_every_way(remote: Connection) -> None:
    """Three and a half partitions of the service."""
    cursor = remote.cursor()
    assert cursor.execute("select i, i * 2 from range(3500) t(i)") is cursor
    expected = [(i, i * 2) for i in range(3500)]
    assert cursor.fetchone() == expected[0]
    assert cursor.fetchmany() == expected[1:2]
    cursor.arraysize = 7
    assert cursor.fetchmany() == expected[2:9]
    assert cursor.rownumber == 9
    assert cursor.fetchmany(2500) == expected[9:2509]
    assert next(cursor) == expected[2509]
    assert cursor.fetchmany(0) == []
    assert cursor.fetchall() == expected[2510:]
    assert (cursor.fetchone(), cursor.fetchmany(5), cursor.fetchall(), list(cursor)) == (None, [], [], [])
    assert cursor.rowcount == 3500
    with cursor:
        assert list(cursor.execute("select 5")) == [(5,)]


def test_what_is_told_of_a_result(remote: Connection) -> None:
    cursor = remote.cursor()
    assert (cursor.description, cursor.rowcount, cursor.rownumber) == (None, -1, None)
    cursor.execute("select 1.5::decimal(10,2) d, 'a' s, 'a'::blob b, now() t, 1 i, true ok, [1] l, 'a'::varchar as s")
    assert cursor.description is not None
    assert [item.name for item in cursor.description] == ["d", "s", "b", "t", "i", "ok", "l", "s"]
    first = cursor.description[0]
    assert tuple(first) == ("d", "DECIMAL(10,2)", None, None, 10, 2, first.null_ok)
    codes = [item.type_code for item in cursor.description]
    assert [code == NUMBER for code in codes] == [True, False, False, False, True, False, False, False]
    assert [code == STRING for code in codes] == [False, True, False, False, False, False, False, True]
    assert (codes[2] == BINARY, codes[3] == DATETIME, codes[3] == ROWID, STRING == NUMBER) == (True, True, False, False)
    assert len({STRING, BINARY, NUMBER, DATETIME, ROWID}) == 5
    assert (cursor.sqlstate, len(cursor.statement_id)) == ("00000", 36)
    cursor.execute("create temp table t (i integer)")
    assert cursor.description is None
    assert (cursor.rowcount, cursor.statusmessage) == (-1, "CREATE TABLE")
    for fetch in (cursor.fetchone, cursor.fetchall, cursor.fetchmany):
        with pytest.raises(ProgrammingError, match="there are no rows"):
            fetch()
    cursor.execute("insert into t values (1), (2)")
    assert cursor.rowcount == 2
    cursor.setinputsizes([1])
    cursor.setoutputsize(1, 2)
    cursor.execute("select i from t where false")
    assert (cursor.fetchall(), cursor.rowcount) == ([], 0)


def test_a_statement_that_creates_has_no_rows(embedded: Connection, remote: Connection) -> None:
    for connection in (embedded, remote):
        cursor = connection.cursor()
        cursor.execute("create or replace table made as select 1 as i; select 2; insert into made select 5")
        assert (cursor.description, cursor.rowcount, cursor.statusmessage) == (None, -1, "CREATE TABLE")
        assert cursor.created is not None
        assert cursor.created[:3] == ("table", "made", "CREATE")
        with pytest.raises(ProgrammingError, match="there are no rows"):
            cursor.fetchall()
        assert cursor.nextset()
        assert cursor.fetchall() == [(2,)]
        assert cursor.nextset()
        assert (cursor.description, cursor.rowcount, cursor.statusmessage) == (None, 1, "INSERT 1")
        assert cursor.created is not None
        assert cursor.created[:3] == ("query", cursor.statement_id, "INSERT")
        cursor.execute("insert into made select 6 returning i")
        assert cursor.fetchall() == [(6,)]
        cursor.execute("select '' as type, '' as name, '' as command, '' as summary, '' as path")
        assert cursor.fetchall() == [("",) * 5]


def test_a_number_of_rows_is_checked(embedded: Connection) -> None:
    cursor = embedded.execute("select 1 from range(3)")
    for size, message in (("2", "size must be an int, not str"), (-1, "size must be at least 0, not -1")):
        with pytest.raises(ProgrammingError, match=message):
            cursor.fetchmany(size)  # type: ignore[arg-type]
    for size, message in (("x", "arraysize must be an int, not str"), (0, "arraysize must be at least 1, not 0")):
        with pytest.raises(ProgrammingError, match=message):
            cursor.arraysize = size  # type: ignore[assignment]
    assert (cursor.arraysize, len(cursor.fetchmany()), len(cursor.fetchall())) == (1, 1, 2)


def test_several_results(remote: Connection) -> None:
    cursor = remote.cursor()
    cursor.execute("select 1 as a; create temp table t (i int); select 2, 3 from range(2000)")
    assert cursor.fetchall() == [(1,)]
    assert cursor.nextset()
    assert (cursor.description, cursor.statusmessage) == (None, "CREATE TABLE")
    assert cursor.nextset()
    assert len(cursor.fetchall()) == 2000
    assert cursor.nextset() is None
    with pytest.raises(DatabaseApiError):
        cursor.execute("select 1; select * from nowhere; select 2")


def test_a_cursor_is_used_again_before_all_is_read(remote: Connection) -> None:
    cursor = remote.cursor()
    for _ in range(3):
        cursor.execute("select i from range(10000) t(i); select 2")
        assert cursor.fetchone() == (0,)
    with pytest.raises(ProgrammingError):
        cursor.execute("select ?", [])


def test_files_go_with_a_statement(remote: Connection, tmp_path: Path) -> None:
    remote.autocommit = True
    (tmp_path / "any.jar").write_bytes(b"PK\x05\x06" + bytes(18))
    cursor = remote.cursor()
    jar = tmp_path / "any.jar"
    content = jar.read_bytes()
    contents: tuple[Any, ...] = (jar, str(jar), content, bytearray(content), memoryview(content))
    for number, content in enumerate(contents):
        sql = f"create function_source dbapi_{number} with ('file' = 'named.jar')"
        cursor.execute(sql, attachments={"named.jar": content})
        cursor.execute(f"drop function_source dbapi_{number}")
    for name, file, said in (
        ("a.jar", tmp_path / "missing", "no such file"),
        ('a".jar', tmp_path / "any.jar", "characters that cannot be sent"),
    ):
        with pytest.raises(ProgrammingError, match=said):
            cursor.execute("select 1", attachments={name: file})
    given: tuple[Any, ...] = ({"a.jar": 5}, {5: jar}, [jar])
    for wrong in given:
        with pytest.raises(ProgrammingError, match="attach"):
            cursor.execute("select 1", attachments=wrong)
    # Text of a statement names no file of this machine.
    with pytest.raises(DatabaseApiError):
        cursor.execute(f"create function_source dbapi with ('file' = '@{tmp_path / 'any.jar'}')")


@pytest.mark.slow("a large result")
def test_a_large_result_is_read_with_little_memory(remote: Connection) -> None:
    cursor = remote.cursor()
    cursor.execute("select i, 'text of row ' || i as s from range(300000) t(i)")
    tracemalloc.start()
    try:
        seen = 0
        while rows := cursor.fetchmany(1000):
            seen += len(rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert seen == 300_000
    # All rows would take 50 MB.
    assert peak < 15_000_000


def test_a_cursor_of_a_failed_statement_has_no_rows(embedded: Connection) -> None:
    cursor = embedded.execute("select 1")
    with pytest.raises(DatabaseApiError):
        cursor.execute("selct")
    with pytest.raises(ProgrammingError, match="there are no rows"):
        cursor.fetchone()
    cursor.close()
    with pytest.raises(InterfaceError):
        cursor.execute("select 1")


@pytest.mark.parametrize("sql", ["", "-- x", ";", " ; -- x\n;"])
def test_an_empty_statement_is_refused(embedded: Connection, sql: str) -> None:
    with pytest.raises(ProgrammingError, match=r"^the statement is empty$"):
        embedded.execute(sql)


def test_a_statement_is_a_string(embedded: Connection) -> None:
    with pytest.raises(ProgrammingError, match=r"^a statement must be a str, not NoneType$"):
        embedded.execute(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sql", "offset"),
    [
        ("selec 1", 0),
        ("select nope", 7),
        ("select '日本',\n '日', nope from range(3)", 19),
        (f"select '{'x' * 300}', nope from range(3)", 311),
        ("select * from orders", 14),
        ("select error('here')", None),
    ],
)
def test_an_error_has_its_position(embedded: Connection, remote: Connection, sql: str, offset: int | None) -> None:
    for connection in (embedded, remote):
        with pytest.raises(DatabaseApiError) as raised:
            connection.execute(sql)
        assert raised.value.offset == offset
        connection.rollback()


def test_an_unknown_library_is_refused(embedded: Connection) -> None:
    with pytest.raises(ProgrammingError, match=r"^unknown library 'dask': use pandas or polars$"):
        embedded.execute("select 1").fetch_df("dask")


@pytest.mark.slow("an embedded service")
@pytest.mark.parametrize("rows", [1, 60_000])
def test_nested_decimals_keep_their_scale(embedded: Connection, rows: int) -> None:
    sql = (
        "select [1.5::decimal(5,2), null], {'x': 1::decimal(4,1)}, map {'k': 3::decimal(6,3)}, "
        "[['12345678901234567890123456789012345.1'::decimal(38,3)]], row(1::decimal(9,0), 2.5::decimal(3,2)) "
        f"from range({rows})"
    )
    row = embedded.execute(sql).fetchall()[0]
    expected = "[Decimal('1.50'), None], {'x': Decimal('1.0')}, {'k': Decimal('3.000')}"
    large = "[[Decimal('12345678901234567890123456789012345.100')]]"
    assert repr(row) == f"({expected}, {large}, (Decimal('1'), Decimal('2.50')))"
