"""The translation of the dialect to DuckDB's SQL: types, functions, fields of structs, options of FROM."""

from __future__ import annotations

import contextlib
import cProfile
import json
import re
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.sync.client import connect

from sqlshell.service.dialect.lexer import targets
from sqlshell.service.engines.duckdb.instance import DuckdbEngine
from sqlshell.service.engines.duckdb.translation.functions import MADE, REFUSED, may_need_translation
from sqlshell.service.engines.duckdb.translation.statement import translated
from sqlshell.service.engines.engine import RunOptions
from sqlshell.service.failure import Failure
from sqlshell.service.results.results import Discard
from tests.cases import params, rows, texts
from tests.conftest import Served
from tests.service.client import Client
from tests.service.test_types import TABLE, Kept

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[Client]:
    """A session in a database of its own."""
    with Client(served) as made:
        made.rows_of_nothing("CREATE DATABASE translated")
        made.rows_of_nothing("USE DATABASE translated")
        made.rows_of_nothing(
            'CREATE TABLE t (id INT, name VARCHAR, s STRUCT<id INT, name VARCHAR, n STRUCT<x INT, "y z" INT>>, '
            "l ARRAY<INT>, j JSON, m MAP<VARCHAR, INT>, ts TIMESTAMP_LTZ(3))"
        )
        made.rows_of_nothing(
            "INSERT INTO t VALUES (1, 'key', {'id': 7, 'name': 'b', 'n': {'x': 3, 'y z': 4}}, [1, 2], "
            "'{\"key\": 5}', MAP {'a': 1}, '2020-01-02 03:04:05Z')"
        )
        yield made
        made.rows_of_nothing("USE DATABASE local")
        made.rows_of_nothing("DROP DATABASE translated")


def types_of(client: Client, sql: str) -> list[str]:
    answer = client.run(sql)
    assert answer["sqlState"] == "00000", answer
    return [column["type"] for column in answer["metadata"]["columns"]]


def error(client: Client, sql: str) -> tuple[str, str]:
    answer = client.run(sql)
    return answer["sqlState"], answer["message"]


TYPES = texts("translation", "types")


def test_types_are_taken_where_a_column_is_defined(client: Client) -> None:
    columns = ", ".join(f"c{number} {written}" for number, (written, _) in enumerate(TYPES))
    client.rows_of_nothing(f"CREATE TABLE defined ({columns} NOT NULL, PRIMARY KEY (c{len(TYPES) - 1}), CHECK (1 < 2))")
    assert types_of(client, "SELECT * FROM defined") == [told for _, told in TYPES]


def test_types_are_taken_where_a_value_is_cast(client: Client) -> None:
    casts = ", ".join(f"CAST(NULL AS {written}), TRY_CAST(NULL AS {written}), NULL::{written}" for written, _ in TYPES)
    assert types_of(client, f"SELECT {casts}") == [told for _, told in TYPES for _ in range(3)]


def test_every_type_that_an_answer_names_defines_a_column_of_the_same_type(client: Client) -> None:
    told = sorted({name for _, name, _ in TABLE} - {"STRUCT<>"})
    client.rows_of_nothing(f"CREATE TABLE back ({', '.join(f'c{at} {name}' for at, name in enumerate(told))})")
    assert types_of(client, "SELECT * FROM back") == told
    described = [(row[0], row[1]) for row in client.rows("DESCRIBE RELATION COLUMNS back")]
    assert [kind for _, kind in described] == told
    client.rows_of_nothing(f"CREATE TABLE again ({', '.join(f'{name} {kind}' for name, kind in described)})")
    assert types_of(client, "SELECT * FROM again") == told


