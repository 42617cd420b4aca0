"""--checkpoint and --resume: what is done is not done again, and what is unknown is said."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlshell.errors import (
    ConnectionBroken,
    ConnectionFailed,
    Exit,
    Interrupted,
    OutputError,
    UnknownStatement,
    UsageError,
    Where,
)
from sqlshell.interface.models import ContextEcho
from sqlshell.origin import Trusted
from sqlshell.shell.components import ScriptModes
from sqlshell.shell.records.checkpoint import Checkpoint, Unknown
from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure

LOST = Answer(rows=(), error=ConnectionBroken("the connection broke"))
FAILED = Answer(rows=(), error=failure())
IN_TRANSACTION = Answer(rows=(), echo=ContextEcho(transaction="open"))
OUTSIDE = Answer(rows=(), echo=ContextEcho())


class Run:
    """Runs scripts with the checkpoint `path`, each time in a new shell."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sent: list[str] = []
        self.core: Core

    def __call__(
        self,
        text: str,
        answers: dict[str, Answer] | None = None,
        *,
        resume: bool = False,
        unknown: Unknown = "",
        stop: bool = True,
        before: Callable[[Core], Any] = lambda core: None,
    ) -> Exit:
        async def work() -> Core:
            checkpoint = Checkpoint(Trusted(str(self.path)), "here", resume=resume, unknown=unknown)
            core = Core(ScriptedClient(answers), modes=lambda _: ScriptModes(checkpoint=checkpoint))
            before(core)
            await core.shell.run_script([Trusted(text)], "x.sql", stop=stop)
            await core.shell.finish()
            await core.shell.aclose()
            return core

        self.core = asyncio.run(work())
        self.sent = [sql for sql, _ in self.core.client.ran]
        return self.core.shell.exit

    @property
    def err(self) -> str:
        return self.core.err


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "checkpoint")


def test_a_run_continues_at_the_statement_that_failed(run: Run) -> None:
    script = "insert 1;\ninsert 2;\ninsert 3;\n"
    assert run(script, {"insert 2": FAILED}) == Exit.STATEMENT
    assert run.sent == ["insert 1", "insert 2"]
    assert run(script, resume=True) == Exit.DONE
    assert run.sent == ["insert 2", "insert 3"]
    assert "resuming at x.sql:2 (1 done)" in run.err
    assert run(script, resume=True) == Exit.DONE
    assert run.sent == []
    assert "nothing to do" in run.err
    assert run(script) == Exit.DONE, "a complete run is forgotten"
    assert run.sent == ["insert 1", "insert 2", "insert 3"]


def test_the_failed_statement_and_what_follows_may_be_changed(run: Run) -> None:
    run("insert 1;\nwrong;\ninsert 3;\n", {"wrong": FAILED})
    assert run("insert 1;\n-- repaired\nright;\nmore;\n", resume=True) == Exit.DONE
    assert run.sent == ["right", "more"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            "insert 9;\ninsert 2;\nwrong;\n",
            "x.sql:1: error: the statement or command differs from the one that the checkpoint recorded\n",
        ),
        (
            "insert 1;\n\ninsert 9;\nwrong;\n",
            "x.sql:3: error: the statement or command differs from the one that the checkpoint recorded at x.sql:2\n",
        ),
        ("insert 1;\nwrong;\n", "x.sql:2: error: the statement or command differs"),
        ("insert 1;\n", "the scripts have changed: they end before x.sql:2, which the checkpoint records as done"),
    ],
)
@pytest.mark.parametrize("stop", [True, False])
def test_a_changed_script_is_refused(run: Run, changed: str, said: str, stop: bool) -> None:
    run("insert 1;\ninsert 2;\nwrong;\n", {"wrong": FAILED})
    assert run(changed, resume=True, stop=stop) == Exit.USAGE
    assert said in run.err
    assert run.sent == []


