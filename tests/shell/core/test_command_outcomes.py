"""What commands do where something is missing, refused or lost, and the arguments that completion suggests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sqlshell.client.statements.client import Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.errors import Interrupted, StatementError
from sqlshell.origin import EMPTY, Trusted
from sqlshell.result import Result
from sqlshell.shell.commands import variables
from sqlshell.sql.script.items import Statement
from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure
from tests.shell.core.test_catalog_contents import Service, Table


def run(
    script: str, client: ScriptedClient | None = None, *, prepare: Callable[[Core], Any] = lambda core: None
) -> Core:
    async def work() -> Core:
        core = Core(client)
        core.session.options.on_error = "continue"
        # A service that has announced something is not asked for it.
        core.session.connection.service.transport.extensions = frozenset({"batch"})
        prepare(core)
        await core.shell.run_script([Trusted(script)], "")
        await core.shell.aclose()
        return core

    return asyncio.run(work())


def test_a_variable_of_psql_without_effect_is_warned_of_once() -> None:
    core = run("\\set HISTSIZE 5\n\\set HISTSIZE 6\n\\set FETCH_COUNT 0\n\\set own 1\n")
    assert core.err == "warning: psql's HISTSIZE has no effect: the size of the history cannot be set\n"


def test_another_session_has_no_transaction() -> None:
    def prepare(core: Core) -> None:
        core.session.state.context = replace(core.session.context, session_id="mine", transaction="open")
        core.session.transaction.state = "open"

    core = run("\\context set role r\n", prepare=prepare)
    assert (core.session.transaction.state, core.session.context.transaction) == ("open", "open")
    assert core.session.state.sources["role"] == "\\context set"
    core = run("\\context set session_id other\n", prepare=prepare)
    assert (core.session.transaction.state, core.session.context.transaction) == ("", "")
    assert core.session.context.session_id == "other"


@pytest.mark.parametrize(
    ("error", "err"),
    [
        (PermissionError(13, "Permission denied"), "error: cannot clear the history: permission denied\n"),
        (OSError("odd"), "error: cannot clear the history: odd\n"),
        (None, "history of this target cleared\n"),
    ],
)
def test_the_history_is_cleared(error: OSError | None, err: str) -> None:
    def clear() -> None:
        if error is not None:
            raise error

    def prepare(core: Core) -> None:
        core.front_end.clear_history = clear  # type: ignore[method-assign]

    assert run("\\history clear\n", prepare=prepare).err == err


def test_the_history_is_shown_with_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    past = [(0.0, "select 1;"), (86_400.0, "create table T\n(a int);"), (90_000.0, "from t")]

    def prepare(core: Core) -> None:
        core.front_end.history = lambda: past  # type: ignore[method-assign]

    time.tzset()
    try:
        create = "1970-01-02 00:00  create table T\n                  (a int);\n"
        whole = f"1970-01-01 00:00  select 1;\n{create}1970-01-02 01:00  from t\n"
        assert run("\\history\n", prepare=prepare).err == whole
        assert run("\\s CTI\n", prepare=prepare).err == create
        assert run("\\history ABLE\n", prepare=prepare).err == create
        assert run("\\history slt1\n", prepare=prepare).err == "1970-01-01 00:00  select 1;\n"
        assert run("\\history zz\n", prepare=prepare).err == "the history is empty\n"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_rows_of_a_statement_of_the_shell_are_not_read() -> None:
    async def work() -> Core:
        core = Core(ScriptedClient({"create": Answer(rows=(("1",),))}))
        core.shell.buffer.remember(Statement("last", 0, 0, True))
        await core.shell.execute_silently(["create"])
        assert core.shell.buffer.last.text == "last"
        return core

    core = asyncio.run(work())
    assert (core.out, [rows.closed for rows in core.client.open]) == ("", [True])


@pytest.mark.parametrize(
    ("answers", "ran", "said"),
    [
        (None, ["select 1", "select 2"], "one two end"),
        (["", "S"], ["select 1"], "one two end"),
        (["s", " skip "], [], "one two end"),
        (["s", "yes"], ["select 2"], "one two end"),
        (["Quit"], [], "one"),
        (["", "q"], ["select 1"], "one two"),
        (["^C"], [], "one"),
    ],
)
def test_steps_are_run_skipped_and_ended(answers: list[str] | None, ran: list[str], said: str) -> None:
    questions: list[str] = []

    async def ask(question: str, *, keys: str = "") -> str:
        questions.append(question)
        assert answers is not None
        if answers[0] == "^C":
            raise Interrupted("interrupted")
        return answers.pop(0)

    async def work() -> Core:
        core = Core()
        core.front_end.ask = ask if answers is not None else None
        steps = [("one", Trusted("select 1;")), ("two", Trusted("select 2;")), ("end", EMPTY)]
        await core.shell.run_steps(steps)
        return core

    core = asyncio.run(work())
    assert [sql for sql, _ in core.client.ran] == ran
    assert core.err.split() == said.split()
    assert questions == ["[Enter] run, [s] skip, [q] quit: "] * (0 if answers is None else len(said.split()[:2]))


def test_no_step_follows_one_that_is_interrupted() -> None:
    async def work() -> Core:
        core = Core()

        def pressed(what: str) -> None:
            core.shell.statement_runner.interrupt()

        core.client.on_step = pressed
        steps = [("one", Trusted("select 1;")), ("two", Trusted("select 2;"))]
        await core.shell.run_steps(steps)
        return core

    core = asyncio.run(work())
    assert (core.err.split()[0], "two" in core.err, [sql for sql, _ in core.client.ran]) == ("one", False, ["select 1"])


def test_a_script_asks_the_terminal_for_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What was there is what the terminal sends; the question takes its first seven characters.
    terminal = tmp_path / "tty"
    terminal.write_text("???????42\nrest\n")
    monkeypatch.setattr(variables, "Path", lambda _: terminal)
    core = run("\\prompt 'n\x1b: ' n\n\\echo :n\n")
    assert (core.out, core.err, terminal.read_text()) == ("42\n", "", "n\\x1b: 42\nrest\n")
    monkeypatch.setattr(variables, "Path", lambda _: tmp_path / "no" / "tty")
    assert run("\\prompt n\n").err == (
        "error: \\prompt requires a terminal\nhelp: set the value with --set NAME=VALUE instead\n"
    )


CONTEXT = """\
  target        first
  organization  (not set)
  role          (not set)
  database      shop  flag
  schema        main
  store         (not set)
  compute pool  (not set)
  timezone      (not set)
  session id    (not set)