def test_types_are_taken_in_every_other_definition(client: Client) -> None:
    client.rows_of_nothing("CREATE TABLE changed (a INT)")
    client.rows_of_nothing("ALTER TABLE changed ADD COLUMN IF NOT EXISTS b ARRAY<STRUCT<x INT>>")
    client.rows_of_nothing("ALTER TABLE changed ADD c TIMESTAMP_LTZ(3)")
    client.rows_of_nothing("ALTER TABLE changed ALTER COLUMN a SET DATA TYPE ARRAY<INT> USING [a]::ARRAY<INT>")
    client.rows_of_nothing("ALTER TABLE changed ALTER c TYPE BYTES USING NULL")
    assert types_of(client, "FROM changed") == ["ARRAY<INTEGER>", "ARRAY<STRUCT<x INTEGER>>", "VARBINARY"]
    client.rows_of_nothing("CREATE TYPE pair AS STRUCT<a INT, b ARRAY<INT>>")
    assert types_of(client, "SELECT NULL::pair") == ["STRUCT<a INTEGER, b ARRAY<INTEGER>>"]
    client.rows_of_nothing("CREATE MACRO first_of(a ARRAY<INT>, b := 0) AS a[1] + b, (a MAP<INT, INT>, b := 0) AS b")
    assert client.rows("SELECT first_of([5]), first_of(MAP {1: 2}, b := 8)") == [["5", "8"]]
    client.rows_of_nothing("CREATE STREAM streamed (a ARRAY<INT> NOT NULL, b MAP<STRING, TIME(3)>)")
    assert types_of(client, "DESCRIBE SELECT * FROM streamed")[0] == "VARCHAR"
    rows = client.rows("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'streamed'")
    assert rows == [["a", "INTEGER[]"], ["b", "MAP(VARCHAR, TIME)"]]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT id < 2, id > 0 FROM t WHERE id<2 AND id>0", [["true", "true"]]),
        ("SELECT map < 5, 7 > map FROM (SELECT 1 AS map)", [["true", "true"]]),
        ("SELECT '1'::int < 2 AND 3 > '2'::int", [["true"]]),
        (
            "SELECT 'ARRAY<INT>', $$ s->x CAST(a AS BYTES) $$, E'\\'::BYTES' -- ::ARRAY<INT>",
            [["ARRAY<INT>", " s->x CAST(a AS BYTES) ", "'::BYTES"]],
        ),
        ('SELECT "::BYTES" /* /* s->x */ ::BYTES */ FROM (SELECT 1 AS "::BYTES")', [["1"]]),
        ("SELECT bytes, time FROM (SELECT 1 AS bytes, 2 AS time)", [["1", "2"]]),
        ("SELECT timestamp_ltz + 1 FROM (SELECT 1 AS timestamp_ltz)", [["2"]]),
    ],
)
def test_nothing_else_is_taken_for_a_type(client: Client, sql: str, rows: list[list[str]]) -> None:
    assert client.rows(sql) == rows


@pytest.mark.parametrize("kind", ["TIMESTAMP(10)", "TIME(12)", "TIMESTAMP_LTZ(10)", "ARRAY<TIMESTAMP(99999)>"])
def test_more_digits_than_are_kept_are_refused(client: Client, kind: str) -> None:
    state, message = error(client, f"SELECT CAST(NULL AS {kind})")
    assert (state, "at most 9 fractional digits" in message) == ("0A000", True)


def test_no_digit_of_a_type_is_lost(client: Client) -> None:
    text = "2020-01-02 03:04:05.123456789"
    parts = [f"CAST(CAST('{text}' AS TIMESTAMP({digits})) AS VARCHAR)" for digits in range(10)]
    for digits, value in enumerate(client.rows(f"SELECT {', '.join(parts)}")[0]):
        assert value is not None
        assert value.startswith(text[: 20 + digits].rstrip("."))
    times = client.rows("SELECT '03:04:05.123456'::TIME(4)::VARCHAR, '03:04:05.123456789'::TIME(9)::VARCHAR")
    assert times == [["03:04:05.123456", "03:04:05.123456789"]]


PLACES = [
    ("SELECT CAST(NULL AS ARRAY<INT>), nosuch FROM t", 1, "nosuch"),
    ("SELECT [1]::ARRAY<INT>,\n  'é漢' || NULL::MAP<INT, BYTES>::VARCHAR, nosuch\nFROM t", 2, "nosuch"),
    ("CREATE TABLE bad (a ARRAY<STRUCT<x nosuch>>)", 1, "nosuch"),
    ("SELECT s->id, " + "1 AS filler, " * 30 + "nosuch FROM t", 1, "nosuch"),
    ("SELECT 1,\n unix_timestamp(nosuch) FROM t", 2, "nosuch"),
    ("SELECT timestampdiff(DAY, ts, now()) FORM t", 1, "t"),
    ("SELECT nosuch->id FROM t", 1, "nosuch"),
    ("CREATE STREAM bad\n  (id INT,\n by INT)", 3, "by"),
    ("CREATE CHANGELOG bad (id INT, b nosuch)", 1, "nosuch"),
    ("LIST DATABASES WHERE nosuch = 1", 1, "nosuch"),
    ("LIST STREAMS\nWHERE true AND (1\n < nosuch)", 3, "nosuch"),
    ("CREATE MATERIALIZED VIEW bad AS\nSELECT nosuch FROM t", 2, "nosuch"),
    ("DESCRIBE CREATE STREAM bad (id nosuch)", 1, "nosuch"),
    ("DESCRIBE CREATE TABLE bad WITH ('a' = 'b') AS SELECT nosuch", 1, "nosuch"),
]


