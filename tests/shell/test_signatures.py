"""The signature of a function with several forms."""

import pytest

from sqlshell.shell.metadata.catalog_loader import signature_of


@pytest.mark.parametrize(
    ("forms", "shown"),
    [
        (["(a) -> DATE"], "(a) -> DATE"),
        (["(a) -> DATE", "(a) -> TIMESTAMP"], "(a) -> DATE | 1 other"),
        (["(a) -> DATE", "(a, b) -> DATE"], "(a) -> DATE + 1 form"),
        (["(a) -> A", "(a) -> B", "(a) -> C", "(a) -> D", "(a) -> E", "(b) -> A"], "(a) -> A | 4 others + 1 form"),
        (["(a)"], "(a)"),
        ([""], ""),
    ],
)
def test_the_types_and_forms_that_a_signature_shows(forms: list[str], shown: str) -> None:
    assert signature_of(forms) == shown
