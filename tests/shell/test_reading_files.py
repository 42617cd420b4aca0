"""Files that are loaded: what is read of them, by DuckDB itself."""

from __future__ import annotations

import contextlib
import gzip
import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sqlshell.errors import UsageError
from sqlshell.origin import Trusted
from sqlshell.shell.loading.convert import Scan
from sqlshell.shell.loading.inspect import DataFile, interface_type
from sqlshell.shell.loading.send import literals
from sqlshell.shell.loading.spec import LoadRequest, TargetColumn, match_columns, request_of
from sqlshell.sql.analysis.copy_statements import read_copy


class Loaded:
    """The rows of a file as they would be sent, and the bad ones."""

    def __init__(self, folder: Path, name: str, data: str | bytes, *, options: str = "", **types: str) -> None:
        path = folder / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        created = "" if types else "CREATE"
        written = f" WITH ({', '.join(filter(None, [created, options]))})" if created or options else ""
        request = request_of(read_copy(f"COPY t FROM 'x'{written}", command=True), Trusted(str(path)), name)
        source = DataFile(request, folder)
        try:
            looked = source.look(list(types))
            targets = [TargetColumn(*each) for each in types.items()] or [
                TargetColumn(column.name, column.table_type) for column in looked.columns
            ]
            matched = match_columns(request, looked, targets)
            scan = Scan(source, looked, matched.pairs)
            scan.run()
            self.unseen = scan.unseen_key()
            self.types, warnings = scan.new_types()
            self.warnings = [*looked.warnings, *warnings]
            self.dates = scan.date_warnings()
            self.rejects, _ = scan.rejects()
            self.staged = scan.rows(self.types)
            pairs = zip(matched.targets, self.types, strict=True)
            written_to = [TargetColumn(target.name, type_) for target, type_ in pairs]
            self.literals = list(literals(source, self.staged, written_to, 0))
        finally:
            source.close()

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        with duckdb.cursor() as cursor:
            return cursor.execute(f"SELECT COLUMNS(*)::VARCHAR FROM '{self.staged.path}'").fetchall()

    @property
    def errors(self) -> list[tuple[int, str]]:
        return [(reject.line, reject.error) for reject in self.rejects]


def test_quotes_that_appear_late_are_quotes(tmp_path: Path) -> None:
    data = "id,v\n" + "".join(f"{i},n{i}\n" for i in range(30_000))
    data += '30000,"abc"\n30001,""\n30002,"a ""b"""\n30003,"a,b\nc"\n'
    rows = Loaded(tmp_path, "a.csv", data, id="INTEGER", v="VARCHAR").rows
    assert len(rows) == 30_004
    assert [row[1] for row in rows[30_000:]] == ["abc", "", 'a "b"', "a,b\nc"]


@pytest.mark.parametrize(
    ("name", "delimiter", "about"),
    [
        ("a.csv", None, "csv, header"),
        ("a.csv", ";", "csv, separated by ;, header"),
        ("a.text", None, "tab-separated text, header"),
        ("a.text", ";", "text, separated by ;, header"),
    ],
)
def test_what_a_file_is_taken_for(tmp_path: Path, name: str, delimiter: str | None, about: str) -> None:
    path = tmp_path / name
    path.write_text("id{0}v\n1{0}a\n".format(delimiter or ("," if name == "a.csv" else "\t")))
    form = "csv" if name == "a.csv" else "text"
    source = DataFile(LoadRequest("t", (), Trusted(str(path)), name, form, delimiter=delimiter), tmp_path)
    with contextlib.closing(source):
        assert source.look([]).about == about


DATES = ["2020-01-01", "1900-01-01", "infinity", "-infinity", "0044-03-15 (BC)", "10000-01-01"]