@pytest.mark.parametrize(("sql", "number", "near"), PLACES)
def test_errors_show_the_place_in_what_was_typed(client: Client, sql: str, number: int, near: str) -> None:
    _, message = error(client, sql)
    shown, marks = message.split("\n")[-2:]
    assert shown.startswith(f"LINE {number}: ")
    line = sql.split("\n")[number - 1]
    text = shown.removeprefix(f"LINE {number}: ")
    assert text.removeprefix("...").removesuffix("...") in line
    wide = sum(2 if sign == "漢" else 1 for sign in shown[: shown.index(near, shown.rindex(near))])
    assert (marks.index("^"), marks.count("^")) == (wide, len(near))


def test_a_reserved_word_needs_quotes_as_a_columns_name(client: Client) -> None:
    _, message = error(client, "CREATE STREAM bad (id INT, by INT)")
    assert 'near "by": a column of this name must be quoted, "by"\n' in message
    assert "quotes" not in error(client, "CREATE STREAM bad (id INT by, by2 INT)")[1]


FIELDS = [
    ('SELECT s->id, s->name, t.s->n->x, s->n->"y z", `s`->`id` FROM t', [["7", "b", "3", "4", "7"]]),
    ("SELECT 1 + s->id, s->id * 2 FROM t WHERE s->id = 7 AND s->n->x < 4", [["8", "14"]]),
    ("SELECT j->name, j->'key', j->>'key', s->name FROM t", [["5", "5", "5", "b"]]),
    (
        "SELECT list_transform(l, lambda x: x + s->id), [s][1]->id, (s)->id FROM t",
        [["[8,9]", "7", "7"]],
    ),
    ("SELECT count(*) FROM t GROUP BY s->id HAVING s->id > 1 ORDER BY s->id", [["1"]]),
    ("WITH w AS (SELECT s->n AS n FROM t) SELECT n->x FROM w", [["3"]]),
    ("SELECT struct_pack(a := 5)->a, CAST({'a': 1} AS STRUCT<a INT, b INT>)->b", [["5", None]]),
]


@pytest.mark.parametrize(("sql", "rows"), FIELDS)
def test_an_arrow_is_the_field_of_a_struct(client: Client, sql: str, rows: list[list[str | None]]) -> None:
    assert client.rows(sql) == rows


def test_a_field_has_its_own_name_as_a_column(client: Client) -> None:
    answer = client.run("SELECT s->id, s->n->x, s->id AS other, s->id another FROM t")
    assert [column["name"] for column in answer["metadata"]["columns"]] == ["id", "x", "other", "another"]


