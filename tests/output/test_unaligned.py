"""The unaligned format is psql's, to the byte."""

from __future__ import annotations

import pytest

from sqlshell.config.settings import SEPARATOR
from sqlshell.output.writer import Summary, WriterOptions
from sqlshell.output.writers.unaligned import UnalignedWriter
from sqlshell.result import Batch, Column, Rows

ROWS: Rows = [["1", "a|b"], [None, ""], ["3", "x\ny"]]
# Written by `psql -A` (15.18) for (values (1, 'a|b'), (null, ''), (3, e'x\ny')) as t(n, "t|x").
PSQL = {
    (): b"n|t|x\n1|a|b\n|\n3|x\ny\n(3 rows)\n",
    ("tuples",): b"1|a|b\n|\n3|x\ny\n",
    ("footer",): b"n|t|x\n1|a|b\n|\n3|x\ny\n",
    ("fields",): b"n, t|x\n1, a|b\n, \n3, x\ny\n(3 rows)\n",
    ("records",): b"n|t|x;1|a|b;|;3|x\ny;(3 rows)\n",
    ("zero",): b"n|t|x\x001|a|b\x00|\x003|x\ny\x00(3 rows)\x00",
    ("null",): b"n|t|x\n1|a|b\n-|\n3|x\ny\n(3 rows)\n",
    ("one",): b"n|t|x\n1|a|b\n(1 row)\n",
    ("none",): b"n|t|x\n(0 rows)\n",
    ("none", "tuples"): b"",
}
OPTIONS: dict[str, dict[str, object]] = {
    "tuples": {"header": False},
    "footer": {"footer": False},
    "fields": {"field_separator": ", "},
    "records": {"record_separator": ";"},
    "zero": {"record_separator": "\0"},
    "null": {"null": "-"},
}


@pytest.mark.parametrize("case", PSQL, ids=" ".join)
@pytest.mark.parametrize("size", [1, 3])
def test_what_psql_writes(case: tuple[str, ...], size: int) -> None:
    options: dict[str, object] = {}
    for name in case:
        options |= OPTIONS.get(name, {})
    rows = ROWS[: {"one": 1, "none": 0}.get(case[0] if case else "", 3)]
    writer = UnalignedWriter(WriterOptions(**options))  # type: ignore[arg-type]
    chunks = [*writer.begin([Column("n", "INTEGER"), Column("t|x")])]
    for start in range(0, len(rows), size):
        chunks += writer.write(Batch(2, rows=rows[start : start + size]))
    assert b"".join([*chunks, *writer.end(Summary(len(rows), True))]) == PSQL[case]


def test_a_statement_without_columns_gives_nothing() -> None:
    writer = UnalignedWriter(WriterOptions())
    assert not writer.buffering
    assert [*writer.begin([]), *writer.write(Batch(0, rows=[[]])), *writer.settle()] == []
    assert list(writer.end(Summary(0, True))) == []


@pytest.mark.parametrize(
    ("written", "meant"),
    [("\\t", "\t"), ("\\n", "\n"), ("\\r", "\r"), ("\\0", "\0"), ("\\\\", "\\"), ("\\\\t", "\\t"), ("a|\\x", "a|\\x")],
)
def test_separators_as_users_write_them(written: str, meant: str) -> None:
    assert SEPARATOR.read(written, "x") == meant
    assert SEPARATOR.read(SEPARATOR.shown(meant), "x") == meant
    assert SEPARATOR.shown(meant) == written.replace("\\x", "\\\\x")


def test_expanded_is_what_psql_writes() -> None:
    # Written by `psql -A -x` (15.18), and with `-R ';'`.
    for record_separator, expected in (("\n", b"n|1\nt|a|b\n\nn|\nt|\n"), (";", b"n|1;t|a|b;;n|;t|\n")):
        writer = UnalignedWriter(WriterOptions(expanded=True, record_separator=record_separator))
        chunks = [*writer.begin([Column("n", "INTEGER"), Column("t")])]
        chunks += [*writer.write(Batch(2, rows=[["1", "a|b"]])), *writer.write(Batch(2, rows=[[None, ""]]))]
        assert b"".join([*chunks, *writer.end(Summary(2, True))]) == expected
        none = UnalignedWriter(WriterOptions(expanded=True))
        assert b"".join([*none.begin([Column("n")]), *none.end(Summary(0, True))]) == b""
