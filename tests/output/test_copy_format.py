"""The format of COPY … TO: the bytes are those of psql 15 for the same rows and options."""

from __future__ import annotations

import duckdb
import pytest

from sqlshell.errors import UsageError
from sqlshell.output.copy_format import copy_format
from sqlshell.output.writer import WriterOptions
from sqlshell.result import Batch, Column, Rows, StoredColumn
from sqlshell.sql.analysis.copy_statements import read_copy
from tests.output.writing import written

COLUMNS = [Column("i", "INTEGER"), Column("s"), Column("n", "DECIMAL(3,2)"), Column("d", "DATE")]
ROWS: Rows = [
    ["1", "a,b", "1.10", "2024-01-02"],
    ["2", "", None, None],
    ["3", None, "-3.5", None],
    ["4", 'x\ty\nz\\w "q" ; | \'', "0.1", "2000-01-01"],
    ["5", "\b\f\v\r", "1", None],
    ["6", "\\.", "2", None],
    ["7", "\\N", "3", None],
    ["8", "NA", "4", None],
]

EXPECTED = {
    "": b"1\ta,b\t1.10\t2024-01-02\n2\t\t\\N\t\\N\n3\t\\N\t-3.5\t\\N\n"
    b'4\tx\\ty\\nz\\\\w "q" ; | \'\t0.1\t2000-01-01\n5\t\\b\\f\\v\\r\t1\t\\N\n6\t\\\\.\t2\t\\N\n7\t\\\\N\t3\t\\N\n'
    b"8\tNA\t4\t\\N\n",
    "csv": b'1,"a,b",1.10,2024-01-02\n2,"",,\n3,,-3.5,\n4,"x\ty\nz\\w ""q"" ; | \'",0.1,2000-01-01\n5,"\b\f\v\r",1,\n'
    b"6,\\.,2,\n7,\\N,3,\n8,NA,4,\n",
    "csv delimiter '|' quote '''' escape '\\'": b"1|a,b|1.10|2024-01-02\n2|''||\n3||-3.5|\n"
    b"4|'x\ty\nz\\\\w \"q\" ; | \\''|0.1|2000-01-01\n5|'\b\f\v\r'|1|\n6|\\.|2|\n7|\\N|3|\n8|NA|4|\n",
    "with (format csv, null 'NA')": b'1,"a,b",1.10,2024-01-02\n2,,NA,NA\n3,NA,-3.5,NA\n'
    b'4,"x\ty\nz\\w ""q"" ; | \'",0.1,2000-01-01\n5,"\b\f\v\r",1,NA\n6,\\.,2,NA\n7,\\N,3,NA\n8,"NA",4,NA\n',
    "csv header force quote s, n": b'i,s,n,d\n1,"a,b","1.10",2024-01-02\n2,"",,\n3,,"-3.5",\n'
    b'4,"x\ty\nz\\w ""q"" ; | \'","0.1",2000-01-01\n5,"\b\f\v\r","1",\n6,"\\.","2",\n7,"\\N","3",\n8,"NA","4",\n',
    "with (delimiter '|', null 'NULL')": b"1|a,b|1.10|2024-01-02\n2||NULL|NULL\n3|NULL|-3.5|NULL\n"
    b'4|x\\ty\\nz\\\\w "q" ; \\| \'|0.1|2000-01-01\n5|\\b\\f\\v\\r|1|NULL\n6|\\\\.|2|NULL\n7|\\\\N|3|NULL\n'
    b"8|NA|4|NULL\n",
    "delimiter '-'": b"1-a,b-1.10-2024\\-01\\-02\n2--\\N-\\N\n3-\\N-\\-3.5-\\N\n"
    b'4-x\\ty\\nz\\\\w "q" ; | \'-0.1-2000\\-01\\-01\n5-\\b\\f\\v\\r-1-\\N\n6-\\\\.-2-\\N\n7-\\\\N-3-\\N\n8-NA-4-\\N\n',
}
SAME = {
    "(format csv, header off)": "csv",
    "with (format csv, force_quote (s, n), header true)": "csv header force quote s, n",
    "with (format text, header false)": "",
    "with (delimiter E'\\t')": "",
}


def copied(options: str) -> bytes:
    form = copy_format(read_copy(f"copy t to stdout {options}"))
    return written(form.format.factory(form.options(WriterOptions(null="the session's"))), COLUMNS, ROWS)


@pytest.mark.parametrize("options", EXPECTED)
def test_the_bytes_are_those_of_psql(options: str) -> None:
    assert copied(options) == EXPECTED[options]


@pytest.mark.parametrize("options", SAME)
def test_other_spellings(options: str) -> None:
    assert copied(options) == EXPECTED[SAME[options]]


@pytest.mark.parametrize("options", ["", "(delimiter '-')", "(delimiter ',', null 'NA')"])
def test_duckdb_writes_the_same_lines(options: str) -> None:
    form = copy_format(read_copy(f"copy t to stdout {options}"))
    writer = form.format.factory(form.options(WriterOptions()))
    assert writer.by_sql == "lines"
    stored = [
        StoredColumn(Column("i", "INTEGER"), "c0", "integer", "(c0::VARCHAR)"),
        StoredColumn(Column("s"), "c1", "varchar", "c1"),
        StoredColumn(Column("d", "DATE"), "c2", "date", "(c2::VARCHAR)"),
    ]
    rows: Rows = [[row[0], row[1], row[3]] for row in ROWS]
    line = writer.line(stored)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (c0 INTEGER, c1 VARCHAR, c2 DATE)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        made = "".join(row[0] for row in connection.execute(f"SELECT {line} FROM t").fetchall()).encode()
    _ = [*writer.begin([column.column for column in stored])]
    assert b"".join(writer.write(Batch(3, rows=rows))) == made


@pytest.mark.parametrize(
    ("copy", "name", "header"),
    [
        ("'a.csv'", "csv", True),
        ("'a.CSV.gz'", "csv", True),
        ("'a.csv' csv", "csv", False),
        ("'a.csv' (format jsonl)", "jsonl", None),
        ("'a.tsv'", "tsv", True),
        ("'a.txt'", "tsv", False),
        ("'a'", "tsv", False),
        ("'a.xlsx'", "xlsx", None),
        ("program 'gzip > a.csv'", "tsv", False),
        ("stdout", "tsv", False),
    ],
)
def test_the_extension_sets_the_format(copy: str, name: str, header: bool | None) -> None:
    form = copy_format(read_copy(f"copy t to {copy}", command=True))
    assert (form.format.name, form.header, form.table) == (name, header, "t")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("(format csv, delimiter 'ab')", "DELIMITER must be a single one-byte character, not 'ab'"),
        ("delimiter 'a'", "DELIMITER cannot be 'a' in the format text"),
        ("(format csv, quote ',')", "DELIMITER and QUOTE must be different"),
        ("quote ''''", "QUOTE does not apply to the format text"),
        ("(format json, header)", "HEADER does not apply to the format json"),
        ("csv null 'a,b'", "NULL cannot be 'a,b'"),
        ("(format csv, create)", "the option CREATE applies only to COPY FROM"),
        ("(format csv, freeze)", "the option FREEZE applies only to COPY FROM"),
        ("(encoding 'latin1')", "ENCODING 'latin1' is not supported"),
        ("(format cvs)", "unknown format 'cvs'"),
        ("(force_quote (1))", "'1' is not the name of a column"),
    ],
)
def test_wrong_options(options: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        copy_format(read_copy(f"copy t to stdout {options}"))
    assert said in caught.value.message