def test_a_column_of_a_call_is_called_as_it_was_typed(client: Client) -> None:
    columns = {
        "unix_timestamp('x')": "unix_timestamp('x')",
        "DISTINCT nvl(1,  2)\n+ 1": "nvl(1, 2) + 1",
        'NVL(1, 2) AS a, nvl(1, 2) b, nvl(1, 2) + 1 "c", d: nvl(1, 2)': "a|b|c|d",
        "1 - nvl(1, 2) /* c */, (nvl(1, 2)), abs(nvl(1, 2))": "1 - nvl(1, 2)|(nvl(1, 2))|abs(nvl(1, 2))",
        "to_timestamp(name), to_timestamp(nvl(name, 'x'))": "to_timestamp(name)|to_timestamp(nvl(name, 'x'))",
        "json_value(j, 'lax $.key' RETURNING INT) * 1": "json_value(j, 'lax $.key' RETURNING INT) * 1",
        "floor(ts TO DAY)": "floor(ts TO DAY)",
        "[nvl(1, 2), 3], {'a': s->id, 'b': 3}": "[nvl(1, 2), 3]|{'a': s->id, 'b': 3}",
        "COLUMNS('id|name')::VARCHAR || nvl('a', 'b')": "id|name",
        "nvl(j, '{}')->name": "nvl(j, '{}')->name",
        "name, j->name": 'name|(j -> "name")',
        "1 + s->id, upper(s->name), s->id  IS NULL": "1 + s->id|upper(s->name)|s->id IS NULL",
        "(SELECT nvl(s->id, 1) FROM (SELECT 2)), (s->id) x, s->id = 1 AND\ns->n->x": (
            "(SELECT nvl(s->id, 1) FROM (SELECT 2))|x|s->id = 1 AND s->n->x"
        ),
        "1 + (j->name)::INT, (SELECT s->id FROM (SELECT 1)) + 1": (
            '(1 + CAST((j -> "name") AS INTEGER))|(SELECT s->id FROM (SELECT 1)) + 1'
        ),
    }
    for sql, names in columns.items():
        answer = client.run(f"SELECT {sql} FROM t")
        assert answer["sqlState"] == "00000", answer
        assert "|".join(column["name"] for column in answer["metadata"]["columns"]) == names
    client.rows_of_nothing("CREATE TABLE named AS SELECT nvl(1, 2) + 1 FROM t UNION ALL SELECT nvl(2, 3)")
    client.rows_of_nothing("INSERT INTO named SELECT nvl(1, 2) * 4")
    assert client.rows('SELECT sum("nvl(1, 2) + 1") FROM named') == [["8"]]


def test_an_arrow_is_a_field_in_every_statement(client: Client) -> None:
    client.rows_of_nothing("CREATE TABLE made AS SELECT s->id FROM t")
    client.rows_of_nothing("INSERT INTO made SELECT s->n->x FROM t")
    client.rows_of_nothing("UPDATE made SET id = (SELECT s->id FROM t) WHERE id = 3")
    client.rows_of_nothing("CREATE VIEW seen AS SELECT s->id, to_timestamp_ltz(id, 3) AS at FROM t")
    assert client.rows("SELECT * FROM made") == [["7"], ["7"]]
    assert client.rows("SELECT * FROM seen") == [["7", "1970-01-01 00:00:00.001Z"]]
    assert "Projections" in str(client.rows("EXPLAIN SELECT s->id FROM t"))


def test_to_look_for_a_struct_leaves_a_transaction_open(client: Client) -> None:
    client.rows_of_nothing("BEGIN")
    client.rows_of_nothing("CREATE TABLE inside (q STRUCT<a INT>, v VARCHAR, k JSON)")
    client.rows_of_nothing("INSERT INTO inside VALUES ({'a': 1}, '2020-01-02', '{\"2020-01-02\": 3}')")
    found = client.rows("SELECT q->a, k->v, to_timestamp(v) FROM inside")
    client.rows_of_nothing("COMMIT")
    assert found == [["1", "3", "2020-01-02 00:00:00"]]


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("SELECT s->nosuch FROM t", "42703"),
        ("SELECT m->a FROM t", "42703"),
        ("SELECT l->a FROM t", "42703"),
        ("SELECT list_transform(l, x -> x) FROM t", "42000"),
    ],
)
def test_an_arrow_that_is_no_field_stays_what_it_is(client: Client, sql: str, state: str) -> None:
    assert error(client, sql)[0] == state


@pytest.mark.parametrize(
    "call",
    params("translation", "lambdas"),
)
def test_an_arrow_of_a_lambda_is_left_to_duckdb(client: Client, call: str) -> None:
    state, message = error(client, f"SELECT {call} FROM t")
    assert (state, "lambda x, i: x + i" in message) == ("42000", True), message


def test_macros_keep_their_arrows(client: Client) -> None:
    client.rows_of_nothing("CREATE MACRO member(document, name) AS document->name")
    assert client.rows("SELECT member(j, 'key') FROM t") == [["5"]]


CALLS = [
    *((str(call), text) for call, text in rows("translation", "calls")),
    ("INITCAP('')", ""),
    ("INITCAP(" * 30 + "'ab'" + ")" * 30, "Ab"),
]


def test_functions_of_the_dialect(client: Client) -> None:
    found = client.rows("SELECT " + ", ".join(call for call, _ in CALLS))[0]
    assert dict(zip([call for call, _ in CALLS], found, strict=True)) == dict(CALLS)


