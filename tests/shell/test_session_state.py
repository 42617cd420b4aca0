"""The state of a session as a whole: its options, the progress of a statement, and the context that it adopts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sqlshell.context import SessionContext
from sqlshell.errors import StatementError, Where
from sqlshell.interface.models import ContextEcho
from sqlshell.shell.options import Options
from sqlshell.shell.running.statement import Running
from sqlshell.shell.session import Session, SessionState
from tests.shell.sessions import connection, ignore
from tests.shell.sessions import session as new_session


def test_the_share_that_is_done() -> None:
    running = Running()
    assert (running.hint, running.submitted_here) == ("^C stops", True)
    shares: list[float | None] = [running.shown_share]
    for share, message in ((0.5, "a"), (0.25, "a"), (0.25, "b"), (1.0, "b"), (0.5, "b"), (None, "b"), (0.75, "b")):
        running.progressed(share, message)
        shares.append(running.shown_share)
    assert shares == [None, 0.5, 0.5, 0.25, 1.0, 0.5, None, 0.75]
    assert running.message == "b"
    running.finished = True
    assert running.shown_share is None
    running.hint, running.notice = "x", "y"
    running.begin_fetching(8)
    assert (running.total, running.hint, running.message, running.notice) == (8, "^C stops", "", "")
    assert running.fetching > 0
    running.received(2, 10)
    running.received(4, 20)
    assert (running.fetched_rows, running.fetched_bytes) == (6, 30)
    assert running.shown_share == pytest.approx(0.75)
    running.begin_fetching(None)
    assert (running.fetched_rows, running.fetched_bytes) == (0, 0)
    running.received(2, 10)
    assert running.shown_share is None


def test_options_for_a_while() -> None:
    session = new_session()
    with pytest.raises(KeyboardInterrupt), session.options_for({"null": "-", "footer": False}):
        assert (session.options.null, session.options.footer) == ("-", False)
        raise KeyboardInterrupt
    assert vars(session.options) == vars(Options())
    with session.options_for({"format": "csv"}):
        assert (session.options.format, session.options.chosen) == ("csv", {"format"})
    assert vars(session.options) == vars(Options())
    session.options.choose({"format": "csv"})
    with session.options_for({"null": "-"}):
        assert session.options.chosen == {"format", "null"}
    assert session.options.chosen == {"format"}


def test_a_session_is_busy_with_a_statement_or_a_command() -> None:
    session = new_session()
    found = [session.busy]
    session.command_running = True
    found.append(session.busy)
    session.command_running, session.running = False, Running()
    found.append(session.busy)
    session.running = None
    assert [*found, session.busy] == [False, True, True, False]


def test_a_session_is_that_of_its_connection() -> None:
    context = SessionContext(database="d", role="r")
    given = connection(
        None, context, label="first", embedded=True, sources={"database": "flag"}, redact=lambda sql: f"<{sql}>"
    )
    state = SessionState.on(given, ignore)
    session = Session(state)
    assert (session.connection, session.context, session.target, session.embedded) == (given, context, "first", True)
    assert (session.transaction, session.redact("a"), state.client) == (state.transaction, "<a>", given.client)
    assert (state.sources, state.default_role, state.changed_parts) == ({"database": "flag"}, "", set())
    state.sources["role"] = "service"
    # The next session on the connection begins as this one did.
    assert given.sources == {"database": "flag"}


def test_a_connection_without_a_redactor_and_checks() -> None:
    given = connection()
    assert given.redact("password 'x'") == "password 'x'"
    assert asyncio.run(given.examine()) == ""  # type: ignore[arg-type]
    given.release()
    assert (given.short_name, given.embedded, given.storage_name, given.own_session) == ("", False, "", "")
    assert (given.prompt_color, given.offline, given.url_of_other_database, given.secret_names) == ("", None, None, ())


BEFORE = SessionContext(role="r", database="d", schema="s")
SOURCES = {"database": "flag", "schema": "profile"}


def begun(context: SessionContext = BEFORE) -> Session:
    session = Session(SessionState.on(connection(None, context, sources=SOURCES), ignore))
    session.state.default_role = "public"
    return session


@pytest.mark.parametrize(
    ("context", "echo", "expected"),
    [
        (BEFORE, None, {"context": BEFORE, "sources": SOURCES, "changed": set(), "role": "public"}),
        (
            BEFORE,
            ContextEcho(database_name="d", schema_name="s", role_name="r"),
            {"context": BEFORE, "sources": SOURCES, "changed": set(), "role": "public"},
        ),
        (
            BEFORE,
            ContextEcho(database_name="e", store_name="st", role_name="other"),
            {
                "context": SessionContext(role="other", database="e", schema="s", store="st"),
                "sources": {"role": "service", "database": "service", "schema": "profile", "store": "service"},
                "changed": {"database", "role"},
                "role": "public",
            },
        ),
        (
            SessionContext(),
            ContextEcho(role_name="admin", organization_id="o"),
            {
                "context": SessionContext(role="admin", organization="o"),
                "sources": {**SOURCES, "role": "service", "organization": "service"},
                "changed": set(),
                "role": "admin",
            },
        ),
        (
            BEFORE,
            ContextEcho(schema_name=""),
            {
                "context": SessionContext(role="r", database="d"),
                "sources": {"database": "flag", "schema": "service"},
                "changed": {"schema"},
                "role": "public",
            },
        ),
        (
            BEFORE,
            ContextEcho(transaction="open"),
            {
                "context": SessionContext(role="r", database="d", schema="s", transaction="open"),
                "sources": SOURCES,
                "changed": set(),
                "role": "public",
            },
        ),
    ],
)
def test_a_context_is_adopted(context: SessionContext, echo: ContextEcho | None, expected: dict[str, Any]) -> None:
    session = begun(context)
    session.adopt(echo)
    state = session.state
    found = {
        "context": state.context,
        "sources": state.sources,
        "changed": state.changed_parts,
        "role": state.default_role,
    }
    assert found == expected
    assert state.last_echo == echo
    assert session.transaction.state == (echo.transaction or "" if echo is not None else "")


ECHO = ContextEcho(database_name="d", schema_name="s")


@pytest.mark.parametrize(
    ("sql_state", "message", "echo", "hint", "context", "sources"),
    [
        (
            "3D003",
            'schema "s" does not exist',
            None,
            "no schema is selected now\nselect another with USE SCHEMA NAME or \\context set schema NAME",
            SessionContext(role="r", database="d"),
            SOURCES,
        ),
        (
            "3D003",
            "no",
            ContextEcho(schema_name="main"),
            "the current schema is now 'main'\nselect another with USE SCHEMA NAME or \\context set schema NAME",
            SessionContext(role="r", database="d", schema="main"),
            {"database": "flag", "schema": "service"},
        ),
        (
            "3D002",
            "database d does not exist",
            ContextEcho(database_name="local", schema_name="main"),
            "the current database is now 'local'\nselect another with USE DATABASE NAME or \\context set database NAME",
            SessionContext(role="r", database="local", schema="main"),
            {"database": "service", "schema": "service"},
        ),
        (
            "3D002",
            "database d_2 does not exist",
            ContextEcho(database_name="d", schema_name="other"),
            "",
            BEFORE,
            SOURCES,
        ),
        (
            "42601",
            "wrong",
            ContextEcho(database_name="e", store_name="st"),
            "",
            SessionContext("", "r", "d", "s", "st"),
            {**SOURCES, "store": "service"},
        ),
    ],
)
def test_the_context_after_a_failure(
    sql_state: str, message: str, echo: ContextEcho | None, hint: str, context: SessionContext, sources: dict[str, str]
) -> None:
    session = begun()
    with session.protecting_context("select 1"):
        session.adopt(ECHO)
    assert session.state.confirmed_echo == ECHO
    failure = StatementError(message, where=Where(sql_state))
    with pytest.raises(StatementError) as raised, session.protecting_context("select 1"):
        assert (session.state.last_echo, session.state.lost_context) == (None, None)
        session.adopt(echo)
        raise failure
    state = session.state
    assert (raised.value, failure.hint, state.context) == (failure, hint, context)
    lost = context.schema != "s"
    assert (state.lost_context is failure, bool(state.changed_parts & {"schema"})) == (lost, lost)
    assert "role" not in state.changed_parts
    assert {"database", "role"} & state.changed_parts == ({"database"} if context.database != "d" else set())
    # What was kept comes from where it came before.
    assert state.sources == sources
    assert state.confirmed_echo == ECHO


def test_a_hint_of_the_service_is_kept() -> None:
    session = begun()
    failure = StatementError("schema s does not exist", "ask", where=Where("3D003"))
    with pytest.raises(StatementError), session.protecting_context("select 1"):
        raise failure
    assert failure.hint == "ask"


@pytest.mark.parametrize(
    ("sql_state", "part", "dropped"),
    [
        ("3D023", "compute_pool", {"compute_pool"}),
        ("3D006", "store", {"store"}),
        ("3D003", "schema", {"schema"}),
        ("3D002", "database", {"database", "schema"}),
        ("3D001", "role", {"role"}),
        ("3D004", "organization", {"organization", "database", "schema", "store", "compute_pool"}),
    ],
)
def test_what_depends_on_a_part_goes_with_it(sql_state: str, part: str, dropped: set[str]) -> None:
    names = ("organization", "role", "database", "schema", "store", "compute_pool")
    session = new_session(SessionContext(*names, timezone="UTC", session_id="id"), interactive=True)
    with pytest.raises(StatementError), session.protecting_context("select 1"):
        raise StatementError(f"{part} gone", where=Where(sql_state))
    left = {name for name, value in session.context.parts() if value}
    assert {*names, "timezone", "session_id"} - left == dropped
    assert session.state.changed_parts == dropped
