"""The order of events around a statement, and the state after it ends at any point."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sqlshell.context import SessionContext
from sqlshell.errors import ConnectionFailed, Exit, OutputError, ShellError
from sqlshell.interface.models import ContextEcho
from sqlshell.result import Column
from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure


def test_the_order_of_events() -> None:
    async def work() -> Core:
        core = Core()
        await core.run("select 1;\n")
        return core

    core = asyncio.run(work())
    assert core.events == ["submit select 1", "began id1", "echo", "rows shown", "ended id1 00000 1", "read"]
    assert core.out == "a\n1\n"
    assert (core.session.context.database, core.session.context.schema) == ("d", "s")
    assert core.session.state.sources["database"] == "service"
    left = {"LAST_STATEMENT_ID": "id1", "ROW_COUNT": "1", "SQLSTATE": "00000", "ERROR": "false", "ELAPSED": "0.250"}
    assert core.texts() == left
    assert core.shell.exit == Exit.DONE
    assert [(entry.id, entry.sql, entry.rows) for entry in core.journal.recent(9)] == [("id1", "select 1", 1)]


def test_the_second_statement_is_sent_in_the_context_that_the_first_echoed() -> None:
    async def work() -> Core:
        core = Core()
        await core.run("use schema s; select 2;\n")
        return core

    core = asyncio.run(work())
    assert [context.schema for _, context in core.client.ran] == ["", "s"]


@pytest.mark.parametrize(
    ("answer", "code", "out", "state"),
    [
        (Answer(rows=(), error=failure()), Exit.STATEMENT, "", "42601"),
        (Answer(rows=(("1",),), error=failure("XX000")), Exit.STATEMENT, "a\n1\n", "XX000"),
        (Answer(rows=(), error=ConnectionFailed("gone")), Exit.SERVICE, "", "XX000"),
        (Answer(rows=(("1",), ("2",)), error=ConnectionFailed("gone")), Exit.SERVICE, "a\n1\n2\n", "XX000"),
    ],
)
def test_a_failure_at_each_step_ends_the_script_and_is_remembered(
    answer: Answer, code: Exit, out: str, state: str
) -> None:
    async def work() -> Core:
        core = Core(ScriptedClient({"select 1": answer}))
        await core.run("select 1;\nselect 2;\n")
        return core

    core = asyncio.run(work())
    assert core.shell.exit == code
    assert core.out == out
    assert [sql for sql, _ in core.client.ran] == ["select 1"]
    assert (core.texts()["ERROR"], core.texts()["SQLSTATE"]) == ("true", state)
    assert "1 statement was not run" in core.err
    assert all(rows.closed for rows in core.client.open)
    assert core.session.running is None
    ended = [event for event in core.events if event.startswith("ended")]
    told = isinstance(answer.error, ShellError) and bool(answer.error.where.sql_state)
    assert ended == ([f"ended id1 {state} None"] if told else [])


def test_a_lost_connection_ends_a_script_that_goes_on_after_failures() -> None:
    async def work(error: ShellError) -> Core:
        core = Core(ScriptedClient({"select 1": Answer(rows=(), error=error)}))
        core.session.options.on_error = "continue"
        await core.run("select 1;\nselect 2;\n")
        return core

    assert len(asyncio.run(work(failure())).client.ran) == 2
    assert len(asyncio.run(work(ConnectionFailed("gone"))).client.ran) == 1


@pytest.mark.parametrize("presses", [1, 2])
@pytest.mark.parametrize("number", range(6))
def test_an_interruption_at_each_await(tmp_path: Path, number: int, presses: int) -> None:
    """Ctrl-C, once or twice, at the n-th step: what is left behind is whole, and the next statement runs."""
    target = tmp_path / "rows.csv"
    target.write_text("before")

    async def work() -> tuple[Core, int]:
        answers = {"begin": Answer(rows=()), "select 1": Answer(rows=(("1",), ("2",)))}
        core = Core(ScriptedClient(answers), interactive=True, context=SessionContext(database="d", schema="s"))
        await core.run("begin;\n")
        assert core.session.transaction.mark == "*"
        steps = 0

        def pressed(what: str) -> None:
            nonlocal steps
            if steps == number:
                for _ in range(presses):
                    core.shell.statement_runner.interrupt()
            steps += 1

        core.client.on_step = pressed
        await core.run(f"select 1 \\g {target}\n")
        core.client.on_step = lambda what: None
        return core, steps

    core, steps = asyncio.run(work())
    state = core.session.state
    interrupted = core.shell.exit == Exit.INTERRUPTED
    # One press asks the service to end the statement, and what it gives all the same is not shown.
    assert interrupted == (number < steps), core.err
    assert target.read_text() == ("before" if interrupted else "a\n1\n2\n")
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]
    assert all(rows.closed for rows in core.client.open)
    assert core.session.running is None
    assert not core.shell.statement_runner.busy
    assert not core.outlet.exporting
    assert (state.context.database, state.context.schema) == ("d", "s")
    # An interruption is no failure of the transaction that the service told of.
    assert core.session.transaction.mark == "*"

    async def after() -> None:
        core.shell.statement_runner.take_pending()
        await core.run("select 3;\n")

    asyncio.run(after())
    assert core.client.ran[-1][0] == "select 3"


def test_a_cancelled_shell_leaves_nothing_open() -> None:
    """The shell's own task is canceled at the n-th step, as a signal to end the program does."""

    async def work(number: int) -> tuple[Core, bool]:
        core = Core(ScriptedClient({"select 1": Answer(rows=(("1",), ("2",)))}))
        steps = 0
        running = asyncio.ensure_future(core.run("select 1;\n"))

        def cancel(what: str) -> None:
            nonlocal steps
            if steps == number:
                running.cancel()
            steps += 1

        core.client.on_step = cancel
        done, _ = await asyncio.wait([running])
        await core.shell.aclose()
        return core, next(iter(done)).cancelled()

    for number in range(20):
        core, cancelled = asyncio.run(work(number))
        assert all(rows.closed for rows in core.client.open)
        assert core.session.running is None
        assert core.client.closed
        assert core.journal.was_closed
        assert core.client.left == ["s1"]
        if not cancelled:
            assert number == 5
            return
    raise AssertionError("it never ended")


