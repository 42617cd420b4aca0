"""Types that the interface has no names for, sent to clients that prefer it."""

from __future__ import annotations

from tests.conftest import Served
from tests.service.client import Client

SQL = "select uuid() as u, [interval '1 day'] as l, 1 as i, {'j': '1'::json} as s"


def columns(served: Served, prefer: str) -> list[dict[str, object]]:
    with Client(served) as client:
        client.http.headers["Prefer"] = prefer
        return list(client.run(SQL)["metadata"]["columns"])


def test_only_who_asks_sees_engine_types(served: Served) -> None:
    plain = columns(served, "wait=5")
    assert [set(column) for column in plain] == [{"name", "type", "nullable"}] * 4
    exact = columns(served, "wait=5, Engine-Types")
    assert [column.pop("engineType", None) for column in exact] == ["UUID", "ARRAY<INTERVAL>", None, "STRUCT<j JSON>"]
    assert exact == plain
