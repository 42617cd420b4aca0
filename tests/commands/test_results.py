"""Commands on results: \\crosstab, \\chart, \\local, \\clip, \\tee, transcripts and replay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Program, Served, serve, stop
from tests.goldens import agree

SALES = (
    "select 'c' || (i % 3) as city, 'q' || (i % 2) as quarter, sum(i) as n from range(12) t(i)"
    " group by all order by all"
)


def test_crosstab(program: Program) -> None:
    done = program("-q", "--format", "csv", "-c", f"{SALES} \\crosstab", "-c", "\\crosstab quarter 1 n")
    assert done.out == "city,q0,q1\nc0,6,12\nc1,14,8\nc2,10,16\nquarter,c0,c1,c2\nq0,6,14,10\nq1,12,8,16\n"


WRONG = [
    # Nothing has run yet.
    ("\\crosstab", "no statement has returned rows"),
    ("\\chart", "no statement has returned rows"),
    ("\\local select 1 from _", "no statement has returned rows"),
    ("\\local", "requires a statement"),
    ("\\tee nope/x.csv", "cannot write"),
    ("\\log nope/x.txt", "cannot write"),
    ("\\transcript nope/x.jsonl", "cannot write"),
    ("\\replay nope.jsonl", "cannot read"),
    ("\\once", "requires FILE"),
    ("\\n nope", "no named query 'nope'"),
    ("\\n+ a/b select 1", "valid query name"),
    ("\\n+", "requires NAME"),
    ("\\n+ a", "there is no statement to save"),
    # One statement has.
    ("select 1 as a; \\local select 1 from _3", "_3 is not available: there is only 1 result\nhelp: use _\n"),
    ("select 1 as a, 2 as b \\crosstab", "three columns"),
    ("select 1 as a, 2 as b, 3 as c union all select 1, 2, 4 \\crosstab", "several values"),
    ("select 1 as a, 2 as b, 3 as c \\crosstab x", 'no column "x"'),
    ("select 1 as a, 2 as b, 3 as c \\crosstab a a b", "different columns"),
    ("select 1 as a, i as b, 3 as c from range(2000) t(i) \\crosstab", "more than 1,600"),
    ("select 'x' as a \\chart", "requires a numeric column"),
    ("select 1 as a where false \\chart", "no rows to draw"),
    ("select 1 as a, 2 as b \\chart line nope", 'no column "nope"'),
    ("select null::int as a, 2 as b \\chart scatter a b", "no points"),
    ("select 1 \\browse", "interactive terminal"),
    ("select 1 as a \\clip", "no terminal"),
    ("select 1 as a \\clip nope", "unknown format"),
    ("select 1 as a; \\local select 2\n\\export x.csv", "\\export requires a statement of the service"),
]


def test_what_is_wrong(program: Program) -> None:
    """In one shell, which goes on after each."""
    script = "".join(f"\\warn <{number}>\n{script}\n" for number, (script, _) in enumerate(WRONG))
    done = program("-q", "--on-error", "continue", stdin=script, env={"TERM": "dumb"})
    assert done.code in {1, 2}
    for number, (_, message) in enumerate(WRONG):
        told = done.err.partition(f"<{number}>\n")[2].partition(f"<{number + 1}>\n")[0]
        assert message in told, (WRONG[number], told)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("\\g nope/x.csv", "create the directory first"),
        ("\\g .", "is a directory"),
        ("\\gx nope/x.csv", "create the directory first"),
        ("\\g |", "missing command after |"),
        ("\\once nope/x.csv", "create the directory first"),
    ],
)
def test_where_a_result_cannot_go_is_told_before_its_statement_runs(
    program: Program, command: str, message: str
) -> None:
    script = f"create table t as select 1 as a;\ndelete from t\n{command}\n\\r\nselect count(*) as left_over from t;\n"
    done = program("-q", "--on-error", "continue", "--format", "csv", stdin=script)
    assert message in done.err
    assert done.out == "left_over\n1\n"


@pytest.mark.parametrize("command", ["\\chart foo bar", "\\crosstab a b c", "\\clip", "\\gset"])
def test_a_statement_without_rows_gives_a_command_nothing(program: Program, command: str) -> None:
    script = f"create table t as select 1 as a;\ndelete from t {command}\nselect count(*) as n from t;\n"
    done = program("-q", "--on-error", "continue", "--format", "csv", stdin=script)
    name = command.split(maxsplit=1)[0]
    assert done.err == f"<stdin>:2: error: {name}: the statement ran, but did not return a result set\n"
    assert (done.out, done.code) == ("n\n0\n", 2)


def test_options_of_one_result(program: Program, tmp_path: Path) -> None:
    script = (
        "select 1 as a, null as b \\g (format=csv null=-)\nselect 2 as a \\gx (format=tsv tuples-only=on) 'b c.csv'\n"
        "select 3 as a \\g (format=jsonl) |cat\n\\echo on\n\\pset format\n"
    )
    done = program("-q", stdin=script)
    assert (done.err, done.code) == ("Format is table.\n", 0)
    assert done.out == 'a,b\n1,-\n{"a":3}\non\n'
    assert tmp_path.joinpath("b c.csv").read_text() == "2\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("(format=nope)", "'nope'"),
        ("(fromat=csv)", 'did you mean "format"?'),
        ("(format)", "requires a value"),
        ("(format=csv", "missing closing parenthesis"),
    ],
)
def test_options_that_are_none_are_told_before_the_statement_runs(program: Program, options: str, message: str) -> None:
    script = f"create table t as select 1 as a;\ndelete from t\n\\g {options}\n\\r\nselect count(*) as n from t;\n"
    done = program("-q", "--on-error", "continue", "--format", "csv", stdin=script)
    assert message in done.err
    assert done.out == "n\n1\n"


def test_sql_on_results(program: Program) -> None:
    script = "\n".join(
        [
            "select i as id, i % 3 as k, i * 1.5 as v, date '2024-01-01' + i::int as d, [i, i + 1] as l,"
            " {'a': i} as s, null as z, '' as e, 'a\"b,' || chr(10) || 'c' as t from range(1000) r(i) \\g /dev/null",
            "\\local select k, count(*) as n, sum(v) as v, max(d) as d, count(z) as z, min(e) as e from _"
            " group by k order by k",
            "\\local select sum(n) as n from _",
            "\\local select typeof(v) as v, typeof(d) as d, l[1] as l, s.a as s, t from _2 limit 1",
            "select null as a union all select 'x' order by 1;",
            "\\local select count(*) as n, count(a) as a from _;",
            "select n\nfrom _\n\\local",
            "\\local select a.n, b.n as m from _ a, _1 b",
        ]
    )
    done = program("-q", "--format", "csv", stdin=f"{script}\n")
    assert done.out == (
        'k,n,v,d,z,e\n0,334,250249.5,2026-09-26,0,""\n1,333,249250.5,2026-09-24,0,""\n2,333,249750.0,2026-09-25,0,""\n'
        "n\n1000\n"
        'v,d,l,s,t\n"DECIMAL(21,1)",DATE,0,0,"a""b,\nc"\n'
        "a\nx\n\nn,a\n2,1\nn\n2\nn,m\n2,2\n"
    ), done.err


def test_sql_on_a_remote_result(program: Program, served: Served) -> None:
    env = served.environment
    script = "select i as i from range(25000) t(i) \\g /dev/null\n\\local select count(*) as n, max(i) as m from _\n"
    done = program("-q", "--format", "csv", stdin=script, env=env)
    assert done.out == "n,m\n25000,24999\n", done.err


def test_a_service_that_keeps_no_results(program: Program, tmp_path: Path) -> None:
    running = serve(tmp_path, "--legacy")
    try:
        env = {"SQLSHELL_URL": running.url, "SQLSHELL_TOKEN": running.token}
        script = "select i as i from range(50) t(i) \\g /dev/null\n"
        script += "\\local select count(*) as n from _\n\\local select n from _\n"
        done = program("-q", "--api", "legacy", "--format", "csv", stdin=script, env=env)
    finally:
        stop(running)
    assert done.out == "n\n50\nn\n50\n", done.err


def test_the_result_of_local_sql_is_a_result(program: Program, tmp_path: Path) -> None:
    script = "select i as a from range(5) t(i) \\g /dev/null\n\\local select sum(a)::int as s from _\n"
    script += "\\g out.json\n\\gset\n\\echo :s\n\\chart bar s s\n"
    done = program("-q", stdin=script)
    assert json.loads((tmp_path / "out.json").read_text()) == [{"s": 10}]
    assert "\n10\n" in done.out
    assert "▆" in done.out


def test_rows_that_were_changed_are_counted(program: Program) -> None:
    script = "create table t (a int); insert into t select range from range(5);\n\\echo :ROW_COUNT\n"
    assert program("-q", stdin=script).out == "5\n"


def test_names_that_differ_in_case_alone(program: Program) -> None:
    done = program("-q", "--format", "csv", stdin='select 1 as a, 2 as "A", 3 as a;\n\\local select * from _\n')
    assert (done.out.splitlines()[-1], done.err) == (
        "1,2,3",
        "<stdin>:1: warning: duplicate column names were changed: a to a_1\n",
    )


CHARTS = {
    "bar": "select 'c' || i as city, i * i as n from range(5) t(i) \\chart",
    "bars": "select 'c' || i as city, i * i as n, -i as m from range(3) t(i) \\chart",
    "line": "select date '2024-01-01' + i::int as d, i as up, 10 - i as down from range(11) t(i) \\chart",
    "panels": "select i, i as small, 1000 * i as large from range(11) t(i) \\chart line",
    "scatter": "select i as x, i % 5 as y from range(20) t(i) \\chart scatter",
    "hist": "select i % 10 + i % 3 as v from range(100) t(i) \\chart",
    "heat": "select 'r' || (i % 4) as a, 'k' || (i % 3) as b, i as v from range(12) t(i) \\chart",
    "hostile": "select 'a' || chr(27) || '[2J' as t, 1 as n \\chart",
}


@pytest.mark.parametrize("name", CHARTS)
def test_charts_as_text(program: Program, name: str) -> None:
    done = program("-q", stdin=f"{CHARTS[name]}\n", env={"COLUMNS": "70", "LINES": "24"})
    agree(f"charts/{name}.txt", done.out)
    assert "\x1b" not in done.out


def test_results_in_two_places(program: Program, tmp_path: Path) -> None:
    script = "\\tee copy.csv\nselect 1 as a;\n\\tee\n\\once once.json\nselect 2 as b;\nselect 3 as c;\n"
    done = program("-q", stdin=script)
    assert [line for line in done.out.splitlines() if "1" in line or "2" in line or "3" in line] == [
        "|   1 |",
        "|   3 |",
    ]
    assert (tmp_path / "copy.csv").read_text() == "a\n1\n"
    assert json.loads((tmp_path / "once.json").read_text()) == [{"b": 2}]


def test_a_copy_that_can_have_one_result_refuses_another(program: Program, tmp_path: Path) -> None:
    """Two Parquet files one after the other would be read as the second one, with the values of the first."""
    (tmp_path / "copy.parquet").write_text("kept")
    done = program("-q", stdin="\\tee copy.parquet\nselect 1 as a;\nselect 2 as b;\n")
    assert done.code == 1
    assert "several results cannot share one parquet output" in done.err
    assert (tmp_path / "copy.parquet").read_text() == "kept"
    done = program("-q", stdin="\\tee a.json\nselect 1 as a;\nselect 2 as b;\n\\tee c.json\nselect 3 as c;\n")
    assert done.err == (
        "<stdin>:3: warning: the output contains several json documents, which many programs cannot read; "
        "use jsonl, or write each to its own file with \\g FILE\n"
    )
    assert json.loads((tmp_path / "c.json").read_text()) == [{"c": 3}]


def test_a_script_that_failed_leaves_no_copy(program: Program, tmp_path: Path) -> None:
    program("-q", stdin="\\tee copy.csv\nselect 1 as a;\nselect nope;\n")
    assert not list(tmp_path.glob("*copy.csv*"))
    assert not list(tmp_path.glob(".*copy.csv*"))


def test_a_log_goes_on(program: Program, tmp_path: Path) -> None:
    for number in (1, 2):
        program("-q", "--on-error", "continue", stdin=f"\\log log.txt\nselect {number} as a;\nselect 1/;\n")
    assert (tmp_path / "log.txt").stat().st_mode & 0o777 == 0o600
    text = (tmp_path / "log.txt").read_text()
    assert (
        text.index("select 1 as a;")
        < text.index("|   1 |")
        < text.index("-- error[42601]")
        < text.index("select 2 as a;")
    )


TRANSCRIPT = """\\transcript t.jsonl
create or replace table t as select range as i from range(10);
select * from t order by i;
select 1/;
create secret s (type s3, key_id 'x', secret 'hidden');
select now() as changes;
"""


def test_values_that_the_shell_knows_are_kept_nowhere(program: Program, served: Served, tmp_path: Path) -> None:
    """Its own token, and what a variable holds that is named for a secret, in places that no name tells of."""
    script = f"""
