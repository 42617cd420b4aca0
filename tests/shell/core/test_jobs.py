"""\\wait, \\cancel, \\fetch and \\jobs on statements that this shell and others ran."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest

from sqlshell.client.statements.client import Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.errors import Exit, ServiceError, ShellError, UnknownStatement
from sqlshell.interface import sqlstate
from sqlshell.result import Result
from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure


class Asked(ScriptedClient):
    """Says these states of statements, one after another; an error is raised."""

    def __init__(self, *states: tuple[str, str] | ShellError, **answers: Answer) -> None:
        super().__init__(answers)
        self.states = list(states)
        self.asked: list[str] = []
        self.refuses: ShellError | None = None

    async def state(self, statement_id: str, context: SessionContext) -> tuple[str, str]:
        self.asked.append(statement_id)
        found = self.states.pop(0)
        if isinstance(found, ShellError):
            raise found
        return found

    async def terminate(self, query_id: str, context: SessionContext) -> None:
        if self.refuses is not None:
            raise self.refuses
        await super().terminate(query_id, context)


def after(client: ScriptedClient, script: str, *, interactive: bool = False) -> Core:
    """A core that has run the script, and goes on after failures."""

    async def work() -> Core:
        core = Core(client, interactive=interactive)
        core.session.options.on_error = "continue"
        await core.run(script)
        await core.shell.finish()
        return core

    return asyncio.run(work())


@pytest.mark.parametrize(
    ("state", "message", "said"),
    [
        ("57000", "", "id1 was canceled"),
        ("03000", "", "cancellation requested; id1 is still running"),
        ("00000", "INSERT 5", "id1 had already finished: 00000 (done) INSERT 5"),
        ("00000", "", "id1 had already finished: 00000 (done)"),
        ("ZZZZZ", "odd", "id1 had already finished: ZZZZZ odd"),
    ],
)
def test_a_cancellation_says_what_became_of_the_statement(state: str, message: str, said: str) -> None:
    core = after(Asked((state, message)), "select 1;\n\\cancel\n")
    assert core.err.splitlines()[-1] == said
    assert core.client.terminated == ["id1"]
    assert core.shell.exit == Exit.DONE
    assert core.events[-1] == f"ended id1 {state} None"


def test_a_cancellation_that_the_service_refuses() -> None:
    client = Asked()
    client.refuses = failure("42501", "it is not yours")
    core = after(client, "select 1;\n\\cancel id1\n")
    assert "error[42501]: the service did not cancel id1: it is not yours\n" in core.err
    assert core.shell.exit == Exit.STATEMENT
    assert client.asked == []


def test_the_end_of_a_statement_is_waited_for() -> None:
    client = Asked(("03000", ""), ("03000", ""), ("00000", "done"))
    core = after(client, "select 1;\n\\wait id1\n")
    assert client.asked == ["id1"] * 3
    assert core.err == "id1 has finished; \\fetch id1 shows its result\n"
    assert core.events[-1] == "ended id1 00000 None"


@pytest.mark.parametrize(("message", "said"), [("no such table", "no such table"), ("", "the statement failed")])
def test_a_statement_that_is_waited_for_fails(message: str, said: str) -> None:
    core = after(Asked(("42P01", message)), "select 1;\n\\wait id1\n")
    assert f"error[42P01]: {said}\n" in core.err
    assert core.shell.exit == Exit.STATEMENT


def test_a_wait_ends_with_its_limit() -> None:
    client = Asked(("03000", ""))
    client.wait_limit = 0
    core = after(client, "select 1;\n\\wait id1\n")
    assert "the statement has not ended after 0.0 s" in core.err
    assert "the statement is still running; \\wait id1 waits longer, \\cancel id1 stops it" in core.err
    assert core.shell.exit == Exit.TIMEOUT


@pytest.mark.parametrize("interactive", [False, True])
def test_the_failure_of_a_background_statement_is_that_of_a_script_that_waits(interactive: bool) -> None:
    client = Asked(**{"select 1": Answer(rows=(), error=failure("22012", "division by zero"))})
    core = after(client, "select 1;&\nselect 2;\n\\wait\n", interactive=interactive)
    assert "[1] failed (22012): select 1: division by zero" in core.err
    assert ("a background statement failed" in core.err) == (not interactive)
    assert core.shell.exit == (Exit.DONE if interactive else Exit.STATEMENT)


def test_a_canceled_background_statement_is_no_failed_one() -> None:
    core = after(Asked(**{"select 1": Answer(rows=(), error=failure("57000", "ended"))}), "select 1;&\n\\wait\n")
    assert "[1] was canceled (57000): select 1: ended" in core.err


def test_a_statement_is_named_by_its_job_or_by_the_beginning_of_its_id() -> None:
    client = Asked(*[("00000", "")] * 9)
    core = after(
        client, "select 1;\nselect 2;&\n\\wait\n\\wait 1\n\\wait [1]\n\\wait ID1\n\\wait id\n\\wait 7\n\\wait [7]\n"
    )
    assert client.asked == ["id2", "id2", "id1"]
    assert (
        "error: several statement IDs begin with id: id1, id2\nhelp: use more characters of the ID\n" in core.err
        or ("error: several statement IDs begin with id: id2, id1\nhelp: use more characters of the ID\n" in core.err)
    )
    assert "error: no statement ID begins with '7'" in core.err
    assert "error: no background statement [7]\nhelp: \\jobs lists them\n" in core.err


@pytest.mark.parametrize("error", [None, ServiceError("the service is down")])
def test_a_statement_that_was_not_sent_cannot_be_waited_for(error: ServiceError | None) -> None:
    class Unsent(Asked):
        async def run(
            self, submission: Submission, context: SessionContext, observer: Observer | None = None
        ) -> AsyncGenerator[Result, None]:
            if error is not None:
                raise error
            return
            yield

    core = after(Unsent(), "select 1;&\n\\wait 1\n")
    assert f"error: {error.message if error else '[1] has no statement ID'}\n" in core.err


def test_a_whole_id_that_is_not_known_is_asked_for() -> None:
    name = "0123456789abcdef" * 2
    client = Asked(("00000", ""))
    after(client, f"\\wait {name}\n\\wait {name[:-1]}\n")
    assert client.asked == [name]


def test_a_statement_of_another_target_is_asked_for_there() -> None:
    client = Asked()

    async def work() -> Core:
        core = Core(client)
        core.session.options.on_error = "continue"
        core.journal._target = "elsewhere"
        core.journal.record_start("id9", "select 9", SessionContext(), 0)
        core.journal._target = "nowhere"
        await core.run("\\wait id9\n\\fetch id9\n\\cancel id9\n\\jobs\n")
        return core

    core = asyncio.run(work())
    said = "error: id9 ran on elsewhere, but this shell is connected to first\nhelp: connect to elsewhere first\n"
    assert core.err == said * 3
    assert (client.asked, client.terminated) == ([], [])
    assert ",id9," in core.out


def test_the_list_asks_for_what_was_running() -> None:
    client = Asked(("57000", "ended"), UnknownStatement("gone"), failure("XX000"), ("03000", ""))

    async def work() -> Core:
        core = Core(client)
        for number in range(4):
            core.journal.record_start(f"id{number}", f"select {number}", SessionContext(), 4 - number)
        await core.run("\\jobs\n")
        return core

    core = asyncio.run(work())
    assert sorted(client.asked) == ["id0", "id1", "id2", "id3"]
    found = {entry.id: (entry.sql_state, entry.message) for entry in core.journal.recent(9)}
    asked = dict(zip(client.asked, range(4), strict=True))
    told = {0: ("57000", "ended"), 1: ("XX001", "the service no longer has the statement")}
    assert found == {name: told.get(number, ("03000", "")) for name, number in asked.items()}


class Streaming(ScriptedClient):
    """Answers with rows that have no end."""

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        async for result in super().run(submission, context, observer):
            result.endless = Running()
            yield result


class Running:
    rows = gaps = 0
    end_reason = query_id = ""

    def stop(self) -> None:
        raise AssertionError


@pytest.mark.parametrize("can_refetch", [True, False])
def test_a_stream_in_the_background_is_left_to_the_service(can_refetch: bool) -> None:
    client = Streaming()
    client.can_refetch = can_refetch
    core = after(client, "select * from s;&\n\\wait\n")
    assert "[1] is streaming: select * from s; \\fetch 1 shows the stream" in core.err
    assert [rows.closed for rows in client.open] == [True]
    assert "ended" not in " ".join(core.events)
    assert core.out == ""


@pytest.mark.parametrize(
    ("rows", "can_refetch", "said"),
    [
        ((("1",),), True, "[1] finished (1 row, "),
        ((("1", "2"),), False, "[1] finished (2 rows, "),
        ((), True, "[1] finished ("),
    ],
)
def test_what_is_said_of_the_end_of_a_background_statement(
    rows: Sequence[Sequence[str]], can_refetch: bool, said: str
) -> None:
    client = ScriptedClient({"select 1": Answer(rows=rows)})
    client.can_refetch = can_refetch
    core = after(client, "select 1;&\n\\wait\n")
    line = next(line for line in core.err.splitlines() if " finished (" in line)
    assert said in line
    assert line.endswith("; \\fetch 1" if can_refetch and rows else ": select 1")
    assert ("row" in line) == bool(rows)


def test_a_statement_whose_end_was_not_seen_has_no_seconds() -> None:
    client = Asked((sqlstate.CANCELED, ""))

    async def work() -> Core:
        core = Core(client)
        core.journal.record_start("id1", "select 1", core.session.context, 0.0)
        await core.run("\\format csv\n\\jobs\n")
        return core

    core = asyncio.run(work())
    assert "canceled" in core.out
    assert core.journal.find("id1")[0].ended is None
    assert ",," in core.out.splitlines()[-1].partition("canceled")[2].partition("select")[0]


def test_people_see_a_blank_where_a_value_does_not_apply() -> None:
    script = "select 1;&\n\\wait\nselect 2;\n\\jobs\n\\format csv\n\\null NONE\n\\jobs\n"
    shown, _, listed = after(Asked(), script, interactive=True).out.rpartition("job,id")
    assert "NULL" not in shown
    assert "[1]" not in shown
    assert listed


@pytest.mark.parametrize("interactive", [False, True])
def test_the_prompt_lists_job_numbers_only_where_there_are_some(interactive: bool) -> None:
    core = after(Asked(), "\\format csv\nselect 1;\n\\jobs\nselect 2;&\n\\wait\n\\jobs\n", interactive=interactive)
    headers = [line for line in core.out.splitlines() if ",state," in line]
    always = "job,id,state,rows,started,seconds,target,statement"
    assert headers == (
        ["id,state,rows,started,seconds,statement", always.replace(",target", "")] if interactive else [always] * 2
    )
