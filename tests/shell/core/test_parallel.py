"""\\parallel: several statements at once, results in order, and what cannot be in a block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

import pytest

from sqlshell.client.statements import concurrent
from sqlshell.client.statements.client import Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.errors import Exit, StatementError, Where
from sqlshell.origin import Own
from sqlshell.result import Result
from sqlshell.sql.analysis.secrets import redactor
from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure
from tests.shell.sessions import connection


class Gated(ScriptedClient):
    """Statements wait until others have been sent: `after` names for a statement the one that has to be."""

    def __init__(self, answers: dict[str, Answer] | None = None, after: dict[str, str] | None = None) -> None:
        super().__init__(answers)
        self.after = after or {}
        self.active = self.most = 0
        self.fetched: list[str] = []

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        self.active += 1
        self.most = max(self.most, self.active)
        try:
            async for result in super().run(submission, context, observer):
                await until(lambda: self.has_run(self.after.get(submission.sql, submission.sql)))
                self.active -= 1
                yield result
        finally:
            self.active = max(0, self.active - 1)

    async def fetch(
        self, statement_id: str, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        self.fetched.append(statement_id)
        sql = self.ran[int(statement_id.removeprefix("id")) - 1][0]
        async for result in ScriptedClient.run(ScriptedClient(self.answers), Submission(sql), context):
            yield result

    def has_run(self, sql: str) -> bool:
        return any(text == sql for text, _ in self.ran)


def run(client: ScriptedClient, text: str, *, stop: bool = True) -> Core:
    async def work() -> Core:
        core = Core(client)
        await core.shell.run_script([Own(text)], "x.sql", stop=stop)
        await core.shell.aclose()
        return core

    return asyncio.run(work())


async def until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110 - what it waits for is a step of the same loop
        await asyncio.sleep(0)


def numbered(count: int) -> str:
    return "".join(f"select {number};\n" for number in range(count))


def answers(count: int) -> dict[str, Answer]:
    return {f"select {number}": Answer(rows=((str(number),),)) for number in range(count)}


def shown(count: int) -> str:
    return "".join(f"a\n{number}\n" for number in range(count))


def test_results_are_shown_in_order_whenever_they_arrive() -> None:
    client = Gated(answers(8), {"select 0": "select 7"})
    core = run(client, f"\\parallel 3\n{numbered(8)}\\end\n")
    assert core.out == shown(8)
    assert client.most == 3
    assert core.shell.exit == Exit.DONE, core.err
    assert all(batches.closed for batches in client.open)
    assert client.active == 0


def test_each_statement_is_in_the_journal_when_the_service_has_it() -> None:
    core = run(Gated(answers(3), {"select 0": "select 2"}), f"\\parallel 3\n{numbered(3)}\\end\n")
    begun = [core.events.index(f"began id{number}") for number in (1, 2, 3)]
    assert max(begun) < core.events.index("rows shown")
    assert [core.events.count(f"ended id{number} 00000 1") for number in (1, 2, 3)] == [1, 1, 1]


def test_few_results_wait_in_memory_and_the_others_at_the_service() -> None:
    client = Gated(answers(20), {"select 0": "select 19"})
    core = run(client, f"\\parallel 2\n{numbered(20)}\\end\n")
    assert core.out == shown(20)
    assert len(client.fetched) == 20 - 1 - concurrent.HELD


def test_each_runs_in_one_of_the_sessions_of_the_shell() -> None:
    client = Gated(answers(8))
    core = run(client, f"\\parallel 2\n{numbered(4)}\\end\n\\parallel 3\n{numbered(4)}\\end\nselect 0;\n")
    sessions = [context.session_id for _, context in client.ran]
    assert len(set(sessions[:8])) == 3
    assert sessions[8] not in sessions[:8]
    assert sorted(client.left) == sorted({*sessions[:8], "s1"}), "they are ended with the shell"
    assert core.out == shown(4) * 2 + shown(1)


def test_variables_and_conditions_are_those_of_their_place() -> None:
    client = Gated(answers(4))
    core = run(
        client,
        "\\set n 1\n\\parallel 4\nselect :n;\n\\set n 2\nselect :n;\n"
        "\\if false\nselect 0;\n\\endif\nselect 3\n\\g\n\\end\n",
    )
    assert core.out == "a\n1\na\n2\na\n3\n"
    assert core.shell.exit == Exit.DONE, core.err


def test_a_failure_starts_no_further_statement() -> None:
    client = Gated(answers(9) | {"select 1": Answer(rows=(), error=failure())}, {"select 0": "select 2"})
    core = run(client, f"\\parallel 3\n{numbered(9)}\\end\nselect 0;\n")
    ran = [sql for sql, _ in client.ran]
    assert len(ran) < 9
    assert core.out == "".join(f"a\n{number}\n" for number in range(len(ran)) if number != 1)
    assert "x.sql:3: error[42601]: wrong" in core.err
    assert f"x.sql:11: \\parallel: 1 statement failed, {9 - len(ran)} statements were not run\n" in core.err
    assert "warning: 1 statement was not run" in core.err
    assert core.shell.exit == Exit.STATEMENT


def test_a_failure_shows_no_secret_of_its_statement() -> None:
    sql = "create secret s (type s3, secret 'hunter2')"
    wrong = StatementError(f"syntax error at or near \"'hunter2'\"\n\nLINE 1: {sql}", where=Where("42601", "id1"))
    client = Gated(answers(1) | {sql: Answer(rows=(), error=wrong)})

    async def work() -> str:
        core = Core(client)
        core.session.state.connection = connection(client, journal=core.journal, redact=redactor(()))
        await core.shell.run_script([Own(f"\\parallel 2\n{sql};\nselect 0;\n\\end\n")], "x.sql")
        return core.err

    err = asyncio.run(work())
    assert "x.sql:2: error[42601]: syntax error" in err
    assert "hunter2" not in err


def test_failures_do_not_stop_what_is_to_continue() -> None:
    failing = {"select 1": Answer(rows=(), error=failure()), "select 3": Answer(rows=(), error=failure("22000"))}
    core = run(Gated(answers(5) | failing), f"\\parallel 2\n{numbered(5)}\\end\nselect 0;\n", stop=False)
    assert core.out == "a\n0\na\n2\na\n4\na\n0\n"
    assert "\\parallel: 2 statements failed\n" in core.err
    assert core.shell.exit == Exit.STATEMENT


def test_an_interruption_cancels_all() -> None:
    client = Gated(answers(5), {f"select {number}": "never" for number in range(5)})

    async def work() -> Core:
        core = Core(client)
        running = asyncio.ensure_future(
            core.shell.run_script([Own(f"\\parallel 3\n{numbered(5)}\\end\nselect 0;\n")], "x.sql")
        )
        await until(lambda: len(client.ran) == 3 and core.shell.interruption.busy)
        await asyncio.sleep(0.01)
        assert core.shell.interruption.interrupt()
        await until(lambda: "id1" in client.terminated)
        client.after = {}
        client.answers = {f"select {number}": Answer(rows=()) for number in range(5)}
        await running
        await core.shell.aclose()
        return core

    core = asyncio.run(work())
    assert [sql for sql, _ in client.ran] == ["select 0", "select 1", "select 2"]
    assert core.out == ""
    assert "2 statements had already been sent; the service was asked to cancel them" in core.err
    assert core.shell.exit == Exit.INTERRUPTED
    assert client.active == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\\parallel 2\nselect 1;\n", "the script ends inside \\parallel: its 1 statement was not run"),
        ("\\parallel 2\nselect 1;\n\\q\n", "the script ends inside \\parallel: its 1 statement was not run"),
        ("\\parallel 2\n\\parallel 3\n\\end\n", "\\parallel cannot be nested"),
        ("\\end\n", "\\end: no matching \\parallel"),
        ("\\parallel 0\n", "'0' is not a positive integer"),
        ("\\parallel x\n", "'x' is not a positive integer"),
        ("\\parallel\n", "\\parallel requires COUNT"),
        ("\\parallel 2\nbegin;\n\\end\n", "BEGIN cannot be used in \\parallel"),
        ("\\parallel 2\nset x = 1;\n\\end\n", "SET cannot be used in \\parallel"),
        ("\\parallel 2\nuse d;\n\\end\n", "USE cannot be used in \\parallel"),
        ("\\parallel 2\nselect 1;&\n\\end\n", "background statements cannot be used in \\parallel"),
        ("\\parallel 2\nselect 1 \\gset\n\\end\n", "\\gset cannot be used in \\parallel"),
        ("\\parallel 2\n\\echo x\n\\end\n", "\\echo cannot be used in \\parallel"),
        ("\\parallel 2\ncopy t from stdin;\n1\n\\.\n\\end\n", "COPY … FROM STDIN cannot be used in \\parallel"),
        ("\\parallel 2\nselect 1;\n\\nosuch\n\\end\n", "warning: \\parallel: its 1 statement was not run"),
    ],
)
def test_what_cannot_be_done(text: str, said: str) -> None:
    client = ScriptedClient()
    core = run(client, text)
    assert said in core.err
    assert client.ran == [], "nothing of it runs"
    assert core.shell.exit == Exit.USAGE


@pytest.mark.parametrize("options", ["", " with (format csv, header)"])
def test_a_copy_to_stdout_may_be_in_a_block(options: str) -> None:
    client = Gated({f"copy (select 1) to stdout{options}": Answer(rows=(("1",),)), **answers(1)})
    client.answers["copy (select 1) to stdout"] = Answer(rows=(("1",),))
    core = run(client, f"\\parallel 2\nselect 0;\ncopy (select 1) to stdout{options};\n\\end\n")
    assert core.out.split("\n")[:2] == ["a", "0"] and core.out.endswith("1\n"), core.err
    assert core.shell.exit == Exit.DONE


def test_no_block_begins_in_a_transaction() -> None:
    client = ScriptedClient()
    core = run(client, "begin;\n\\parallel 2\nselect 1;\n\\end\n")
    assert "\\parallel cannot be used in a transaction" in core.err
    assert [sql for sql, _ in client.ran] == ["begin"]


def test_no_block_begins_on_a_service_without_sessions() -> None:
    class Legacy(ScriptedClient):
        async def is_legacy(self) -> bool:
            return True

    client = Legacy()
    core = run(client, "\\parallel 2\nselect 1;\n\\end\n")
    assert "\\parallel requires the interface v2" in core.err
    assert client.ran == []


def test_the_limit_of_the_settings_holds() -> None:
    client = Gated(answers(8))

    async def work() -> Core:
        core = Core(client)
        core.session.options.max_parallel = 2
        await core.shell.run_script([Own(f"\\parallel 5\n{numbered(8)}\\end\n")], "x.sql")
        return core

    core = asyncio.run(work())
    assert client.most == 2
    assert "\\parallel 5: at most 2 statements run at once (--max-parallel)" in core.err
    assert core.out == shown(8)


def test_a_block_may_be_typed_statement_by_statement() -> None:
    client = Gated(answers(3))

    async def work() -> Core:
        core = Core(client, interactive=True)
        for line in ("\\parallel 2", "select 0;", "select 1; select 2;"):
            assert await core.shell.run(Own(line))
            assert client.ran == []
        assert await core.shell.run(Own("\\end"))
        await core.shell.run(Own("\\parallel 2"))
        core.shell.discard_unfinished()
        await core.shell.run(Own("select 0;"))
        return core

    core = asyncio.run(work())
    assert core.out == shown(3) + shown(1)
    assert "statements are collected up to \\end" in core.err