def test_statements_after_a_failure_are_not_repeated_where_it_did_not_stop_them(run: Run) -> None:
    script = "insert 1;\ninsert 2;\ninsert 3;\n"
    assert run(script, {"insert 2": FAILED}, stop=False) == Exit.STATEMENT
    assert run(script, resume=True, stop=False) == Exit.DONE
    assert run.sent == ["insert 2"]


def test_a_run_that_is_not_complete_is_not_begun_again(run: Run) -> None:
    run("insert 1;\nwrong;\n", {"wrong": FAILED})
    with pytest.raises(UsageError, match=r"is the checkpoint of a run that is not complete \(1 statement done\)"):
        run("insert 1;\n")


@pytest.mark.parametrize("error", [LOST, Answer(rows=(), error=Interrupted("stopped waiting", where=Where("", "id2")))])
def test_an_unknown_outcome_is_said_and_not_repeated(run: Run, error: Answer) -> None:
    script = "insert 1;\ninsert 2;\ninsert 3;\n"
    run(script, {"insert 2": error})
    # The service does not have it any more.
    assert run(script, resume=True, before=_forgetting) == Exit.USAGE
    assert (
        "x.sql:2: error: the outcome of the statement is unknown: the earlier run ended after the statement was sent"
        in run.err
    )
    assert "--if-unknown skip" in run.err
    assert run.sent == []
    assert run(script, resume=True, unknown="skip") == Exit.DONE
    assert run.sent == ["insert 3"]


def test_an_unknown_statement_is_sent_again_where_that_is_said(run: Run) -> None:
    run("insert 1;\ninsert 2;\n", {"insert 2": LOST})
    assert run("insert 1;\ninsert 2;\n", resume=True, unknown="send", before=_forgetting) == Exit.DONE
    assert run.sent == ["insert 2"]


@pytest.mark.parametrize(("state", "sent"), [("00000", ["insert 3"]), ("42000", ["insert 2", "insert 3"])])
@pytest.mark.parametrize("unknown", ["", "skip", "send"])
def test_a_statement_that_is_still_running_is_waited_for(
    run: Run, unknown: Unknown, state: str, sent: list[str]
) -> None:
    script = "insert 1;\ninsert 2;\ninsert 3;\n"
    run(script, {"insert 2": LOST})
    assert run(script, resume=True, unknown=unknown, before=lambda core: _reporting(core, "03000", state)) == Exit.DONE
    assert "x.sql:2: still running on the service; waiting for it" in run.err
    outcome = "completed" if state == "00000" else f"failed (SQLSTATE {state})"
    assert f"x.sql:2: the service reports that the statement {outcome}\n" in run.err
    assert run.sent == sent


def test_ctrl_c_stops_waiting_for_a_statement_of_the_earlier_run(run: Run) -> None:
    def interrupting(core: Core) -> None:
        async def state(*_: object) -> tuple[str, str]:
            core.shell.statement_runner.interrupt()
            return "03000", ""

        core.client.state = state  # type: ignore[method-assign, assignment]

    run("insert 1;\ninsert 2;\n", {"insert 1": LOST})
    again = run("insert 1;\ninsert 2;\n", resume=True, unknown="send", stop=False, before=interrupting)
    assert again == Exit.INTERRUPTED
    assert "x.sql:1: error: stopped waiting for the statement, which may still be running on the service" in run.err
    assert run.sent == []
    assert run("insert 1;\ninsert 2;\n", resume=True) == Exit.DONE
    assert run.sent == ["insert 2"]


def test_a_statement_whose_outcome_could_not_be_looked_up_is_not_taken_for_failed(run: Run) -> None:
    script = "insert 1;\ninsert 2;\n"
    run(script, {"insert 1": Answer(rows=(), error=ConnectionFailed("refused"))})
    assert run(script, resume=True, before=lambda core: _reporting(core, "00000")) == Exit.DONE
    assert run.sent == ["insert 2"]


