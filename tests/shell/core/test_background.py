"""Background statements, and the results that a shell remembers."""

from __future__ import annotations

import asyncio

import pytest

from sqlshell.errors import ConnectionFailed, Exit, ServiceError, UnknownStatement
from sqlshell.origin import Trusted
from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure
from tests.shell.sessions import connection


class Held(ScriptedClient):
    """Statements that it has accepted run until `finish` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.finish = asyncio.Event()

    async def step(self, what: str) -> None:
        await super().step(what)
        if what == "wait":
            await self.finish.wait()


def test_a_background_statement_has_a_session_of_its_own_and_is_announced() -> None:
    async def work() -> None:
        core = Core()
        core.session.options.on_error = "continue"
        await core.run("select 1;&\nselect 2;\n\\wait\n")
        contexts = {sql: context.session_id for sql, context in core.client.ran}
        assert contexts["select 1"] and contexts["select 1"] != contexts["select 2"]
        assert core.session.context.database == "d"
        assert "[1] is running in the background" in core.err
        assert "[1] finished (1 row" in core.err
        assert core.out == "a\n1\n"
        assert {entry.sql: entry.state for entry in core.journal.recent(9)} == dict.fromkeys(
            ("select 1", "select 2"), "finished"
        )
        await core.shell.aclose()
        assert core.client.left == ["s1", contexts["select 1"]]

    asyncio.run(work())


def test_the_outcome_of_a_background_statement_whose_service_is_lost_is_unknown() -> None:
    async def work() -> None:
        lost = ConnectionFailed("connection refused by http://127.0.0.1:1")
        core = Core(ScriptedClient({"select 1": Answer(rows=(), error=lost)}))
        await core.run("select 1;&\n")
        await core.shell.finish()
        assert (
            "[1] was lost; its outcome is unknown; use \\wait id1 to ask the service: select 1: connection refused"
            in core.err
        )
        assert "failed" not in core.err.partition("[1] was lost")[2].partition("\n")[0]
        await core.shell.aclose()

    asyncio.run(work())


def test_a_background_statement_that_fails_is_announced_and_does_not_end_the_script() -> None:
    async def work() -> None:
        core = Core(ScriptedClient({"select 1": Answer(rows=(), error=failure())}))
        await core.run("select 1;&\nselect 2;\n")
        await core.shell.finish()
        assert "[1] failed (42601): select 1: wrong" in core.err
        assert [sql for sql, _ in core.client.ran][-1:] != []
        assert int(core.shell.exit) == 0
        assert core.journal.find("id1")[0].sql_state == "42601"
        await core.shell.aclose()

    asyncio.run(work())


def test_results_are_remembered_by_number_and_fetched_again() -> None:
    async def work() -> None:
        core = Core()
        await core.run("select 1;\nselect 2;\n")
        past = core.session.state.result_history
        assert (past.key("_"), past.key("_1")) == ("id2", "id1")
        core.events.clear()
        await core.run("\\fetch id1\n")
        assert core.events[0] == "fetch id1"
        assert core.out == "a\n1\na\n1\na\n1\n"
        assert past.key("_") == "id1"

    asyncio.run(work())


def test_a_result_that_the_service_does_not_keep_is_kept_here() -> None:
    async def work() -> None:
        client = ScriptedClient({"select 1": Answer(rows=(("1", "2"), ("3",)))})
        client.can_refetch = False
        core = Core(client)
        await core.run("select 1;\n")
        async with core.session.state.result_history.open() as result:
            rows = [row async for batch in result.batches for row in batch.rows]
        assert rows == [["1"], ["2"], ["3"]]
        assert not any(event.startswith("fetch") for event in core.events)

    asyncio.run(work())


@pytest.mark.parametrize("interrupted", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_the_prompt_waits_for_statements_of_a_service_that_ends_with_it(interrupted: bool, left: bool) -> None:
    async def work() -> None:
        core, client = Core(interactive=True), Held()
        core.environment.targets["b"] = connection(client, label="second", embedded=True)
        core.environment.targets["c"] = connection(ScriptedClient(name="c-"), label="third")
        assert await core.shell.run(Trusted("\\c b\ncreate table t (a int);&"))
        if left:
            assert await core.shell.run(Trusted("\\c c"))
        ending = asyncio.ensure_future(core.shell.finish_prompt(wait=True))
        for _ in range(9):
            await asyncio.sleep(0)
        assert not ending.done()
        assert "waiting for 1 background statement of the embedded service; Ctrl-C cancels\n" in core.err
        if interrupted:
            assert core.shell.statement_runner.interrupt()
        else:
            client.finish.set()
        await ending
        assert ("[1] finished" in core.err) is not interrupted
        assert ("warning: [1] was canceled, because the embedded service ends" in core.err) is interrupted
        await core.shell.aclose()

    asyncio.run(work())


def test_the_prompt_ends_at_once_if_nothing_ends_with_it() -> None:
    async def work() -> None:
        core, client = Core(interactive=True), Held()
        core.environment.targets["b"] = connection(client, label="second")
        core.environment.targets["c"] = connection(client, label="third", embedded=True)
        assert await core.shell.run(Trusted("\\c b\ncreate table t (a int);&"))
        said = core.err
        await core.shell.finish_prompt(wait=True)
        assert core.err == said
        assert await core.shell.run(Trusted("\\c c\ncreate table t (a int);&"))
        await core.shell.finish_prompt(wait=False)
        assert "waiting for" not in core.err
        assert "warning: [1] was canceled" in core.err
        await core.shell.aclose()

    asyncio.run(work())


def test_the_rows_of_a_finished_background_statement_are_recorded() -> None:
    async def work() -> None:
        core = Core(ScriptedClient({"select 1": Answer(rows=(("1", "2"), ("3",)))}))
        await core.run("select 1;&\n\\wait\n")
        assert [entry.rows for entry in core.journal.recent(1)] == [3]
        await core.shell.aclose()

    asyncio.run(work())


@pytest.mark.parametrize(
    ("sql", "error", "told"),
    [
        ("create table t (a int)", ConnectionFailed("refused", "start it"), True),
        ("create table t (a int)", UnknownStatement("no longer there", "start it"), False),
        ("select 1", ConnectionFailed("refused", "start it"), False),
    ],
)
def test_a_write_whose_outcome_could_not_be_asked_for_can_be_fetched(sql: str, error: ServiceError, told: bool) -> None:
    async def work() -> None:
        core = Core(ScriptedClient({sql: Answer(rows=(), error=error)}), interactive=True)
        assert await core.shell.run(Trusted(f"{sql};"))
        fetched = "; \\fetch id1 shows its outcome" if told else ""
        assert f"error: {error.message}\nhelp: start it{fetched}\n" in core.err
        assert core.journal.find("id1")[0].running
        await core.shell.aclose()

    asyncio.run(work())


@pytest.mark.parametrize("embedded", [True, False])
def test_an_interrupted_script_does_not_wait_for_background_statements(embedded: bool) -> None:
    async def work() -> None:
        core, client = Core(), Held()
        core.environment.targets["b"] = connection(client, label="second", embedded=embedded)
        await core.run("\\c b\ncreate table t (a int);&\n")
        core.shell.failures.exit = Exit.INTERRUPTED
        await core.shell.finish()
        canceled = "warning: [1] was canceled, because the embedded service ends with this shell\n"
        assert (canceled in core.err) is embedded
        assert ("[1] is still running; fetch its result with: sqlshell fetch" in core.err) is not embedded
        await core.shell.aclose()

    asyncio.run(work())


def test_a_background_statement_is_in_the_journal_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        core = Core(client := Held())
        monkeypatch.setattr(core.journal, "flush", lambda: core.events.append("flushed"))
        await core.run("select 1;&\n")
        job = core.session.state.background.jobs[0]
        assert await core.session.state.background.id_of(1) == job.statement_id
        assert core.events[core.events.index(f"began {job.statement_id}") + 1] == "flushed"
        client.finish.set()
        await core.shell.finish()
        await core.shell.aclose()

    asyncio.run(work())
