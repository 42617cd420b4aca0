"""What .ci/run says in its last lines."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

STEPS = Path(__file__).parents[2] / ".ci" / "steps.py"


@pytest.fixture
def steps() -> Any:
    spec = importlib.util.spec_from_file_location("ci_steps", STEPS)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def last_lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.partition("The last lines of .ci/run\n")[2].splitlines()


def test_a_step_that_did_not_run_is_a_failure(steps: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = steps.Run(tmp_path, ["lint", "fuzz"])
    run.step("lint", tmp_path, [["true"]])
    assert not run.tell()
    assert [line.partition(",")[0] for line in last_lines(capsys)] == ["lint: ok", "fuzz: did not run"]
    run.step("fuzz", tmp_path, [["true"]])
    assert run.tell()


def test_a_command_that_fails_or_does_not_end_is_told(
    steps: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = steps.Run(tmp_path, ["one", "two"])
    run.step("one", tmp_path, [["false"], ["echo", "SKIPPED [1] a.py: no server"], ["echo", "RUN AGAIN a.py: x"]])
    monkeypatch.setattr(steps, "SECONDS", 0.1)
    run.step("two", tmp_path, [["sleep", "60"]])
    assert not run.tell()
    told = last_lines(capsys)
    assert told[:2] == ["note: one: SKIPPED [1] a.py: no server", "note: one: RUN AGAIN a.py: x"]
    assert [line.partition(",")[0] for line in told[2:]] == ["one: FAILED", "two: FAILED"]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_what_is_left_behind_is_found(steps: Any, tmp_path: Path) -> None:
    run = steps.Run(tmp_path, [])
    assert run.left_behind() == []
    run.step("one", tmp_path, [["sh", "-c", "touch ~/state $TMPDIR/file; sleep 60 & true"]])
    home, file, process = run.left_behind()
    assert (home, file) == (str(tmp_path / "home" / "state"), str(tmp_path / "tmp" / "file"))
    assert "sleep" in process
    assert run.left_behind() == [home, file]
