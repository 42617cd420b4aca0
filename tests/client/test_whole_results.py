"""A result's file gives the bytes that its JSON gives, for each type, format and kind of text; and is not trusted."""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import duckdb
import msgspec
import pytest

from sqlshell.client.results import result_file
from sqlshell.client.results.result_file import CHUNK_BYTES
from sqlshell.client.results.whole import FileBatch
from sqlshell.errors import ProtocolError
from sqlshell.interface.models import ColumnInfo
from sqlshell.output.changes import ChangedWriter
from sqlshell.output.writer import DisplayFormat, Summary, Writer, WriterOptions
from sqlshell.output.writers import table
from sqlshell.output.writers.formats import format_named
from sqlshell.output.writers.table import TableWriter
from sqlshell.result import Batch, Column, FileUnavailable
from sqlshell.service.engines.duckdb import rows
from sqlshell.service.engines.engine import RunOptions
from sqlshell.service.results.results import Discard
from sqlshell.service.results.time_zones import in_zone
from tests.client.filed import Sink, Source, values_of
from tests.service.values import SCALARS

FORMATS = ("csv", "tsv", "json", "jsonl")
NULLS = (None, "NULL", "0", "\\", "true")

TEXTS = [
    *(
        "",
        " ",
        "#comment",
        "\\.",
        "\\N",
        "\\",
        "1.10",
        "0",
        "true",
        "null",
        "NULL",
        "a,b",
        "a\tb",
        'say "yes"',
        '"',
        "''",
    ),
    *("line\nbreak", "line\rbreak", "\n", "tab\t", "nul\0nul", "\0", "\x01\x1f\x7f\x85\u2028", "\\u0000", "\\\\u000b"),
    *("漢字かな", "é\U0001f600", "e\u0301", "x" * 5000, "漢" * 3000, " trailing ", "{}", "[1,]", "NaN", "-Infinity"),
    *(chr(code) + "x" for code in range(1, 32)),
]


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    monkeypatch.setattr(rows, "is_large", lambda number, kinds: True)
    made = Source(tmp_path)
    yield made
    made.close()


def both(
    source: Source,
    columns: list[Column],
    body: bytes,
    name: str,
    null: str | None,
    zone: str = "UTC",
    make: Callable[[WriterOptions], Writer] | None = None,
) -> tuple[bytes, bytes, bool]:
    """What a writer makes of the JSON, what of the file, and whether DuckDB made all lines of the latter."""
    rows = msgspec.json.decode(b"[" + body + b"]", type=list[list[str | None]])
    options = WriterOptions(null=null)
    make = make or format_named(name).factory
    plain = make(options)
    expected = [*plain.begin(columns)]
    for part in (rows[:1], rows[1:]):
        expected += plain.write(Batch(len(columns), rows=part))
    expected += plain.end(Summary(len(rows), True))
    writer = make(options)
    assert writer.by_sql == "lines"
    found = [*writer.begin(columns), *writer.write(Batch(len(columns), rows=rows[:1]))]
    table = source.table(columns, len(rows), zone)
    whole = True
    try:
        line = writer.line(table.columns)
        if line is None:
            raise FileUnavailable
        start = 1
        for count, lines in table.lines(line, start):
            whole = whole and lines is not None
            read = partial(table.rows, start, count)
            some = Batch(len(columns), rows=read())
            found += writer.write(some if lines is None else FileBatch(len(columns), count, writer.line, lines, read))
            assert read() == rows[start : start + count]
            start += count
        assert start == max(1, len(rows))
    finally:
        table.close()
    found += writer.end(Summary(len(rows), True))
    return b"".join(expected), b"".join(found), whole


