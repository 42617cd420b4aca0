"""Templates of the prompt, the toolbar and the title, and the context in the prompt."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sqlshell.context import SessionContext
from sqlshell.errors import UsageError
from sqlshell.shell.interactive.look.context_line import Shown, context_line, short
from sqlshell.shell.interactive.look.prompt_line import MOST_READ, filled, fragments
from sqlshell.shell.interactive.look.toolbar import Typing, toolbar_text
from sqlshell.shell.options import FIELDS, checked
from sqlshell.shell.session import Session
from sqlshell.sql.analysis.policy import Policy
from sqlshell.sql.analysis.secrets import redacted
from tests.shell.sessions import connection, session

CONTEXT = SessionContext(
    organization="o\x1b",
    role="r",
    database="d",
    schema="s",
    store="st",
    compute_pool="p",
    timezone="UTC",
    session_id="0123456789",
)


@pytest.fixture
def shown() -> Session:
    return session(CONTEXT)


def running(shown: Session, statement: str) -> None:
    shown.running = SimpleNamespace(statement=statement)  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{organization}/{role}", "o\\x1b/r"),
        ("{database}.{schema}@{store}", "d.s@st"),
        ("{pool} {timezone} {session}", "p UTC 01234567"),
        ("{target}", "nowhere"),
        ("[{elapsed}{jobs}{transaction}{readonly}]", "[]"),
        ("{statement}", "sqlshell"),
        ("{bold}{database}{/} {#ff8800 bold}> ", "d > "),
        ("{nothing}{}", ""),
        ("plain", "plain"),
    ],
)
def test_each_field_has_its_value(shown: Session, template: str, text: str) -> None:
    assert filled(template, shown) == text


def test_fields_that_are_empty_until_something_happens(shown: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    shown.elapsed = 0.0
    assert filled("{elapsed}", shown) == "0 ms"
    monkeypatch.setattr(type(shown.state.background), "running_count", 2)
    assert filled("{jobs}", shown) == "2 running"
    shown.state.connection = connection(context=CONTEXT, policy=Policy(read_only=True))
    assert filled("{readonly}", shown) == "read-only"


def test_the_running_statement_is_shown_without_its_secrets(shown: Session) -> None:
    shown.state.connection = connection(context=CONTEXT, redact=redacted)
    running(shown, "create secret s (password 'hunter2')")
    assert filled("{statement}", shown) == "create secret s (***)"
    running(shown, "select\n  1, '" + "x" * 100 + "'")
    found = filled("{statement}", shown)
    assert found.startswith("select 1, 'xx")
    assert found.endswith("…")
    assert len(found) == 40
    running(shown, "select  " + "x" * MOST_READ)
    assert filled("{statement}", shown) == "select  …"
    running(shown, "")
    assert filled("{statement}", shown) == "sqlshell"


@pytest.mark.parametrize(
    ("template", "parts"),
    [
        ("a{bold}b{/}c", [("", "a"), ("bold", "b"), ("", "c")]),
        ("{#ff8800 bold}{database}{bg:#003355}{schema}", [("#ff8800 bold", "d"), ("bg:#003355", "s")]),
        ("{bold}{/}", []),
        ("{italic}x{underline}{reverse}y", [("italic", "x"), ("reverse", "y")]),
        # No styles, so fields that are not known.
        ("{#ff88}x", [("", "x")]),
    ],
)
def test_a_style_applies_until_the_next_one(shown: Session, template: str, parts: list[tuple[str, str]]) -> None:
    assert fragments(template, shown) == parts


def test_the_toolbar_may_be_a_template(shown: Session) -> None:
    shown.options.toolbar = "{bold}{database}{/} here"
    assert toolbar_text(shown, 5, Typing.NOTHING) == [("", " "), ("bold", "d"), ("", " here")]


@pytest.mark.parametrize("name", [*FIELDS, "bold", "/", "#ff8800", "bg:#003355 italic"])
def test_a_template_may_have_fields_and_styles(name: str) -> None:
    assert checked("prompt", f"{{{name}}} ") == f"{{{name}}} "


@pytest.mark.parametrize("name", ["nope", "", "Bold", "#ff88", "bold  italic", "database "])
def test_what_is_neither_is_refused(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked("prompt", f"{{bold}}{{database}} {{{name}}}")
    assert caught.value.message == f"prompt: unknown field {{{name}}}"
    assert "fields: organization, role," in caught.value.hint


def test_the_color_of_a_prompt() -> None:
    assert checked("prompt_color", "#ff5f5f bold") == "#ff5f5f bold"
    with pytest.raises(UsageError, match="prompt_color: 'reddish' is not a valid color"):
        checked("prompt_color", "reddish")


def line(most: int = 200, **parts: Any) -> str:
    return "".join(text for _, text in context_line(Shown(**{"target": "", **parts}), most))


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({}, "sqlshell"),
        ({"target": "t"}, "t"),
        ({"database": "d"}, "d"),
        ({"schema": "s"}, "s"),
        ({"store": "st"}, "/st"),
        ({"target": "t", "database": "d"}, "t:d"),
        ({"target": "t", "database": "d", "schema": "s", "store": "st", "role": "r"}, "r@t:d.s/st"),
        ({"role": "r"}, "r@sqlshell"),
    ],
)
def test_the_parts_of_the_context_that_are_set(parts: dict[str, Any], text: str) -> None:
    assert line(**parts) == text


def test_a_line_that_is_too_long_loses_its_role_and_then_its_long_names() -> None:
    parts: dict[str, Any] = {"target": "a" * 20, "database": "d" * 12, "schema": "s" * 13, "role": "admin"}
    whole = f"admin@{'a' * 20}:{'d' * 12}.{'s' * 13}"
    assert line(len(whole), **parts) == whole
    assert line(len(whole) - 1, **parts) == whole.removeprefix("admin@")
    assert line(len(whole) - 6, **parts) == whole.removeprefix("admin@")
    assert line(len(whole) - 7, **parts) == f"{'a' * 11}…:{'d' * 12}.{'s' * 11}…"
    assert line(1, **parts) == f"{'a' * 11}…:{'d' * 12}.{'s' * 11}…"


@pytest.mark.parametrize(
    ("text", "shortened"), [("a" * 40, "a" * 40), ("a" * 41, "a" * 39 + "…"), ("a\nb\x1b", "a\\nb\\x1b")]
)
def test_a_name_is_short_and_safe(text: str, shortened: str) -> None:
    assert short(text) == shortened