def test_a_refused_statement_is_not_sent() -> None:
    async def work() -> Core:
        core = Core()
        core.session.options.on_error = "continue"
        await core.run("copy t from stdin (nope 1);\n1\n\\.\nselect :x;\n\\set x 'select 2; select 3'\n")
        await core.run(":x;\nselect 4 \\g /no/such/x\n")
        return core

    core = asyncio.run(work())
    assert [sql for sql, _ in core.client.ran] == ["select :x", "select 2", "select 3"]
    assert "COPY: unknown option 'nope'" in core.err


def test_the_context_is_dropped_only_where_the_service_had_it() -> None:
    gone = failure("3D003", 'schema "s" does not exist')

    async def work() -> Core:
        answers = {"select 2": Answer(rows=(), error=gone, echo=ContextEcho(database_name="d", schema_name="main"))}
        core = Core(ScriptedClient(answers), interactive=True)
        await core.run("select 1;\n")
        assert core.session.context.schema == "s"
        await core.run("select 2;\n")
        return core

    core = asyncio.run(work())
    assert core.session.context.schema == "main"
    assert core.session.state.lost_context is gone
    assert " is now " in core.err


def test_a_full_disk_is_the_failure_of_the_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> Core:
        core = Core()

        def full(data: object) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(core.screen, "write", full)
        await core.run("select 1;\n")
        return core

    core = asyncio.run(work())
    assert core.shell.exit == OutputError("").exit
    assert core.texts()["ERROR"] == "true"
    assert all(rows.closed for rows in core.client.open)


def test_changed_cells_of_a_watched_result_are_reversed_without_colors() -> None:
    async def work() -> str:
        core = Core()
        core.session.options.format = "table"
        return core.outlet.rendered_table([Column("a", "VARCHAR")], [["old"], ["new"]], frozenset({(1, 0)}))

    table = asyncio.run(work())
    assert "\x1b[7mnew" in table
    assert table.count("\x1b[7m") == 1
    assert "old" in table


@pytest.mark.parametrize(("least", "runs"), [(1, 3), (2, 1)])
def test_a_watched_result_with_as_many_rows_as_the_least_goes_on(least: int, runs: int) -> None:
    async def work() -> Core:
        core = Core()
        await core.run(f"select 1 \\watch i=0 c=3 m={least}\n")
        return core

    assert [sql for sql, _ in asyncio.run(work()).client.ran] == ["select 1"] * runs