@pytest.mark.parametrize("unknown", ["", "skip", "send"])
def test_a_service_that_cannot_be_asked_decides_nothing(run: Run, unknown: Unknown) -> None:
    async def unreachable(*_: object) -> tuple[str, str]:
        raise ConnectionFailed("no route")

    run("insert 1;\ninsert 2;\n", {"insert 1": LOST})
    again = run(
        "insert 1;\ninsert 2;\n",
        resume=True,
        unknown=unknown,
        stop=False,
        before=lambda core: setattr(core.client, "state", unreachable),
    )
    assert again == Exit.SERVICE
    assert "x.sql:1: error: cannot look up the outcome of the statement: no route" in run.err
    assert run.sent == []


def test_waiting_ends_at_the_time_limit(run: Run) -> None:
    def limited(core: Core) -> None:
        core.client.wait_limit = 0.0
        _reporting(core, "03000")

    run("insert 1;\ninsert 2;\n", {"insert 1": LOST})
    assert run("insert 1;\ninsert 2;\n", resume=True, stop=False, before=limited) == Exit.TIMEOUT
    assert "x.sql:1: error[03000]: the statement has not ended after" in run.err
    assert run.sent == []


@pytest.mark.parametrize(("state", "sent"), [("00000", []), ("40001", ["begin", "insert 2", "commit"])])
def test_the_outcome_of_a_commit_is_that_of_its_transaction(run: Run, state: str, sent: list[str]) -> None:
    script = "insert 1;\nbegin;\ninsert 2;\ncommit;\ninsert 3;\n"
    answers = {"begin": IN_TRANSACTION, "insert 2": IN_TRANSACTION, "commit": OUTSIDE, "insert 3": OUTSIDE}
    run(script, answers | {"insert 1": OUTSIDE, "commit": LOST})
    again = answers | {"insert 3": FAILED}
    assert run(script, again, resume=True, before=lambda core: _reporting(core, "03000", state)) == Exit.STATEMENT
    assert run.sent == [*sent, "insert 3"]
    assert run(script, answers, resume=True, before=_forgetting) == Exit.DONE, "the outcome is recorded"
    assert run.sent == ["insert 3"]


def test_a_statement_whose_rows_could_not_be_written_has_run(run: Run) -> None:
    script = "insert 1 returning a;\nselect 2;\n"
    full = Answer(error=OutputError("no space"))
    assert run(script, {"insert 1 returning a": full, "select 2": full}, stop=False) == Exit.STATEMENT
    assert run(script, resume=True) == Exit.DONE
    assert run.sent == ["select 2"], "only a query runs again for its rows"


def test_the_service_is_asked_for_an_unknown_outcome(run: Run) -> None:
    run("insert 1;\ninsert 2;\n", {"insert 1": LOST})
    assert run("insert 1;\ninsert 2;\n", resume=True) == Exit.DONE
    assert "x.sql:1: the service reports that the statement completed" in run.err
    assert run.sent == ["insert 2"]


def test_a_statement_that_only_reads_is_run_again_with_a_note(run: Run) -> None:
    run("insert 1;\nselect 2;\n", {"select 2": LOST})
    assert run("insert 1;\nselect 2;\n", resume=True) == Exit.DONE
    assert "x.sql:2: the outcome is unknown; running it again (it only reads)" in run.err
    assert run.sent == ["select 2"]


def test_a_transaction_that_was_not_committed_begins_again(run: Run) -> None:
    script = "insert 1;\nbegin;\ninsert 2;\ninsert 3;\ncommit;\n"
    answers = {"begin": IN_TRANSACTION, "insert 2": IN_TRANSACTION, "commit": OUTSIDE}
    run(script, answers | {"insert 3": FAILED})
    assert run(script, answers, resume=True) == Exit.DONE
    assert run.sent == ["begin", "insert 2", "insert 3", "commit"]


@pytest.mark.parametrize(
    ("unknown", "sent"), [("skip", ["insert 3"]), ("send", ["begin", "insert 2", "commit", "insert 3"])]
)
def test_a_commit_may_have_taken_effect(run: Run, unknown: Unknown, sent: list[str]) -> None:
    script = "begin;\ninsert 2;\ncommit;\ninsert 3;\n"
    answers = {"begin": IN_TRANSACTION, "insert 2": IN_TRANSACTION, "commit": OUTSIDE, "insert 3": OUTSIDE}
    run(script, answers | {"commit": LOST})
    assert run(script, resume=True, before=_forgetting) == Exit.USAGE
    assert "x.sql:3: error: the outcome of the statement is unknown" in run.err
    assert run(script, answers, resume=True, unknown=unknown, before=_forgetting) == Exit.DONE
    assert run.sent == sent


