"""A statement's text is scanned once and lexed once on its way, in the shell and in the service."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import Served, clean_environment
from tests.readings import read

ROOT = Path(__file__).parents[1]

SELECT = "select x as a, 'secret' as password from (values (1), (2)) t(x)"
CREATE = "create table kept (a int, b varchar)"
INSERT = "insert into kept select 1, 'x'"
CREATE_AS = "create table kept as select 1 as a, 'x' as b"
FAILING = "select a from missing where token = 'hush'"
SECRET = "create secret s (type generic_string, secret_string 'hush')"
FILE = "create function_source f with ('file' = '@{file}', 'type' = 'java')"
SENT = "create function_source f with ('file' = 'f.jar', 'type' = 'java')"
SCRIPT = ("select 1 from range(2)", "select 2 from range(3)", "insert into missing values (3)")


def run(folder: Path, *argv: str) -> Counter[tuple[str, str, str]]:
    """How often the program read each text."""
    found = folder / "readings"
    arguments = [sys.executable, "-m", "tests.readings", str(found), *argv]
    done = subprocess.run(
        arguments, env=clean_environment(folder), cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return read(found)


def remote(served: Served, folder: Path) -> list[str]:
    (folder / "token").write_text(served.token)
    return [served.url, "--token-file", str(folder / "token")]


@pytest.mark.slow("starts Python anew")
@pytest.mark.parametrize("sql", [SELECT, CREATE, INSERT, FAILING])
def test_a_statement_to_another_process_is_lexed_once(sql: str, served: Served, tmp_path: Path) -> None:
    """For the policy, for repeating its request, for the journal, and for what is said of an error."""
    found = run(tmp_path, *remote(served, tmp_path), "--read-only", "-c", sql)
    # What was taken out of a statement is found by what is left.
    shown = {("shell", "lex", sql.replace("hush", "***")): 1} if sql == FAILING else {}
    assert found == {("shell", "scan", sql): 1, ("shell", "lex", sql): 1} | shown


@pytest.mark.slow("starts Python anew")
def test_a_statement_that_its_variables_change_is_lexed_once_more(served: Served, tmp_path: Path) -> None:
    before, after = "select :n::int as password, 'x'", "select 7::int as password, 'x'"
    found = run(tmp_path, *remote(served, tmp_path), "--read-only", "--set", "n=7", "-c", before)
    assert found == {("shell", what, sql): 1 for what in ("scan", "lex") for sql in (before, after)}


def test_what_only_looks_like_a_variable_changes_nothing(served: Served, tmp_path: Path) -> None:
    sql = "select 7::int as password, 'x'"
    found = run(tmp_path, *remote(served, tmp_path), "--read-only", "--set", "int=x", "-c", sql)
    assert found == {("shell", "scan", sql): 1, ("shell", "lex", sql): 1}


@pytest.mark.slow("starts Python anew")
def test_a_statement_without_the_path_of_its_file_is_lexed_once_more(served: Served, tmp_path: Path) -> None:
    (tmp_path / "f.jar").write_bytes(b"jar")
    named = FILE.format(file=tmp_path / "f.jar")
    found = run(tmp_path, *remote(served, tmp_path), "-c", named)
    assert found == {("shell", "scan", named): 1, ("shell", "lex", named): 1, ("shell", "lex", SENT): 1}


def test_each_statement_of_a_script_is_lexed_once(served: Served, tmp_path: Path) -> None:
    """Some are sent together: what was asked before that is not asked again."""
    (tmp_path / "script.sql").write_text("".join(f"{sql};\n" for sql in SCRIPT))
    found = run(tmp_path, *remote(served, tmp_path), "-f", str(tmp_path / "script.sql"))
    assert set(found.values()) == {1}
    assert {text for _, what, text in found if what == "lex"} == set(SCRIPT)


@pytest.mark.slow("starts Python anew")
@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        (CREATE, {"scan": 1, "dialect": 2}),
        (CREATE_AS, {"scan": 1, "dialect": 2}),
        (SECRET, {"scan": 1, "dialect": 1, "lex": 1}),
    ],
)
def test_how_often_the_service_reads_a_statement(sql: str, reads: dict[str, int], tmp_path: Path) -> None:
    """What creates a relation is read again for the context that it may change, and for its row."""
    found = run(tmp_path, "-c", sql)
    assert {what: count for (where, what, text), count in found.items() if (where, text) == ("service", sql)} == reads
