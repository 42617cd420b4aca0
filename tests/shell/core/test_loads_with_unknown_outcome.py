"""A load whose outcome is unknown is repeated by --resume only where that is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlshell.errors import Exit
from sqlshell.origin import Trusted
from sqlshell.shell.components import ScriptModes
from sqlshell.shell.records.checkpoint import Checkpoint, Unknown
from tests.shell.core.scripted import Answer, failure
from tests.shell.core.test_loads import INSERT, ONE, Tables, run


@pytest.mark.parametrize(
    ("unknown", "code", "sent"),
    [("", Exit.USAGE, []), ("skip", Exit.DONE, ["wrong"]), ("send", Exit.DONE, [INSERT, "wrong"])],
)
def test_a_load_with_an_unknown_outcome(tmp_path: Path, unknown: Unknown, code: Exit, sent: list[str]) -> None:
    place, data = tmp_path / "checkpoint", tmp_path / "a.csv"
    data.write_text("a\n1\n2\n")
    script = f"\\copy t from '{data}'\nwrong;\n"

    def modes(resume: bool, unknown: Unknown = "") -> ScriptModes:
        return ScriptModes(checkpoint=Checkpoint(Trusted(str(place)), "here", resume=resume, unknown=unknown))

    run(script, Tables(ONE, {"wrong": Answer(rows=(), error=failure())}), modes=lambda: modes(False))
    lines = place.read_text().splitlines(keepends=True)
    begun = next(number for number, line in enumerate(lines) if '"sent"' in line)
    place.write_text("".join(lines[: begun + 1]))
    client = Tables(ONE)
    core = run(script, client, modes=lambda: modes(True, unknown))
    assert (core.shell.exit, client.sqls) == (code, sent), core.err
    assert ("the outcome of the statement is unknown" in core.err) == (not unknown)
