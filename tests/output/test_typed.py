"""Parquet and Arrow files have typed columns with the values of the result, from its rows and from its file alike."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import polars
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest

from sqlshell.errors import OutputError, UsageError
from sqlshell.output.typed import rows, text_table
from sqlshell.output.writer import Summary, WriterOptions
from sqlshell.output.writers.column_names import warn_of_names
from sqlshell.output.writers.formats import format_named
from sqlshell.result import Batch, Column, HeldBatches, Result
from sqlshell.result import Rows as Strings
from sqlshell.runtime.scratch import scratch
from sqlshell.service.engines.duckdb import rows as result_rows
from sqlshell.service.engines.engine import RunOptions
from sqlshell.service.engines.files.result_files import ResultFiles
from sqlshell.sql.typed_values import file_type
from tests.client.filed import Sink, Source, values_of
from tests.client.test_whole_results import TEXTS
from tests.output.writing import written
from tests.service.values import SCALARS

FORMATS = ("parquet", "arrow", "arrows")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    monkeypatch.setattr(result_rows, "is_large", lambda number, kinds: True)
    made = Source(tmp_path)
    yield made
    made.close()


def from_rows(name: str, columns: list[Column], *parts: Strings) -> bytes:
    return written(format_named(name).factory(WriterOptions()), columns, *parts)


def from_file(name: str, source: Source, columns: list[Column], count: int) -> bytes:
    writer = format_named(name).factory(WriterOptions())
    assert writer.by_sql == "table"
    begun = b"".join(writer.begin(columns))
    opened = source.table(columns, count, typed=True)
    try:
        return begun + b"".join(writer.from_table(opened))
    finally:
        opened.close()


def table(name: str, data: bytes) -> Any:
    if name == "parquet":
        return pyarrow.parquet.read_table(io.BytesIO(data))
    opened = pyarrow.ipc.open_file if name == "arrow" else pyarrow.ipc.open_stream
    return opened(io.BytesIO(data)).read_all()


def shown(found: Any) -> tuple[list[str], list[Any]]:
    """The types of the columns of a Parquet file or an Arrow table, and the rows as DuckDB's strings."""
    with duckdb.connect() as reader:
        reader.execute("SET TimeZone = 'UTC'")
        read = reader.read_parquet(str(found)) if isinstance(found, Path) else reader.from_arrow(found)
        return [plain(str(kind)) for kind in read.types], read.select("COLUMNS(*)::VARCHAR").fetchall()


def plain(kind: str) -> str:
    return kind.replace(" WITH TIME ZONE", "TZ").replace('"', "").replace(", ", ",")


@pytest.mark.slow("large results")
@pytest.mark.parametrize("kind", [*SCALARS, "others"])
def test_every_type_from_rows_and_from_the_file(source: Source, kind: str, tmp_path: Path) -> None:
    # Two of its keys have the same text, which is tested below.
    values = [value for value in values_of(kind) if "MAP {5::UNION" not in value]
    named = ", ".join(f"{value} AS c{number}" for number, value in enumerate(values))
    source.connection.run(f"CREATE TABLE t AS SELECT {named}", RunOptions(), Sink(source.path))
    source.connection.run(f"INSERT INTO t SELECT {', '.join(['NULL'] * len(values))}", RunOptions(), Sink(source.path))
    columns, _, body = source.run("SELECT * FROM t")
    strings = msgspec.json.decode(b"[" + body + b"]", type=list[list[str | None]])
    file, other = tmp_path / "from_rows.parquet", tmp_path / "from_file.parquet"
    file.write_bytes(from_rows("parquet", columns, strings))
    other.write_bytes(from_file("parquet", source, columns, 2))
    expected = shown(file)
    assert expected[0] == [plain(file_type(column.type)) for column in columns]
    assert shown(other) == expected
    assert shown(pyarrow.parquet.read_table(other)) == expected
    for name in ("arrow", "arrows"):
        assert shown(table(name, from_rows(name, columns, strings))) == expected
        assert shown(table(name, from_file(name, source, columns, 2))) == expected
    # The strings of the interface, made of the typed values again.
    [again] = ResultFiles().read(file, 0, [2])
    for column, value, before in zip(
        columns, json.loads(again.decode().split("],[")[0] + "]"), strings[0], strict=True
    ):
        if "STRUCT<" in column.type or kind in {"JSON", "UBIGINT", "others"}:
            # Tuples have become structs, JSON inside of values has lost spaces, and long decimals are strings there.
            continue
        assert value == before, column


def test_every_text(tmp_path: Path) -> None:
    columns = [Column("s"), Column("l", "ARRAY<VARCHAR>"), Column("m", "MAP<VARCHAR, VARCHAR>")]
    strings: Strings = [[text, json.dumps([text, None]), json.dumps({text: text})] for text in TEXTS]
    strings.append([None, None, None])
    for name in FORMATS:
        found = table(name, from_rows(name, columns, strings[:7], strings[7:])).to_pylist()
        assert [row["s"] for row in found] == [*TEXTS, None]
        assert [row["l"] for row in found] == [*([text, None] for text in TEXTS), None]
        assert [row["m"] for row in found] == [*([(text, text)] for text in TEXTS), None]
        single = table(name, from_rows(name, columns[:1], [row[:1] for row in strings]))
        assert single.to_pylist() == [{"s": text} for text in [*TEXTS, None]]


