"""Statements of PostgreSQL's dumps: what is sent to the local service and to others, and what is said of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest
from msgspec.structs import replace

from sqlshell.client.statements.client import Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.errors import Exit
from sqlshell.origin import Own
from sqlshell.result import Result
from sqlshell.shell.scripts.modes import ScriptModes
from tests.shell.core.scripted import Core, failure
from tests.shell.core.test_loads import Tables

BEGINS = "SELECT pg_catalog.set_config('search_path', '', false);\n"
PUBLIC = "CREATE SCHEMA IF NOT EXISTS public"
DUCKDB = frozenset({"engines"})


class Counted(Tables):
    """Counts how often a table was described; with columns of None, none can be."""

    def __init__(self, columns: Sequence[Sequence[str]] | None) -> None:
        super().__init__([list(column) for column in columns or ()])
        self.described = 0
        self._unknown = columns is None

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        asks = submission.sql.startswith("DESCRIBE RELATION COLUMNS")
        self.described += asks
        if self._unknown and (asks or submission.sql.endswith("LIMIT 0")):
            raise failure("42P01", "no table")
        async for result in super().run(submission, context, observer):
            yield result


def run(
    script: str,
    columns: Sequence[Sequence[str]] | None = (),
    *,
    name: str = "dump.sql",
    extensions: frozenset[str] = DUCKDB,
    embedded: bool = True,
    modes: ScriptModes | None = None,
    offline: list[str] | None = None,
    stop: bool = True,
) -> tuple[Core, list[str]]:
    """A shell after a script, and the statements that were sent."""
    client = Counted(columns)

    async def work() -> Core:
        core = Core(client, modes=lambda _: modes or ScriptModes())
        core.session.options.on_error = "stop" if stop else "continue"
        core.session.connection.service.transport.extensions = extensions
        connection = replace(core.session.connection, embedded=embedded)
        if offline is not None:

            def print_it(submission: Submission, context: SessionContext) -> None:
                offline.append(submission.sql)

            connection = replace(connection, offline=print_it)
        core.session.state.connection = connection
        await core.shell.run_script([Own(script)], name)
        await core.shell.finish()
        return core

    core = asyncio.run(work())
    core.events.append(f"described {client.described}")
    return core, client.sqls


SETTINGS = "SET statement_timeout = 0;\nSET client_encoding = 'UTF8';\nALTER TABLE public.t OWNER TO me;\n"
SKIPPED = "settings, owners, privileges and extensions of PostgreSQL are skipped\n"


def test_what_has_no_effect_is_said_once() -> None:
    core, sent = run(f"{SETTINGS}{BEGINS}GRANT ALL ON t TO you;\nselect 1;\n")
    assert sent == [PUBLIC, "select 1"]
    assert core.err == SKIPPED
    assert run(f"{SETTINGS}select 1;\n", embedded=False)[1] == ["select 1"]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"name": ""}, "everything"),
        ({"extensions": frozenset({"engines", "engine=postgresql"})}, "everything"),
        ({"extensions": frozenset({"batch"})}, "everything"),
        ({}, "nothing"),
    ],
)
def test_only_scripts_on_duckdb_are_translated(given: dict[str, object], sent: str) -> None:
    core, found = run(SETTINGS, **given)  # type: ignore[arg-type]
    whole = [text.rstrip(";") for text in SETTINGS.splitlines()]
    assert found == (whole if sent == "everything" else [])
    assert core.err == ("" if sent == "everything" else SKIPPED)


def test_what_is_printed_instead_of_being_sent_is_the_text_of_the_script() -> None:
    printed: list[str] = []
    core, sent = run(SETTINGS, offline=printed)
    assert printed == [text.rstrip(";") for text in SETTINGS.splitlines()]
    assert (sent, core.err) == ([], "")


@pytest.mark.parametrize(("embedded", "translated"), [(True, True), (False, False)])
def test_a_dry_run_asks_no_service_what_it_is(embedded: bool, translated: bool) -> None:
    core, sent = run("SET statement_timeout = 0;\nselect 1;\n", embedded=embedded, modes=ScriptModes(dry_run=True))
    unchanged = "-- dump.sql:1\nSET statement_timeout = 0;\n"
    assert core.out == f"{'' if translated else unchanged}-- dump.sql:2\nselect 1;\n"
    assert sent == []


def test_objects_that_duckdb_does_not_have() -> None:
    function = "CREATE FUNCTION f() RETURNS int AS $$select 1$$ LANGUAGE sql;\n"
    core, sent = run(f"{BEGINS}\n{function}select 1;\n", stop=False)
    assert sent == [PUBLIC, "select 1"]
    assert core.err == "dump.sql:3: error[0A000]: the local service does not support PostgreSQL's functions\n"
    assert core.shell.exit == Exit.STATEMENT
    # Elsewhere than in a dump it may be meant as it is.
    assert run(function)[1] == [function.rstrip(";\n")]


def test_what_is_lost_of_types_is_a_warning() -> None:
    table = "CREATE TABLE public.t (a numeric, b integer);\n"
    domain = "CREATE DOMAIN public.d AS integer DEFAULT 1 CONSTRAINT c CHECK ((VALUE > 0));\n"
    core, sent = run(f"{BEGINS}{table}{domain}")
    assert sent[:2] == [PUBLIC, table.rstrip(";\n")]
    assert len(sent) == 3
    assert core.err == (
        "warning: numeric without a precision is DECIMAL(18,3) here, which rounds further digits; write a precision, "
        "such as numeric(38,10), to keep them\n"
        "warning: the domain is a plain type here, without its constraints and default\n"
    )
    assert run(table)[0].err == ""


INTEGERS = [["a", "INTEGER"], ["b", "ARRAY<INTEGER>"]]
INSERT = "INSERT INTO public.t VALUES (1, '{1,2}');\n"


def test_arrays_in_rows_are_those_of_the_table() -> None:
    core, sent = run(BEGINS + INSERT + INSERT, INTEGERS)
    assert sent == [PUBLIC, *["INSERT INTO public.t VALUES (1, ['1', '2'])"] * 2]
    assert core.err == ""
    assert core.events[-1] == "described 1"


@pytest.mark.parametrize(
    ("between", "asked"),
    [("insert into u select 1;\n", 1), ("ALTER TABLE public.t ADD COLUMN c integer;\n", 2), ("select 1;\n", 2)],
)
def test_columns_are_asked_for_again_after_another_statement(between: str, asked: int) -> None:
    core, _ = run(f"{BEGINS}{INSERT}{between}{INSERT}", INTEGERS)
    assert core.events[-1] == f"described {asked}"


def test_rows_for_identity_columns() -> None:
    script = f"{BEGINS}INSERT INTO public.t (a, b) OVERRIDING SYSTEM VALUE VALUES (1, '{{1,2}}');\n"
    core, sent = run(script, INTEGERS)
    assert sent[1:] == ["INSERT INTO public.t (a, b) VALUES (1, ['1', '2'])"]
    assert core.err == ""


def test_columns_by_name() -> None:
    _, sent = run(f"{BEGINS}INSERT INTO public.t (B, a) VALUES ('{{1,2}}', '{{3}}');\n", INTEGERS)
    assert sent[1:] == ["INSERT INTO public.t (B, a) VALUES (['1', '2'], '{3}')"]
    _, sent = run(f"{BEGINS}INSERT INTO public.t (c, a) VALUES ('{{1,2}}', '{{3}}');\n", INTEGERS)
    assert sent[1:] == ["INSERT INTO public.t (c, a) VALUES ('{1,2}', '{3}')"]


def test_an_array_in_a_table_that_cannot_be_described() -> None:
    core, sent = run(f"{BEGINS}{INSERT}", None)
    assert sent[-1] == INSERT.rstrip(";\n")
    assert core.shell.exit == Exit.DONE


def test_a_dry_run_describes_no_table() -> None:
    core, sent = run(BEGINS + INSERT, INTEGERS, modes=ScriptModes(dry_run=True))
    assert core.out.endswith(f"-- dump.sql:2\n{INSERT}")
    assert sent == []