def test_every_function_is_tried_and_told() -> None:
    tried = "\n".join(call.lower() for call, _ in CALLS)
    told = (ROOT / "docs" / "dialect.md").read_text()
    assert [name for name in [*MADE, *REFUSED] if not re.search(rf"`{name.upper()}\b", told)] == []
    assert [name for name in MADE if f"{name}(" not in tried] == []


def test_local_times_follow_the_session(client: Client) -> None:
    parts = (
        "UNIX_TIMESTAMP('2020-01-02 03:04:05'), FROM_UNIXTIME(1577934245), DATE_FORMAT(ts, 'HH'), TO_TIMESTAMP(name)"
    )
    fields = {"sessionID": client.session, "timezone": "America/New_York"}
    assert client.rows(f"SELECT {parts} FROM t", parameters=fields) == [
        ["1577952245", "2020-01-01 22:04:05", "22", None]
    ]
    client.run("SELECT 1", parameters=fields | {"timezone": "UTC"})


@pytest.mark.parametrize(
    ("sql", "state", "words"),
    [
        *params("translation", "refused"),
        *((f"SELECT {name}('x')", "0A000", f"{name.upper()} is not supported") for name in sorted(REFUSED)),
    ],
)
def test_what_cannot_be_had_is_refused(client: Client, sql: str, state: str, words: str) -> None:
    found, message = error(client, sql)
    assert (found, words.lower() in message.lower()) == (state, True), message


@pytest.mark.parametrize(
    "end", ["t within", "within", "t WHERE within", "t WHERE within > a", "t, within 5", "t within -- 5 m"]
)
def test_within_may_be_a_name(end: str) -> None:
    found = translated(f"SELECT x->a FROM {end}", lambda _: False, never)
    assert found is None or end in found.statement.sql


def test_a_macro_of_the_user_comes_first(client: Client) -> None:
    client.rows_of_nothing("CREATE MACRO nvl(a, b) AS 'mine'")
    client.rows_of_nothing("CREATE TABLE initcap (a INT)")
    assert client.rows("SELECT nvl(NULL, 1), initcap('x')") == [["mine", "X"]]
    client.rows_of_nothing("DROP MACRO nvl")
    assert client.rows("SELECT nvl(NULL, 1) FROM initcap UNION ALL SELECT nvl(NULL, 2)") == [["2"]]
    assert client.rows("WITH e(a) AS (SELECT 5) SELECT a FROM e") == [["5"]]
    client.rows_of_nothing("INSERT INTO initcap(a) VALUES (1)")
    assert client.rows("COPY initcap(a) TO STDOUT") == [["1"]]
    assert client.rows("WITH a AS (SELECT 1 AS x), e(y) AS NOT MATERIALIZED (SELECT x FROM a) FROM e") == [["1"]]


def test_functions_in_what_a_table_keeps_need_nothing_of_the_service(client: Client) -> None:
    client.rows_of_nothing(
        "CREATE TABLE kept (a BIGINT, made_at TIMESTAMP_LTZ(3) DEFAULT TO_TIMESTAMP_LTZ(5, 3), CHECK (NVL(a, 1) > 0))"
    )
    client.rows_of_nothing("INSERT INTO kept (a) VALUES (1)")
    assert client.rows("SELECT made_at FROM kept") == [["1970-01-01 00:00:00.005Z"]]
    kept = client.rows("SELECT sql FROM duckdb_tables() WHERE table_name = 'kept'")
    assert "make_timestamptz" in str(kept)


def test_a_readers_role_is_judged_on_what_runs(client: Client, served: Served) -> None:
    token = str(client.rows("CREATE API_TOKEN translating WITH ('role' = 'reader')")[0][1])
    with Client(served, token) as reader:
        reader.rows_of_nothing("USE DATABASE translated")
        assert reader.rows("SELECT s->id, NVL(NULL, 1), l::ARRAY<INT> FROM t") == [["7", "1", "[1,2]"]]
        assert reader.state("INSERT INTO t (id) SELECT s->id FROM t") == "42501"
        assert reader.state("SELECT current_setting('memory_limit')->id, s->id FROM t") == "42501"
        assert reader.state("SELECT s->id FROM read_csv('/etc/passwd')") == "42501"
        reader.rows_of_nothing("USE DATABASE local")


