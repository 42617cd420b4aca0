"""The context after a failure: requested parts stay, and parts that no longer exist are removed."""

from __future__ import annotations

import pytest

from sqlshell.context import SessionContext
from sqlshell.errors import StatementError, Where
from sqlshell.interface.models import ContextEcho
from tests.client.test_statements import ID, done, scripted
from tests.conftest import Program
from tests.shell.sessions import session as new_session

BEFORE = SessionContext(database="d", schema="s", store="st", compute_pool="p")
HERE = ContextEcho(database_name="d", schema_name="s", store_name="st", compute_pool_name="p")


def after(
    state: str, message: str, sql: str, echo: ContextEcho | None, *, interactive: bool, confirmed: bool
) -> tuple[SessionContext, str]:
    session = new_session(BEFORE, interactive=interactive)
    if confirmed:
        with session.protecting_context("select 1"):
            session.adopt(HERE)
    with pytest.raises(StatementError) as raised, session.protecting_context(sql):
        session.adopt(echo)
        raise StatementError(message, where=Where(state))
    assert (session.state.lost_context is raised.value) == (session.context != BEFORE)
    return session.context, raised.value.hint


@pytest.mark.parametrize(
    ("state", "message", "sql", "echo", "context"),
    [
        ("3D006", 'store "st" does not exist', "select 1", ContextEcho(), {"store": ""}),
        ("3D006", 'store "st" does not exist', "select 1", None, {"store": ""}),
        ("3D006", "gone", "select 1", ContextEcho(store_name=""), {"store": ""}),
        ("3D023", "gone", "select 1", ContextEcho(compute_pool_name="default"), {"compute_pool": "default"}),
        ("3D003", "gone", "select 1", ContextEcho(database_name="d", schema_name="main"), {"schema": "main"}),
        ("3D002", 'database "d" is not there', "select 1", None, {"database": "", "schema": ""}),
        # What the statement itself names, and what the service is in, is not the context's.
        ("3D006", 'store "st" does not exist', "describe store st", ContextEcho(), {}),
        ("3D006", 'store "other" does not exist', "select 1", None, {}),
        ("3D003", 'schema "s" does not exist', "describe relation other.s.t", HERE, {}),
        ("3D003", 'schema "x" does not exist', "describe relation x.t", HERE, {}),
        ("3D002", 'database "x" does not exist', "use database x", ContextEcho(database_name="local"), {}),
        ("42601", 'store "st" is no word', "select 1", None, {}),
    ],
)
def test_what_the_service_had_and_has_no_more_is_dropped(
    state: str, message: str, sql: str, echo: ContextEcho | None, context: dict[str, str]
) -> None:
    expected = SessionContext(**(dict(BEFORE.parts()) | context))
    for interactive in (True, False):
        found, hint = after(state, message, sql, echo, interactive=interactive, confirmed=True)
        assert found == expected
        assert ("selected now" in hint or " is now " in hint) == bool(context)
    # A script goes on nowhere else than it asked for; a person sees where.
    assert after(state, message, sql, echo, interactive=True, confirmed=False)[0] == expected
    kept, hint = after(state, message, sql, echo, interactive=False, confirmed=False)
    assert (kept, hint.startswith("select another with USE ")) == (BEFORE, bool(context))


def test_a_script_ends_with_the_session_that_it_had(program: Program) -> None:
    """What follows may mean other tables of the same names, whatever is set for errors."""
    lost = {"sqlState": "57P02", "message": "the engine began anew", "statementID": ID, "createdOn": 1}
    with scripted((200, done(data=[["1"]])), (200, lost), (200, done(data=[["2"]]))) as service:
        script = "select 1;\ncreate table kept as from temporary;\ndrop table other;\n"
        env = {"SQLSHELL_URL": service.url, "SQLSHELL_TOKEN": "t"}
        found = program("--on-error", "continue", "--format", "csv", stdin=script, env=env)
    assert (found.code, found.out) == (1, "a\n1\n"), found.err
    assert "2 statements were not run" not in found.err
    assert "1 statement was not run" in found.err
    assert not any(b"drop table" in asked[3] for asked in service.asked)
