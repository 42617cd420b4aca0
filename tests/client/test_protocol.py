"""A table of statuses and bodies, and what the client makes of each response."""

from __future__ import annotations

import json
from email.parser import BytesParser
from typing import Any

import pytest

from sqlshell.client.http.transport import Transport
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.statements import protocol
from sqlshell.client.statements.client import Observer, Submission
from sqlshell.client.statements.polling import StatementsClient
from sqlshell.client.statements.protocol import (
    Done,
    Fail,
    Follow,
    Poll,
    columns_of,
    poll_wait,
    read_batch,
    read_lookup,
    read_submission,
)
from sqlshell.client.target import parse
from sqlshell.context import SessionContext
from sqlshell.errors import (
    Exit,
    NotAuthenticated,
    ProtocolError,
    ServiceError,
    ShellError,
    StatementError,
    UnknownStatement,
    WaitTimeout,
)
from sqlshell.interface.models import StatementHead

BASE = "https://sql.example"
ID = "0f6b3f7e-0000-4000-8000-000000000001"
OTHER = "0f6b3f7e-0000-4000-8000-000000000002"


def body(**fields: object) -> bytes:
    return json.dumps({"sqlState": "00000", "statementID": ID, "createdOn": 1} | fields).encode()


def test_finished_answer_is_done() -> None:
    step = read_submission(200, {}, body(data=[["1"]]), BASE)
    assert isinstance(step, Done)
    assert step.head.statement_id == ID


@pytest.mark.parametrize(("status", "state"), [(202, "03000"), (200, "03000"), (202, None), (202, "00000")])
def test_running_answers_are_polled(status: int, state: str | None) -> None:
    step = read_submission(status, {}, body(sqlState=state), BASE)
    assert isinstance(step, Poll)
    assert step.statement_id == ID


def test_a_lookup_without_an_id_keeps_the_one_that_was_asked_for() -> None:
    step = read_lookup(202, {}, b'{"sqlState":"03000"}', BASE, ID)
    assert isinstance(step, Poll)
    assert step.statement_id == ID


@pytest.mark.parametrize(
    "name", ["x; touch f", "$(touch f)", "`x`", "a'b", "../x", "//host/x", "a\nb", "-x", "x" * 129]
)
def test_an_id_that_could_act_where_it_is_pasted_is_refused(name: str) -> None:
    answers: list[dict[str, object]] = [{"statementID": name, "sqlState": "03000"}, {"statementIDs": [ID, name]}]
    for fields in answers:
        step = read_submission(200, {}, body(**fields), BASE)
        assert isinstance(step, Fail)
        assert "invalid statementID" in step.error.message
    found = read_batch(202, {}, body(statementID=name, statements=[]), BASE, 1)
    assert isinstance(found, Fail)


def test_running_without_an_id_is_the_services_fault() -> None:
    step = read_submission(202, {}, b'{"sqlState":"03000"}', BASE)
    assert isinstance(step, Fail)
    assert isinstance(step.error, ProtocolError)


def test_several_statements_are_followed_in_order() -> None:
    step = read_submission(200, {}, body(statementIDs=[ID, OTHER]), BASE)
    assert isinstance(step, Follow)
    assert step.statement_ids == (ID, OTHER)


def test_one_statement_id_in_the_list_is_no_multi_statement() -> None:
    assert isinstance(read_submission(200, {}, body(statementIDs=[ID]), BASE), Done)


@pytest.mark.parametrize("state", ["00000", "01000", "01ABC", "02000"])
def test_warnings_and_no_data_are_not_failures(state: str) -> None:
    assert isinstance(read_submission(200, {}, body(sqlState=state), BASE), Done)


@pytest.mark.parametrize("state", ["42601", "3D002", "XX000", "ZZ999", "42P016"])
def test_any_other_class_is_a_failed_statement(state: str) -> None:
    step = read_submission(200, {}, body(sqlState=state, message="no"), BASE)
    assert isinstance(step, Fail)
    assert isinstance(step.error, StatementError)
    assert (step.error.where.sql_state, step.error.where.statement_id) == (state, ID)


STATUSES = [
    (400, ServiceError, Exit.SERVICE, "refused"),
    (401, NotAuthenticated, Exit.SERVICE, "token"),
    (403, NotAuthenticated, Exit.SERVICE, "denied"),
    (404, ServiceError, Exit.SERVICE, "no statement-execution service"),
    (408, WaitTimeout, Exit.TIMEOUT, "reported a timeout"),
    (500, ServiceError, Exit.SERVICE, "responded with 500"),
    (503, ServiceError, Exit.SERVICE, "busy or unavailable"),
]


