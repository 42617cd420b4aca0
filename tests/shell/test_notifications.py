"""The bell and the notification after a statement that took long."""

from __future__ import annotations

import io

import pytest

from sqlshell.runtime.streams import Streams
from sqlshell.shell.interactive.loop import _notify, changes_catalog
from sqlshell.shell.options import Options
from tests.shell.sessions import session


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(notify: float, elapsed: float | None, screen: io.StringIO) -> str:
    told = session(options=Options(notify=notify))
    told.elapsed = elapsed
    _notify(told, Streams(io.StringIO(), screen, io.StringIO()))
    return screen.getvalue()


def test_a_statement_that_took_long_rings_and_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    text = "sqlshell: statement finished after 5.000 s"
    for elapsed, shown in ((None, False), (4.9, False), (5.0, True)):
        found = written(5.0, elapsed, Screen())
        assert found == (f"\a\x1b]9;{text}\x07\x1b]777;notify;sqlshell;{text}\x07" if shown else "")
    assert written(0.0, 5.0, Screen()) == ""
    assert written(5.0, 5.0, io.StringIO()) == ""
    monkeypatch.setenv("TERM", "dumb")
    assert written(5.0, 5.0, Screen()) == ""


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("create table t (a int);", True),
        ("select 1; drop table t;", True),
        ("select 'create';", False),
        ("\\create", False),
        ("", False),
    ],
)
def test_the_names_of_a_service_may_have_changed(text: str, changes: bool) -> None:
    assert changes_catalog(text) is changes
