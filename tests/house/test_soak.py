"""python -m tests.soak counts failures, and takes a run without a test for no success."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak import main

ALONE = ("--runs", "2", "--busy", "0", "--", "--disable-plugin-autoload", "-o", "addopts=", "--rootdir")


@pytest.mark.slow("runs pytest")
def test_a_path_that_is_wrong_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*ALONE, str(tmp_path), str(tmp_path / "no_such_test.py")]) == 2
    out, err = capfd.readouterr()
    assert "no_such_test.py" in err
    assert err.endswith("pytest ran no test; check the arguments after --\n")
    assert "failed" not in out


def test_what_failed_is_named_and_counted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "test_one.py"
    file.write_text("def test_good(): pass\ndef test_bad(): assert False\n")
    assert main([*ALONE, str(tmp_path), str(file)]) == 1
    out = capfd.readouterr().out
    assert "exit code 1, 1 failed" in out
    assert "   2 of 2  test_one::test_bad\n2 of 2 runs failed\n" in out