@pytest.mark.parametrize(("header", "data"), [(True, "a\n1\n"), (False, "7\n1\n")])
def test_whether_a_file_of_one_column_has_names_can_be_given(tmp_path: Path, header: bool, data: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(data)
    source = DataFile(LoadRequest("t", (), Trusted(str(path)), "a.csv", "csv", header=header), tmp_path)
    with contextlib.closing(source):
        looked = source.look(["a"])
    assert ([column.name for column in looked.columns], looked.named) == (["a"] if header else ["column0"], header)


def test_dates_are_read_as_duckdb_reads_texts(tmp_path: Path) -> None:
    loaded = Loaded(tmp_path, "a.csv", "\n".join(["d", *DATES, "epoch"]), d="DATE")
    assert not loaded.rejects
    assert [row[0] for row in loaded.rows] == [*DATES, "1970-01-01"]


def test_timestamps_are_read_as_duckdb_reads_texts(tmp_path: Path) -> None:
    data = "d\n2020-01-01 00:00:00\n2020-01-01 00:00:00\ninfinity\n0044-03-15 (BC) 01:02:03\n"
    loaded = Loaded(tmp_path, "a.csv", data, d="TIMESTAMP(6)")
    assert not loaded.rejects
    assert [row[0] for row in loaded.rows[2:]] == ["infinity", "0044-03-15 (BC) 01:02:03"]


def test_infinity_among_dates_of_another_format_is_read_as_such(tmp_path: Path) -> None:
    data = "d\n31/12/2020\n01/01/1900\ninfinity\nepoch\n"
    rows = Loaded(tmp_path, "a.csv", data, d="DATE").rows
    assert rows == [("2020-12-31",), ("1900-01-01",), ("infinity",), ("1970-01-01",)]


def test_infinity_is_a_text_among_texts_beside_dates_of_another_format(tmp_path: Path) -> None:
    data = "d,v\n31/12/2020,1900-01-01\n30/12/2020,infinity\n"
    rows = Loaded(tmp_path, "a.csv", data, d="DATE", v="VARCHAR").rows
    assert rows == [("2020-12-31", "1900-01-01"), ("2020-12-30", "infinity")]


def test_a_long_line_is_read(tmp_path: Path) -> None:
    rows = Loaded(tmp_path, "a.csv", f'id,v\n1,"{"x" * 5_000_000}"\n2,b\n', id="INTEGER", v="VARCHAR").rows
    assert [len(row[1]) for row in rows] == [5_000_000, 1]


def test_an_error_does_not_repeat_a_long_value(tmp_path: Path) -> None:
    [reject] = Loaded(tmp_path, "a.csv", f"id,v\n1,a\n{'x' * 10_000},b\n", id="INTEGER", v="VARCHAR").rejects
    assert len(reject.error) < 250
    assert reject.error.endswith("to INTEGER")


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.csv", b"id,v\n1,a\r\n2,b\n3,c\r\n", r"cannot detect the format of a\.csv: some lines end in \\r\\n"),
        ("a.csv", "id,v\n1,a\n".encode("utf-16"), r"a\.csv is UTF-16, not UTF-8"),
        ("a.jsonl", '{"a":1}\n'.encode("utf-16"), r"a\.jsonl is UTF-16, not UTF-8"),
        ("a.csv", b"\xfe\xff" + "id,v\n1,a\n".encode("utf-16-be"), r"a\.csv is UTF-16, not UTF-8"),
        ("a.csv", b"id,v\n" + b"1,a\n" * 300_000 + b"2,b\r\n", r"cannot detect the format of a\.csv: some lines end"),
        ("a.csv", gzip.compress(b"id,v\n1,a\n", mtime=0), r"a\.csv is compressed$"),
        ("a.parquet", b"", r"a\.parquet is empty"),
    ],
)
def test_files_that_cannot_be_read_are_named_in_one_line(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    with pytest.raises(UsageError, match=said) as raised:
        Loaded(tmp_path, name, data, id="INTEGER", v="VARCHAR")
    assert "\n" not in raised.value.message


def test_rows_in_another_encoding_are_told_from_other_bad_rows(tmp_path: Path) -> None:
    rejects = Loaded(tmp_path, "a.csv", b"id,v\n1,K\xf6ln\nx,a\n", id="INTEGER", v="VARCHAR").rejects
    assert [(item.line, item.encoded) for item in rejects] == [(2, True), (3, False)]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_the_encoding_can_be_named_where_the_format_has_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="UTF-16") as raised:
        Loaded(tmp_path, name, "a,b\n".encode("utf-16"), a="INTEGER")
    assert ("--with ENCODING=utf16" in raised.value.hint) is (name == "a.csv")


