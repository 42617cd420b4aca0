"""--read-only in every way of sending a statement: a statement that writes is never sent."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tests.conftest import Program

HIDDEN = (
    "with x as (copy (select 1) to 'written') select 1",
    "delete\u200bfrom t",
    "with x as\u2060(delete\ufefffrom t returning *) select * from x",
    "explain/**/analyze delete from t",
)
CALLS = ("select nextval('s')", "from query('select nextval(''s'')')")
"""What the engine refuses."""


@pytest.fixture
def kept(program: Program) -> str:
    assert program("kept.duckdb", "-c", "create table t as select 1 as a; create sequence s").code == 0
    return "kept.duckdb"


def test_what_writes_is_not_sent(program: Program, tmp_path: Path, kept: str) -> None:
    (tmp_path / "script.sql").write_text(";\n".join([*HIDDEN, ""]))
    (tmp_path / "record.jsonl").write_text('{"statement": "delete\u200bfrom t"}\n')
    quoted = "delete\u200bfrom t"
    script = "\n".join(
        [
            *(f"{sql};" for sql in HIDDEN),
            *(f"{sql} \\gdesc" for sql in HIDDEN),
            f"select '{quoted}' \\gexec",
            f"\\set sql '{quoted}'",
            ":sql;",
            "select 1 \\; delete\u200bfrom t;",
            "delete\u200bfrom t \\watch c=1",
            f"\\n+ q '{quoted}'",
            "\\n q",
            "delete\u200bfrom t &",
            "\\i script.sql",
            "\\replay record.jsonl",
            "\\local copy (select 1) to 'written'",
            "\\local with x as (copy (select 1) to 'written') select 1",
        ]
    )
    env = {"SQLSHELL_CONFIG_DIR": str(tmp_path / "config")}
    found = program(kept, "--read-only", "--on-error", "continue", stdin=script, env=env)
    assert found.err.count("cannot run ") >= 2 * len(HIDDEN) + 6, found.err
    for argv in (["-c", "; ".join(HIDDEN)], ["-f", "script.sql"]):
        assert program(kept, "--read-only", *argv, env=env).code == 2
    for sql in CALLS:
        assert program(kept, "--read-only", "-c", sql, env=env).code == 1
    assert not (tmp_path / "written").exists()
    after = program(kept, "--format", "csv", "-c", "select count(*) as n from t; select nextval('s') as n")
    assert after.out.split() == ["n", "1", "n", "1"]


def test_no_view_and_no_macro_writes(program: Program, tmp_path: Path, kept: str) -> None:
    """What a statement's words cannot tell: the engine has the file read only."""
    made = "create view v as select nextval('s') as n; create macro upper(x) as nextval('s')"
    assert program(kept, "-c", made).code == 0
    before = (tmp_path / kept).read_bytes()
    calls = ("select * from v", "select upper('a')", "summarize v", "set variable x = (select n from v)")
    for argv, stdin in (*((["-c", sql], "") for sql in calls), ([], f"\\c {kept}\nselect * from v;\n")):
        found = program(kept, "--read-only", *argv, stdin=stdin)
        assert found.code != 0
        assert "25006" in found.err, found.err
    assert (tmp_path / kept).read_bytes() == before
    looks = (
        "from t; select count(*) as n from deltastream.sys.\"stores\"; pragma table_info('t') \\g looked.csv\n"
        "explain analyze from t \\g looked.csv\nprepare p as from t;\nselect setseed(0.5) \\g looked.csv\n"
        "copy (from t) to stdout (format csv) \\g looked.csv\nattach 'other.db' as o (read_only);\nfrom o.u;\n"
        "select current_setting('autoinstall_known_extensions') as installs;\n"
        "\\local select current_setting('autoinstall_known_extensions') as installs\n"
    )
    duckdb.connect(tmp_path / "other.db").execute("create table u as select 7 as u").close()
    read = program(kept, "--read-only", "--format", "csv", stdin=looks)
    assert read.out.split() == ["a", "1", "n", "0", "u", "7", *("installs", "false") * 2], read.err


def test_nothing_is_created_read_only(program: Program, tmp_path: Path, kept: str) -> None:
    found = program("other.duckdb", "--read-only", "-c", "select 1")
    assert (found.code, "other.duckdb does not exist" in found.err) == (2, True)
    found = program(kept, "--read-only", "-c", "\\c other.duckdb")
    assert "other.duckdb does not exist" in found.err
    assert not (tmp_path / "other.duckdb").exists()


@pytest.mark.parametrize("way", ["--read-only", "profile", "confirm", "--offline"])
def test_no_command_runs_for_a_load_that_is_refused(program: Program, tmp_path: Path, kept: str, way: str) -> None:
    copy = "\\copy t from program 'touch ran; echo 2' with (format csv)"
    (tmp_path / "config").mkdir(mode=0o700)
    (tmp_path / "config" / "config.toml").write_text(
        f'[profiles.profile]\nurl = "{kept}"\nread_only = true\n'
        f'[profiles.confirm]\nurl = "{kept}"\nconfirm = ["WRITE"]\n'
    )
    argv = {"--read-only": [kept, way], "--offline": ["http://127.0.0.1:1", way]}.get(way, [way])
    env = {"SQLSHELL_CONFIG_DIR": str(tmp_path / "config")}
    for script in (["-c", copy], ["-f", "-"]):
        done = program(*argv, *script, stdin=copy, env=env)
        assert done.code == 2, done.err
    assert not (tmp_path / "ran").exists()
    assert program(kept, "--format", "csv", "-c", "select count(*) as n from t").out.split() == ["n", "1"]
