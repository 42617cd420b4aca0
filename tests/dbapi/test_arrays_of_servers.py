"""Arrays as PostgreSQL prints them, as Python lists."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from sqlshell.dbapi.rows import converter


@pytest.mark.parametrize(
    ("type_name", "text", "value"),
    [
        ("integer[]", "{1,NULL,-3}", [1, None, -3]),
        ("integer[]", "{}", []),
        ("integer[]", "{{1,2},{3,4}}", [[1, 2], [3, 4]]),
        ("numeric(5,2)[]", "{1.10}", [Decimal("1.10")]),
        ("double precision[]", "{NaN,1e+300}", None),
        ("boolean[]", "{t,f}", [True, False]),
        ("text[]", '{a,"b,c","NULL",NULL,"\\"\\\\"}', ["a", "b,c", "NULL", None, '"\\']),
        ("uuid[]", "{00000000-0000-0000-0000-000000000001}", [UUID(int=1)]),
        ("timestamp(3) with time zone[]", '{"2026-01-01 00:00:00+00"}', [datetime(2026, 1, 1, tzinfo=UTC)]),
        ("date[]", "{2026-01-02,infinity,NULL}", [date(2026, 1, 2), "infinity", None]),
        ("bytea[]", r'{"\\x00ff"}', [b"\0\xff"]),
        ("jsonb[]", r'{"{\"a\": 1}"}', [{"a": 1}]),
    ],
)
def test_an_array_is_a_list(type_name: str, text: str, value: list[object] | None) -> None:
    convert = converter(type_name)
    assert convert is not None
    found = convert(text)
    if value is None:
        assert found[0] != found[0]
        assert found[1] == 1e300
    else:
        assert found == value


@pytest.mark.parametrize("text", ["", "1", "{1", "[0:1]={1,2}"])
def test_what_is_no_array_is_refused(text: str) -> None:
    convert = converter("integer[]")
    assert convert is not None
    with pytest.raises(ValueError):
        convert(text)
