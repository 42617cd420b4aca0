"""Statements of all sorts on PostgreSQL: their rows, messages and errors."""

from __future__ import annotations

import threading

import pytest

from tests.service.engines.conftest import Connect, Rows, Runner

pytestmark = pytest.mark.usefixtures("postgresql_server")


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("select 1 union all select 2", [["1"], ["2"]]),
        ("(select 1) union all (select 2)", [["1"], ["2"]]),
        ("values (1, 'a'), (2, null)", [["1", "a"], ["2", None]]),
        ("with x as (select 1) select * from x", [["1"]]),
        ("/* a /* nested */ comment */ select 1 -- and one more", [["1"]]),
        ("select 1 where false", []),
        ("show standard_conforming_strings", [["on"]]),
        ("explain (costs off) select 1", [["Result"]]),
        ("select", [[]]),
        ("select from generate_series(1, 3)", [[], [], []]),
        ("select ';'", [[";"]]),
        ("select ';', ';' -- a; b", [[";", ";"]]),
        ("select 1;", [["1"]]),
        ("select 1; -- a /* b", [["1"]]),
        ("select 1 ; /* a */ -- b", [["1"]]),
    ],
)
def test_statements_return_their_rows(runner: Runner, sql: str, rows: list[list[str | None]]) -> None:
    assert runner.run(sql).rows == rows


def test_names_of_columns_may_be_equal_or_odd(runner: Runner) -> None:
    told = runner.run('select 1 as a, true as a, 3 as "x ""y""", 4')
    assert told.names == ["a", "a", 'x "y"', "?column?"] and told.rows == [["1", "true", "3", "4"]]


def test_a_table_of_1600_columns(runner: Runner) -> None:
    runner.run(f"create table wide ({', '.join(f'c{number} bool default true' for number in range(1600))})")
    runner.run("insert into wide default values")
    assert runner.run("table wide").rows == [["true"] * 1600]
    state, message = runner.fails("table wide", columns=100)
    assert (state, message.partition(";")[0]) == ("54011", "the result has 1,600 columns")
    state, message = runner.fails("insert into wide default values returning *", columns=100)
    assert state == "54011" and runner.value("select count(*) from wide") == "1"


def test_writing_statements_have_their_tag_as_message_and_their_rows(runner: Runner) -> None:
    assert runner.run("create table w (a int primary key, b text)").message == "CREATE TABLE"
    assert runner.run("insert into w select n, n from generate_series(1, 5) n").message == "INSERT 5"
    assert runner.run("update w set b = 'x' where a < 3").message == "UPDATE 2"
    assert runner.run("delete from w where a = 5").message == "DELETE 1"
    assert runner.run("insert into w values (6, 'six') returning b, a").rows == [["six", "6"]]
    assert runner.run("with gone as (delete from w where a > 3 returning a) select * from gone").rows == [["4"], ["6"]]
    assert runner.run("select a into copied from w").message == "SELECT 3"
    assert runner.run("select a from w where a = 1 for update").rows == [["1"]]
    merged = "merge into w using (values (1), (9)) n(a) on w.a = n.a when matched then delete when not matched then "
    assert runner.run(merged + "insert values (n.a, 'new')").message == "MERGE 2"
    assert runner.run("truncate w").message == "TRUNCATE TABLE"


def test_functions_are_called_once_for_each_row(runner: Runner) -> None:
    runner.run("create sequence s")
    assert runner.run("select nextval('s'), true").rows == [["1", "true"]]
    assert runner.run("select nextval('s') from generate_series(1, 3)").rows == [["2"], ["3"], ["4"]]
    assert runner.value("select nextval('s')") == "5"


def test_functions_with_effects_are_called_for_all_rows(runner: Runner) -> None:
    runner.run("create table effects (i int)")
    runner.run(
        "create function effect(i int) returns int language plpgsql as "
        "$$begin insert into effects values (i); return i; end$$"
    )
    told = runner.run("select Effect(i) from generate_series(1, 5000) i", row_limit=3)
    assert (len(told.rows), told.state) == (3, "01R01")
    assert runner.value("select count(*) from effects") == "5000"
    assert runner.run("select 1, random() from generate_series(1, 10)", row_limit=3).state == "01R01"


def test_strings_keep_their_standard_meaning(runner: Runner) -> None:
    state, message = runner.fails("set standard_conforming_strings = off")
    assert state == "0A000" and "must remain on" in message
    assert runner.value("show standard_conforming_strings") == "on"


@pytest.mark.parametrize("lock", ["for update", "FOR NO KEY\nUPDATE skip locked", "for /* all */ key share"])
def test_all_rows_are_locked_however_few_are_shown(runner: Runner, lock: str) -> None:
    runner.run("drop table if exists locked")
    runner.run("create table locked as select i from generate_series(1, 20) i")
    runner.run("begin")
    assert len(runner.run(f"select * from locked {lock}", row_limit=3).rows) == 3
    assert runner.value("select count(*) from locked where xmax <> '0'") == "20"
    runner.run("rollback")