def test_a_stream_is_read_from_where_its_options_say(client: Client) -> None:
    client.rows_of_nothing("CREATE STREAM clicks (id INT, s STRUCT<x INT>)")
    client.rows_of_nothing("INSERT INTO clicks VALUES (1, {'x': 5})")
    sql = "SELECT s->x FROM clicks WITH ('starting.position' = 'earliest', 'timestamp' = 'id') WHERE id < 9"
    answer = client.run(sql)
    asked = answer["metadata"]["dataplaneRequest"]
    port = urlsplit(str(client.http.base_url)).port
    uri = f"ws://127.0.0.1:{port}{urlsplit(asked['uri']).path}"
    with connect(uri, max_size=None) as socket:
        socket.send(json.dumps({"type": "auth", "accessToken": asked["token"], "sessionId": client.session}))
        metadata, data = json.loads(socket.recv(timeout=30)), json.loads(socket.recv(timeout=30))
    assert ([column["name"] for column in metadata["columns"]], data["data"]) == (["x"], ["5"])
    client.run(f"TERMINATE QUERY {answer['statementID']}")
    options = "WITH ('starting.position' = 'earliest', 'a.b' = 5)"
    sql = f"SELECT a.id FROM t AS a {options} JOIN t b {options} ON a.id = b.id QUERY WITH ('query.name' = joined)"
    assert client.rows(sql) == [["1"]]


def test_backticks_quote_names(client: Client) -> None:
    client.rows_of_nothing("CREATE TABLE `translated`.`main`.`quoted ``one```(`a b` INT, `c;(` ARRAY<INT>)")
    client.rows_of_nothing("INSERT INTO `quoted ``one``` VALUES (1, [2])")
    assert client.rows('SELECT `a b`, `c;(`, "a b" FROM `quoted ``one``` q') == [["1", "[2]", "1"]]
    assert client.rows("DESCRIBE RELATION COLUMNS `quoted ``one```")[0][0] == "a b"
    client.rows_of_nothing("CREATE SCHEMA `s p`")
    client.rows_of_nothing("USE SCHEMA `s p`")
    client.rows_of_nothing("USE SCHEMA main")
    assert targets('drop table `a``b`."c""d".E', {"DROP"}) == [("a`b", 'c"d', "e")]
    assert targets("SELECT 1 FROM `a.b` JOIN c.`d`", {"FROM", "JOIN"}) == [("a.b",), ("c", "d")]


def test_a_descriptor_in_backticks_is_refused_too() -> None:
    engine = DuckdbEngine()
    connection = engine.connect()
    for sql in ("COPY (SELECT 1) TO `/dev/stderr`", "SELECT * FROM `/dev/stdin`", "FROM `/proc/self/fd/0`"):
        with pytest.raises(Failure) as failed:
            connection.run(sql, RunOptions(), Discard())
        assert failed.value.sql_state == "0A000"
    connection.close()
    engine.close()


def test_a_file_may_be_a_parameter(client: Client) -> None:
    refused = client.run("PREPARE p AS FROM read_csv($1)")
    assert "internal error" not in refused["message"]
    assert refused["sqlState"] != "XX000"


def never(_: str) -> None:
    return None


@pytest.mark.parametrize(
    "sql",
    ["select 1;", "select count(*) from t where a < 5", "insert into t values (1, 'a time(3)')", "update t set a = 2"],
)
def test_statements_without_such_forms_are_left_alone(sql: str) -> None:
    assert translated(sql, lambda _: False, never) is None


PIECES = st.sampled_from(
    [
        *(
            "ARRAY<",
            "MAP<INT, ",
            "STRUCT<a ",
            "INT",
            ">",
            ">>",
            "CAST(x AS ",
            "::",
            ")",
            "(",
            "s",
            "->",
            "f",
            ", ",
            " ",
        ),
        *("'ARRAY<INT>'", '"a->b"', "`c`", "-- x\n", "/* ", "*/", "$$", "\n", "TIME(3)", "BYTES", "TIMESTAMP_LTZ(6)"),
        *("CREATE TABLE t (", "c ", "NOT NULL", "unix_timestamp(", "date_format(", "'yyyy'", "FROM ", "WITH ('a' = 1)"),
        *("nvl(", "json_value(", " RETURNING ", "é", "\u3000", "0", "[", "]", "SELECT ", "ALTER TABLE t ADD c "),
    ]
)