"""


def test_the_context_is_shown_set_and_reset() -> None:
    async def work(*lines: str) -> str:
        core = Core(context=SessionContext(database="shop", schema="main"))
        core.session.connection.service.transport.extensions = frozenset({"batch"})
        core.session.options.on_error = "continue"
        core.session.state.sources["database"] = "flag"
        await core.shell.run_script([Trusted("".join(f"{line}\n" for line in lines))], "")
        return core.err

    assert asyncio.run(work("\\context")) == CONTEXT
    assert asyncio.run(work("\\c")) == CONTEXT
    changed = CONTEXT.replace("shop  flag", "d-1  \\context set")
    assert asyncio.run(work("\\context set Database d-1")) == changed
    reset = CONTEXT.replace("shop  flag", "shop  initial value")
    assert asyncio.run(work("\\context set database d", "\\context reset database")).endswith(reset)
    every = reset.replace("main", "main  initial value")
    assert asyncio.run(work("\\context set database d", "\\context reset")).endswith(every)
    parts = "organization, role, database, schema, store, compute_pool, timezone, session_id"
    assert asyncio.run(work("\\context set database", "\\context reset database x", "\\context set a b")) == (
        f"error: \\context set requires a part and its value\nhelp: parts: {parts}\n"
        f"error: \\context reset accepts at most one part\nhelp: parts: {parts}\n"
        f"error: unknown part of the context: 'a'\nhelp: parts: {parts}\n"
    )


def test_the_context_of_a_dry_run_asks_for_no_engine() -> None:
    def prepare(core: Core) -> None:
        core.session.connection.service.transport.extensions = frozenset({"list engines"})
        core.session.state.connection = replace(core.session.connection, offline=lambda submission, context: None)

    core = run("\\context\n", prepare=prepare)
    assert (core.err.splitlines()[0], core.client.ran) == ("  target        first", [])


LISTED: Table = (["database", "schema", "name", "type"], [["d", "s", "t", "table"]])


def test_relations_of_a_service_that_counts_no_rows() -> None:
    assert run("\\dt+\n", Service({"LIST RELATIONS": LISTED})).out == "database,schema,name,type\nd,s,t,table\n"


ABSENT = """\
error[3D020]: no relation matches "x"
help: \\d lists the relations of this schema, \\d *.* all
"""


class Refuses(Service):
    """Lists no relation, and describes none for a reason with this sqlState."""

    def __init__(self, state: str) -> None:
        super().__init__({"LIST RELATIONS": (LISTED[0], [])})
        self._state = state

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        try:
            async for result in super().run(submission, context, observer):
                yield result
        except StatementError:
            raise failure(self._state) from None


@pytest.mark.parametrize(
    ("state", "err"),
    [
        ("42501", "error[42501]: wrong\n"),
        *((state, ABSENT) for state in ("3D020", "3D003")),
    ],
)
def test_a_relation_that_cannot_be_described(state: str, err: str) -> None:
    assert run("\\d x\n", Refuses(state)).err == err


def test_the_sample_data_of_a_local_service_that_fails() -> None:
    assert run("\\demo\n", Service({})).err == "error[42601]: wrong\n"


QUERIES: Table = (
    ["id", "state", "statement", "owner"],
    [["1", "running", "select\n  " + "x" * 200, "ann"], ["2", "failed", "select 2", "bob"]],
)


def test_queries_are_listed_for_people_and_for_programs() -> None:
    core = run("\\dq+\n", Service({"LIST QUERIES": QUERIES}))
    assert core.out == f'id,state,statement,owner\n1,running,"select\n  {"x" * 200}",ann\n2,failed,select 2,bob\n'
    core = run("\\dq\n", Service({"LIST QUERIES": QUERIES}))
    assert core.out == f"id,state,statement,owner\n1,running,select {'x' * 200},ann\n"
    client = Service({"LIST QUERIES": QUERIES})
    core = run("\\dq+\n", client, prepare=lambda core: setattr(core.session.options, "format", "table"))
    assert [line.split("|")[3].strip() for line in core.out.splitlines()[3:5]] == [f"select {'x' * 92}…", "select 2"]
    ended: dict[str, Table] = {"LIST QUERIES": (QUERIES[0], QUERIES[1][1:])}
    core = run("\\dq\n", Service(ended), prepare=lambda core: setattr(core.session.options, "format", "table"))
    assert (core.out, core.err) == ("", "no running queries; \\dq+ also lists finished ones\n")