@pytest.mark.parametrize(("status", "kind", "code", "words"), STATUSES)
@pytest.mark.parametrize(
    "answer",
    [
        b'{"message":"because","traceID":"t-1"}',
        b"",
        b"<html><title>because</title></html>",
        b'{"message":{"a":1}}',
        b"\xff",
    ],
)
def test_each_status_is_one_clear_message(
    status: int, kind: type[Exception], code: Exit, words: str, answer: bytes
) -> None:
    step = read_submission(status, {}, answer, BASE)
    assert isinstance(step, Fail)
    assert isinstance(step.error, kind)
    assert step.error.exit == code
    assert words in step.error.message
    assert "\n" not in step.error.message
    if b"because" in answer:
        assert "because" in step.error.message


def test_an_unknown_statement_is_named() -> None:
    step = read_lookup(404, {}, b"", BASE, ID)
    assert isinstance(step, Fail) and isinstance(step.error, UnknownStatement)
    assert ID in step.error.message


def test_a_redirect_is_told_and_not_followed() -> None:
    step = read_submission(302, {"location": "https://elsewhere"}, b"", BASE)
    assert isinstance(step, Fail)
    assert "https://elsewhere" in step.error.message


@pytest.mark.parametrize("answer", [b"", b"<html></html>", b"[]", b'{"sqlState": 5}', b"{", b'{"statementID":"x"}'])
def test_an_answer_that_is_not_one_is_a_protocol_error(answer: bytes) -> None:
    step = read_submission(200, {}, answer, BASE)
    assert isinstance(step, Fail)
    assert isinstance(step.error, ProtocolError)


def test_nulls_and_missing_fields_are_normal() -> None:
    answer = (
        b'{"sqlState":"00000","statementID":null,"createdOn":null,"metadata":{"columns":null,"context":{}},"data":null}'
    )
    step = read_submission(200, {}, answer, BASE)
    assert isinstance(step, Done)
    assert step.head.metadata is not None
    assert columns_of(step.head, 2)[1].name == "column2"


def test_hints_come_off_the_type() -> None:
    answer = body(metadata={"columns": [{"name": "a", "type": "VARCHAR;nowrap"}, {"type": None}]})
    step = read_submission(200, {}, answer, BASE)
    assert isinstance(step, Done)
    first, second = columns_of(step.head, 0)
    assert (first.name, first.type, first.display_hint) == ("a", "VARCHAR", "nowrap")
    assert (second.name, second.type) == ("column2", "VARCHAR")


def test_no_columns_at_all_are_made_of_the_width() -> None:
    assert [column.name for column in columns_of(StatementHead(), 3)] == ["column1", "column2", "column3"]


def test_polling_waits_a_tenth_of_the_time_elapsed() -> None:
    assert [poll_wait(seconds) for seconds in (0, 0.05, 0.3, 5, 60)] == [0.003, 0.005, 0.03, 0.5, 1.0]


def test_the_request_is_a_multipart_part_of_json() -> None:
    context = SessionContext(database="d", timezone="Europe/Paris", session_id="s")
    transport = Transport(parse("http://127.0.0.1:9"), "")
    upload = StatementsClient(transport, ResultFactory(transport)).body(
        Submission("select 'ü'", row_limit=5), context, Observer()
    )
    content, content_type = b"".join(upload._all()), upload.content_type
    message = BytesParser().parsebytes(f"Content-Type: {content_type}\r\n\r\n".encode() + content)
    parts = list(message.walk())[1:]
    assert len(parts) == 1
    part = parts[0]
    assert part.get_param("name", header="Content-Disposition") == "request"
    assert part.get_content_type() == "application/json"
    assert json.loads(content.split(b"\r\n\r\n", 1)[1].rpartition(b"\r\n--")[0]) == {
        "statement": "select 'ü'",
        "database": "d",
        "parameters": {"timezone": "Europe/Paris", "sessionID": "s", "rowLimit": 5},
    }


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"message":"no","traceID":"t1"}', ("no", "t1")),
        (b'{"message":{"a":1}}', ('{"a": 1}', "")),
        (b'{"message":["x"],"traceID":7}', ('["x"]', "7")),
        (b'{"message":null}', ("", "")),
        (b'{"message":""}', ("", "")),
        (b"{}", ("", "")),
        (b"", ("", "")),
        (b"plain \n text", ("plain text", "")),
        (b"<html><title>Bad\n &amp; worse</title>", ("Bad & worse", "")),
        (b"<html>", ("an HTML page", "")),
    ],
)
def test_what_an_error_body_says(body: bytes, expected: tuple[str, str]) -> None:
    assert protocol.read_error({}, body) == expected


