"""The whole file of --checkpoint, which of its lines are synchronized to the disk, and what a later run reads of it."""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path

import pytest

from sqlshell.errors import CannotResume, Exit, OutputError, UsageError
from sqlshell.interface.models import ContextEcho
from sqlshell.origin import Trusted
from sqlshell.shell.records.checkpoint import Checkpoint
from tests.shell.core.scripted import Answer, failure
from tests.shell.core.test_checkpoints import IN_TRANSACTION, LOST, OUTSIDE, Run, _forgetting

HEADER = '{"checkpoint":1,"target":"here"}'


def sent(number: int, text: str, more: str = "", line: int = 0) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    return f'{{"n":{number},"script":"x.sql","line":{line or number},"digest":"{digest}","state":"sent"{more}}}'


def wrong() -> Answer:
    return Answer(rows=(), error=failure())


TRANSACTION, REPEATABLE = ',"transaction":true', ',"repeatable":true'


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "checkpoint")


@pytest.fixture
def synchronized(run: Run, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many lines the file had each time that it was synchronized; 0 for its directory."""
    counts: list[int] = []
    really = os.fsync

    def fsync(file: int) -> None:
        really(file)
        is_directory = os.path.samestat(os.fstat(file), run.path.parent.stat())
        counts.append(0 if is_directory else run.path.read_text().count("\n"))

    monkeypatch.setattr(os, "fsync", fsync)
    return counts


SCRIPT = "set x = 1;\nselect 1 \\gset p_\ninsert 2;\nbegin;\ninsert 3;\ncommit;\n\\! true\nselect 4;\nwrong;\n"
ANSWERS = {
    "set x = 1": OUTSIDE,
    "insert 2": OUTSIDE,
    "begin": IN_TRANSACTION,
    "insert 3": IN_TRANSACTION,
    "commit": OUTSIDE,
}


def test_the_lines_of_a_run(run: Run, synchronized: list[int]) -> None:
    run(SCRIPT, ANSWERS | {"wrong": wrong()})
    lines = [
        HEADER,
        sent(1, "set x = 1", REPEATABLE),
        '{"n":1,"id":"id1"}',
        '{"n":1,"state":"done","sqlState":"00000"}',
        sent(2, "select 1", REPEATABLE),
        '{"n":2,"id":"id2"}',
        '{"n":2,"state":"done","sqlState":"00000","rows":1}',
        '{"n":2,"values":{"p_a":"1"}}',
        sent(3, "insert 2"),
        '{"n":3,"id":"id3"}',
        '{"n":3,"state":"done","sqlState":"00000"}',
        sent(4, "begin", REPEATABLE),
        '{"n":4,"id":"id4"}',
        '{"n":4,"state":"done","sqlState":"00000","transaction":true}',
        sent(5, "insert 3", TRANSACTION + REPEATABLE),
        '{"n":5,"id":"id5"}',
        '{"n":5,"state":"done","sqlState":"00000","transaction":true}',
        sent(6, "commit", TRANSACTION),
        '{"n":6,"id":"id6"}',
        '{"n":6,"state":"done","sqlState":"00000"}',
        sent(7, "\\! true", ',"outside":true'),
        '{"n":7,"state":"done","sqlState":"00000"}',
        sent(8, "select 4", REPEATABLE),
        '{"n":8,"id":"id7"}',
        '{"n":8,"state":"done","sqlState":"00000","rows":1}',
        sent(9, "wrong"),
        '{"n":9,"id":"id8"}',
        '{"n":9,"state":"failed","sqlState":"42601"}',
    ]
    assert run.path.read_text().splitlines() == lines
    # Everything but a statement's ID.
    assert synchronized == [
        1,
        0,
        *(number for number, line in enumerate(lines, 1) if number > 1 and '"id"' not in line),
    ]
    assert run(SCRIPT, ANSWERS, resume=True) == Exit.DONE
    assert run.path.read_text().splitlines() == [
        *lines,
        sent(9, "wrong"),
        '{"n":9,"id":"id2"}',
        '{"n":9,"state":"done","sqlState":"00000","rows":1}',
        '{"n":0,"state":"complete"}',
    ]
    assert run.err == "resuming at x.sql:9 (8 done)\n"
    # The next run begins with an empty file, which is not new in its directory.
    synchronized.clear()
    run("insert 1;\n", {"insert 1": wrong()})
    assert run.path.read_text().splitlines()[:2] == [HEADER, sent(1, "insert 1")]
    assert synchronized == [1, 2, 4]


def test_the_lines_about_a_transaction_that_begins_again(run: Run, synchronized: list[int]) -> None:
    script = "insert 1;\nbegin;\ninsert 2;\ncommit;\n"
    answers = {"insert 1": OUTSIDE, "begin": IN_TRANSACTION, "insert 2": IN_TRANSACTION, "commit": OUTSIDE}
    run(script, answers | {"commit": LOST})
    before = run.path.read_text().splitlines()
    assert before[-2:] == [sent(4, "commit", TRANSACTION), '{"n":4,"id":"id4"}']
    synchronized.clear()
    run(script, answers | {"begin": wrong()}, resume=True, unknown="send", before=_forgetting)
    assert run.path.read_text().splitlines() == [
        *before,
        '{"n":4,"state":"failed"}',
        '{"n":3,"state":"failed"}',
        '{"n":2,"state":"failed"}',
        sent(2, "begin", REPEATABLE),
        '{"n":2,"id":"id1"}',
        '{"n":2,"state":"failed","sqlState":"42601"}',
    ]
    assert synchronized == [len(before) + 3, len(before) + 4, len(before) + 6]
    assert run.err == (
        "resuming at x.sql:2 (1 done)\nx.sql:2: error[42601]: wrong\nwarning: 2 statements were not run\n"
    )


def test_the_lines_about_a_commit_that_was_skipped(run: Run) -> None:
    script = "begin;\ncommit;\ninsert 3;\n"
    answers = {"begin": IN_TRANSACTION, "commit": OUTSIDE, "insert 3": OUTSIDE}
    run(script, answers | {"commit": LOST})
    before = run.path.read_text().splitlines()
    assert run(script, answers, resume=True, unknown="skip", before=_forgetting) == Exit.DONE
    assert run.path.read_text().splitlines() == [
        *before,
        '{"n":2,"state":"done"}',
        sent(3, "insert 3"),
        '{"n":3,"id":"id1"}',
        '{"n":3,"state":"done","sqlState":"00000"}',
        '{"n":0,"state":"complete"}',
    ]
    assert run.err == "resuming at x.sql:3 (2 done)\n"


def test_a_commit_that_rolls_back_undoes_its_statements(run: Run) -> None:
    """The service reports it as done, although a statement of the transaction had failed."""
    script = "begin;\ninsert 2;\ncommit;\ninsert 3;\n"
    failed = Answer(rows=(), echo=ContextEcho(transaction="failed"))
    answers = {"begin": IN_TRANSACTION, "insert 2": failed, "commit": OUTSIDE, "insert 3": wrong()}
    run(script, answers)
    assert run.path.read_text().splitlines()[7:] == [
        sent(3, "commit", TRANSACTION),
        '{"n":3,"id":"id3"}',
        '{"n":1,"state":"failed"}',
        '{"n":2,"state":"failed"}',
        '{"n":3,"state":"failed","sqlState":"00000"}',
        sent(4, "insert 3"),
        '{"n":4,"id":"id4"}',
        '{"n":4,"state":"failed","sqlState":"42601"}',
    ]
    answers = {"begin": IN_TRANSACTION, "insert 2": IN_TRANSACTION, "commit": OUTSIDE, "insert 3": OUTSIDE}
    assert run(script, answers, resume=True) == Exit.DONE
    assert run.sent == ["begin", "insert 2", "commit", "insert 3"]


def test_the_run_continues_where_its_transaction_began(run: Run) -> None:
    script = "insert 1;\nbegin;\n\\! true\ninsert 2;\n"
    answers = {"insert 1": OUTSIDE, "begin": IN_TRANSACTION}
    run(script, answers | {"insert 2": wrong()})
    assert run(script, answers | {"insert 2": IN_TRANSACTION}, resume=True) == Exit.DONE
    assert run.sent == ["begin", "insert 2"]
    assert "resuming at x.sql:2 (2 done)\n" in run.err


def test_a_result_that_is_not_written_again_is_a_warning(run: Run, tmp_path: Path) -> None:
    script = f"\\o {tmp_path}/out.csv\ninsert 1 returning a;\nselect 2 \\g {tmp_path}/other.csv\nwrong;\n\\o\n"
    run(script, {"wrong": wrong()})
    run.core.outlet.abort()
    assert run(script, resume=True) == Exit.DONE
    # A file of its own was complete.
    assert run.sent == ["wrong"]
    assert run.err == (
        "warning: the result of a statement that an earlier run completed is not written again\n"
        "resuming at x.sql:4 (2 done)\n"
    )


def test_a_result_that_a_command_needs_is_not_there(run: Run) -> None:
    script = "insert 1 returning a \\crosstab\nwrong;\n"
    run("insert 1 returning a;\nwrong;\n", {"wrong": wrong()})
    assert run(script, resume=True) == Exit.USAGE
    assert run.err == (
        "x.sql:1: error: a command requires the result of this statement, but the statement is not run again: it "
        f"may write\nhelp: remove {run.path} to start again\nwarning: 1 statement was not run\n"
    )
    assert run.sent == []


def test_the_variables_of_a_statement_that_was_skipped(run: Run) -> None:
    script = "select 1;\nselect 2;\nwrong;\n"
    run(script, {"wrong": wrong(), "select 2": Answer(rows=(("1", "2"), ("3",)))})
    run(script.replace("wrong", "\\echo :ROW_COUNT :ERROR :SQLSTATE\nwrong"), resume=True)
    assert run.core.out == "3 false 00000\na\n1\n"


def test_a_command_that_fails_is_recorded(run: Run) -> None:
    assert run("insert 1;\n\\replay none\ninsert 2;\n") == Exit.USAGE
    assert run.path.read_text().splitlines()[4:] == [
        sent(2, "\\replay none", ',"outside":true'),
        '{"n":2,"state":"failed"}',
    ]
    assert run("insert 1;\n\\! true\ninsert 2;\n", resume=True) == Exit.DONE
    assert run.sent == ["insert 2"]


@pytest.mark.parametrize(
    ("words", "runs"),
    [("set", True), ("reset", True), ("use", True), ("load", False), ("pragma", False), ("attach", False)],
)
def test_what_only_changes_the_session_runs_again(run: Run, words: str, runs: bool) -> None:
    script = f"{words} x;\nwrong;\n"
    run(script, {"wrong": wrong()})
    assert run(script, resume=True) == Exit.DONE
    assert run.sent == [*[f"{words} x"] * runs, "wrong"]


@pytest.mark.parametrize(
    ("statement", "temporary"),
    [
        ("create temp table t (i int)", True),
        ("create temporary view v as select 1", True),
        ("create or replace temp table t (i int)", True),
        ("create table t (temp int)", False),
        ("create local temp table t (i int)", True),
        ("create table temp (i int)", False),
        ("create or replace table temp (i int)", False),
        ("drop table temp", False),
    ],
)
def test_what_creates_a_temporary_object(run: Run, statement: str, temporary: bool) -> None:
    script = f"{statement};\nwrong;\n"
    run(script, {"wrong": wrong()})
    assert run(script, resume=True) == (Exit.USAGE if temporary else Exit.DONE)
    assert run.sent == ([] if temporary else ["wrong"])


@pytest.mark.parametrize(
    ("statement", "repeatable"),
    [
        *[(word, True) for word in ("begin", "start transaction", "rollback", "abort", "savepoint a", "release a")],
        ("select 1", True),
        ("set x = 1", True),
        *[(word, False) for word in ("commit", "end", "insert 1", "attach 'x'", "begin application a insert 1; end")],
    ],
)
def test_which_statements_may_be_sent_twice(run: Run, statement: str, repeatable: bool) -> None:
    run(statement, {statement: LOST})
    found = sent(1, statement, REPEATABLE if repeatable else "")
    assert run.path.read_text().splitlines()[1] == found


def test_how_much_of_an_incomplete_run_is_done(run: Run) -> None:
    run("insert 1;\ninsert 2;\nwrong;\n", {"wrong": wrong()})
    content = run.path.read_text()
    with pytest.raises(UsageError) as refused:
        Checkpoint(Trusted(str(run.path)), "here", resume=False)
    assert refused.value.message == f"{run.path} is the checkpoint of a run that is not complete (2 statements done)"
    assert refused.value.hint == "continue it with --resume, or remove the file to start again"
    assert run.path.read_text() == content


def test_an_empty_file_and_one_with_half_a_header_are_new(run: Run) -> None:
    for content in ("", '{"check', '{"checkpoint":1,"target":"here"}'):
        run.path.write_text(content)
        Checkpoint(Trusted(str(run.path)), "here", resume=True).close()
        assert run.path.read_text() == f"{HEADER}\n"


def test_a_file_that_cannot_be_locked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(file: int, kind: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(OutputError, match=rf"^cannot lock {run.path}: no locks available$"):
        Checkpoint(Trusted(str(run.path)), "here", resume=False)


def test_no_descriptor_is_left(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("other")

    def count() -> int:
        return len(list(Path("/dev/fd").iterdir()))

    before = count()
    with pytest.raises(UsageError):
        Checkpoint(Trusted(str(tmp_path / "other")), "here", resume=False)
    Checkpoint(Trusted(str(run.path)), "here", resume=False).close()
    assert count() == before


def test_a_changed_statement_after_one_without_an_outcome(run: Run) -> None:
    """One that only reads may be replaced; one that may have run may not."""
    for script, changed, refused in (("select 1;", "select 2;", False), ("insert 1;", "insert 2;", True)):
        run.path.unlink(missing_ok=True)
        run(script, {script[:-1]: LOST})
        assert run(changed, resume=True, unknown="skip", before=_forgetting) == (Exit.USAGE if refused else Exit.DONE)
        assert run.sent == ([] if refused else ["select 2"])


def test_the_end_of_the_scripts_before_what_was_done(run: Run) -> None:
    run("insert 1;\ninsert 2;\nwrong;\n", {"wrong": wrong()})
    checkpoint = Checkpoint(Trusted(str(run.path)), "here", resume=True)
    assert (checkpoint.former, checkpoint.continues) == (2, True)
    with pytest.raises(CannotResume) as refused:
        checkpoint.check_end()
    checkpoint.close()
    assert refused.value.message == (
        "the scripts have changed: they end before x.sql:1, which the checkpoint records as done"
    )
    assert refused.value.hint == f"restore the scripts, or remove {run.path} to start again"