def test_values_of_other_services() -> None:
    """Other spellings of values, and types that the local service does not have."""
    columns = [
        Column("i", "BIGINT NOT NULL"),
        Column("d", "DECIMAL(38, 20)"),
        Column("a", "DECIMAL"),
        Column("h", "DECIMAL(39,0)"),
        Column("t", "TIMESTAMP_LTZ(3);nowrap"),
        Column("z", "TIMESTAMP_TZ"),
        Column("u", "UUID"),
        Column("v", "INTERVAL"),
        Column("n", "ARRAY<ROW<a DECIMAL(38,10), `b c` BYTES NOT NULL>>"),
        Column("x", "SOMETHING<NEW>"),
    ]
    row: list[str | None] = [
        "9.223372036854775807E+18",
        "123456789012345678.12345678901234567890",
        "1.50",
        "340282366920938463463374607431768211455",
        "2024-01-01T00:00:00.123Z",
        "2024-01-01 00:00:00+05:30",
        "00000000-0000-4000-8000-000000000001",
        "1 month",
        '[{"a": 123456789012345678.1234567891, "b c": "YWI="}, null]',
        "text",
    ]
    file = io.BytesIO(from_rows("parquet", columns, [row]))
    found = pyarrow.parquet.read_table(file)
    assert [str(field.type) for field in found.schema][:8] == [
        *("int64", "decimal128(38, 20)", "string", "string"),
        *("timestamp[us, tz=UTC]", "timestamp[us, tz=UTC]", "extension<arrow.uuid>", "string"),
    ]
    values = found.to_pylist()[0]
    assert values["i"] == 2**63 - 1
    assert [str(values[name]) for name in "dah"] == [row[1], row[2], row[3]]
    assert [values[name].isoformat() for name in "tz"] == [
        "2024-01-01T00:00:00.123000+00:00",
        "2023-12-31T18:30:00+00:00",
    ]
    assert [(str(item["a"]), item["b c"]) for item in values["n"][:1]] == [("123456789012345678.1234567891", b"ab")]
    assert (str(values["u"]), values["v"], values["x"]) == (row[6], "1 month", "text")


def test_polars_and_duckdb_read_the_files(tmp_path: Path) -> None:
    columns = [Column("a", "INTEGER"), Column("l", "ARRAY<DECIMAL(4,2)>"), Column("t", "TIMESTAMP_LTZ(6)")]
    strings: Strings = [["1", "[1.50]", "2024-01-01 00:00:00Z"], [None, None, None]]
    for name in FORMATS:
        (tmp_path / name).write_bytes(from_rows(name, columns, strings))
    read = [polars.read_parquet(tmp_path / "parquet"), polars.read_ipc(tmp_path / "arrow")]
    read.append(polars.read_ipc_stream(tmp_path / "arrows"))
    for frame in read:
        assert [str(kind) for kind in frame.dtypes] == [
            "Int32",
            "List(Decimal(precision=4, scale=2))",
            "Datetime(time_unit='us', time_zone='UTC')",
        ]
        assert (frame["a"].to_list(), str(frame["l"].to_list()[0][0])) == ([1, None], "1.50")
    with duckdb.connect() as reader:
        found = reader.execute(f"SELECT a, l::VARCHAR FROM read_parquet('{tmp_path / 'parquet'}')").fetchall()
    assert found == [(1, "[1.50]"), (None, None)]


@pytest.mark.parametrize("name", FORMATS)
def test_empty_results_and_odd_names(name: str) -> None:
    columns = [
        Column("a", "INTEGER"),
        Column("A", "INTEGER"),
        Column("a"),
        Column(""),
        Column('q"; drop'),
        Column("é\n"),
    ]
    found = table(name, from_rows(name, columns))
    assert (found.num_rows, found.column_names) == (0, ["a", "A_1", "a_1_1", "column", 'q"; drop', "é\n"])
    said: list[str] = []
    warn_of_names(columns, said.append, fold_case=True)
    assert said == ["duplicate column names were changed: A to A_1, a to a_1_1,  to column"]
    assert from_rows(name, []) == b""


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("INTEGER", "x", "'x'"),
        ("TINYINT", "300", "'300'"),
        ("DATE", "2024-02-30", "'2024-02-30'"),
        ("TIMESTAMP", "2024-01-01 00:00:00.1234567", "'2024-01-01 00:00:00.1234567'"),
        ("VARBINARY", "%", "'%'"),
        ("ARRAY<INTEGER>", '["x"]', "'[\"x\"]'"),
        ("ARRAY<INTEGER>", "[1", "'[1'"),
        ("MAP<VARCHAR, INTEGER>", '{"a":1,"a":2}', '\'{"a":1,"a":2}\''),
        ("STRUCT<a INTEGER>", '{"b":1}', "'{\"b\":1}'"),
        ("INTEGER", "y" * 100, f"'{'y' * 79}…'"),
    ],
)
def test_a_value_that_is_not_of_its_type(name: str, kind: str, value: str, text: str) -> None:
    with pytest.raises(OutputError) as caught:
        from_rows(name, [Column("good"), Column("bad", kind)], [["1", None], ["2", value]])
    assert caught.value.message == f'column "bad": {text} is not a value of {kind}'
    assert "cast the column to VARCHAR" in caught.value.hint


