"""The check of every response of the services in the tests."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.responses import Response

from sqlshell.service.http.app import document
from sqlshell.service.http.bodies import BATCH
from sqlshell.service.objects.attachments import SOURCES
from sqlshell.service.settings import Settings
from tests.checked import Checked, Document, Json

WHOLE = Document(document(Settings()))
ID = "00000000-0000-4000-8000-000000000001"
STATUS = {"sqlState": "03000", "statementID": ID, "createdOn": 1}
CONTEXT = {"context": {"databaseName": "d"}}
EMPTY: Json = {"encoding": "json", "partitionInfo": [], "columns": [], **CONTEXT}
DONE = {**STATUS, "sqlState": "00000", "metadata": EMPTY}
COLUMN = {"name": "a", "type": "INTEGER", "nullable": True}
PLANE = {"token": "t", "uri": "u", "requestType": "streaming", "statementID": ID}
ROWS = [["x" * 1000]] * 100


def plane(**members: Any) -> Json:
    return {**DONE, "metadata": {**EMPTY, "dataplaneRequest": members}}


def metadata(**members: Any) -> Json:
    return {**DONE, "metadata": {**EMPTY, **members}}


@pytest.mark.parametrize(
    ("asked", "status", "body", "expected"),
    [
        ("POST /v2/statements", 202, STATUS, ""),
        ("POST /v2/statements", 202, {**STATUS, "metadata": CONTEXT}, "metadata"),
        ("POST /v2/statements", 202, {**STATUS, "statementIDs": [ID]}, ""),
        ("POST /v2/statements", 202, {**STATUS, "statements": [STATUS, {**DONE, "elapsed": 1}]}, ""),
        ("POST /v2/statements", 202, {**STATUS, "statements": [{**STATUS, "metadata": CONTEXT}]}, "statements"),
        ("POST /v2/statements", 200, DONE, ""),
        ("POST /v2/statements", 200, STATUS, "metadata"),
        ("POST /v2/statements", 200, {**DONE, "metadata": CONTEXT}, "encoding"),
        ("POST /v2/statements", 200, {**DONE, "data": [[1]]}, "data.0.0"),
        ("POST /v2/statements", 201, DONE, "no status"),
        ("POST /v2/statements", 404, {"message": "m"}, "no status"),
        (f"GET /v2/statements/{ID}", 404, {"message": "m"}, ""),
        (f"GET /v2/statements/{ID}", 200, metadata(columns=None), "columns"),
        (f"GET /v2/statements/{ID}", 200, metadata(columns=[{**COLUMN, "nullable": None}]), "nullable"),
        (f"GET /v2/statements/{ID}", 200, metadata(columns=[COLUMN], partitionInfo=[{}]), "rowCount"),
        (f"GET /v2/statements/{ID}", 200, plane(**PLANE), ""),
        (f"GET /v2/statements/{ID}", 200, plane(token="t", uri="u", requestType="streaming"), "statementID"),
        (f"GET /v2/statements/{ID}", 200, {**DONE, "data": ROWS}, ""),
        (f"GET /v2/statements/{ID}", 200, {**STATUS, "data": ROWS}, "metadata"),
        (f"GET /v2/statements/{ID}", 200, {**STATUS, "statements": [{**DONE, "data": ROWS}]}, "metadata"),
        (f"HEAD /v2/statements/{ID}", 200, None, ""),
        ("GET /v2/version", 200, {"major": 1, "minor": 2}, "patch"),
        ("GET /nothing", 404, {"message": "m"}, ""),
        ("GET /nothing", 404, {"detail": "m"}, "message"),
        ("GET /nothing", 200, {}, "not in the document"),
        (f"GET /v2/download/function_source/{ID}/a/b", 200, {}, "application/json in the place of"),
    ],
)
def test_an_answer_is_held_against_the_document(asked: str, status: int, body: Json | None, expected: str) -> None:
    method, _, path = asked.partition(" ")
    content = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
    answer = Response(content, status, media_type="application/json")
    found: list[str] = []

    async def send(message: Any) -> None:
        pass

    async def receive() -> Any:
        return {"type": "http.request"}

    asyncio.run(
        Checked(answer, lambda: WHOLE, found.append)(
            {"type": "http", "method": method, "path": path, "headers": []}, receive, send
        )
    )
    assert bool(found) == bool(expected), found
    assert expected in "".join(found)


def test_the_document_has_the_lists_and_limits_of_the_service() -> None:
    whole = document(Settings(legacy=True, statement_limit=77, name_length=7))
    kinds = [
        one["schema"]["enum"]
        for item in whole["paths"].values()
        for one in item.get("get", {}).get("parameters", ())
        if "enum" in one["schema"]
    ]
    assert kinds == [list(SOURCES)] * 2
    schemas = whole["components"]["schemas"]
    assert schemas["BatchRequest"]["properties"]["statements"]["maxItems"] == BATCH
    assert schemas["StatementRequest"]["properties"]["statement"]["maxLength"] == 77
    assert (schemas["Name"]["maxLength"], "Zulu" in schemas["TimeZone"]["enum"]) == (7, True)
    assert "/run-statement" not in document(Settings())["paths"]