@pytest.mark.slow("large results")
@pytest.mark.parametrize("kind", [*SCALARS, "others"])
def test_every_type_in_every_format(source: Source, kind: str) -> None:
    values = values_of(kind)
    source.connection.run(
        f"CREATE TABLE t AS SELECT {', '.join(f'{value} AS v{number}' for number, value in enumerate(values))}",
        RunOptions(),
        Sink(source.path),
    )
    source.connection.run(f"INSERT INTO t SELECT {', '.join(['NULL'] * len(values))}", RunOptions(), Sink(source.path))
    source.connection.run("INSERT INTO t FROM t", RunOptions(), Sink(source.path))
    columns, _, body = source.run("SELECT * FROM t")
    for name in FORMATS:
        for null in (None, "0") if name in {"csv", "tsv"} else (None,):
            expected, found, whole = both(source, columns, body, name, null)
            assert found == expected, (name, null)
            assert whole or name.startswith("json")
    for number, column in enumerate(columns[: min(2, len(SCALARS.get(kind, ())))]):
        single, _, body = source.run(f"SELECT COLUMNS(*) FROM (SELECT #{number + 1} AS c FROM t)")
        assert single[0].type == column.type
        for name in ("csv", "jsonl"):
            expected, found, whole = both(source, single, body, name, None)
            assert found == expected, (name, column)
            assert whole, (name, column)


class TextSink(Discard):
    """A sink that keeps rows as text."""

    def __init__(self) -> None:
        self.rows: list[str] = []

    def keep(self, rows: Sequence[str]) -> None:
        self.rows += rows


@pytest.mark.slow("large results")
@pytest.mark.parametrize("kind", [*SCALARS, "others"])
def test_a_file_made_of_text_has_the_same_strings(source: Source, kind: str) -> None:
    values = ", ".join(f"{value} AS v{number}" for number, value in enumerate(values_of(kind)))
    nothing = ", ".join(["NULL"] * len(values_of(kind)))
    sink = TextSink()
    outcome = source.connection.run(f"SELECT {values} UNION ALL SELECT {nothing}", RunOptions(), sink)
    text = source.path.with_name("rows")
    parts = [row.encode() for row in sink.rows]
    text.write_bytes(b",".join(parts))
    told = outcome.columns or []
    zoned = [number for number, _ in outcome.zoned]
    source.engine.convert(text, [len(parts[0]), text.stat().st_size], told, zoned, source.path)
    columns = [Column(item.name or "", item.type or "", item.nullable) for item in told]
    for name in ("csv", "jsonl"):
        expected, found, _ = both(source, columns, b",".join(parts), name, None)
        assert found == expected
    assert sorted(path.name for path in text.parent.iterdir()) == ["result.parquet", "rows"]


@pytest.mark.slow("large results")
def test_every_text_in_every_format(source: Source) -> None:
    source.connection.run("CREATE TABLE t (n INTEGER, s VARCHAR)", RunOptions(), Sink(source.path))
    with duckdb.connect() as maker:
        maker.execute("CREATE TABLE t (n INTEGER, s VARCHAR)")
        maker.executemany("INSERT INTO t VALUES (?, ?)", [*enumerate(TEXTS), (-1, None)])
        maker.execute(f"COPY t TO '{source.path}.texts' (FORMAT parquet)")
    source.connection.run(f"INSERT INTO t FROM read_parquet('{source.path}.texts')", RunOptions(), Sink(source.path))
    doubtful = "contains(to_json(s)::VARCHAR, '\\u00')"
    for sql in (
        "SELECT 0 AS n, s FROM t",
        'SELECT s AS "it\'s, ""quoted""", n, s AS n FROM t',
        "SELECT s FROM t",
        "SELECT NULL::VARCHAR AS s FROM t",
        "SELECT NULL::INTEGER AS s, NULL::VARCHAR FROM t",
        "SELECT s FROM t LIMIT 0",
    ):
        columns, _, body = source.run(sql)
        for name in FORMATS:
            for null in NULLS if name in {"csv", "tsv"} else (None,):
                expected, found, whole = both(source, columns, body, name, null)
                assert found == expected, (sql, name, null)
                assert whole or name.startswith("json")
    columns, _, body = source.run(f"SELECT n, s FROM t WHERE NOT coalesce({doubtful}, false)")
    assert len(msgspec.json.decode(b"[" + body + b"]")) > 30
    for name in FORMATS:
        expected, found, whole = both(source, columns, body, name, None)
        assert (found, whole) == (expected, True)


