"""Values in both directions: what each type becomes in Python, and that no value breaks out of its literal."""

from __future__ import annotations

import datetime
import math
import re
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sqlshell.dbapi import Connection, DataError, ProgrammingError
from sqlshell.dbapi.literals import DEEPEST, Literals, literals_for
from sqlshell.dbapi.rows import RowDecoder
from sqlshell.result import Batch, Column

UTC = datetime.UTC
HALF = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
ID = uuid.UUID(int=(4 << 76) + (8 << 60) + 1)
HOUR = datetime.timezone(datetime.timedelta(hours=1))

READ: list[tuple[str, Any]] = [
    ("true", True),
    ("(-128)::tinyint", -128),
    ("9223372036854775807", 9223372036854775807),
    ("1.10::decimal(38,10)", Decimal("1.1000000000")),
    ("170141183460469231731687303715884105727::hugeint", 2**127 - 1),
    ("18446744073709551615::ubigint", 2**64 - 1),
    ("340282366920938463463374607431768211455::uhugeint", 2**128 - 1),
    ("(-123456789012345678901234567890123456789012)::bignum", -123456789012345678901234567890123456789012),
    ("0.1::float", 0.1),
    ("'inf'::double", math.inf),
    ("'a''b'", "a'b"),
    ("null", None),
    ("'ab\\xff'::blob", b"ab\xff"),
    ("date '2024-02-29'", datetime.date(2024, 2, 29)),
    ("time '12:34:56.5'", datetime.time(12, 34, 56, 500_000)),
    ("'12:34:56.123456789'::time_ns", datetime.time(12, 34, 56, 123_456)),
    ("timestamp '2023-12-30 03:37:45.12'", datetime.datetime(2023, 12, 30, 3, 37, 45, 120_000)),
    ("'2023-12-30 03:37:45.123456789'::timestamp_ns", datetime.datetime(2023, 12, 30, 3, 37, 45, 123_456)),
    ("timestamptz '2023-12-30 03:37:45+01'", datetime.datetime(2023, 12, 30, 3, 37, 45, tzinfo=HOUR)),
    ("'12:34:56.5+05:30'::timetz", datetime.time(12, 34, 56, 500_000, tzinfo=HALF)),
    ("interval '2 days -1 hour'", datetime.timedelta(2, hours=-1)),
    ("interval '-100 hours'", datetime.timedelta(hours=-100)),
    ("interval '-0.5 seconds'", datetime.timedelta(seconds=-0.5)),
    ("interval '0 seconds'", datetime.timedelta(0)),
    ("interval '-3 days'", datetime.timedelta(-3)),
    ("'00000000-0000-4000-8000-000000000001'::uuid", ID),
    ("'{\"a\": [1, 1.5, null]}'::json", {"a": [1, 1.5, None]}),
    ("'\"text\"'::json", "text"),
    ("'null'::json", None),
    ("'0101'::bit", "0101"),
    ("'a'::enum('a', 'b')", "a"),
    ("[[1, 2]::integer[2]]", [[1, 2]]),
    ("[uuid '00000000-0000-4000-8000-000000000001', null]", [ID, None]),
    ("{'i': interval '1 hour', 'j': '[1.5]'::json, 'd': 1.5::decimal(38,2), 't': '12:00:00+05:30'::timetz}",
     {"i": datetime.timedelta(hours=1), "j": [1.5], "d": Decimal("1.50"), "t": datetime.time(12, tzinfo=HALF)}),
    ("map {uuid '00000000-0000-4000-8000-000000000001': 'a'::enum('a')}", {ID: "a"}),
    ("(1::hugeint, interval '1 day')", (1, datetime.timedelta(1))),
    ("[1, null, 3]", [1, None, 3]),
    ("['nan'::double, 1]", [math.nan, 1.0]),
    ("[]", []),
    ("[[1.5::decimal(4,2)], null]", [[Decimal("1.5")], None]),
    ("[123456789012345678901234567890::hugeint]", [123456789012345678901234567890]),
    ("[{'d': 1.50::decimal(38,2), 't': 't'}]", [{"d": Decimal("1.50"), "t": "t"}]),
    ("{'a': 'ab'::blob, 'b c': date '2024-02-29', 'n': null::int}",
     {"a": b"ab", "b c": datetime.date(2024, 2, 29), "n": None}),
    ("(1, 'ab'::blob, null)", (1, b"ab", None)),
    ("map {1: time '01:02:03'}", {1: datetime.time(1, 2, 3)}),
    ("map {date '2024-02-29': [1]}", {datetime.date(2024, 2, 29): [1]}),
    ("map {true: 1.5::decimal(4,2)}", {True: Decimal("1.5")}),
    ("map {[1]: 1}", {"[1]": 1}),
    ("null::struct(a blob)", None),
]  # fmt: skip