@pytest.mark.parametrize(("unknown", "acted"), [("skip", "done\n"), ("send", "done\ndone\n")])
def test_a_command_in_a_transaction_is_not_rolled_back_with_it(
    run: Run, tmp_path: Path, unknown: Unknown, acted: str
) -> None:
    effect = tmp_path / "effect"
    script = f"begin;\ninsert 2;\n\\! echo done >> {effect}\ninsert 3;\ncommit;\n"
    answers = {"begin": IN_TRANSACTION, "insert 2": IN_TRANSACTION, "insert 3": IN_TRANSACTION, "commit": OUTSIDE}
    run(script, answers | {"insert 3": FAILED})
    lines = run.path.read_text().splitlines(keepends=True)
    command = next(number for number, line in enumerate(lines) if '"n":3' in line and '"sent"' in line)
    run.path.write_text("".join(lines[: command + 1]))
    assert run(script, answers, resume=True) == Exit.USAGE
    assert "x.sql:3: error: the outcome of the statement is unknown" in run.err
    again = ["begin", "insert 2", "insert 3"]
    assert run(script, answers | {"insert 3": FAILED}, resume=True, unknown=unknown) == Exit.STATEMENT
    assert (run.sent, effect.read_text()) == (again, acted)
    assert run(script, answers, resume=True) == Exit.DONE
    assert (run.sent, effect.read_text()) == ([*again, "commit"], acted), "the command is not repeated"


def test_statements_of_the_session_run_again_before_the_first_that_is_left(run: Run) -> None:
    script = "set x = 1;\ninsert 1;\nuse d;\n\\c other\nset y = 2;\nwrong;\n"
    script = script.replace("\\c other\n", "")
    run(script, {"wrong": FAILED})
    assert run(script, resume=True) == Exit.DONE
    assert run.sent == ["set x = 1", "use d", "set y = 2", "wrong"]


def test_temporary_tables_cannot_be_resumed(run: Run) -> None:
    script = "create temp table t (a int);\nwrong;\n"
    run(script, {"wrong": FAILED})
    assert run(script, resume=True) == Exit.USAGE
    assert "x.sql:1: error: the statement created a temporary object, which no longer exists" in run.err
    assert run.sent == []


def test_variables_of_gset_are_kept(run: Run) -> None:
    script = "select 7 \\gset p_\ninsert :p_a;\nwrong;\n"
    run(script, {"wrong": FAILED, "select 7": Answer(rows=(("7",),))})
    assert run(script, {"select 7": Answer(rows=(("8",),))}, resume=True) == Exit.DONE
    assert run.sent == ["wrong"]
    assert run.core.texts()["p_a"] == "7"
    with pytest.raises(UsageError, match="came from the service"):
        run.core.shell.variables["p_a"].trusted("a file")