@pytest.fixture
def narrow_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """The widths of a table are those of its first row."""
    monkeypatch.setattr(table, "SAMPLE", 1)


@pytest.mark.slow("large results")
@pytest.mark.usefixtures("narrow_sample")
@pytest.mark.parametrize("kind", [*SCALARS, "others"])
def test_every_type_in_a_table(source: Source, kind: str) -> None:
    values = values_of(kind)
    chosen = ", ".join(f"{value} AS v{number}" for number, value in enumerate(values))
    nothing = ", ".join(["NULL"] * len(values))
    for first, second, nulls in ((chosen, nothing, (None, "0")), (nothing, chosen, ("true", "\u6f22"))):
        columns, _, body = source.run(f"SELECT {first} UNION ALL SELECT {second}")
        for null in nulls:
            expected, found, _ = both(source, columns, body, "table", null)
            assert found == expected, null


@pytest.mark.slow("large results")
@pytest.mark.usefixtures("narrow_sample")
def test_every_text_in_a_table(source: Source) -> None:
    texts = [*TEXTS, "'NULL'", "''NULL''", "NULLABLE", "ａＢ", "한글 x", "Grüße", "\u00ad", "\u200b", "👩‍👩‍👧"]
    given = ", ".join(f"({number}, decode(unhex('{text.encode().hex()}')::BLOB))" for number, text in enumerate(texts))
    source.connection.run("CREATE TABLE t (n INTEGER, s VARCHAR)", RunOptions(), Sink(source.path))
    source.connection.run(f"INSERT INTO t VALUES {given}, ({len(texts)}, NULL)", RunOptions(), Sink(source.path))
    numbers = range(len(texts))
    printable = [number for number in numbers if all(" " <= char <= "~" for char in texts[number])]
    # One text that SQL cannot be sure of is left to the writer with all rows that are read with it.
    controls = [number for number in numbers if len(texts[number]) == 2 and texts[number] < " "]
    alone = [[number] for number in numbers if number not in printable and number not in controls]
    for together, plain in ((printable, True), (controls, False), *((one, False) for one in alone)):
        chosen = ", ".join(map(str, [*together, len(texts)]))
        columns, _, body = source.run(f"SELECT 1 AS n, 'x' AS s UNION ALL SELECT n, s FROM t WHERE n IN ({chosen})")
        for null in (None, "", "NULL", "漢") if len(together) > 1 else ((None, "漢")[together[0] % 2],):
            expected, found, whole = both(source, columns, body, "table", null)
            assert found == expected, (together, null)
            assert whole or not plain
    columns, _, body = source.run("SELECT 1 AS n, 'x' AS s UNION ALL FROM t")
    for style in ("grid", "simple", "pipe", "plain", "fancy_grid", "rst"):

        def styled(options: WriterOptions, style: str = style) -> Writer:
            return TableWriter(msgspec.structs.replace(options, table_style=style))

        def listed(options: WriterOptions, style: str = style) -> Writer:
            return ChangedWriter(styled(options), DisplayFormat(zone="Asia/Tokyo"), safe=False)

        for make in (styled, listed):
            try:
                expected, found, _ = both(source, columns, body, "table", None, make=make)
            except FileUnavailable:
                assert style in {"simple", "plain", "rst"}
                continue
            assert found == expected, style


