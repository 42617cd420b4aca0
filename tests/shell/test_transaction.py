"""The state of a transaction, derived from the statements or announced by the service."""

from __future__ import annotations

import pytest

from sqlshell.errors import StatementError
from sqlshell.interface.models import ContextEcho
from sqlshell.sql.analysis.transaction import Transaction

ERROR = StatementError("failed")


@pytest.mark.parametrize(
    ("statements", "mark"),
    [
        ("select 1", ""),
        ("begin", "*"),
        ("BEGIN TRANSACTION; insert into t values (1)", "*"),
        ("start transaction read only", "*"),
        ("/* ? */ begin -- x", "*"),
        ("start compute_pool p", ""),
        ("begin application a insert into t values (1)", ""),
        ("begin; start compute_pool p", "*"),
        ("begin; commit", ""),
        ("begin; end", ""),
        ("begin; rollback", ""),
        ("begin; abort", ""),
        ("begin; commit and chain; begin", "*"),
        ("begin; savepoint a; rollback to a", "*"),
        ("begin; rollback to savepoint a", "*"),
        ("begin; release a", "*"),
        ("begin; prepare p as select 1", "*"),
        ("begin; begin", "*"),
        ("!select 1", ""),
        ("!begin", ""),
        ("begin; !select 1", "!"),
        ("begin; !begin", "!"),
        ("begin; !select 1; !select 1", "!"),
        ("begin; !select 1; rollback", ""),
        ("begin; !select 1; commit", ""),
        ("begin; !select 1; rollback to a", "*"),
        ("begin; !commit", ""),
        # This service goes on with it after an error.
        ("begin; !select 1; select 1", "*"),
        ("commit", ""),
        ("select 'begin'", ""),
        ("", ""),
    ],
)
def test_by_the_statements(statements: str, mark: str) -> None:
    transaction = Transaction()
    for sql in statements.split("; "):
        transaction.statement_ended(sql.removeprefix("!"), ERROR if sql.startswith("!") else None)
    assert transaction.mark == mark


def test_by_the_announcement() -> None:
    transaction = Transaction()
    for echoed, sql, error, mark in (
        (None, "select 1", None, ""),
        ("open", "begin", None, "*"),
        # An error of the text alone leaves it open, which only the service knows.
        ("open", "selct", ERROR, "*"),
        ("failed", "select 1/0", ERROR, "!"),
        (None, "rollback", None, ""),
        (None, "begin", ERROR, ""),
    ):
        transaction.adopt(ContextEcho(schema_name="main", transaction=echoed))
        transaction.statement_ended(sql, error)
        assert transaction.mark == mark, sql
