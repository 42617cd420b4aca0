"""Only `;` and the commands that send send the query buffer: the same input has the same effect here and in psql."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import Program
from tests.terminal import query_buffer
from tests.terminal.query_buffer import CASES, SETUP, answer, answers, lines_of, prepare
from tests.terminal.terminal import Terminal

pytestmark = pytest.mark.slow("a terminal")

CHECKED = {"\\g /nosuch/x": ["1,2,3", "delete from t\nprobe"]}
"""A file that cannot be written is found before the statement is sent; psql sends it first."""


FAILING = ("\\g (nope=1)", "\\g (format=nope)", "\\gx (format=nope) other", "\\g /nosuch/x")


def expected() -> dict[str, list[str]]:
    known = json.loads(query_buffer.ANSWERS.read_text(encoding="utf-8"))
    assert list(known) == list(CASES)
    return dict(known)


def test_the_prompt_does_with_an_unfinished_statement_what_psql_does(tmp_path: Path) -> None:
    made = prepare(tmp_path)
    terminal = Terminal(tmp_path, "-q", "--no-rc", env={**made, "TERM": "xterm"}, rows=12)
    try:
        terminal.prompt()
        terminal.enter("\\pset completion off")
        terminal.enter(SETUP)
        terminal.prompt()
        found = answers(tmp_path, terminal.enter, lambda: terminal.screen_after(0.01))
    finally:
        terminal.close()
    # Where psql describes the statement, it is refused here: it may write. A person has it back.
    assert found == expected() | {"\\gdesc": ["1,2,3", "delete from t\nprobe"]} | CHECKED


def test_scripts_do_the_same(program: Program, tmp_path: Path) -> None:
    made = prepare(tmp_path)
    here = {name: lines for name, lines in CASES.items() if not {"\\e", "\\edit"} & {*lines}}
    lines = [SETUP]
    for number, case in enumerate(here.values()):
        lines += [line.replace("{folder}", str(tmp_path)) for line in lines_of(number, case)]
    script = "\n".join([*lines, ""])
    program("-q", "--on-error", "continue", stdin=script, env=made)
    # A statement whose command failed does not join the next one of a script.
    known = expected() | {key: ["1,2,3", "probe"] for key in FAILING}
    assert {name: answer(tmp_path, number) for number, name in enumerate(here)} == {name: known[name] for name in here}


@pytest.mark.skipif(not (shutil.which("psql") and shutil.which("initdb")), reason="needs psql and initdb")
def test_the_answers_are_those_of_psql() -> None:
    assert query_buffer.of_psql() == json.loads(query_buffer.ANSWERS.read_text(encoding="utf-8"))


def test_leaving_an_included_file_keeps_the_shell_and_a_refused_command_the_text(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("select 'from ' || 'the file';\n\\q\nselect 'never ' || 'seen';\n")
    terminal = Terminal(tmp_path, "-q", "--no-rc", rows=30)
    try:
        terminal.prompt()
        terminal.enter("\\i q.sql")
        terminal.wait("from the file")
        terminal.prompt()
        terminal.enter("select unnest(['selct', 'select ''still '' || ''here''']) \\gexec")
        terminal.wait("still here")
        terminal.prompt()
        terminal.enter("select 'kept ' || 'text' \\watch c=0")
        shown = terminal.wait(lambda text: text.count("select 'kept ' || 'text'") == 2)
        assert "kept text" not in shown
        terminal.enter(";")
        assert "never seen" not in terminal.wait("kept text")
    finally:
        terminal.close()