def test_utf_16_that_duckdb_does_not_read_is_to_be_converted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xfe\xff" + "a,b\n1,x\n".encode("utf-16-be"))
    source = DataFile(LoadRequest("t", (), Trusted(str(path)), "a.csv", "csv", encoding="utf16"), tmp_path)
    with contextlib.closing(source), pytest.raises(UsageError, match="UTF-16") as raised:
        source.look(())
    assert raised.value.hint == "convert it with: iconv -f UTF-16 -t UTF-8 FILE > NEW_FILE"


def test_numbers_of_json_keep_their_digits(tmp_path: Path) -> None:
    huge = "170141183460469231731687303715884105727"
    first = f'"d": 123456789012345.678, "h": {huge}, "v": 1.10, "j": {{"a 1.5\\" 2.5": [-1.50, "3.5", 1e2, 7]}}'
    second = f'"d": "0.1", "h": -1, "v": "1.10", "j": {huge}1, "l": [], "e": "x 1.50"'
    data = f'[{{{first}, "l": [123456789012345.678, null]}},\n{{{second}}}]'
    kinds = ["DECIMAL(38,3)", "HUGEINT", "VARCHAR", "JSON", "ARRAY<DECIMAL(38,3)>", "VARCHAR"]
    rows = Loaded(tmp_path, "a.json", data, **dict(zip("dhvjle", kinds, strict=True))).rows
    lists = '{"a 1.5\\" 2.5":[-1.50,"3.5",1e2,7]}', "[123456789012345.678, NULL]", None
    assert rows[0] == ("123456789012345.678", huge, "1.10", *lists)
    assert rows[1] == ("0.100", "-1", "1.10", f"{huge}1", "[]", "x 1.50")


def test_numbers_with_a_fraction_of_zero_are_whole(tmp_path: Path) -> None:
    data = "id,v\n1.0,1.5\n-2.00,a\n15e1,b\n1.5e3,c\n,d\n"
    rows = Loaded(tmp_path, "a.csv", data, id="BIGINT", v="VARCHAR").rows
    assert [row[0] for row in rows] == ["1", "-2", "150", "1500", None]


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
@pytest.mark.parametrize("type_", ["INTEGER", "HUGEINT"])
def test_records_with_a_fraction_are_bad_rows_of_integers(tmp_path: Path, name: str, type_: str) -> None:
    values = [1.0, None, 1.5, -0.25, 1e3]
    path = tmp_path / name
    if name.endswith("l"):
        data = "".join(f'{{"id": {"null" if value is None else value}}}\n' for value in values).encode()
    else:
        with duckdb.connect() as connection:
            connection.execute(f"COPY (SELECT unnest(?::DOUBLE[]) AS id) TO '{path}'", [values])
        data = path.read_bytes()
    assert Loaded(tmp_path, name, data, id=type_).errors == [
        (3, f"cannot convert '1.5' to {type_}: it would become 2"),
        (4, f"cannot convert '-0.25' to {type_}: it would become 0"),
    ]


