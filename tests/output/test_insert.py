"""INSERT statements give the same rows."""

from __future__ import annotations

import duckdb
import pytest

from sqlshell.errors import UsageError
from sqlshell.output.writer import Summary, WriterOptions
from sqlshell.output.writers.insert import STATEMENT_ROWS, STATEMENT_SIZE, InsertWriter
from sqlshell.result import Batch, Column, Rows
from tests.output.writing import drawn

TYPES: dict[str, tuple[list[str | None], str]] = {
    "BIGINT": (["-9223372036854775808", None, "0"], "BIGINT"),
    "DECIMAL(38,4)": (["1.1000", "-0.0001", "9999999999999999999999999999999999.9999"], "DECIMAL(38,4)"),
    "DOUBLE": (["NaN", "-Infinity", "1e300", "-0.0", "-0"], "DOUBLE"),
    "BOOLEAN": (["true", "false", None], "BOOLEAN"),
    "VARCHAR": (["it's", "a\\n\n", "); DROP TABLE t; --"], "VARCHAR"),
    "DATE": (["2024-02-29", "0044-03-15 (BC)", "infinity"], "DATE"),
    "TIMESTAMP": (["2024-01-01 00:00:00.000001", None, "-infinity"], "TIMESTAMP"),
    "TIMESTAMP_LTZ": (["2024-01-01 00:00:00+00", None, "2024-06-01 12:00:00+05:30"], "TIMESTAMPTZ"),
    "BYTES": (["AP8=", "", None], "BLOB"),
    "ARRAY<INTEGER>": (["[1,null]", "[]", None], "INTEGER[]"),
    "ARRAY<ARRAY<DECIMAL(38,20)>>": (
        ['[[123456789012345678.12345678901234567890, null], ["1"]]'],
        "DECIMAL(38,20)[][]",
    ),
    "ARRAY<DOUBLE>": (['[1.5,"NaN",1e300]', None], "DOUBLE[]"),
    "ARRAY<VARCHAR>": (['["it\'s",null,"","a\\n"]', "[]"], "VARCHAR[]"),
    "ARRAY<TIMESTAMP_LTZ(3)>": (['["2024-01-01 00:00:00Z"]'], "TIMESTAMPTZ[]"),
    "ARRAY<STRUCT<a INTEGER>>": (['[{"a":1},null]'], "STRUCT(a INTEGER)[]"),
    "MAP<VARCHAR, INTEGER>": (['{"a\'b":1}', "{}", None], "MAP(VARCHAR, INTEGER)"),
    "STRUCT<a INTEGER, b VARCHAR>": (
        ['{"a":1,"b":"x,\\"y"}', None, '{"a":null,"b":null}'],
        "STRUCT(a INTEGER, b VARCHAR)",
    ),
}


def inserts(columns: list[Column], rows: Rows, table: str = '"my table"') -> str:
    return drawn(InsertWriter(WriterOptions(table=table)), columns, rows)


def test_the_statement() -> None:
    rows: Rows = [["1", "it's", None], ["NaN", "", "true"]]
    assert inserts([Column("a", "INTEGER"), Column("select"), Column("a", "BOOLEAN")], rows, "t") == (
        "INSERT INTO t (a, \"select\", a_1) VALUES\n  (1, 'it''s', NULL),\n  ('NaN', '', TRUE);\n"
    )


@pytest.mark.parametrize("kind", TYPES)
def test_a_table_of_the_same_type_takes_them(kind: str) -> None:
    values, type_name = TYPES[kind]
    with duckdb.connect() as database:
        database.execute(f'CREATE TABLE "my table" (v {type_name})')
        database.execute(f"SET TimeZone = 'UTC'; CREATE TABLE expected (v {type_name})")
        for value in values:
            turned = (
                "CAST(CAST(? AS JSON) AS {})"
                if "<" in kind
                else "from_base64(?)"
                if kind == "BYTES"
                else "CAST(? AS {})"
            )
            database.execute(f"INSERT INTO expected VALUES ({turned.format(type_name)})", [value])
        database.execute(inserts([Column("v", kind)], [[value] for value in values]))
        found = database.execute('SELECT count(*) FROM (FROM "my table" EXCEPT ALL FROM expected)').fetchall()
        assert found == [(0,)]
        assert database.execute('SELECT count(*) FROM "my table"').fetchall() == [(len(values),)]


def test_arrays_are_written_as_postgresql_reads_them() -> None:
    kinds = {
        "ARRAY<TINYINT>": ("[1,null]", "ARRAY['1', NULL]::SMALLINT[]"),
        "ARRAY<DOUBLE>": ("[1.50]", "ARRAY['1.50']::DOUBLE PRECISION[]"),
        "ARRAY<BOOLEAN>": ("[true]", "ARRAY['true']::BOOLEAN[]"),
        "ARRAY<ARRAY<DECIMAL(4,2)>>": ("[[1.50],[]]", "ARRAY[ARRAY['1.50'], ARRAY[]]::DECIMAL(4, 2)[][]"),
        "ARRAY<VARBINARY>": ('["YQ=="]', "CAST([from_base64('YQ==')] AS BLOB[])"),
        "ARRAY<INTEGER>": ("{}", "CAST('{}' AS JSON)"),
    }
    for kind, (value, expected) in kinds.items():
        assert inserts([Column("v", kind)], [[value]], "t") == f"INSERT INTO t (v) VALUES\n  ({expected});\n"


