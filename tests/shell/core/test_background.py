"""Background statements, and the results that a shell remembers."""

from __future__ import annotations

import asyncio

from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure


def test_a_background_statement_has_a_session_of_its_own_and_is_announced() -> None:
    async def work() -> None:
        core = Core()
        core.session.options.on_error = "continue"
        await core.run("select 1;&\nselect 2;\n\\wait\n")
        contexts = {sql: context.session_id for sql, context in core.client.ran}
        assert contexts["select 1"] and contexts["select 1"] != contexts["select 2"]
        assert core.session.context.database == "d"
        assert "[1] runs in the background" in core.err
        assert "[1] finished (1 row" in core.err
        assert core.out == "a\n1\n"
        assert {entry.sql: entry.state for entry in core.journal.recent(9)} == dict.fromkeys(
            ("select 1", "select 2"), "finished"
        )
        await core.shell.aclose()
        assert core.client.left == ["s1", contexts["select 1"]]

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