@pytest.mark.parametrize(
    "kind", ["ARRAY", "MAP<VARCHAR>", f"{'ARRAY<' * 30}DATE{'>' * 30}"], ids=["bare", "part", "deep"]
)
def test_a_nested_type_that_no_file_has_stays_a_string(kind: str) -> None:
    assert table("parquet", from_rows("parquet", [Column("a", kind)], [["[]"]])).column("a").to_pylist() == ["[]"]


@pytest.mark.parametrize("name", FORMATS)
def test_many_pieces_are_one_file_in_order(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "CONVERTED_BYTES", 1000)
    parts: list[Strings] = [
        [[str(number), "x" * 50] for number in range(start, start + 10)] for start in range(0, 500, 10)
    ]
    folder = scratch().folder("before")
    found = table(name, from_rows(name, [Column("n", "INTEGER"), Column("s")], *parts))
    assert found.column("n").to_pylist() == list(range(500))
    assert [item for item in folder.parent.iterdir() if item.name.startswith("typed-")] == []


MEASURED = """
import resource, sys
from sqlshell.output.writer import Summary, WriterOptions
from sqlshell.output.writers.column_names import warn_of_names
from sqlshell.output.writers.formats import format_named
from sqlshell.result import Batch, Column, HeldBatches, Result
writer = format_named(sys.argv[1]).factory(WriterOptions())
size = sum(map(len, writer.begin([Column("n", "INTEGER"), Column("s")])))
for start in range(0, int(sys.argv[2]), 8):
    rows = [[str(number), chr(97 + number % 26) * 1_000_000] for number in range(start, start + 8)]
    size += sum(map(len, writer.write(Batch(2, rows=rows))))
size += sum(map(len, writer.end(Summary(0, True))))
print(size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1 if sys.platform == "darwin" else 1024) // 1024)
"""


@pytest.mark.slow("large results")
@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_memory_for_wide_rows(name: str) -> None:
    """Rows of 1 MB: 304 MB more of them do not need 304 MB more."""
    peaks = []
    for count in ("16", "320"):
        done = subprocess.run([sys.executable, "-c", MEASURED, name, count], capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout.split()[1]))
    assert peaks[1] - peaks[0] < 100, peaks


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match="require the package pyarrow"):
        format_named("arrow").factory(WriterOptions())
    format_named("parquet").factory(WriterOptions())


def test_an_error_that_no_value_explains_is_told_as_it_is() -> None:
    made = rows.TypedRows([Column("a", "INTEGER")])
    assert made._misfit(made.root, "no_such_table", ["c0::INTEGER"]) is None
    with (
        pytest.raises(OutputError, match=r"^DuckDB cannot convert the rows: Catalog Error: ") as failed,
        made._naming_misfits(made.root, "no_such_table", ["c0::INTEGER"], rows._output_error),
    ):
        made.root.execute("FROM no_such_table")
    assert failed.value.hint == "write csv or jsonl instead"
    with (
        pytest.raises(OutputError, match=r"^cannot write a temporary file: no space$") as failed,
        made._naming_misfits(made.root, "t", [], rows._output_error),
    ):
        raise OSError(28, "No space")
    assert failed.value.hint == "set TMPDIR to a writable directory with enough space"
    made.close()
    assert not made.folder.exists()


def test_what_a_writer_holds_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FORMATS:
        writer = format_named(name).factory(WriterOptions())
        chunks = [*writer.begin([Column("a")])]
        assert not writer.buffering
        chunks += writer.write(Batch(1, rows=[["1"]]))
        assert writer.buffering is (name == "arrows")
        chunks += writer.settle()
        assert not writer.buffering
        chunks += writer.end(Summary(1, True))
        assert table(name, b"".join(chunks)).to_pylist() == [{"a": "1"}]


@pytest.mark.parametrize(
    ("given", "size"),
    [([["a"], [None], [""]], len('a,1\n,1\n"",1\n')), ([["a", "b"], [None, "c"]], len("a,b\n,c\n"))],
)
def test_a_table_of_texts_has_the_strings_and_is_bounded(
    given: Strings, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read() -> Strings:
        columns = [Column(f"c{number}") for number in range(len(given[0]))]
        table = await text_table.text_table(Result(columns, HeldBatches(Batch(len(columns), rows=list(given)))))
        try:
            strings = ", ".join(column.string for column in table.columns)
            return await table.texts(f"SELECT [{strings}] FROM {table.source} ORDER BY file_row_number")
        finally:
            table.close()

    monkeypatch.setattr(text_table, "DISK_BYTES", size)
    assert asyncio.run(read()) == given
    monkeypatch.setattr(text_table, "DISK_BYTES", size - 1)
    with pytest.raises(OutputError, match="is larger than 0 GiB"):
        asyncio.run(read())