def test_a_row_limit_ends_a_result(runner: Runner) -> None:
    for sql in ("select n from generate_series(1, 10) n", "select n from generate_series(1, 10) n -- ;"):
        told = runner.run(sql, row_limit=3)
        assert (told.rows, told.state, told.message) == ([["1"], ["2"], ["3"]], "01R01", "stopped after 3 rows")
        assert runner.run(sql, row_limit=10).state == "00000"


def test_prepared_statements_and_cursors(runner: Runner) -> None:
    runner.run("prepare p(int) as select $1 + 1")
    assert runner.value("execute p(1)") == "2"
    assert runner.fails("prepare p as select 1")[0] == "42710"
    runner.run("begin")
    runner.run("declare c cursor for select n from generate_series(1, 5) n")
    assert runner.run("fetch 2 from c").rows == [["1"], ["2"]]
    assert runner.run("select name from pg_cursors").rows == [["c"]]
    assert runner.run("fetch all from c").rows == [["3"], ["4"], ["5"]]
    runner.run("commit")


def test_rows_of_a_rule_are_returned(runner: Runner) -> None:
    runner.run("create table ruled (a int)")
    runner.run("create rule r as on insert to ruled do instead select 42 as b")
    told = runner.run("insert into ruled values (1)")
    assert (told.names, told.rows) == (["b"], [["42"]])


def test_calls_return_what_procedures_return(runner: Runner) -> None:
    runner.run("create procedure twice(inout n int) language plpgsql as $$ begin n := 2 * n; end $$")
    assert runner.run("call twice(21)").rows == [["42"]]


@pytest.mark.parametrize(
    ("sql", "state", "message"),
    [
        ("select x from\n  nowhere", "42P01", 'relation "nowhere" does not exist\nLINE 2:   nowhere\n          ^'),
        ("select 1 +", "42601", "syntax error at end of input\nLINE 1: select 1 +\n                  ^"),
        ("selec 1", "42601", 'syntax error at or near "selec"\nLINE 1: selec 1\n        ^'),
        ("select 'é', 'x'::int", "22P02", None),
        ("select 1 / (n - 2) from generate_series(1, 3) n", "22012", "division by zero"),
        ("select $1::int", "42P02", "there is no parameter $1"),
        ("select 1; select 2", "42601", "cannot insert multiple commands into a prepared statement"),
        ("copy (select 1) from stdin", "42601", None),
        ("create table pg_class (a int", "42601", None),
    ],
)
def test_errors_are_postgresqls_with_the_place_in_the_text(
    runner: Runner, sql: str, state: str, message: str | None
) -> None:
    found = runner.fails(sql)
    assert found[0] == state
    assert message is None or found[1] == message


def test_the_place_of_an_error_in_a_long_line_is_cut_out(runner: Runner) -> None:
    state, message = runner.fails(f"select {'1 + ' * 100}wrong{' + 1' * 100}")
    shown, mark = message.splitlines()[1:]
    assert state == "42703" and shown.startswith("LINE 1: ...") and shown.endswith("...")
    assert shown[mark.index("^") :].startswith("wrong")


def test_notices_have_their_severity_and_a_state_of_their_own(runner: Runner) -> None:
    told = runner.run("do $$ begin raise notice 'hi'; raise warning 'ho' using hint = 'go'; end $$")
    assert (told.state, told.message) == ("01N01", "NOTICE: hi\nWARNING: ho\nHINT: go")
    assert runner.run("drop table if exists never").message == 'NOTICE: table "never" does not exist, skipping'
    told = runner.run("do $$ begin for n in 1..100000 loop raise notice '%', n; end loop; end $$")
    lines = told.message.splitlines()
    between = next(number for number, line in enumerate(lines) if "omitted" in line)
    assert lines[:between] == [f"NOTICE: {number}" for number in range(1, between + 1)]
    assert lines[between + 1 :] == [
        f"NOTICE: {number}" for number in range(100_000 - len(lines) + between + 2, 100_001)
    ]
    assert lines[between] == f"… {100_000 - len(lines) + 1:,} notices omitted …"
    # The service shortens longer messages.
    assert len(told.message) < 10_000 and between > 200
    long = runner.run("do $$ begin raise notice '%', repeat('x', 100000); end $$").message
    assert long.startswith("NOTICE: xxx") and long.endswith("x…") and len(long) < 10_000
    assert runner.run("select 1").state == "00000"


