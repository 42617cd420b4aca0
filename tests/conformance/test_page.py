"""clients.md says what the tests expect."""

from __future__ import annotations

from tests.conformance.__main__ import PAGE, page


def test_the_page_is_made_from_the_tests() -> None:
    assert PAGE.read_text() == page(PAGE.read_text()), "python -m tests.conformance writes it"
