"""--stats: a line for each statement, whatever became of it, and no SQL."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from sqlshell.client.statements.client import Observer, Submission, Timing
from sqlshell.context import SessionContext
from sqlshell.errors import ConnectionBroken, Exit, OutputError, UsageError
from sqlshell.origin import Trusted
from sqlshell.result import Result
from sqlshell.shell.components import ScriptModes
from sqlshell.shell.records.run_records import Statistics
from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def run(path: Path, client: ScriptedClient, *scripts: str, stop: bool = False) -> Core:
    async def work() -> Core:
        core = Core(client, modes=lambda diagnostics: ScriptModes(Statistics(Trusted(str(path)), diagnostics)))
        for script in scripts:
            await core.shell.run_script([Trusted(script)], "x.sql", stop=stop)
        await core.shell.finish()
        await core.shell.aclose()
        return core

    return asyncio.run(work())


class Reporting(ScriptedClient):
    """Reports how long a statement was queued and ran."""

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        assert observer is not None
        observer.timing(Timing(0.5, 0.25))
        async for result in super().run(submission, context, observer):
            yield result


def test_each_statement_has_a_line_with_its_outcome(tmp_path: Path) -> None:
    path = tmp_path / "stats"
    answers = {
        "select 1": Answer(rows=(("1", "2"), ("3",))),
        "select 2": Answer(rows=(), error=failure("42703")),
        "create": Answer(rows=()),
        "lost": Answer(rows=(), error=ConnectionBroken("gone")),
    }
    run(path, ScriptedClient(answers), "select 1;\nselect 2;\n\\set x 3\ncreate;\nlost;\nnever;\n")
    first, second, third, fourth = found = lines(path)
    assert [(item["script"], item["line"]) for item in found] == [("x.sql", line) for line in (1, 2, 4, 5)]
    assert [item["sqlState"] for item in found] == ["00000", "42703", "00000", None]
    assert [item["rows"] for item in found] == [3, None, None, None]
    assert [item["statementID"] for item in found] == ["id1", "id2", "id3", "id4"]
    assert [item["queued"] for item in found] == [None] * 4
    assert first["running"] == third["running"] == 250, "the time that the service reports"
    assert (first["fetching"] is None, second["fetching"] is None) == (False, True)
    assert all(item["total"] >= 0 for item in found)
    assert fourth["digest"] != first["digest"]


def test_the_service_says_how_long_a_statement_was_queued(tmp_path: Path) -> None:
    path = tmp_path / "stats"
    run(path, Reporting(), "select 1;")
    (found,) = lines(path)
    assert (found["queued"], found["running"]) == (500, 250)


def test_the_statements_of_variables_and_of_the_background_have_lines(tmp_path: Path) -> None:
    path = tmp_path / "stats"
    core = run(path, ScriptedClient(), "\\set two 'select 1; select 2'\n:two;\nselect 3;&\n")
    assert [item["line"] for item in lines(path)] == [2, 2, 3]
    assert [item["sqlState"] for item in lines(path)] == ["00000"] * 3
    assert core.shell.exit == Exit.DONE


def test_no_text_of_a_statement_is_written(tmp_path: Path) -> None:
    path = tmp_path / "stats"
    run(path, ScriptedClient(), "select 'geheim';\nselect 'geheim';\nselect 'other';")
    assert "geheim" not in path.read_text()
    digests = [item["digest"] for item in lines(path)]
    assert digests[0] == digests[1] != digests[2]


def test_a_full_disk_ends_the_statistics_and_not_the_script(tmp_path: Path) -> None:
    core = run(Path("/dev/full"), ScriptedClient(), "select 1;\nselect 2;\n", stop=True)
    assert core.out == "a\n1\na\n1\n"
    assert core.err == "warning: cannot write to /dev/full: no space left on device; no more statistics are written\n"
    assert core.shell.exit == Exit.STATEMENT


def test_files_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="no such file"):
        run(tmp_path / "none" / "stats", ScriptedClient())
    with pytest.raises(UsageError, match="cannot write to stdout"):
        run(Path("-"), ScriptedClient())


def test_lines_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "stats"
    run(path, ScriptedClient(), "select 1;")
    run(path, ScriptedClient(), "select 1;")
    assert len(lines(path)) == 2
