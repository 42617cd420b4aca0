"""Submissions before they run: how they are split, what is stored of secrets, and how refusals are reported."""

from __future__ import annotations

import pytest

from sqlshell.service.failure import Refusal, RequestTooLarge
from sqlshell.service.http.app import REFUSED
from sqlshell.service.statements.texts import HEAD, LONG_SECRET, redacted_statements, split


def test_every_reason_of_a_refusal_has_a_status() -> None:
    assert set(REFUSED) == set(Refusal.__subclasses__())
    assert all(400 <= status < 600 for status in REFUSED.values())


@pytest.mark.parametrize("padding", [0, 2_000], ids=["in the event loop", "in the thread"])
def test_a_submission_has_a_maximum_of_statements(padding: int) -> None:
    comment = f"/*{'-' * padding}*/"
    assert len(split(f"{comment}select 1; select 2; select 3", 3)) == 3
    with pytest.raises(RequestTooLarge, match="more than 2 statements; split it"):
        split(f"{comment}select 1; select 2; select 3", 2)


def test_backslash_commands_are_no_statements_of_the_maximum() -> None:
    assert len(split("\\a\n\\b\nselect 1;", 1)) == 3


def test_each_statement_is_redacted_by_itself() -> None:
    found = redacted_statements(["select 1", "create secret s with ('secret_string' = 'hush')", "select 'hush'"])
    assert found[0] is None
    assert found[2] is None
    assert found[1] is not None
    assert "hush" not in found[1].text
    assert list(found[1].values) == ["hush"]
    assert not found[1].cut


@pytest.mark.parametrize("before", [0, LONG_SECRET - 20, LONG_SECRET + 20, 3 * LONG_SECRET])
def test_of_a_long_statement_with_a_secret_only_the_beginning_is_stored(before: int) -> None:
    sql = f"create secret s with ('description' = '{'x' * before}', 'secret_string' = 'hush{'y' * 2 * LONG_SECRET}')"
    (found,) = redacted_statements([sql])
    assert found is not None
    assert found.cut
    assert not found.values
    assert len(found.text) <= HEAD
    assert "hush" not in found.text


def test_a_long_statement_without_secrets_is_stored_as_it_is() -> None:
    assert redacted_statements([f"insert into t values ('{'x' * 3 * LONG_SECRET}')"]) == [None]