@pytest.mark.usefixtures("narrow_sample")
def test_a_table_whose_values_change_for_display(source: Source) -> None:
    columns, _, body = source.run(
        "SELECT TIMESTAMP '2024-01-01' + to_seconds(i) AS t, DATE '2024-01-01' AS d, 1000 * i AS n FROM range(3) r(i)"
    )
    for shape, lines in (
        (DisplayFormat(zone="Asia/Tokyo"), True),
        (DisplayFormat(width=5), False),
        (DisplayFormat(grouping=(",", ".")), False),
    ):

        def make(options: WriterOptions, shape: DisplayFormat = shape) -> Writer:
            return ChangedWriter(TableWriter(options), shape, safe=False)

        if lines:
            expected, found, whole = both(source, columns, body, "table", None, make=make)
            assert (found, whole) == (expected, True)
        else:
            with pytest.raises(FileUnavailable):
                both(source, columns, body, "table", None, make=make)


@pytest.mark.slow("large results")
def test_a_wide_result_in_every_format(source: Source) -> None:
    values = ", ".join(
        f"i * {number} AS c{number}, 'text, ' || i AS s{number}, [i] AS l{number}" for number in range(60)
    )
    columns, _, body = source.run(f"SELECT {values} FROM range(20) t(i)")
    for name in FORMATS:
        expected, found, whole = both(source, columns, body, name, None)
        assert (found, whole) == (expected, True)


@pytest.mark.slow("large results")
@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kolkata", "America/St_Johns", "Africa/Casablanca", "Etc/UTC"])
def test_instants_in_a_time_zone(source: Source, zone: str) -> None:
    source.connection.run(
        "CREATE TABLE t AS SELECT to_timestamp(i * 40000.25 - 7000) AS t, i FROM range(1, 100000) r(i) "
        "UNION ALL SELECT NULL, 0 UNION ALL SELECT 'infinity'::TIMESTAMPTZ, 1 "
        "UNION ALL SELECT '-infinity'::TIMESTAMPTZ, 2",
        RunOptions(),
        Sink(source.path),
    )
    columns, outcome, body = source.run("SELECT * FROM t")
    assert [number for number, _ in outcome.zoned] == [0]
    body = in_zone(body, outcome.zoned, zone)
    for name in FORMATS:
        expected, found, whole = both(source, columns, body, name, None, zone)
        assert (found == expected, whole) == (True, True)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Africa/Casablanca"])
def test_the_offset_changes_at_the_second(zone: str) -> None:
    python = zoneinfo.ZoneInfo(zone)
    first, last = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (2020, 2022))
    offsets = [datetime.fromtimestamp(second, python).utcoffset() for second in range(first, last, 1800)]
    changes = [first + 1800 * at for at in range(1, len(offsets)) if offsets[at] != offsets[at - 1]]
    assert len(changes) >= 4
    sql = result_file.in_zone("t", zone, first * 1_000_000, last * 1_000_000)
    seconds = [second for change in changes for second in (change - 1, change)]
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT {sql} FROM (SELECT to_timestamp(unnest(?)) AS t)", [seconds]).fetchall()
    assert [text for (text,) in found] == [
        datetime.fromtimestamp(second, python).isoformat(" ", "seconds") for second in seconds
    ]


def test_zones_that_sql_does_not_express(monkeypatch: pytest.MonkeyPatch) -> None:
    year = 31_536_000_000_000
    assert result_file.in_zone("t", "Nowhere/Here", 0, year) is None
    assert result_file.in_zone("t", "../zones", 0, year) is None
    assert result_file.in_zone("t", "Europe/Berlin", -1_000_000, year) is None
    assert result_file.in_zone("t", "Europe/Berlin", 0, 131 * year) is None
    monkeypatch.setattr(result_file, "MOST_CHANGES", 3)
    assert result_file.in_zone("t", "Europe/Berlin", 50 * year, 51 * year) is not None
    assert result_file.in_zone("t", "Europe/Berlin", 50 * year, 53 * year) is None


