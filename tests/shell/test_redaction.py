"""Values that the shell knows to be secret: which of them are removed from what is stored, in which form."""

from __future__ import annotations

import pytest

from sqlshell.shell.records import redaction
from sqlshell.shell.records.redaction import SecretFilter


@pytest.mark.parametrize(
    ("secret", "text", "stored"),
    [
        # Too short to be removed.
        ("abc", "select 'abc'", "select 'abc'"),
        # Shorter values only where they are a whole string.
        ("abcd", "select 'abcd', xabcd, 'abcd e'", "select '***', xabcd, 'abcd e'"),
        ("abcd", 'select "abcd", $abcd$', 'select "***", $***$'),
        ("abcdefg", "abcdefg 'abcdefg'", "abcdefg '***'"),
        # Longer ones anywhere, words as words.
        ("abcdefgh", "abcdefgh xabcdefgh 'abcdefgh'", "*** xabcdefgh '***'"),
        ("12345678", "12345678 123456789", "*** 123456789"),
        ("ab-cd-ef", "xab-cd-efx", "x***x"),
        # As a literal and in a URL.
        ("it's a secret", "'it''s a secret'", "'***'"),
        ("it's a secret", "x?p=it%27s%20a%20secret", "x?p=***"),
        # What only hides something is no secret.
        ("********", "password ********", "password ********"),
        ("", "select 1", "select 1"),
    ],
)
def test_in_which_form_a_secret_is_removed(secret: str, text: str, stored: str) -> None:
    known = SecretFilter()
    known.add(secret)
    assert known.redact(text) == stored


@pytest.mark.parametrize(
    ("name", "names", "secret"),
    [("password", (), True), ("db_token", (), True), ("color", (), False), ("color", ("^col",), True), ("", (), True)],
)
def test_a_value_is_a_secret_by_its_name(name: str, names: tuple[str, ...], secret: bool) -> None:
    known = SecretFilter(names)
    known.add("ab-cd-ef", name)
    assert (known.redact("ab-cd-ef") == "***") is secret


def test_the_latest_secrets_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "MAX_SECRETS", 2)
    known = SecretFilter()
    for value in ("first-one", "second-one", "first-one", "third-one"):
        known.add(value)
    assert known.redact("first-one second-one third-one") == "*** second-one ***"


def test_secrets_of_connections_are_asked_for_each_time() -> None:
    known, tokens = SecretFilter(), ["old-token"]
    known.add_source(lambda: tokens)
    assert known.redact("old-token new-token") == "*** new-token"
    tokens[:] = ["new-token"]
    assert known.redact("old-token new-token") == "old-token ***"
