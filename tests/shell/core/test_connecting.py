"""\\c takes effect completely or not at all, and the previous connection is closed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sqlshell.errors import ConnectionFailed, NotAuthenticated, UsageError
from sqlshell.origin import Trusted
from sqlshell.shell.connection import Connection
from sqlshell.sql.analysis.policy import Policy
from tests.shell.core.scripted import Answer, Core, ScriptedClient, WatchedJournal, failure
from tests.shell.sessions import connection


def other(client: ScriptedClient, **parts: Any) -> Connection:
    return connection(client, label="second", journal=WatchedJournal(client.events), **parts)


@pytest.mark.parametrize(
    "error", [UsageError("no such profile"), NotAuthenticated("no token"), ConnectionFailed("refused")]
)
def test_a_failed_connection_changes_nothing(error: Exception) -> None:
    async def work() -> None:
        core = Core()
        core.environment.targets["b"] = error  # type: ignore[assignment]
        core.session.options.on_error = "continue"
        await core.run("select 1;\n")
        state, options = core.session.state, core.session.options.prompt_color
        context, past = state.context, state.result_history.keys()
        await core.run("\\c b\n")
        await core.run("select 2;\n")
        assert core.session.state is state
        assert (state.context, core.session.target, core.session.options.prompt_color) == (context, "first", options)
        assert past <= state.result_history.keys()
        assert not core.journal.was_closed
        assert [sql for sql, _ in core.client.ran] == ["select 1", "select 2"]
        assert "still connected to first" in core.err
        assert "now on" not in core.err

    asyncio.run(work())


def test_an_interrupted_connection_changes_nothing() -> None:
    async def work() -> None:
        core = Core(interactive=True)
        ended: list[bool] = []

        async def never() -> Connection:
            core.shell.statement_runner.interrupt()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(True)
            raise AssertionError

        core.environment.targets["b"] = never
        state = core.session.state
        await core.run("\\c b\nselect 2;\n")
        assert core.session.state is state
        assert ended == [True]
        assert "\\c was interrupted" in core.err
        assert not core.client.closed

    asyncio.run(work())


def test_a_connection_brings_all_that_belongs_to_it() -> None:
    async def work() -> None:
        core, second = Core(), ScriptedClient(name="b-")
        redacted: list[str] = []

        def redact(sql: str) -> str:
            redacted.append(sql)
            return sql.replace("hunter2", "***")

        policy = Policy(read_only=True)
        found = other(
            second, policy=policy, redact=redact, prompt_color="#ff0000", secret_names=("mine",), own_session="s2"
        )
        core.environment.targets["b"] = found
        await core.run("begin;\nselect 1;\n")
        before = core.session.state
        core.session.options.on_error = "continue"
        await core.run("\\c b\nselect 'hunter2';\ndrop table t;\n")
        state = core.session.state
        assert state is not before
        assert core.session.connection is found
        assert (core.session.target, core.session.options.prompt_color) == ("second", "#ff0000")
        assert [sql for sql, _ in core.client.ran] == ["begin", "select 1"]
        assert [sql for sql, _ in second.ran] == ["select 'hunter2'"]
        assert "drop table" not in " ".join(second.events)
        assert "second" in core.err
        assert core.session.secret_filter.names == ("mine",)
        assert core.session.redact("hunter2") == "***"
        assert core.session.transaction.mark == ""
        assert state.result_history.keys() == {"b-id1"}
        assert core.journal.was_closed
        assert core.client.closed
        assert core.client.left == ["s1"]
        assert "the open transaction was not committed" in core.err
        await core.shell.aclose()
        assert second.closed
        assert second.left == ["s2"]

    asyncio.run(work())


def test_an_open_transaction_is_not_left_without_a_warning() -> None:
    lost = "warning: the open transaction was not committed and is rolled back\n"

    async def work() -> None:
        core = Core(interactive=True)
        core.environment.targets["gone"] = ConnectionFailed("refused")
        core.environment.targets["b"] = other(ScriptedClient(name="b-"), own_session="s2")
        assert await core.shell.run(Trusted("begin;\n\\c gone"))
        assert lost not in core.err
        assert await core.shell.run(Trusted("\\c b"))
        assert core.err.count(lost) == 1
        assert core.err.index(lost) < core.err.index("connected to second")
        core.shell.connections.warn_of_transaction()
        assert await core.shell.run(Trusted("begin;\ncommit;"))
        core.shell.connections.warn_of_transaction()
        assert core.err.count(lost) == 1
        assert await core.shell.run(Trusted("begin;"))
        core.shell.connections.warn_of_transaction()
        assert core.err.count(lost) == 2
        await core.shell.aclose()

    asyncio.run(work())


def test_with_offline_statements_are_shown_for_the_new_target() -> None:
    async def work() -> None:
        core, shown = Core(), []
        core.environment.targets["b"] = other(ScriptedClient(), offline=lambda asked, _: shown.append(asked.sql))
        await core.run("\\c b\nselect 2;\n")
        assert shown == ["select 2"]
        assert core.client.ran == []

    asyncio.run(work())


def test_an_embedded_service_is_released_when_its_last_statement_has_finished() -> None:
    async def work() -> None:
        slow, released, going = ScriptedClient({"select 1": Answer()}, name="b-"), [], asyncio.Event()
        core = Core()
        core.environment.targets["b"] = other(slow, embedded=True, release=lambda: released.append("b"))
        core.environment.targets["c"] = other(ScriptedClient(name="c-"))

        async def step(what: str) -> None:
            if what == "wait":
                await going.wait()

        slow.step = step  # type: ignore[method-assign]
        await core.run("\\c b\nselect 1;&\n\\c c\nselect 3;\n")
        assert "[1] is still running; it ends with this shell" in core.err
        assert core.session.connection.client is not slow
        assert not released
        assert not slow.closed
        going.set()
        await core.shell.finish()
        assert released == ["b"]
        assert slow.closed
        assert "second [1] finished" in core.err
        assert "\\fetch" not in core.err
        await core.shell.aclose()

    asyncio.run(work())


def test_an_embedded_service_that_runs_nothing_is_released_at_once() -> None:
    async def work() -> None:
        core, released = Core(), []
        core.environment.targets["b"] = other(ScriptedClient(), embedded=True, release=lambda: released.append("b"))
        core.environment.targets["c"] = other(ScriptedClient())
        await core.run("\\c b\nselect 1;\n")
        assert not released
        await core.run("\\c c\n")
        assert released == ["b"]
        await core.shell.aclose()

    asyncio.run(work())


def test_where_a_transaction_began_is_told_and_that_it_failed(tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_text("select 1;\n\nbegin;\nselect 2;\n")

    async def work() -> None:
        core = Core(ScriptedClient({"select 3": Answer(rows=(), error=failure())}), interactive=True)
        await core.shell.run(Trusted(f"\\i {tmp_path}/s.sql\nselect 4;"))
        assert core.session.transaction.mark == "*"
        await core.shell.run(Trusted("select 3;"))
        assert core.session.transaction.mark == "!"
        core.shell.connections.warn_of_transaction()
        assert f"{tmp_path}/s.sql:3: warning: the open transaction was not committed" in core.err
        await core.shell.run(Trusted("rollback;"))
        assert core.session.transaction.mark == ""
        await core.shell.aclose()

    asyncio.run(work())


def test_an_embedded_service_is_released_at_the_end_though_its_statement_still_runs() -> None:
    async def work() -> None:
        slow, released = ScriptedClient(name="b-"), []
        core = Core()
        core.environment.targets["b"] = other(slow, embedded=True, release=lambda: released.append("b"))
        core.environment.targets["c"] = other(ScriptedClient(name="c-"))

        async def step(what: str) -> None:
            if what == "wait":
                await asyncio.Event().wait()

        slow.step = step  # type: ignore[method-assign]
        await core.run("\\c b\nselect 1;&\n\\c c\n")
        assert not released
        await core.shell.aclose()
        assert released == ["b"]
        assert slow.closed

    asyncio.run(work())


def test_what_belongs_to_a_connection_is_cleaned_up_with_it() -> None:
    async def work() -> None:
        core = Core()
        core.environment.targets["b"] = other(ScriptedClient())
        cleaned: list[str] = []
        core.session.state.cleanup.callback(cleaned.append, "first")
        await core.run("\\c b\n")
        assert cleaned == ["first"]
        core.session.state.cleanup.callback(cleaned.append, "second")
        await core.shell.aclose()
        assert cleaned == ["first", "second"]

    asyncio.run(work())


@pytest.mark.parametrize(
    ("typed", "left"),
    [
        ("select 1,\n\\c gone", "select 1,\n"),
        ("select 1, \\c gone", "select 1, \n"),
        ("select 1, -- one\n\\c gone\nselect 2;", "select 1, -- one\n"),
        ("\\c gone", ""),
        ("select 1,\n\\c wrong", "select 1,\n"),
    ],
)
def test_an_unfinished_statement_remains_after_a_failed_connection_at_the_prompt(typed: str, left: str) -> None:
    async def work() -> None:
        core = Core(interactive=True)
        core.environment.targets["gone"] = ConnectionFailed("refused")
        core.environment.targets["wrong"] = UsageError("no such profile")
        await core.shell.run(Trusted(typed))
        assert core.client.ran == []
        await core.shell.run(Trusted("7;"))
        assert [sql for sql, _ in core.client.ran] == [f"{left}7" if left else "7"]
        await core.shell.aclose()

    asyncio.run(work())