@pytest.mark.parametrize(
    "value",
    [
        "'1969-12-31'::TIMESTAMPTZ",
        "'0044-03-15 (BC)'::TIMESTAMPTZ",
        "'9999-12-31'::TIMESTAMPTZ",
        "['2024-01-01'::TIMESTAMPTZ]",
        "'2024-01-01'::TIMESTAMPTZ_NS",
        "'2024-01-01'::TIMESTAMPTZ::UNION(n INTEGER, t TIMESTAMPTZ)",
    ],
)
def test_instants_that_sql_cannot_convert(source: Source, value: str) -> None:
    columns, _, body = source.run(f"SELECT {value} AS v FROM range(2)")
    expected, found, whole = both(source, columns, body, "csv", None)
    assert (found, whole) == (expected, True)
    with pytest.raises(FileUnavailable):
        both(source, columns, body, "csv", None, "Europe/Berlin")
    with pytest.raises(FileUnavailable):
        both(source, columns, body, "csv", None, "")


def reading(source: Source, columns: Sequence[Column], rows: int) -> None:
    source.table(columns, rows).close()


@pytest.mark.parametrize(
    ("values", "told", "said"),
    [
        ("1::BIGINT AS c0", [("a", "INTEGER")], 'has the type BIGINT for column "a"; expected INTEGER'),
        ("{'a': 1} AS c0", [("a", "STRUCT<a INTEGER>")], "has the type STRUCT"),
        ("1::HUGEINT::DOUBLE AS c0", [("a", "DECIMAL(39,0)")], "has the type DOUBLE"),
        ("1.5::DECIMAL(5,1) AS c0", [("a", "DECIMAL(4,1)")], "has the type DECIMAL(5,1)"),
        ("1::INTEGER AS c1", [("a", "INTEGER")], "does not have the columns of the result"),
        ("1::INTEGER AS c0", [("b", "INTEGER")], "does not have the columns of the result"),
        ("1::INTEGER AS c0", [("a", "INTEGER"), ("b", "INTEGER")], "does not have the columns of the result"),
        ("1::INTEGER AS c0", [], "does not have the columns of the result"),
    ],
)
def test_a_file_that_is_not_of_the_result(source: Source, values: str, told: list[tuple[str, str]], said: str) -> None:
    named = [("a", kind) for _, kind in told][:1] or [("a", "INTEGER")]
    metadata = msgspec.json.encode([ColumnInfo(name, kind, True) for name, kind in named]).decode()
    with duckdb.connect() as maker:
        maker.execute(
            f"COPY (SELECT {values} FROM range(3)) TO '{source.path}' "
            f"(FORMAT parquet, KV_METADATA {{columns: '{metadata}', instants: '[]'}})"
        )
    columns = [Column(name, kind) for name, kind in told]
    with pytest.raises(ProtocolError, match=r"the result file from http://127.0.0.1:1") as caught:
        reading(source, columns, 3)
    assert said in caught.value.message


def test_a_file_with_fewer_columns_than_it_names(source: Source) -> None:
    names = ["a", "b", "c", "d"]
    named = msgspec.json.encode([ColumnInfo(name, "INTEGER", True) for name in names]).decode()
    with duckdb.connect() as maker:
        maker.execute(
            f"COPY (SELECT 1::INTEGER AS c0, 2::INTEGER AS c1) TO '{source.path}' "
            f"(FORMAT parquet, KV_METADATA {{columns: '{named}', instants: '[]'}})"
        )
    with pytest.raises(ProtocolError, match="does not have the columns of the result"):
        reading(source, [Column(name, "INTEGER") for name in names], 1)