@pytest.mark.parametrize(
    ("dates", "told"),
    [
        (["03/04/2026", "05/06/2026"], "03/04/2026 is read as 2026-04-03, but may be 2026-03-04"),
        (["03/04/2026", "15/06/2026"], ""),
        (["04-03-26"], "04-03-26 is read as 2004-03-26, but may be 2026-03-04"),
        (["03/03/2026"], ""),
        (["2026-03-04"], ""),
        (["03/04/2026 10:00:00", "05/06/2026 11:00:00"], "03/04/2026 10:00:00 is read as 2026-04-03, but may be"),
    ],
)
def test_dates_with_two_meanings_are_told(tmp_path: Path, dates: list[str], told: str) -> None:
    type_ = "TIMESTAMP(6)" if ":" in dates[0] else "DATE"
    said = Loaded(tmp_path, "a.csv", "\n".join(["d", *dates, ""]), d=type_).dates
    assert [each.startswith(f'a.csv, column "d": {told}') for each in said] == ([True] if told else [])


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("MAP<VARCHAR, BYTES>", '{"k": "YWI="}', "{k=ab}"),
        ("MAP<BYTES, VARCHAR>", '{"YWI=": "x"}', "{ab=x}"),
        ("MAP<VARCHAR, ARRAY<BYTES>>", '{"k": ["YWI="]}', "{k=[ab]}"),
    ],
)
def test_bytes_in_maps_are_read_from_base64(tmp_path: Path, type_: str, text: str, value: str) -> None:
    quoted = text.replace('"', '""')
    assert Loaded(tmp_path, "a.csv", f'm\n"{quoted}"\n', m=type_).rows == [(value,)]


@pytest.mark.parametrize(
    ("type_", "made"),
    [
        ("UTINYINT", "SMALLINT"),
        ("USMALLINT", "INTEGER"),
        ("UINTEGER", "BIGINT"),
        ("UBIGINT", "DECIMAL(38,0)"),
        ("HUGEINT", "DECIMAL(38,0)"),
        ("TIMESTAMP_S", "TIMESTAMP(6)"),
        ("TIMESTAMP_NS", "TIMESTAMP(9)"),
        ("TIMESTAMPTZ", "TIMESTAMP_LTZ(6)"),
        ("TIME", "TIME(6)"),
        ("BLOB", "VARBINARY"),
        ("UUID", "VARCHAR"),
        ("DECIMAL(9,2)", "DECIMAL(9,2)"),
        ("INTEGER[2]", "ARRAY<INTEGER>"),
        ("MAP(TIME, BLOB[])", "MAP<TIME(6), ARRAY<VARBINARY>>"),
        ('STRUCT("A b" UTINYINT)', 'STRUCT<"A b" SMALLINT>'),
    ],
)
def test_a_new_column_has_the_type_of_the_interface(type_: str, made: str) -> None:
    assert interface_type(duckdb.sqltype(type_)) == made


def test_an_empty_field_too_many_is_dropped(tmp_path: Path) -> None:
    for end in ("", ","):
        loaded = Loaded(tmp_path, "a.csv", f"a,b\n1,2{end}\n3,4,\nx,6,\n", a="INTEGER", b="INTEGER")
        assert loaded.rows == [("1", "2"), ("3", "4")]
        assert loaded.errors == [(4, "cannot convert 'x' to INTEGER")]


@pytest.mark.flaky("failed once on a busy machine: the scan may end before it is interrupted")
def test_a_file_that_is_being_read_can_be_closed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "1,x\n" * 1_000_000)
    source = DataFile(LoadRequest("t", (), Trusted(str(path)), "a.csv", "csv"), tmp_path)
    looked = source.look([])
    pairs = [(column, TargetColumn(column.name, column.table_type)) for column in looked.columns]
    failed: list[Exception] = []

    def work() -> None:
        try:
            Scan(source, looked, pairs).run()
        except Exception as error:
            failed.append(error)

    reading = threading.Thread(target=work)
    reading.start()
    while reading.is_alive():
        source.close()
        source.interrupt()
        reading.join(0.01)
    assert len(failed) == 1