def test_rows_on_their_way_to_a_file_are_read_again(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    script = f"\\o {out}\nselect 1;\ninsert 2;\nwrong;\n\\o\n"
    run(script, {"wrong": FAILED, "insert 2": OUTSIDE}, before=lambda core: None)
    run.core.outlet.abort()
    assert not out.exists()
    assert run(script, {"wrong": OUTSIDE}, resume=True) == Exit.DONE
    assert run.sent == ["select 1", "wrong"]
    assert out.read_text() == "a\n1\n"


def test_commands_that_act_are_not_repeated(run: Run, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script = f"\\! echo x >> {mark}\n\\set n 1\n\\echo shown\ninsert :n;\nwrong;\n"
    run(script, {"wrong": FAILED})
    assert run.core.out == "shown\na\n1\n"
    assert run(script, resume=True) == Exit.DONE
    assert run.core.out == "a\n1\n"
    assert mark.read_text() == "x\n"


def test_background_statements_are_refused(run: Run) -> None:
    assert run("insert 1;&\n") == Exit.USAGE
    assert "background statements cannot be used with --checkpoint" in run.err
    assert run.sent == []


def test_a_full_disk_sends_nothing(run: Run) -> None:
    def full(core: Core) -> None:
        def sent(step: object, **_: object) -> None:
            raise OutputError("cannot write checkpoint: no space")

        checkpoint = core.shell.modes.checkpoint
        assert checkpoint is not None
        checkpoint.sent = sent  # type: ignore[method-assign]

    assert run("insert 1;\n", before=full) == Exit.STATEMENT
    assert run.sent == []


def test_the_file_has_no_text_of_statements_and_one_writer(run: Run, tmp_path: Path) -> None:
    def other(core: Core) -> None:
        with pytest.raises(UsageError, match="is in use by another run"):
            Checkpoint(Trusted(str(run.path)), "here", resume=True)

    run("insert geheim;\n", before=other)
    assert "geheim" not in run.path.read_text()
    assert run.path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="is a checkpoint of here, not of there"):
        Checkpoint(Trusted(str(run.path)), "there", resume=True)
    with pytest.raises(OutputError, match="no such file"):
        Checkpoint(Trusted(str(tmp_path / "none" / "x")), "here", resume=False)


@pytest.mark.parametrize("content", ["not one", '{"a": 1}\n', '{"checkpoint":1,"target":"here"}\n[]\n', "\xff\n"])
def test_other_files_are_refused(run: Run, content: str) -> None:
    run.path.write_text(content)
    with pytest.raises(UsageError, match="is not a checkpoint"):
        run("insert 1;\n", resume=True)
    assert run.path.read_text() == content


def test_a_checkpoint_of_another_version_is_refused(run: Run) -> None:
    run("insert 1;\nwrong;\n", {"wrong": FAILED})
    content = run.path.read_text().replace('{"checkpoint":1,', '{"checkpoint":2,', 1)
    run.path.write_text(content)
    with pytest.raises(UsageError, match="was written by another version of sqlshell"):
        run("insert 1;\n", resume=True)
    assert run.path.read_text() == content


@pytest.mark.parametrize("written", [0, 5])
def test_what_cannot_be_recorded_is_not_sent(run: Run, monkeypatch: pytest.MonkeyPatch, written: int) -> None:
    def full(core: Core) -> None:
        taken = [written] * (written > 0)

        def write(file: int, data: bytes) -> int:
            if not taken:
                raise OSError(28, "No space left on device")
            return taken.pop()

        monkeypatch.setattr(os, "write", write)

    assert run("insert 1;\n", before=full) == Exit.STATEMENT
    monkeypatch.undo()
    assert run.sent == []
    assert f"cannot write to {run.path}: no space left on device" in run.err


def test_an_incomplete_line_was_never_written(run: Run) -> None:
    run("insert 1;\nwrong;\n", {"wrong": FAILED})
    lines = run.path.read_bytes().split(b"\n")
    run.path.write_bytes(b"\n".join(lines[:4]) + b'\n{"n":2,"scr')
    assert run("insert 1;\nright;\n", resume=True) == Exit.DONE
    assert run.sent == ["right"]
    assert all(json.loads(line) for line in run.path.read_text().splitlines())


def _forgetting(core: Core) -> None:
    """The service does not know a statement."""

    async def state(statement_id: str, _: object) -> tuple[str, str]:
        raise UnknownStatement(f"does not know statement {statement_id}")

    core.client.state = state  # type: ignore[method-assign, assignment]


def _reporting(core: Core, *states: str) -> None:
    """The service reports these states one after another, and the last one from then on."""
    left = list(states)

    async def state(*_: object) -> tuple[str, str]:
        return left.pop(0) if len(left) > 1 else left[0], ""

    core.client.state = state  # type: ignore[method-assign, assignment]
