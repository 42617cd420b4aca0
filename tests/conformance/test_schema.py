"""The service against its own OpenAPI document, with all checks of schemathesis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

from tests.conftest import Served, serve, stop

if TYPE_CHECKING:
    import schemathesis

pytestmark = pytest.mark.conformance


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = serve(tmp_path_factory.mktemp("schema"), "--legacy")
    yield running
    stop(running)


OPERATIONS = [
    "POST /v2/statements",
    "GET /v2/statements/{statementID}",
    "GET /v2/version",
    "GET /v2/download/{resourceType}/{organizationID}/{resourceName}",
    "POST /run-statement",
    "GET /copy/{resource_type}/{org_id}/{resource_name}",
    "GET /version",
    "GET /openapi.json",
]
"""All but the stream's, which is a websocket."""


@pytest.mark.parametrize("label", OPERATIONS)
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_every_answer_is_as_the_document_says(described: Served, label: str, mode: str) -> None:
    # Its import takes seconds, and other runs of pytest read this file too.
    import schemathesis
    from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

    schema = schemathesis.openapi.from_dict(httpx.get(f"{described.url}/openapi.json", trust_env=False).json())
    method, _, path = label.partition(" ")
    operation = schema[path][method]
    tried: list[int] = []

    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
    @settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
    def check(case: schemathesis.Case[Any]) -> None:
        answer = case.call(base_url=described.url, headers={"Authorization": f"Bearer {described.token}"})
        tried.append(answer.status_code)
        left_out: list[Any] = []
        if path == "/run-statement":
            # The legacy interface has no sqlState: a statement that fails is a 400, however well the form was made.
            left_out.append(positive_data_acceptance)
        if case.media_type == "multipart/form-data":
            # In a form a list of one file and a file, or a number and its text, are the same bytes.
            left_out.append(negative_data_rejection)
            # The schema of a form's parts cannot say that a batch has no attachments.
            request = case.body.get("request") if isinstance(case.body, dict) else None
            if isinstance(request, dict) and "statements" in request:
                left_out.append(positive_data_acceptance)
        case.validate_response(answer, excluded_checks=left_out)

    try:
        check()
    except Unsatisfiable:
        assert mode == "negative"
    assert not [status for status in tried if status >= 500]


def test_the_document_is_open_and_whole(described: Served) -> None:
    found = httpx.get(f"{described.url}/openapi.json", trust_env=False).json()
    assert found["openapi"] == "3.1.0"
    assert set(found["paths"]) == {
        "/v2/statements",
        "/v2/statements/{statementID}",
        "/v2/version",
        "/v2/download/{resourceType}/{organizationID}/{resourceName}",
        "/v2/streams/{statementID}",
        "/openapi.json",
        "/run-statement",
        "/copy/{resource_type}/{org_id}/{resource_name}",
        "/version",
    }
