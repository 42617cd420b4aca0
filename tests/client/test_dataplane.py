"""Result-set data planes: which uris are followed, with which token, and to which addresses."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.transport import Transport
from sqlshell.client.results.dataplane import DataPlane, address_check, data_plane
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.statements.polling import StatementsClient, Submission
from sqlshell.client.target import Target, parse
from sqlshell.context import SessionContext
from sqlshell.errors import ProtocolError, ServiceError
from sqlshell.interface.models import DataplaneRequest
from sqlshell.result import Batch, Result, Rows
from sqlshell.runtime.addresses import is_private
from tests.cases import lines
from tests.client.test_statements import ID, done, scripted

API = parse("https://api.example/v2")


def asked(uri: str, kind: str = "result-set", token: str = "t") -> DataplaneRequest:
    return DataplaneRequest(token, uri, ID, None, kind)


@pytest.mark.parametrize(
    ("uri", "base", "path"),
    [
        ("https://dp.example/v2", "https://dp.example", f"/v2/statements/{ID}"),
        ("https://dp.example/v2/", "https://dp.example", f"/v2/statements/{ID}"),
        ("https://dp.example:8443/v2/statements", "https://dp.example:8443", f"/v2/statements/{ID}"),
        (f"https://DP.example/v2/statements/{ID}", "https://dp.example", f"/v2/statements/{ID}"),
        (f"https://dp.example/a/b/v2/statements/{ID}", "https://dp.example", f"/a/b/v2/statements/{ID}"),
        ("https://dp.example/v2/v2", "https://dp.example", f"/v2/v2/statements/{ID}"),
        ("https://[2001:db8::1]:9/v2", "https://[2001:db8::1]:9", f"/v2/statements/{ID}"),
    ],
)
def test_shapes_of_a_uri(uri: str, base: str, path: str) -> None:
    plane = data_plane(asked(uri), API, ID)
    assert (plane.target.base, plane.path, plane.same) == (base, path, False)


@pytest.mark.parametrize(
    "uri",
    [
        *lines("dataplane", "refused"),
        "",
        "https://dp.example/v2\r\nX: y",
        "https://dp.example/" + "a" * 10_000 + "/v2",
    ],
)
def test_what_is_not_followed(uri: str) -> None:
    with pytest.raises(ProtocolError):
        data_plane(asked(uri), API, ID)


def test_a_plane_of_an_unknown_type_or_for_no_statement_is_refused() -> None:
    uri = "https://dp.example/v2"
    with pytest.raises(ProtocolError, match="unknown data plane type 'carrier pigeon'"):
        data_plane(DataplaneRequest(uri=uri, token="t", request_type="carrier pigeon"), API, ID)
    with pytest.raises(ProtocolError, match="no statementID"):
        data_plane(DataplaneRequest(uri=uri, token="t", request_type="result-set"), API, "")


@pytest.mark.parametrize(
    ("uri", "api", "websocket"),
    [
        ("wss://dp.example/s/1", "https://api.example", "wss://dp.example/s/1"),
        ("https://dp.example/s/1?x=1", "https://api.example", "wss://dp.example/s/1?x=1"),
        ("ws://127.0.0.1:5/s", "http://127.0.0.1:5", "ws://127.0.0.1:5/s"),
        ("http://127.0.0.1:6/s", "http://127.0.0.1:5", "ws://127.0.0.1:6/s"),
        ("wss://dp.example", "http://127.0.0.1:5", "wss://dp.example/"),
    ],
)
def test_a_stream_is_a_websocket(uri: str, api: str, websocket: str) -> None:
    assert data_plane(asked(uri, "streaming"), parse(api), ID).websocket == websocket


@pytest.mark.parametrize("uri", ["ws://dp.example/s", "http://dp.example/s", "wss://u@dp.example/s", "mailto:a@b"])
def test_a_stream_that_is_not_followed(uri: str) -> None:
    with pytest.raises(ProtocolError):
        data_plane(asked(uri, "streaming"), API, ID)


@pytest.mark.parametrize("token", ["a b", "a\r\nX: y", "ü"])
def test_tokens_that_no_header_carries(token: str) -> None:
    with pytest.raises(ProtocolError):
        data_plane(asked("https://dp.example/v2", token=token), API, ID)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("8.8.8.8", False),
        ("2606:4700::1111", False),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("0.0.0.0", True),
        ("10.1.2.3", True),
        ("172.16.0.1", True),
        ("192.168.1.1", True),
        ("100.64.0.1", True),
        ("169.254.169.254", True),
        ("::1", True),
        ("::", True),
        ("fe80::1%eth0", True),
        ("fd00::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:8.8.8.8", False),
        ("64:ff9b::7f00:1", True),
        ("2002:7f00:1::", True),
        ("224.0.0.1", True),
        ("nonsense", True),
    ],
)
def test_private_addresses(address: str, expected: bool) -> None:
    assert is_private(address) is expected


def test_a_service_elsewhere_may_not_point_at_private_addresses() -> None:
    plane = DataPlane(Target("https", "dp.example", 443), "/v2", "t", False)
    check_address = address_check(plane, API, {"10.0.0.5"}, allowed=False)
    assert check_address is not None
    check_address("8.8.8.8")
    check_address("10.0.0.5")
    for address in ("127.0.0.1", "169.254.169.254", "10.0.0.6"):
        with pytest.raises(ServiceError, match="private address"):
            check_address(address)
    assert address_check(plane, API, set(), allowed=True) is None
    assert address_check(plane, parse("http://127.0.0.1:8765"), set(), allowed=False) is None


def read(api: str, network: NetworkOptions | None = None, target: Target | None = None) -> list[Rows]:
    async def work() -> list[Rows]:
        transport = Transport(target or parse(api), "the-api-token", network=network or NetworkOptions(retries=1))
        statements = StatementsClient(transport, ResultFactory(transport))
        found: list[Rows] = []
        try:
            context = SessionContext(session_id="s", timezone="UTC")
            async for result in statements.run(Submission("select 1", repeatable=True), context):
                found.append([row async for batch in result.batches for row in batch.rows])
        finally:
            await statements.aclose()
        return found

    return asyncio.run(work())


Found = tuple[Result, list[Batch]]


def found_at(url: str) -> Found:
    """The result of one statement, and its batches, which are not decoded yet."""

    async def work() -> Found:
        transport = Transport(parse(url), "t", network=NetworkOptions(retries=0))
        statements = StatementsClient(transport, ResultFactory(transport))
        try:
            async for result in statements.run(Submission("select 1"), SessionContext()):
                return result, [batch async for batch in result.batches]
        finally:
            await statements.aclose()
        raise AssertionError("there is no result")

    return asyncio.run(work())


def taken(found: Found) -> Rows:
    return [row for batch in found[1] for row in batch.rows]


def answer(metadata: Any, data: Rows) -> tuple[int, dict[str, Any]]:
    return 200, {"sqlState": "00000", "statementID": ID, "createdOn": 1, "metadata": metadata, "data": data}


def kept_at(url: str, **fields: Any) -> dict[str, Any]:
    request = {"requestType": "result-set", "uri": f"{url}/v2", "token": "plane-token", "statementID": ID}
    return done(metadata={"partitionInfo": [{"rowCount": 1}] * 3, "dataplaneRequest": request}, **fields)


def test_the_rows_are_read_there_with_its_token_alone() -> None:
    pages = [{"data": [[str(number)]]} for number in range(3)]
    with (
        scripted((202, {"sqlState": "03000", "statementID": ID}), *((200, page) for page in pages)) as plane,
        scripted((200, kept_at(plane.url))) as api,
    ):
        rows = read(api.url)
    assert sorted(row[0] or "" for row in rows[0]) == ["0", "1", "2"]
    assert {item[2]["Authorization"] for item in api.asked} == {"Bearer the-api-token"}
    assert {item[2]["Authorization"] for item in plane.asked} == {"Bearer plane-token"}
    assert all("the-api-token" not in json.dumps(item[2]) for item in plane.asked)
    assert all(item[1].startswith(f"/v2/statements/{ID}?") and "partitionID=" in item[1] for item in plane.asked)


COLUMNS = [{"name": "n", "type": "INTEGER;nowrap"}, {"name": "s", "type": "VARCHAR"}]
OWN: dict[str, Any] = {"encoding": "json", "partitionInfo": [{"rowCount": 2}, {"rowCount": 1}], "columns": COLUMNS}
PAGES: list[Rows] = [[["1", "a"], ["2", "b"]], [["3", None]]]


def on_plane(service: dict[str, Any], own: Any, pages: list[Rows] = PAGES) -> Found:
    """A result whose rows are on a data plane; `service` and `own` are the metadata of the two."""
    with scripted(*(answer(own, page) for page in pages)) as plane:
        request = {"requestType": "result-set", "uri": f"{plane.url}/v2", "token": "t", "statementID": ID}
        with scripted(answer({**service, "dataplaneRequest": request}, [])) as api:
            return found_at(api.url)


@pytest.mark.parametrize("columns", ({}, {"columns": None}, {"columns": []}, {"columns": COLUMNS}))
@pytest.mark.parametrize(
    "parts", ({}, {"partitionInfo": None}, {"partitionInfo": []}, {"partitionInfo": OWN["partitionInfo"]})
)
def test_the_answer_of_the_plane_tells_what_the_service_left_out(
    columns: dict[str, Any], parts: dict[str, Any]
) -> None:
    found = on_plane(columns | parts, OWN)
    assert [(column.name, column.type) for column in found[0].columns] == [("n", "INTEGER"), ("s", "VARCHAR")]
    assert found[0].row_counts == [2, 1]
    assert taken(found) == [["1", "a"], ["2", "b"], ["3", None]]


def test_a_plane_that_tells_nothing_takes_it_from_the_service() -> None:
    nothing: tuple[Any, ...] = (None, {}, {"columns": [], "partitionInfo": []})
    for own in nothing:
        found = on_plane(OWN, own)
        assert ([column.name for column in found[0].columns], found[0].row_counts) == (["n", "s"], [2, 1])
        assert len(taken(found)) == 3


@pytest.mark.parametrize(
    ("service", "told"),
    (
        ({"columns": COLUMNS[:1]}, "columns"),
        ({"columns": [{"name": "n", "type": "BIGINT"}, COLUMNS[1]]}, "columns"),
        ({"columns": [COLUMNS[1], COLUMNS[0]]}, "columns"),
        ({"partitionInfo": [{"rowCount": 2}]}, "partitions"),
        ({"partitionInfo": [{"rowCount": 2}, {"rowCount": 2}]}, "partitions"),
    ),
)
def test_where_both_tell_they_agree(service: dict[str, Any], told: str) -> None:
    with pytest.raises(ProtocolError, match=f"disagree on the {told}"):
        on_plane(service, OWN)


def test_encodings_of_a_plane() -> None:
    with pytest.raises(ProtocolError, match="unknown encoding 'arrow'"):
        on_plane({"encoding": "json"}, OWN | {"encoding": "arrow"})


def test_rows_that_a_plane_announces_and_does_not_have() -> None:
    with pytest.raises(ProtocolError, match="partition 0 has 1 row; expected 2"):
        on_plane({}, OWN, [[["1", "a"]]])


def test_rows_without_any_columns_are_not_lost() -> None:
    nothing: tuple[Any, ...] = (None, {"columns": []})
    for own in nothing:
        found = on_plane({}, own, [[["1", "a"], ["2", "b"]]])
        assert [column.name for column in found[0].columns] == ["column1", "column2"]
        assert len(taken(found)) == 2
    with pytest.raises(ProtocolError, match="each row must have 2 values"):
        taken(on_plane({}, None, [[["1", "a"], ["2"]]]))


def test_rows_without_columns_at_the_service_itself() -> None:
    with scripted(answer({"columns": [], "partitionInfo": []}, [["1"], ["2"]])) as api:
        found = found_at(api.url)
    assert ([column.name for column in found[0].columns], taken(found)) == (["column1"], [["1"], ["2"]])


def test_a_token_that_became_too_old_is_asked_for_again() -> None:
    with (
        scripted((401, {"message": "expired"}), (200, {"data": [["0"]]})) as plane,
        scripted((200, kept_at(plane.url) | {"metadata": _one(plane.url, "old")}), (200, kept_at(plane.url))) as api,
    ):
        assert read(api.url) == [[["0"]]]
    assert [item[2]["Authorization"] for item in plane.asked] == ["Bearer old", "Bearer plane-token"]
    assert [(item[0], item[1].partition("?")[0]) for item in api.asked] == [
        ("POST", "/v2/statements"),
        ("GET", f"/v2/statements/{ID}"),
    ]


def _one(url: str, token: str) -> dict[str, Any]:
    request = {"requestType": "result-set", "uri": f"{url}/v2", "token": token}
    return {"columns": [{"name": "a"}], "partitionInfo": [{"rowCount": 1}], "dataplaneRequest": request}


@pytest.mark.parametrize("body", [b"<html>", b"", b"[1]", b'{"data": '])
def test_a_first_partition_that_is_not_a_result(body: bytes) -> None:
    with (
        scripted((200, body)) as plane,
        scripted((200, kept_at(plane.url))) as api,
        pytest.raises(ProtocolError, match="partition 0 is not a result") as caught,
    ):
        read(api.url, NetworkOptions(retries=0))
    assert caught.value.where.statement_id == ID


def test_a_data_plane_that_cannot_be_followed_is_named_without_its_token() -> None:
    request = {"requestType": "result-set", "uri": "ftp://plane-token/v2", "token": "plane-token"}
    with scripted((200, done(metadata={"dataplaneRequest": request}))) as api, pytest.raises(ProtocolError) as caught:
        read(api.url)
    assert caught.value.where.statement_id == ID
    assert "plane-token" not in str(caught.value)


def test_a_redirect_of_a_data_plane_is_not_followed() -> None:
    with (
        scripted((307, b"")) as plane,
        scripted((200, kept_at(plane.url))) as api,
        pytest.raises(ServiceError, match="redirects"),
    ):
        read(api.url)


def test_the_address_of_a_proxy_is_not_that_of_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with scripted((200, {"data": [["0"]]})) as plane, scripted((200, kept_at(plane.url))) as proxy:
        # The service is elsewhere, and the proxy on this machine: its address allows no data plane on this machine.
        monkeypatch.setenv("http_proxy", proxy.url)
        with pytest.raises(ServiceError, match="private address"):
            read("http://sql.invalid/v2")
    assert [path for _, path, *_ in proxy.asked] == ["http://sql.invalid/v2/statements"]
    assert not plane.asked