\\transcript t.jsonl
\\log t.log
\\set api_key ZZI23
\\getenv other MY_PASSWORD
\\getenv t SQLSHELL_TOKEN
select 'gset-value-7' as db_password \\gset
\\set copy :db_password
select 1 as a where 'x' <> :'api_key';
select 1 as a where 'x' <> :'other' and 'x' <> 'and {served.token} too';
select 1 as a where 'x' <> :'t' or 'x' <> :'copy' or nothing(:'api_key');
\\n+ q 'select :''t'' as {served.token}'
\\local select 1
\\warn :t
"""
    env = {"SQLSHELL_TOKEN": served.token, "SQLSHELL_URL": served.url, "MY_PASSWORD": "it's me"}
    found = program("-q", "-vv", "--on-error", "continue", stdin=script, env=env)
    assert "42883" in found.err or "42000" in found.err, found.err
    assert served.token not in found.err
    assert "may contain a secret" in found.err
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"t.jsonl", "t.log", "journal.db"} <= {path.name for path in kept}
    text = b"".join(path.read_bytes() for path in kept)
    for secret in (served.token, "ZZI23", "it''s me", "it's me", "value-7'"):
        assert secret.encode() not in text.replace(b"'gset-value-7' as db_password", b""), secret
    assert text.count(b"***") > 6


def test_a_log_shows_what_would_steer_a_terminal(program: Program, tmp_path: Path) -> None:
    script = "select chr(27) || ']0;title' || chr(8238) as x \\gset\n\\log t.log\nselect :'x';\nselect nothing(:'x');\n"
    program("-q", "--on-error", "continue", stdin=script)
    kept = (tmp_path / "t.log").read_text()
    assert "\\x1b]0;title\\u202e" in kept
    assert not {"\x1b", "\u202e"} & set(kept)


def test_a_transcript_and_a_log_keep_no_secrets(program: Program, tmp_path: Path) -> None:
    statements = (
        "create secret x (type s3, key_id hidden, secret 'hidden');",
        "select password = 'hidden' from (select 'a' as password);",
        "select 1 -- password: 'hidden'\n;",
    )
    script = "\\transcript t.jsonl\n" + "\n".join(statements) + "\n\\transcript\n\\log t.log\n" + statements[0]
    program("-q", "--on-error", "continue", stdin=script)
    assert "hidden" not in tmp_path.joinpath("t.jsonl").read_text() + tmp_path.joinpath("t.log").read_text()
    records = [json.loads(line) for line in tmp_path.joinpath("t.jsonl").read_text().splitlines()]
    assert [record["redacted"] for record in records] == [True] * 3
    assert [record["message"] for record in records] == [""] * 3
    assert [[told["columns"] for told in record["results"]] for record in records] == [[], [[]], [[]]]


def test_a_transcript_run_again(program: Program, tmp_path: Path) -> None:
    program("-q", "--on-error", "continue", stdin=TRANSCRIPT)
    text = (tmp_path / "t.jsonl").read_text()
    records = [json.loads(line) for line in text.splitlines()]
    assert "hidden" not in text
    assert [record["sqlState"] for record in records][:3] == ["00000", "00000", "42601"]
    assert records[1]["results"][0]["rows"] == 10
    assert len(records[1]["results"][0]["digest"]) == 64
    assert records[1]["id"]
    assert records[1]["context"]["database"] == "memory"
    assert (tmp_path / "t.jsonl").stat().st_mode & 0o777 == 0o600
    done = program("replay", "-q", "t.jsonl")
    assert done.code == 1
    assert "select now() as changes" in done.out
    assert "secrets were not recorded" in done.out
    assert "4 statements run again, 1 differs, 1 of 5 statements could not be replayed" in done.err
    same = "\n".join(text.splitlines()[:3])
    (tmp_path / "same.jsonl").write_text(same)
    assert program("replay", "same.jsonl").code == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"rows":10', '"rows":11', "expected 11 rows, found 10"),
        ('"sqlState":"42601"', '"sqlState":"00000"', "expected SQLSTATE 00000, found 42601"),
        ('"columns":["i"]', '"columns":["j"]', "expected columns j, found i"),
        ("order by i", "order by i desc", "different values"),
    ],
)
def test_differences(program: Program, tmp_path: Path, old: str, new: str, message: str) -> None:
    program("-q", "--on-error", "continue", stdin="\n".join(TRANSCRIPT.splitlines()[:4]) + "\n")
    path = tmp_path / "t.jsonl"
    path.write_text(path.read_text().replace(old, new))
    done = program("replay", "-q", "t.jsonl")
    assert done.code == 1
    assert message in done.out


def test_a_replay_is_bound_by_the_policy(program: Program, tmp_path: Path) -> None:
    program("-q", stdin="\\transcript t.jsonl\ncreate table t (a int);\n")
    done = program("replay", "-q", "--read-only", "t.jsonl")
    assert done.code == 1
    assert "not run: " in done.out
    assert "--read-only" in done.out
    assert "sqlState" not in done.out
    assert "1 of 1 statement could not be replayed" in done.err
    (tmp_path / "bad.jsonl").write_text("{nonsense\n")
    assert "bad.jsonl:1" in program("replay", "-q", "bad.jsonl").err


def test_named_queries(program: Program) -> None:
    kept = program("-q", "-c", "select 1 as a", "-c", "\\n+ one", "-c", "\\n+ lim 'select i from range($1) t(i)'")
    assert kept.code == 0, kept.err
    done = program("-q", "--format", "csv", stdin="\\n one\n\\n lim 2\n\\n+ two select :x as x\n\\set x 4\n\\n two\n")
    assert done.out == "a\n1\ni\n0\n1\nx\n4\n"
    strings = "\\n+ s1 select 'it''s' as a, \"b c\" from (select 2 as \"b c\") where 'x' = 'x'\n\\n s1\n"
    strings += "\\n+ s2 'select ''q'' as a'\n\\n s2\n"
    done = program("-q", "--format", "csv", stdin=strings + "\\n+ s1 ''\n\\n+ s2 ''\n")
    assert done.out == "a,b c\nit's,2\na\nq\n", done.err
    listed = program("-q", "-c", "\\n")
    assert [line.split()[0] for line in listed.err.splitlines()] == ["lim", "one", "two"]
    assert "the query uses $1, but 0 arguments were given" in program("-q", "-c", "\\n lim").err
    assert program("-q", "-c", "\\n+ one ''").code == 0
    assert "no named query 'one'" in program("-q", "-c", "\\n one").err


def test_bytes_and_tuples_are_asked_as_what_they_are(program: Program) -> None:
    script = (
        "select 'ab'::blob as b, (1, 'x') as t \\g /dev/null\n"
        "\\local select b, typeof(b) as k, t[2] as t, octet_length(b) as n from _\n"
    )
    done = program("-q", "--format", "csv", stdin=script)
    assert done.out == "b,k,t,n\n\\x6162,BLOB,x,2\n"


def test_local_has_bounds_of_its_own(program: Program) -> None:
    settings = "current_setting('memory_limit') as m, current_setting('max_temp_directory_size') as d"
    asked = f"select parse_filename(current_setting('temp_directory')) as t, {settings} from _"
    done = program("-q", "--format", "csv", stdin=f"select 1 as a;\n\\local {asked}\n")
    assert done.out == "a\n1\nt,m,d\nspilled,953.6 MiB,14.9 GiB\n"


def test_a_large_result_is_loaded_as_a_small_one(program: Program) -> None:
    """From the file of the result, with the types and values that its partitions give."""
    large = (
        'select i as "a b", i as "A B", (i % 50)::utinyint as u, i::ubigint as w, '
        "i::hugeint as h, (i / 8)::decimal(20, 3) as d, "
        "(i / 7)::double as f, case when i % 3 > 0 then 'text, ' || i else '' end as s, nullif(i % 5, 0) as n, "
        "('x' || i)::blob as b, date '2024-01-01' + i::int as dt, "
        "timestamptz '2024-01-01 00:00:00+00' + interval (i) hour as z, "
        "[i, null] as l, {'k': i, 't': 'a'} as r, map {'m': i} as m, time '12:00:00' as t, interval (i) day as v, "
        "repeat('wide ', 20) as wide from range(LIMIT) t(i)"
    )
    asked = "\\local select typeof(columns(*)) from _ limit 1\n\\local from _1 where u < 20 and h < 400 order by h\n"
    said = []
    for number in ("90000", "400"):
        script = f"{large.replace('LIMIT', number)} \\g /dev/null\n{asked}"
        done = program("-q", "-vv", "--format", "csv", stdin=script)
        assert done.code == 0, done.err
        assert ("application/vnd.apache.parquet" in done.err) == (number == "90000")
        said.append(done.out)
    assert said[0] == said[1]
    assert "STRUCT(k BIGINT, t VARCHAR)" in said[0]
    assert said[0].count("\n") > 150


def test_a_semicolon_alone_is_a_separator_where_a_text_is_expected(program: Program) -> None:
    commands = ["\\t", "\\a", "\\pset fieldsep ;", "select 1, 2;", "\\f ,", "select 3, 4;", "\\f ;", "select 5, 6;"]
    assert program(stdin="\n".join([*commands, "\\f |;", "select 7, 8;", ""])).out == "1;2\n3,4\n5;6\n7|8\n"