def test_a_lookup_of_several_statements_is_about_the_one_that_was_asked_for() -> None:
    step = read_lookup(200, {}, body(statementIDs=[ID, OTHER]), BASE, ID)
    assert isinstance(step, Done)
    assert step.head.statement_id == ID


@pytest.mark.parametrize(
    ("status", "words", "hint"),
    [
        (413, "too large", "smaller statements"),
        (421, "does not serve this host name", "--allow-host"),
        (429, "busy or unavailable (429)", "try again"),
        (302, "redirect without a location (302)", "not followed"),
        (418, "responded with 418", ""),
        (500, "responded with 500", "try again later"),
    ],
)
def test_statuses_that_a_proxy_may_send(status: int, words: str, hint: str) -> None:
    step = read_submission(status, {}, b"", BASE)
    assert isinstance(step, Fail)
    assert words in step.error.message
    assert hint in step.error.hint


@pytest.mark.parametrize("status", [307, 400, 401, 403, 404, 408, 413, 418, 421, 429, 500, 503])
def test_a_trace_id_is_told(status: int) -> None:
    step = read_submission(status, {}, b'{"message":"m","traceID":"t-7"}', BASE)
    assert isinstance(step, Fail)
    assert step.error.message.endswith("(traceID t-7)")


@pytest.mark.parametrize(
    ("status", "headers", "answer", "kind", "words"),
    [
        (404, {}, {}, UnknownStatement, "partition 3: "),
        (200, {}, {"sqlState": "42601", "message": "dropped"}, StatementError, "dropped"),
        (200, {}, {"sqlState": "57014"}, StatementError, "timed out"),
        (200, {"content-location": "x?partitionID=2"}, {"data": [["1"]]}, ProtocolError, "received partition 2"),
        (200, {}, {"statementID": OTHER, "data": [["1"]]}, ProtocolError, OTHER),
        (200, {}, {"data": []}, ProtocolError, "has 0 rows; expected 1"),
        (200, {}, {"data": [["1"], ["2"]]}, ProtocolError, "has 2 rows; expected 1"),
        (200, {}, {"data": 5}, ProtocolError, "partition 3 is not a result"),
    ],
)
def test_a_partition_that_is_not_the_one_requested(
    status: int, headers: dict[str, str], answer: dict[str, object], kind: type[ShellError], words: str
) -> None:
    with pytest.raises(kind) as raised:
        protocol.read_partition(status, headers, json.dumps(answer).encode(), BASE, ID, 3, 1)
    assert words in raised.value.message


@pytest.mark.parametrize(
    ("status", "headers", "answer", "whole"),
    [
        (200, {}, {"data": [["1"]]}, True),
        (200, {"content-location": "x?partitionID=3"}, {"data": [["1"]]}, True),
        (200, {}, {"statementID": ID.upper(), "sqlState": "00000", "data": [["1"]]}, True),
        (200, {}, {"sqlState": "03000"}, False),
        (202, {}, {"sqlState": "03000"}, False),
    ],
)
def test_a_partition_is_there_or_still_being_prepared(
    status: int, headers: dict[str, str], answer: dict[str, object], whole: bool
) -> None:
    assert protocol.read_partition(status, headers, json.dumps(answer).encode(), BASE, ID, 3, 1) is whole


def test_rows_are_counted_in_a_valid_response_only() -> None:
    assert protocol.count_rows(b'{"data": [["1"], ["2"]]}') == 2
    assert protocol.count_rows(b"{}") == 0
    with pytest.raises(ProtocolError, match="invalid JSON"):
        protocol.count_rows(b"{")


@pytest.mark.parametrize(
    ("given", "same"),
    [
        ((None, 1), True),
        ((1, 1), True),
        ((1, 2), False),
        (([], [1]), True),
        (([1], []), True),
        (([1], [1, 2]), False),
        (([1, 2], [1, 3]), False),
        (([("a", None)], [("a", "INTEGER")]), True),
        (([("a", "TEXT")], [("a", "INTEGER")]), False),
    ],
)
def test_two_descriptions_agree_where_both_say_something(given: tuple[Any, Any], same: bool) -> None:
    assert protocol._same(*given) is same
    assert protocol._same(*reversed(given)) is same


@pytest.mark.parametrize(
    ("header", "queued"),
    [("queue;dur=250, run;dur=1500", 0.25), ("run;dur=1500", None), ("", None), ("queue;dur=x, run;dur=1", None)],
)
def test_the_time_in_the_queue_is_known_if_both_times_are_told(header: str, queued: float | None) -> None:
    found = protocol.timing_of({"server-timing": header})
    assert (found and found.queued) == queued
    assert protocol.timing_of({}) is None