def test_a_file_that_is_damaged_or_of_another_length(source: Source) -> None:
    columns, _, _ = source.run("SELECT i AS a, 'text ' || i AS b FROM range(50000) t(i)")
    with pytest.raises(ProtocolError, match="does not have the number of rows of the result"):
        reading(source, columns, 49_999)
    reading(source, columns, 50_000)
    content = source.path.read_bytes()
    for damaged in (
        b"",
        b"PAR1",
        content[:-9],
        content[: len(content) // 2],
        b"<html>" * 100,
        content[:-12] + bytes(12),
    ):
        source.path.write_bytes(damaged)
        with pytest.raises(ProtocolError, match="cannot be read"):
            reading(source, columns, 50_000)
    source.path.write_bytes(content[:100] + bytes(len(content) // 2) + content[100 + len(content) // 2 :])
    table = source.table(columns, 50_000)
    with pytest.raises(FileUnavailable):
        list(table.lines("c1", 0))
    with pytest.raises(FileUnavailable):
        table.rows(0, 50_000)
    table.close()


def test_rows_from_any_row_on(source: Source) -> None:
    columns, _, _ = source.run("SELECT i AS a FROM range(100000) t(i)")
    table = source.table(columns, 100_000)
    for start in (0, 1, 40_959, 40_960, 99_999, 100_000):
        lines = [*table.lines("c0 || chr(10)", start)]
        assert sum(count for count, _ in lines) == 100_000 - start
        assert b"".join(text or b"" for _, text in lines) == b"".join(b"%d\n" % row for row in range(start, 100_000))
    table.close()


def test_a_file_with_a_secret_is_not_typed(source: Source) -> None:
    columns, _, _ = source.run("SELECT i, 'token ' || i || ' sesame-sesame' AS s FROM range(3) t(i)")
    source.table(columns, 3, typed=True).close()
    source.transport._secrets.add("sesame-sesame")
    with pytest.raises(FileUnavailable):
        source.table(columns, 3, typed=True)
    table = source.table(columns, 3)
    assert [text for _, text in table.lines("c1", 0)] == [b"token 0 ***token 1 ***token 2 ***"]
    table.close()


@pytest.mark.parametrize(
    "metadata", ["", ", KV_METADATA {columns: '[]'}", ", KV_METADATA {columns: '{', instants: '[]'}"]
)
def test_a_file_that_does_not_name_its_columns(source: Source, metadata: str) -> None:
    with duckdb.connect() as maker:
        maker.execute(f"COPY (SELECT 1 AS c0) TO '{source.path}' (FORMAT parquet{metadata})")
    with pytest.raises(ProtocolError, match="does not name its columns"):
        reading(source, [Column("a", "INTEGER")], 1)


def test_duckdb_reads_nothing_but_the_file(source: Source, tmp_path: Path) -> None:
    columns, _, _ = source.run("SELECT i AS a FROM range(3) t(i)")
    other = tmp_path / "other.parquet"
    other.write_bytes(source.path.read_bytes())
    table = source.table(columns, 3)
    try:
        for sql in (
            f"FROM read_parquet('{other}')",
            "FROM read_text('/etc/hostname')",
            f"COPY (SELECT 1) TO '{tmp_path / 'made.csv'}'",
            "INSTALL httpfs",
            "LOAD spatial",
            "FROM read_csv('http://127.0.0.1:1/x.csv')",
            f"ATTACH '{tmp_path / 'made.duckdb'}'",
            "SET enable_external_access = true",
            "SET memory_limit = '10GB'",
        ):
            with pytest.raises(duckdb.Error):
                table.connection.execute(sql)
    finally:
        table.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.parquet", "result.parquet"]


@pytest.mark.slow("large results")
def test_rows_that_are_turned_into_text_together_are_few_if_they_are_wide(source: Source) -> None:
    columns, outcome, _ = source.run(
        "select i, repeat(chr(97 + (i % 26)::int), if(i < 20000, 1, 5000)) as s from range(60000) t(i)"
    )
    assert outcome.filed is not None
    table = source.table(columns, 60_000)
    try:
        lines = [*table.lines("c1", 1)]
        assert sum(count for count, _ in lines) == 59_999
        sizes = [len(text or b"") for _, text in lines]
        # A row group has at most about 10 MB.
        assert max(sizes) < 10 << 20
        # The first wide rows were fetched as many as narrow ones, 2,048.
        assert sorted(sizes)[-3] <= 2 * CHUNK_BYTES
        assert len(lines) < 250
    finally:
        table.close()
