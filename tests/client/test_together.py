"""Batches of statements, with scripted servers that announce them or do not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest

from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.transport import Response as HttpResponse
from sqlshell.client.http.transport import Transport
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.statements.client import UnreadOutcome
from sqlshell.client.statements.pipeline import Pipeline
from sqlshell.client.statements.polling import Observer, StatementsClient, Submission
from sqlshell.client.target import parse
from sqlshell.context import SessionContext
from sqlshell.errors import ShellError, StatementError
from sqlshell.result import Rows
from tests.client.observed import Observed
from tests.client.test_statements import ID, Scripted, scripted

Response = dict[str, Any]


def one(number: int, state: str = "00000", rows: Rows | None = None, **more: Any) -> Response:
    """The answer about a statement."""
    columns = [] if rows is None else [{"name": "n", "type": "INTEGER"}]
    metadata = {"encoding": "json", "columns": columns, "partitionInfo": [{"rowCount": len(rows or [])}]}
    if state == "03000":
        return {"sqlState": state, "statementID": uuid(number), "createdOn": 1} | more
    return {
        "sqlState": state,
        "statementID": uuid(number),
        "createdOn": 1,
        "metadata": metadata,
        "data": rows or [],
    } | more


def uuid(number: int) -> str:
    return f"{ID[:-4]}{number:04}"


def batch(*statements: Response, state: str = "00000") -> tuple[int, Response]:
    head = {"sqlState": state, "statementID": uuid(1), "createdOn": 1, "statements": list(statements)}
    return 202 if state == "03000" else 200, head


async def taken(
    state: Scripted,
    sqls: Sequence[str],
    *,
    stop: bool = True,
    reads: bool = False,
    observer: Observer | None = None,
    go_on: bool = False,
) -> tuple[list[Rows | str], list[UnreadOutcome], bool | None]:
    """Rows or error of each statement, what ran behind, and whether batches are on. The first is sent alone.

    With `go_on`, statements after any error are sent too, and no request is sent again.
    """
    told: list[Rows | str] = []
    async with AsyncExitStack() as stack:
        transport = Transport(parse(state.url), "token", network=NetworkOptions(retries=0) if go_on else None)
        stack.push_async_callback(transport.aclose)
        client = StatementsClient(transport, ResultFactory(transport))
        context = SessionContext(session_id="s")
        first, *rest = [Submission(sql, repeatable=reads) for sql in sqls]

        async def take(results: Any) -> None:
            async for result in results:
                told.append([row async for item in result.batches for row in item.rows])

        await take(client.run(first, context))
        sent = client.begin_batch(rest, stop=stop)
        for submission in rest:
            try:
                await take((sent or client).run(submission, context, observer))
            except ShellError as error:
                told.append(f"{error.where.sql_state} {error.message} | {error.hint}")
                if not go_on and (stop or not isinstance(error, StatementError)):
                    break
        behind = await sent.aclose(context) if sent is not None else []
        return told, behind, client.supports_batches


def asked(state: Scripted) -> list[tuple[str, Any]]:
    """What the server was asked: look-ups as paths, submissions as their statements."""
    found: list[tuple[str, Any]] = []
    for method, path, _, body in state.asked:
        if method == "GET":
            found.append((method, path.partition("?")[2]))
            continue
        text = body[body.index(b"{") : body.rindex(b"}") + 1]
        request = json.loads(text)
        found.append((method, request.get("statements") or request["statement"]))
    return found


def test_a_service_that_does_not_announce_batches_is_sent_none() -> None:
    with scripted((200, one(1)), (200, one(2)), (200, one(3))) as state:
        told, _, on = asyncio.run(taken(state, ["a", "b", "c"]))
    assert asked(state) == [("POST", "a"), ("POST", "b"), ("POST", "c")]
    assert (told, on) == ([[], [], []], None)


def test_one_request_for_all_behind_the_first() -> None:
    with scripted((200, one(1)), batch(one(2), one(3, rows=[["7"]])), extensions="other, batch") as state:
        told, behind, _ = asyncio.run(taken(state, ["a", "b", "c"]))
    assert asked(state) == [("POST", "a"), ("POST", ["b", "c"])]
    assert (told, behind) == ([[], [], [["7"]]], [])
    request = json.loads(state.asked[1][3])
    assert request["onError"] == "stop"
    assert request["parameters"]["sessionID"] == "s"


def test_results_come_while_the_rest_still_runs() -> None:
    seen: list[str] = []
    answers = [
        (200, one(1)),
        batch(one(2), one(3, "03000"), state="03000"),
        batch(one(3, "03000"), state="03000"),
        batch(one(3), one(4, "03000"), state="03000"),
        batch(one(4, rows=[["x"]])),
    ]
    with scripted(*answers, extensions="batch") as state:
        told, _, _ = asyncio.run(taken(state, ["a", "b", "c", "d"], observer=Observer(statement_id=seen.append)))
    assert told == [[], [], [], [["x"]]]
    assert [what.rpartition("batch=")[2] for method, what in asked(state) if method == "GET"] == ["1", "1", "2"]
    assert list(dict.fromkeys(seen)) == [uuid(2), uuid(3), uuid(4)]


def test_nothing_is_sent_behind_a_failure_that_stops() -> None:
    failed = one(3, "42601", message="syntax error")
    with scripted((200, one(1)), batch(one(2), failed, state="42601"), extensions="batch") as state:
        told, behind, _ = asyncio.run(taken(state, ["a", "b", "c", "d", "e"]))
    assert told == [[], [], "42601 syntax error | "]
    assert len(state.asked) == 2
    assert behind == []


def test_what_did_not_run_is_sent_again_and_only_that() -> None:
    """The service may end a batch anywhere: behind a large result, or where something is not ready."""
    answers = [
        (200, one(1)),
        batch(one(2)),
        batch(one(3), one(4, "42P01", message="no such table"), one(5)),
    ]
    with scripted(*answers, extensions="batch") as state:
        told, _, _ = asyncio.run(taken(state, ["a", "b", "c", "d", "e"], stop=False))
    assert asked(state) == [("POST", "a"), ("POST", ["b", "c", "d", "e"]), ("POST", ["c", "d", "e"])]
    assert told == [[], [], [], "42P01 no such table | ", []]


def test_what_is_not_ready_is_tried_again_alone() -> None:
    answers = [
        (200, one(1)),
        batch(one(2, "3E004", message="the pool is stopped"), state="3E004"),
        (200, one(3)),
        (200, one(4)),
    ]
    with scripted(*answers, extensions="batch") as state:
        told, _, _ = asyncio.run(taken(state, ["a", "b", "c"]))
    assert asked(state) == [("POST", "a"), ("POST", ["b", "c"]), ("POST", "b"), ("POST", "c")]
    assert told == [[], [], []]


@pytest.mark.parametrize("status", [400, 413, 415])
def test_a_service_that_refuses_a_batch_is_sent_one_after_another(status: int) -> None:
    answers = [(200, one(1)), (status, {"message": "no"}), (200, one(2)), (200, one(3)), (200, one(4))]
    with scripted(*answers, extensions="batch") as state:
        told, _, on = asyncio.run(taken(state, ["a", "b", "c", "d"]))
    assert asked(state)[1:] == [("POST", ["b", "c", "d"]), ("POST", "b"), ("POST", "c"), ("POST", "d")]
    assert (told, on) == ([[], [], [], []], False)


def test_a_service_that_runs_none_of_a_batch_is_asked_for_one() -> None:
    with scripted((200, one(1)), batch(), (200, one(2)), (200, one(3)), extensions="batch") as state:
        told, _, _ = asyncio.run(taken(state, ["a", "b", "c"]))
    assert asked(state) == [("POST", "a"), ("POST", ["b", "c"]), ("POST", "b"), ("POST", "c")]
    assert told == [[], [], []]


@pytest.mark.parametrize("broken", [(0, "break"), (502, {"message": "bad gateway"}), (500, {"message": "oops"})])
def test_a_batch_that_writes_is_never_sent_twice(broken: tuple[int, Any]) -> None:
    with scripted((200, one(1)), broken, extensions="batch") as state:
        told, _, _ = asyncio.run(taken(state, ["a", "insert", "b", "c"]))
    assert len(state.asked) == 2
    assert "the statement and the 2 sent after it may have run" in str(told[-1])


def test_a_batch_that_only_reads_is_sent_again() -> None:
    with scripted((200, one(1)), (503, {}), batch(one(2), one(3)), extensions="batch") as state:
        told, _, _ = asyncio.run(taken(state, ["a", "b", "c"], reads=True))
    assert asked(state)[1:] == [("POST", ["b", "c"]), ("POST", ["b", "c"])]
    assert told == [[], [], []]


def test_a_batch_that_is_lost_while_it_runs_says_so() -> None:
    """The service was started anew: what became of the rest nobody knows."""
    answers = [(200, one(1)), batch(one(2), one(3, "03000"), state="03000"), (404, {"message": "unknown"})]
    with scripted(*answers, extensions="batch") as state:
        told, behind, _ = asyncio.run(taken(state, ["a", "b", "c", "d"]))
    assert told[:2] == [[], []]
    assert "the statement and the 1 sent after it may have run" in str(told[2])
    assert [method for method, _ in asked(state)].count("POST") == 2
    assert behind == []


UNKNOWN = " the outcome of the statement is unknown: the request that contained it failed"


@pytest.mark.parametrize("broken", [(0, "break"), (503, {"message": "busy"}), (200, b"[1"), (404, {"message": "no"})])
@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_a_script_goes_on_after_a_batch_that_was_lost(before: int, broken: tuple[int, Any]) -> None:
    """The request after `before` of its results is lost: what may have run is not sent again, and the rest is sent."""
    partial = [one(number + 2) for number in range(before)]
    answers = [batch(*partial, one(before + 2, "03000"), state="03000")] if before else []
    with scripted((200, one(1)), *answers, broken, (200, one(8)), (200, one(9)), extensions="batch") as state:
        texts = ["a", *"bcdef"]
        told, behind, _ = asyncio.run(taken(state, texts, stop=False, go_on=True))
    sent = [what for method, what in asked(state) if method == "POST"]
    assert told[: before + 1] == [[]] * (before + 1)
    assert isinstance(told[before + 1], str)
    assert len(told) == len(texts) and behind == []
    refused = broken[0] == 404 and not before
    after = told[before + 2 :]
    if refused:
        assert sent[:3] == ["a", list("bcdef"), list("cdef")]
    else:
        assert sent == ["a", list("bcdef")]
        assert [str(item).partition(" | ")[0] for item in after] == [UNKNOWN] * (4 - before)
        assert all("may have run" in str(item) for item in after)


def test_a_batch_that_the_service_says_was_not_run_is_sent_again_without_its_first_statement() -> None:
    answers = [(200, one(1)), (503, {"message": "no"}), batch(one(3), one(4))]
    with scripted(*answers, extensions="batch", headers={"Sqlshell-Not-Run": "true"}) as state:
        told, _, _ = asyncio.run(taken(state, ["a", "b", "c", "d"], stop=False, go_on=True))
    assert asked(state)[1:] == [("POST", ["b", "c", "d"]), ("POST", ["c", "d"])]
    assert "may have run" not in str(told[1])
    assert told[2:] == [[], []]


@pytest.mark.parametrize(
    "answer",
    [
        batch(one(2), one(3), one(4)),
        batch(one(2, "03000"), one(3), state="03000"),
        batch(one(2, "03000")),
        (200, {"sqlState": "00000", "statementID": ID}),
        (200, b"[1"),
        (200, {"sqlState": "00000", "statementID": ID, "statements": [{"data": 5}]}),
        (200, {"sqlState": "00000", "statementID": ID, "statements": [None]}),
    ],
)
def test_answers_that_cannot_be_right(answer: tuple[int, Any]) -> None:
    with scripted((200, one(1)), answer, extensions="batch") as state:
        told, _, _ = asyncio.run(taken(state, ["a", "b", "c"]))
    assert len(state.asked) == 2
    assert len(told) == 2
    assert "may have run" in str(told[-1])


async def closed(state: Scripted, texts: Sequence[str]) -> list[UnreadOutcome]:
    """Close a batch of which only the first result was read; the outcomes that were not."""
    transport = Transport(parse(state.url), "token")
    client = StatementsClient(transport, ResultFactory(transport))
    context = SessionContext()
    asked = [Submission(text) for text in texts]
    try:
        async for _ in client.run(asked[0], context):
            pass
        sent = client.begin_batch(asked[1:], stop=True)
        assert sent is not None
        async for _ in sent.run(asked[1], context):
            pass
        return await sent.aclose(context)
    finally:
        await transport.aclose()


def test_what_ran_behind_is_told_when_nobody_waits_any_more() -> None:
    answers = [
        (200, one(1)),
        batch(one(2), one(3, message="INSERT 1"), one(4, "03000"), state="03000"),
        (200, one(9)),
        batch(one(4, "57000", message="interrupted"), state="57000"),
    ]

    with scripted(*answers, extensions="batch") as state:
        behind = asyncio.run(closed(state, "abcde"))
    assert asked(state)[2] == ("POST", f"TERMINATE QUERY {uuid(4)}")
    assert behind == [
        UnreadOutcome("c", uuid(3), "00000", "INSERT 1"),
        UnreadOutcome("d", uuid(4), "57000", "interrupted"),
    ]


def test_a_batch_that_does_not_end_is_looked_up_with_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlshell.client.statements.pipeline.ENDING_SECONDS", 0.4)
    monkeypatch.setattr("sqlshell.client.statements.pipeline.LOOK_SECONDS", 0.3)
    running = batch(one(2), one(3, "03000"), state="03000")

    lookups = [(200, one(9)), batch(one(3, "03000"), state="03000")] * 1000
    with scripted((200, one(1)), running, *lookups, extensions="batch") as state:
        assert asyncio.run(closed(state, "abc")) == []
    assert len(state.asked) <= 6


def test_statements_with_a_time_to_wait_are_sent_alone() -> None:
    client = StatementsClient(None, None, wait_limit=5.0)  # type: ignore[arg-type]
    assert client.begin_batch([Submission("a"), Submission("b")], stop=True) is None


async def taken_first(state: Scripted) -> tuple[int, list[UnreadOutcome]]:
    """How many requests there were when the first result of four in two batches was taken, and what ran behind it."""
    transport = Transport(parse(state.url), "token")
    client = StatementsClient(transport, ResultFactory(transport))
    context = SessionContext(database="d")
    asked = [Submission(text) for text in ("a", "b", "c", "d", "e")]
    try:
        async for _ in client.run(asked[0], context):
            pass
        sent = client.begin_batch(asked[1:], stop=True)
        assert sent is not None
        async for _ in sent.run(asked[1], context):
            pass
        # Nothing is sent any more, and what was sent early is waited for.
        behind = await sent.aclose(context)
        return len(state.asked), behind
    finally:
        await transport.aclose()


def test_the_next_batch_is_sent_while_results_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlshell.client.statements.pipeline.MOST", 2)
    answers = [(200, one(1)), batch(one(2), one(3)), batch(one(4), one(5, "42601"), state="42601")]
    with scripted(*answers, extensions="batch") as state:
        number, behind = asyncio.run(taken_first(state))
    assert asked(state) == [("POST", "a"), ("POST", ["b", "c"]), ("POST", ["d", "e"])]
    assert number == 3
    assert [(item.sql, item.sql_state) for item in behind] == [("c", "00000"), ("d", "00000"), ("e", "42601")]


@pytest.mark.parametrize(
    "second",
    [
        one(3, "42601"),
        one(3, metadata={"context": {"databaseName": "other"}}),
        one(3, metadata={"columns": [{"name": "n"}], "partitionInfo": [{"rowCount": 5}]}, data=None),
        one(3, metadata={"columns": [], "dataplaneRequest": {"requestType": "streaming"}}),
    ],
)
def test_no_batch_is_sent_early_where_it_may_not_run(monkeypatch: pytest.MonkeyPatch, second: Response) -> None:
    """Behind a failure, in a context that changed, behind a large result and behind one without an end."""
    monkeypatch.setattr("sqlshell.client.statements.pipeline.MOST", 2)
    second = {name: value for name, value in second.items() if value is not None}
    with scripted((200, one(1)), batch(one(2), second), extensions="batch") as state:
        number, behind = asyncio.run(taken_first(state))
    assert number == 2
    assert [item.sql for item in behind] == ["c"]


def test_a_failed_batch_that_was_sent_early_is_told_where_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlshell.client.statements.pipeline.MOST", 2)
    answers = [(200, one(1)), batch(one(2), one(3)), (0, "break")]
    with scripted(*answers, extensions="batch") as state:
        told, _, _ = asyncio.run(taken(state, ["a", "b", "c", "d", "e"]))
    assert told[:3] == [[], [], []]
    assert "the statement and the 1 sent after it may have run" in str(told[3])


def test_a_batch_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlshell.client.statements.pipeline.SIZE", 2)
    answers = [(200, one(1)), batch(one(2), one(3)), batch(one(4), one(5)), (200, one(6)), (200, one(7))]
    with scripted(*answers, extensions="batch") as state:
        told, _, _ = asyncio.run(taken(state, ["a", "b", "c", "d", "e", "ffff", "g"]))
    assert asked(state) == [
        ("POST", "a"),
        ("POST", ["b", "c"]),
        ("POST", ["d", "e"]),
        ("POST", "ffff"),
        ("POST", "g"),
    ]
    assert told == [[]] * 7


def test_what_is_told_of_the_statements_of_a_batch() -> None:
    observed = Observed()
    failed = one(3, "42601", message="no", metadata={"context": {"databaseName": "there"}})
    answers = [
        (200, one(1)),
        batch(one(2, "03000", message="half", progress=0.5), state="03000"),
        batch(one(2, metadata={"context": {"databaseName": "here"}}), failed, state="42601"),
    ]
    with scripted(*answers, extensions="batch") as state:
        told, _, _ = asyncio.run(taken(state, ["a", "b", "c"], observer=observed.observer))
    assert told == [[], [], "42601 no | "]
    assert observed.all == [uuid(2), (0.5, "half"), uuid(2), "here", uuid(3), "there"]


def test_a_batch_whose_outcome_is_unknown_is_not_asked_about_again() -> None:
    running = batch(one(2), one(3, "03000"), state="03000")
    with scripted((200, one(1)), running, (404, {"message": "unknown"}), extensions="batch") as state:
        asyncio.run(taken(state, ["a", "b", "c", "d"]))
    assert [method for method, _ in asked(state)] == ["POST", "POST", "GET"]


def test_results_without_a_context_do_not_send_the_next_batch_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlshell.client.statements.pipeline.MOST", 2)
    bare = {"sqlState": "00000", "statementID": uuid(3), "createdOn": 1}
    with scripted((200, one(1)), batch(one(2), bare), extensions="batch") as state:
        number, behind = asyncio.run(taken_first(state))
    assert (number, [item.sql for item in behind]) == (2, ["c"])


class Sender:
    """Answers batches without a network; `events` is what happened."""

    supports_batches = True
    in_process = False
    target = parse("http://nowhere")

    def __init__(self) -> None:
        self.events: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def call(self, method: str, path: str, read: Any, *, content: bytes, **_: object) -> bool:
        given = json.loads(content)["statements"]
        self.events.append(f"sent {' '.join(given)}")
        if len(self.events) > 1 and not self.gate.is_set():
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.events.append("canceled")
                raise
        status, body = batch(*(one(number) for number, _ in enumerate(given, 2)))
        return bool(read(HttpResponse(status, {}, json.dumps(body).encode())))

    async def result(self, step: Any, context: SessionContext, observer: Observer) -> str:
        self.events.append("result")
        return "result"


@pytest.mark.parametrize("patient", [True, False])
def test_the_next_batch_has_left_before_a_result_is_taken(monkeypatch: pytest.MonkeyPatch, patient: bool) -> None:
    monkeypatch.setattr("sqlshell.client.statements.pipeline.MOST", 2)

    async def work() -> tuple[list[str], list[UnreadOutcome]]:
        sender = Sender()
        given = [Submission(text) for text in "abcd"]
        sent = Pipeline(sender, sender, sender.result, given, stop=True)  # type: ignore[arg-type]
        sender.gate.clear()
        assert [str(result) async for result in sent.run(given[0], SessionContext())] == ["result"]
        assert sender.events == ["sent a b", "sent c d", "result"]
        assert sent.unread == 3
        if patient:
            sender.gate.set()
        behind = await sent.aclose(SessionContext(), patient=patient)
        await asyncio.sleep(0)
        return list(sender.events), behind

    events, behind = asyncio.run(work())
    assert [item.sql for item in behind] == (["b", "c", "d"] if patient else ["b"])
    assert events[3:] == ([] if patient else ["canceled"])
