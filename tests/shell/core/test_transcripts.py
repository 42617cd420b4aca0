"""Transcripts record what was sent and its outcome, and a replay reports differences."""

from __future__ import annotations

import asyncio
import gc
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from sqlshell.context import SessionContext
from sqlshell.errors import ConnectionFailed, Exit, ShellError
from sqlshell.origin import Trusted
from sqlshell.sql.analysis.policy import Policy
from sqlshell.sql.analysis.secrets import redacted
from tests.shell.core.scripted import Answer, Core, ScriptedClient, failure
from tests.shell.sessions import connection
from tests.short_writes import FILE_LIMIT, files_limited


def run(client: ScriptedClient, script: str, **given: Any) -> Core:
    async def work() -> Core:
        core = Core(client, **given)
        redacting = connection(client, given.get("context"), journal=core.journal, redact=redacted)
        core.session.state.connection = redacting
        core.session.options.on_error = "continue"
        # A lost connection ends the script.
        await core.shell.run_script([Trusted(script)], "")
        await core.shell.aclose()
        return core

    return asyncio.run(work())


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def answers() -> dict[str, Answer]:
    """New ones for each client, since an error learns the ID of its statement."""
    return {
        "select 1": Answer(rows=(("1", "2"), ("3",))),
        "select bad": Answer(rows=(), error=failure("42703", "no column")),
        "select lost": Answer(rows=(), error=ShellError("odd")),
    }


SECRET = "create secret s with ('secret_string' = 'hunter2')"


def test_what_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    script = (
        f"select 0;\n\\transcript {path}\nselect 1;\nselect bad;\nselect lost;\n{SECRET};\n\\transcript\nselect 2;\n"
    )
    run(ScriptedClient(answers()), script, context=SessionContext(database="d", schema="s"))
    found = lines(path)
    assert [item["statement"] for item in found] == [
        "select 1",
        "select bad",
        "select lost",
        "create secret s with (***)",
    ]
    assert [item["sqlState"] for item in found] == ["00000", "42703", "XX000", "00000"]
    assert [item["id"] for item in found] == ["id2", "id3", "", "id5"]
    assert [item["message"] for item in found] == ["", "no column", "odd", ""]
    assert [item["redacted"] for item in found] == [False, False, False, True]
    assert found[0]["context"] == {"database": "d", "schema": "s"}
    assert (found[0]["results"][0]["columns"], found[0]["results"][0]["rows"]) == (["a"], 3)
    assert len(found[0]["results"][0]["digest"]) == 64
    assert found[1]["results"] == []
    assert (found[3]["results"][0]["columns"], found[3]["results"][0]["digest"]) == ([], "")
    assert found[0]["seconds"] == 0.25
    assert found[0]["began"].endswith("+00:00")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def recorded(path: Path, *records: dict[str, Any]) -> str:
    path.write_text("\n".join([*map(json.dumps, records), "", "  "]))
    return f"\\replay {path}\n"


def test_what_comes_out_as_it_was_is_not_listed(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    run(ScriptedClient(answers()), f"\\transcript {path}\nselect 1;\nselect bad;\n")
    core = run(ScriptedClient(answers()), f"\\replay {path}\n")
    assert core.err == "2 statements run again, no differences\n"
    assert core.out == ""
    assert core.shell.exit == Exit.DONE


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"sqlState": "22012"}, "expected SQLSTATE 22012, found 00000"),
        ({"results": []}, "expected 0 results, found 1"),
        ({"columns": ["b"]}, "expected columns b, found a"),
        ({"rows": 1_000}, "expected 1,000 rows, found 3"),
        ({"digest": "0"}, "same number of rows, but different values, types or order"),
        ({"rows": None, "digest": "0"}, ""),
    ],
)
def test_each_difference_is_told(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    path = tmp_path / "t.jsonl"
    run(ScriptedClient(answers()), f"\\transcript {path}\nselect 1;\n")
    record = lines(path)[0]
    result = changed if changed.keys() <= {"columns", "rows", "digest"} else {}
    record["results"] = [record["results"][0] | result]
    core = run(ScriptedClient(answers()), recorded(path, record | ({} if result else changed)))
    assert core.out == (f"{path}:1: select 1\n  {said}\n" if said else "")
    assert ("1 statement run again, 1 differs" in core.err) == bool(said)
    assert core.shell.exit == (Exit.STATEMENT if said else Exit.DONE)


def test_a_failure_that_was_none_is_told_with_its_words(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"statement": "select bad"},
        {"statement": "select lost"},
        {"statement": "select 1", "redacted": True},
    ]
    path = tmp_path / "t.jsonl"
    core = run(ScriptedClient(answers()), recorded(path, *records))
    assert core.out == (
        f"{path}:1: select bad\n  expected SQLSTATE 00000, found 42703: no column\n"
        f"{path}:2: select lost\n  expected SQLSTATE 00000, found XX000: odd\n"
        f"{path}:3: select 1\n  not run: its secrets were not recorded\n"
    )
    assert "2 statements run again, 2 differ, 1 of 3 statements could not be replayed" in core.err
    assert [sql for sql, _ in core.client.ran] == ["select bad", "select lost"]