def test_notifications_arrive_with_the_next_statement(connect: Connect) -> None:
    one, other = connect(), connect()
    one.run("listen news")
    other.run("notify news, 'tea'")
    told = one.run("select 1")
    while not told.message:
        # The server sends it when it is idle.
        told = one.run("select 1")
    assert told.state == "01N01" and told.message.startswith("NOTIFY news: tea (from server process ")


def test_copy_to_stdout_returns_its_lines(runner: Runner) -> None:
    told = runner.run("COPY (values (1, 'a\tb', true))\nTO  STDOUT (format csv, header)")
    assert (told.names, told.rows) == (["copy"], [["column1,column2,column3"], ["1,a\tb,t"]])
    assert (told.message, told.state) == ("COPY 1", "00000")
    assert runner.run("copy (select '' as e) to stdout").rows == [[""]]
    empty = runner.run("copy (select 1 where false) to stdout")
    assert (empty.names, empty.rows, empty.message) == (["copy"], [], "COPY 0")
    assert runner.run("copy (select n from generate_series(1, 9) n) to stdout", row_limit=2).rows == [["1"], ["2"]]


def test_copy_to_stdout_that_is_no_text_is_refused(runner: Runner) -> None:
    runner.run("begin")
    state, message = runner.fails("copy (select n from generate_series(1, 100000) n) to stdout (format binary)")
    assert (state, message) == ("0A000", "the binary format of COPY … TO STDOUT is not supported; use csv or text")
    runner.run("rollback")
    state, message = runner.fails("copy (select 'é') to stdout (encoding 'latin1')")
    assert state == "22021" and "omit the option ENCODING" in message
    assert runner.run("select 1").rows == [["1"]]


def test_copy_from_stdin_without_data_is_refused(runner: Runner) -> None:
    runner.run("create table c (a int)")
    assert runner.fails("copy c from stdin") == ("0A000", "no data is attached to this COPY … FROM STDIN")
    assert runner.run("select 1").rows == [["1"]]


def test_a_text_that_cannot_be_sent_is_an_error(runner: Runner) -> None:
    assert runner.fails("select 'a\0b'")[0] == "42601"
    assert runner.fails("select '\ud800'")[0] == "42601"
    assert runner.run("").rows == [] and runner.run("-- nothing").rows == []


def test_the_encoding_of_the_connection_stays(runner: Runner) -> None:
    said = "WARNING: client_encoding remains UTF8, because the service always sends UTF-8"
    ascii = runner.run("set client_encoding = 'sql_ascii'")
    assert (ascii.state, ascii.message) == ("01N01", said)
    state, message = runner.fails("set client_encoding = 'latin1'")
    assert state == "0A000" and message.startswith("client_encoding must be UTF8, not LATIN1; convert a script")
    assert runner.value("select 'é😀'") == "é😀"


def test_a_database_with_another_encoding(runner: Runner) -> None:
    runner.run("drop database if exists latin")
    runner.run("create database latin encoding 'latin1' template template0 locale 'C'")
    runner.session.use("latin", "")
    assert runner.run("select 'é' as \"ü\", length('é')").rows == [["é", "1"]]
    assert runner.fails("select '😀'")[0] == "22P05"
    runner.session.use("postgres", "")
    runner.run("drop database latin")


@pytest.mark.parametrize("sql", ["select pg_sleep(60)", "do $$ begin perform pg_sleep(60); end $$"])
def test_a_running_statement_is_canceled(runner: Runner, sql: str) -> None:
    timer = threading.Timer(0.3, runner.session.cancel)
    timer.start()
    assert runner.fails(sql) == ("57000", "the statement was canceled")
    timer.join()
    assert runner.run("select 1").rows == [["1"]]


def test_a_time_limit_of_the_server_is_no_cancellation(runner: Runner) -> None:
    runner.run("set statement_timeout = 50")
    assert runner.fails("select pg_sleep(60)") == ("57014", "canceling statement due to statement timeout")


def test_an_interrupt_between_statements_stops_none(runner: Runner) -> None:
    for number in range(20):
        runner.session.cancel()
        assert runner.value(f"select {number}") == str(number)


class Full(Rows):
    def keep(self, rows: object) -> None:
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("sql", ["select n from generate_series(1, 1000000) n", "select generate_series(1, 1000) -- ;"])
def test_rows_that_cannot_be_kept_end_the_statement(runner: Runner, sql: str) -> None:
    runner.run("begin")
    with pytest.raises(OSError, match="No space"):
        runner.session.run(sql, runner.options, Full())
    runner.run("rollback")
    assert runner.run("select 1").rows == [["1"]]


def test_values_of_many_megabytes(runner: Runner) -> None:
    size = 20 << 20
    for sql in (f"select repeat('x', {size}) from generate_series(1, 2)", f"select repeat('x', {size}) -- ;"):
        assert {len(row[0] or "") for row in runner.run(sql).rows} == {size}