def test_statements_are_bounded_in_rows_and_bytes() -> None:
    many = inserts([Column("a", "INTEGER")], [["1"]] * (STATEMENT_ROWS * 2 + 1))
    assert many.count("INSERT INTO") == 3
    assert many.count("(1)") == STATEMENT_ROWS * 2 + 1
    heads = [number for number, line in enumerate(many.splitlines()) if line.startswith("INSERT")]
    assert heads == [0, STATEMENT_ROWS + 1, 2 * (STATEMENT_ROWS + 1)]
    wide = inserts([Column("a")], [["x" * STATEMENT_SIZE]] * 3)
    assert wide.count("INSERT INTO") == 3
    # Two rows that fill a statement exactly, `('…')` each, and two that are a character more.
    half = "x" * (STATEMENT_SIZE // 2 - len("('')"))
    assert inserts([Column("a")], [[half]] * 4).count("INSERT INTO") == 2
    assert inserts([Column("a")], [[half], [half + "x"]]).count("INSERT INTO") == 2
    assert (STATEMENT_ROWS, STATEMENT_SIZE) == (500, 2**20)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[(text, text) for text in ("1", "-1", "+1", "1.5", "1.", ".5", "-.5", "1e9", "1.5E-10", "1e+9")],
        *[
            (text, f"'{text}'")
            for text in ("", "Infinity", "1e", ".", "1.5.2", "0x1F", "1_000", "1)", "--1", "1;", "1\n2")
        ],
        ("\N{ARABIC-INDIC DIGIT ONE}", "'\N{ARABIC-INDIC DIGIT ONE}'"),
    ],
)
@pytest.mark.parametrize("kind", ["INTEGER", "DECIMAL(5,1)", "DOUBLE"])
def test_only_numbers_go_without_quotes(kind: str, text: str, expected: str) -> None:
    assert inserts([Column("a", kind)], [[text]], "t") == f"INSERT INTO t (a) VALUES\n  ({expected});\n"


def test_a_zero_byte_is_written_as_an_expression() -> None:
    assert inserts([Column("a")], [["a\0b'"]], "t") == "INSERT INTO t (a) VALUES\n  (('a' || chr(0) || 'b'''));\n"


def test_only_booleans_are_keywords() -> None:
    rows: Rows = [["TRUE"], ["False"], ["1"], ["true); --"]]
    assert inserts([Column("a", "BOOLEAN")], rows, "t") == (
        "INSERT INTO t (a) VALUES\n  (TRUE),\n  (FALSE),\n  ('1'),\n  ('true); --');\n"
    )


def test_rows_of_several_batches_are_one_statement() -> None:
    writer = InsertWriter(WriterOptions(table="t"))
    assert not writer.buffering
    assert list(writer.begin([Column("a")])) == []
    chunks = [*writer.write(Batch(1, rows=[["1"]])), *writer.write(Batch(1, rows=[])), *writer.settle()]
    chunks += writer.write(Batch(1, rows=[["2"]]))
    assert b"".join([*chunks, *writer.end(Summary(2, True))]) == b"INSERT INTO t (a) VALUES\n  ('1'),\n  ('2');\n"


def test_no_rows_give_no_statement_and_no_table_is_an_error() -> None:
    assert inserts([Column("a")], []) == ""
    assert inserts([], []) == ""
    with pytest.raises(UsageError, match="requires the name of a table") as caught:
        InsertWriter(WriterOptions())
    assert caught.value.hint == "set it with --insert-table NAME or \\pset insert_table"


@pytest.mark.parametrize("table", ["t", "_a$1", "s.t", '"My Table"', 'd."a""b".t', "été"])
def test_names_of_tables(table: str) -> None:
    assert inserts([Column("a")], [["x"]], table).startswith(f"INSERT INTO {table} (a) VALUES\n")


@pytest.mark.parametrize("table", ['a"; drop table x;--', "a b", "1a", "s.", ".t", '"a', "t(a)", '""', "a;"])
def test_what_is_no_name_of_a_table_is_refused(table: str) -> None:
    with pytest.raises(UsageError, match="is not the name of a table"):
        InsertWriter(WriterOptions(table=table))


def test_bytes_in_nested_values_are_bytes() -> None:
    kinds: dict[str, tuple[list[str | None], str, str]] = {
        "ARRAY<ARRAY<VARBINARY>>": (['[["AP8=",null],[]]', "[]", None], "BLOB[][]", "[['\\x00\\xFF'::BLOB, NULL], []]"),
        "MAP<VARBINARY, INTEGER>": (['{"AP8=":1}', "{}"], "MAP(BLOB, INTEGER)", "MAP {'\\x00\\xFF'::BLOB: 1}"),
        'STRUCT<"a b" INTEGER, d VARBINARY, e ARRAY<BOOLEAN>>': (
            ['{"a b":1,"d":"AP8=","e":[true]}', '{"a b":null,"d":null,"e":[]}'],
            'STRUCT("a b" INTEGER, d BLOB, e BOOLEAN[])',
            "{'a b': 1, 'd': '\\x00\\xFF'::BLOB, 'e': [true]}",
        ),
    }
    for kind, (values, type_name, first) in kinds.items():
        with duckdb.connect() as database:
            database.execute(f'CREATE TABLE "my table" (v {type_name})')
            database.execute(inserts([Column("v", kind)], [[value] for value in values]))
            assert database.execute(f'SELECT count(*) FROM "my table" WHERE v = {first}').fetchall() == [(1,)], kind
            assert database.execute('SELECT count(*) FROM "my table"').fetchall() == [(len(values),)]
    assert "AS JSON" in inserts([Column("v", "STRUCT<VARBINARY>")], [['["YQ=="]']], "t")


def test_the_sign_of_a_negative_zero_is_kept() -> None:
    with duckdb.connect() as database:
        database.execute('CREATE TABLE "my table" (v DOUBLE)')
        database.execute(inserts([Column("v", "DOUBLE")], [["-0.0"], ["0.0"]]))
        assert database.execute('SELECT v::VARCHAR FROM "my table"').fetchall() == [("-0.0",), ("0.0",)]