def test_a_replay_ends_with_the_connection(tmp_path: Path) -> None:
    client = ScriptedClient({"select 1": Answer(rows=(), error=ConnectionFailed("gone"))})
    core = run(client, recorded(tmp_path / "t.jsonl", {"statement": "select 1"}, {"statement": "select 2"}))
    assert [sql for sql, _ in client.ran] == ["select 1"]
    assert core.shell.exit == Exit.SERVICE


def test_what_the_policy_refuses_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"

    async def work() -> Core:
        core = Core()
        core.session.state.connection = connection(core.client, journal=core.journal, policy=Policy(read_only=True))
        await core.run(recorded(path, {"statement": "drop table t"}))
        await core.shell.aclose()
        return core

    core = asyncio.run(work())
    assert "  not run: " in core.out
    assert "1 of 1 statement could not be replayed" in core.err
    assert core.client.ran == []


def test_the_first_record_gives_the_parts_of_the_context_that_are_not_set(tmp_path: Path) -> None:
    context = {"database": "other", "schema": "r", "role": "owner", "compute_pool": "p"}
    given = recorded(tmp_path / "t.jsonl", {"statement": "select 1", "context": context}, {"statement": "select 2"})
    core = run(ScriptedClient(), given, context=SessionContext(database="d"))
    sent = core.client.ran[0][1]
    assert (sent.database, sent.schema, sent.role, sent.compute_pool) == ("d", "r", "", "p")


def test_a_file_that_is_no_transcript(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"statement": "select 1"}\nnonsense\n')
    core = run(ScriptedClient(), f"\\replay {path}\n\\replay {tmp_path}/nope\n\\transcript {tmp_path}\n")
    assert f"error: {path}:2: not a transcript record: " in core.err
    assert f"error: cannot read {tmp_path}/nope: no such file or directory\n" in core.err
    assert f"error: cannot write to {tmp_path}: is a directory\n" in core.err


def test_a_transcript_is_closed_with_the_shell(tmp_path: Path) -> None:
    """What is left open would be told as a warning, which is an error here."""
    path = tmp_path / "t.jsonl"
    run(ScriptedClient(), f"\\transcript {path}\nselect 1;\n")
    gc.collect()
    assert len(lines(path)) == 1


def test_a_statement_that_is_not_unicode_fails_with_its_own_error(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    refusal = ShellError("the statement is not valid Unicode: select '\udcff'")
    core = run(
        ScriptedClient({"select '\udcff'": Answer(rows=(), error=refusal)}), f"\\transcript {path}\nselect '\udcff';\n"
    )
    assert core.err.startswith("error: the statement is not valid Unicode")
    (line,) = lines(path)
    assert (line["statement"], line["redacted"], line["message"]) == ("select '\\udcff'", True, "")


def test_a_record_of_which_only_a_part_fits_fails_its_statement(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with files_limited():
        core = run(ScriptedClient(), f"\\transcript {path}\nselect '{'x' * FILE_LIMIT}';\n\\transcript\n")
    assert f"error: cannot write to {path}: file too large\n" in core.err
    assert path.stat().st_size == FILE_LIMIT


def test_a_transcript_that_cannot_be_written_fails_its_statement() -> None:
    core = run(ScriptedClient(), "\\transcript /dev/full\nselect 1;\n\\transcript\nselect 2;\n")
    assert (
        "error: cannot write to /dev/full: no space left on device\nhelp: stop recording with \\transcript\n"
        in core.err
    )
    assert [sql for sql, _ in core.client.ran] == ["select 1", "select 2"]