@given(st.lists(PIECES, max_size=24))
def test_any_text_keeps_its_lines_and_its_places(parts: Sequence[str]) -> None:
    sql = "".join(parts)
    try:
        found = translated(sql, lambda _: False, never)
    except Failure as failure:
        assert failure.sql_state in {"0A000", "42883", "53000"}
        return
    if found is None:
        return
    made = found.statement
    assert made.sql.count("\n") == sql.count("\n")
    places = [made.place(offset) for offset in range(len(made.sql) + 1)]
    assert places == sorted(places)
    assert all(made.sql[offset] == sql[place] for offset, place in enumerate(places[:-1]) if made.sql[offset] == "\n")


N = 5_000

LONG: dict[str, Callable[[int], str]] = {
    "a chain of arrows": lambda n: "select s" + "->a" * n,
    "subscripts and arrows": lambda n: "select a" + "[1]->c" * (n // 5),
    "a long name": lambda n: "select " + "a." * n + "b->c",
    "parentheses": lambda n: "select " + "(" * n + "s->a" + ")" * n,
    "types": lambda n: "select x::" + "ARRAY<" * n,
    "fields": lambda n: "select x::STRUCT<" + "a INT," * n + "b INT>",
    "casts": lambda n: "select " + "CAST(x AS " * n + "::BYTES",
    "calls": lambda n: "select " + "nvl(1," * n + "2" + ")" * n,
    "returning": lambda n: "select " + "json_query(" * n + "x, '$' returning int)" * n,
    "columns in columns": lambda n: "select (" * n + "nvl(1,2)" + ")" * n,
    "windows": lambda n: "select * from " + "tumble(t, from " * n + ")" * n,
    "options": lambda n: "select * from t " + "with ('a' = 1) " * n,
    "comments": lambda n: "select 1::bytes " + "/*" * n,
    "lines": lambda n: "select " + "\n1::bytes," * n,
}


@pytest.mark.parametrize("made", LONG.values(), ids=list(LONG))
def test_a_long_text_takes_the_time_of_its_length(made: Callable[[int], str]) -> None:
    def translate(number: int) -> None:
        with contextlib.suppress(Failure):
            found = translated(made(number), lambda _: False, never)
            if found is not None:
                found.statement.explained(f"Binder Error: x\n\nLINE {number}: 1::BLOB\n{' ' * 15}^^^^")

    def calls(number: int) -> int:
        """How many functions are called for a text of that length."""
        profile = cProfile.Profile()
        profile.runcall(translate, number)
        return sum(entry.callcount for entry in profile.getstats())

    # What is made once is made for this one.
    translate(N)
    assert calls(N // 5) <= 2.2 * calls(N // 10)


@pytest.mark.slow("long statements")
def test_a_very_long_statement_is_not_taken_apart() -> None:
    row = "('a->b', 1::BYTES), "
    assert may_need_translation(f"INSERT INTO t VALUES {row * 20_000}('', '')")
    tracemalloc.start()
    try:
        assert not may_need_translation(f"INSERT INTO t VALUES {row * 60_000}('', '')")
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.slow("long statements")
def test_arrows_that_types_decide_about_have_a_bound(client: Client) -> None:
    state, message = error(client, f"SELECT {', '.join(['s->id'] * 1001)} FROM t")
    assert (state, "more than 1000 -> operators" in message) == ("53000", True)
    values = ", ".join(f"j{number}->name" for number in range(40))
    columns = ", ".join(f"j AS j{number}" for number in range(40))
    assert len(client.rows(f"SELECT {values}, s->id FROM (SELECT {columns}, name, s FROM t)")[0]) == 41


def test_arrows_of_lambdas_are_left_alone() -> None:
    engine = DuckdbEngine()
    connection = engine.connect()
    rows: list[str] = []
    connection.run("SET lambda_syntax = 'ENABLE_SINGLE_ARROW'", RunOptions(), Discard())
    sql = (
        "SELECT list_transform(l, x -> x), list_transform(l, x -> x + s->i), s->i FROM (SELECT [1] AS l, {'i': 7} AS s)"
    )
    connection.run(sql, RunOptions(), Kept(rows))
    connection.close()
    engine.close()
    assert rows == ['["[1]","[8]","7"]']