def same(one: Any, other: Any) -> bool:
    """Equal, of the same types, at any depth; NaN equals NaN, and instants may have other offsets."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return repr(one) == repr(other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one), list(other)) and same(list(one.values()), list(other.values()))
    if isinstance(one, datetime.datetime) and (one.tzinfo is None) != (other.tzinfo is None):
        return False
    if isinstance(one, Decimal) and one.is_nan():
        return bool(other.is_nan())
    return bool(one == other)


@pytest.mark.parametrize(("sql", "expected"), READ)
def test_each_type(embedded: Connection, sql: str, expected: Any) -> None:
    [(found,)] = embedded.execute(f"select {sql}").fetchall()
    assert same(found, expected), found


def test_instants_have_the_offset_of_the_time_zone(embedded: Connection) -> None:
    embedded.timezone = "Europe/Berlin"
    try:
        found = embedded.execute("select timestamptz '2023-12-30 03:37:45+00' as t").fetchall()[0][0]
    finally:
        embedded.timezone = "UTC"
    assert (found.isoformat(), found.utcoffset()) == ("2023-12-30T04:37:45+01:00", datetime.timedelta(hours=1))


@pytest.mark.parametrize(
    "sql",
    [
        *("'infinity'::date", "'0044-03-15 (BC)'::date", "timestamp '12345-01-01'"),
        *("interval '1 month'", "interval '-1 year 3 days'", "interval '1 month -1 day'"),
    ],
)
def test_a_value_that_python_does_not_have_is_its_text(embedded: Connection, sql: str) -> None:
    found = embedded.execute(f"select 1, {sql} as d, ({sql})::varchar as t").fetchall()
    assert [(1, row[2], row[2]) for row in found] == found
    [(items, pairs, text)] = embedded.execute(f"select [{sql}], map {{{sql}: 1}}, ({sql})::varchar").fetchall()
    assert (items, pairs) == ([text], {text: 1})


def both_ways(columns: Sequence[Column], rows: list[list[str | None]]) -> tuple[Any, Any]:
    """What the decoder makes of a body, and of its strings; an error as its text."""
    import msgspec

    found: list[Any] = []
    for batch in (
        Batch(len(columns), body=msgspec.json.encode({"data": rows})),
        Batch(len(columns), rows=[list(row) for row in rows]),
    ):
        try:
            found.append(RowDecoder(columns).rows(batch))
        except DataError as error:
            found.append(str(error))
    return found[0], found[1]


TEXTS = st.text() | st.sampled_from(
    ["", "null", "true", "1", "-1.50", "1e3", "NaN", "Infinity", "2024-02-29", "12:00", "12:34:56.1234567", "YQ=="]
)
TYPES = [
    *("BOOLEAN", "INTEGER", "DECIMAL(10,2)", "DOUBLE", "VARCHAR", "VARBINARY", "DATE", "TIME(6)", "TIME(9)", "TIME"),
    *("TIMESTAMP(6)", "TIMESTAMP_LTZ(3)", "UUID", "ARRAY<INTEGER>", "MAP<INTEGER, DATE>", "STRUCT<a INTEGER>"),
]


@pytest.mark.slow("many generated cases")
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(TYPES), TEXTS)
def test_both_ways_agree_on_any_text_that_they_take(kind: str, text: str) -> None:
    """A service may send anything: then it is an error, or the same value (but -0 is no negative zero,
    and more digits of a second than the type has are rounded)."""
    assume(re.fullmatch(r"-0+|.*\.[0-9]{7}.*", text, re.DOTALL) is None)
    fast, plain = both_ways([Column("v", kind)], [[text]])
    if not isinstance(plain, str):
        assert same(fast, plain)


instants = st.datetimes(datetime.datetime(2, 1, 1), datetime.datetime(9998, 1, 1))
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**127), 2**127 - 1)
    | st.floats()
    | st.decimals(allow_nan=False, allow_infinity=False, places=5, min_value=-(10**20), max_value=10**20)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.text("'\"\\$?:;-/*eE\n\0 ")
    | st.binary()
    | st.dates()
    | st.times()
    | instants
    | st.datetimes(datetime.datetime(2, 1, 1), datetime.datetime(9998, 1, 1), timezones=st.sampled_from([UTC, HOUR]))
)


@pytest.mark.slow("an embedded service, many generated cases")
@settings(max_examples=150, deadline=None)
@given(st.lists(scalars, min_size=1, max_size=6))
def test_parameters_come_back_as_they_were_sent(embedded: Connection, values: list[Any]) -> None:
    sql = "select " + ", ".join("? as v" for _ in values)
    found = embedded.execute(sql, values).fetchall()
    assert same(found, [tuple(values)])


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"])) | st.text("'\"\\$\n\0")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(ANY_TEXT, max_size=3), max_size=3),
    st.dictionaries(st.text("ab'\" \\", min_size=1), st.integers(0, 9), min_size=1, max_size=3),
)
def test_nested_parameters_come_back_too(embedded: Connection, lists: list[list[str]], pairs: dict[str, int]) -> None:
    found = embedded.execute("select ?, ?", [lists, pairs]).fetchall()
    # Lists without any text have no type of their own.
    assert found == [(lists, pairs)]


@pytest.mark.slow("many generated cases")
@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])) | st.text("'\"\\$?:;-/*eE\n"))
def test_hostile_text_stays_a_value(remote_rows: Connection, text: str) -> None:
    """Between other literals and words, as a condition and as a row, at the service on a socket."""
    cursor = remote_rows.cursor()
    cursor.execute("insert into hostile values (?, -?, /* ? */ ? /* ' */)", [text, 1, text])
    cursor.execute(
        "select count(*), '?', max(b) from hostile where a = ? and c = :x::varchar".replace(":x", "?"), [text, text]
    )
    assert cursor.fetchall() == [(1, "?", -1)]
    cursor.execute("delete from hostile where a = :text", {"text": text})
    assert cursor.rowcount == 1


@pytest.fixture(scope="module")
def remote_rows(served: Any) -> Any:
    from sqlshell.dbapi import connect

    with connect(served.url, token=served.token, autocommit=True) as connection:
        connection.execute("create temp table hostile (a varchar, b integer, c varchar)")
        yield connection


def test_values_of_other_types_than_these_are_refused() -> None:
    with pytest.raises(ProgrammingError, match="a value of type object"):
        Literals().of(object())
    with pytest.raises(DataError, match="at most 38 digits"):
        Literals().of(Decimal("1." + "1" * 38))
    for value in (Decimal("nan"), datetime.datetime(1, 1, 1, tzinfo=HOUR), 10**5000):
        with pytest.raises(DataError):
            Literals().of(value)


@pytest.mark.parametrize("engine", ["duckdb", "postgresql", "spark"])
@pytest.mark.parametrize("outer", [lambda item: [item], lambda item: {"k": item}], ids=["lists", "dicts"])
def test_parameters_are_nested_to_a_limit(engine: str, outer: Callable[[object], object]) -> None:
    nested: object = 1
    for _ in range(DEEPEST - 1):
        nested = outer(nested)
    assert "1" in literals_for(engine).of(nested)
    with pytest.raises(DataError, match=f"nested more than {DEEPEST} levels"):
        literals_for(engine).of(outer(outer(nested)))


def test_the_levels_of_a_dict_count_from_the_list_around_it() -> None:
    nested: object = 1
    for _ in range(DEEPEST - 1):
        nested = {"k": nested}
    assert "1" in literals_for("postgresql").of(nested)
    with pytest.raises(DataError, match="levels"):
        literals_for("postgresql").of([nested])


def test_subclasses_and_other_numbers_are_values_too(embedded: Connection) -> None:
    import enum

    class Name(str):
        pass

    class Color(enum.IntEnum):
        RED = 1

    values = [Name("it's"), Color.RED, np.float32(0.25), bytearray(b"a"), memoryview(b"b"), uuid.UUID(int=1)]
    found = embedded.execute("select ?, ?, ?, ?, ?, ?", values).fetchall()
    assert found == [("it's", 1, 0.25, b"a", b"b", str(uuid.UUID(int=1)))]


def test_intervals_are_exact(embedded: Connection) -> None:
    for value in (
        datetime.timedelta(days=-3, microseconds=5),
        datetime.timedelta(0),
        datetime.timedelta(days=999_999, hours=23, microseconds=999_999),
    ):
        micros = (value.days, value.seconds * 1_000_000 + value.microseconds)
        sql = "select datepart('day', ?), epoch_us(? - to_days(datepart('day', ?)::int))"
        assert embedded.execute(sql, [value] * 3).fetchall() == [micros]


def _misleading(kind: type) -> Any:
    """A subclass whose methods return text that would end a literal."""
    names = set(vars(kind)) | {"__str__", "__repr__", "__format__", "__iter__", "__bytes__"}
    kept = {
        "__new__",
        "__init__",
        "__hash__",
        "__eq__",
        "__getattribute__",
        "__buffer__",
        "__doc__",
        "__slots__",
        "__release_buffer__",
    }
    kept |= {"__setattr__", "__weakref__", "__module__", "__dict__", "__dictoffset__"} | _FIELDS.get(kind, set())
    return type(f"Of{kind.__name__}", (kind,), dict.fromkeys(names - kept, lambda *_, **__: "' or '"))


_FIELDS: dict[type, set[str]] = {uuid.UUID: {"int", "is_safe"}}


@pytest.mark.parametrize("engine", ["", "postgresql", "spark"])
@pytest.mark.parametrize(
    ("value", "arguments"),
    [
        ("it's \\ \n", ("it's \\ \n",)),
        (b"a'b", (b"a'b",)),
        (bytearray(b"a'b"), (b"a'b",)),
        (-5, (-5,)),
        (-1.5, (-1.5,)),
        (Decimal("-1.50"), ("-1.50",)),
        (datetime.datetime(2024, 1, 2, 3, 4, 5, 6), (2024, 1, 2, 3, 4, 5, 6)),
        (datetime.datetime(2024, 1, 2, 3, 4, 5, 6, HALF), (2024, 1, 2, 3, 4, 5, 6, HALF)),
        (datetime.date(2024, 1, 2), (2024, 1, 2)),
        (datetime.time(1, 2, 3, 4), (1, 2, 3, 4)),
        (datetime.timedelta(-1, 3, 4), (-1, 3, 4)),
        (ID, (str(ID),)),
    ],
)
def test_methods_of_a_subclass_are_not_called(engine: str, value: Any, arguments: tuple[Any, ...]) -> None:
    literals = literals_for(engine)
    given = _misleading(type(value))(*arguments)
    assert literals.of(given) == literals.of(value)
    assert literals.of([given]) == literals.of([value])
    if isinstance(value, str):
        assert literals.of({given: given}) == literals.of({value: value})


def test_a_signaling_nan_is_a_nan_of_postgresql() -> None:
    literals = literals_for("postgresql")
    assert literals.of(Decimal("sNaN")) == "CAST('NaN' AS numeric)"
    with pytest.raises(DataError, match="JSON cannot represent sNaN"):
        literals.of({"a": Decimal("sNaN")})
