"""Variables, conditions and messages of scripts, in every way of running."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Program, clean_environment

CASES: dict[str, tuple[str, str]] = {
    "a value as it is, as a string, as a name": (
        "\\set x 5\n\\set s 'it''s'\n\\set n 'a b'\nselect :x as a, :'s' as b, 7 as :\"n\";",
        "a,b,a b\n5,it's,7\n",
    ),
    "values that hold a statement's end": ("\\set two 'select 1 as a; select 2 as b;'\n:two", "a\n1\nb\n2\n"),
    "a value is never a command": ("\\set x 'select 1 as a \\\\\\\\echo no'\n\\echo :x", "select 1 as a \\\\echo no\n"),
    "nor is it in a statement": (
        "\\set ON_ERROR_STOP off\n\\set x 'select 1 as a \\\\\\\\echo no'\n:x;\n\\echo :ERROR :SQLSTATE",
        "true 42601\n",
    ),
    "no variable in strings, comments and dollars": (
        "\\set x 5\nselect ':x' as a, $$:x$$ as b -- :x\n, 1 /* :x */ as c;",
        "a,b,c\n:x,:x,1\n",
    ),
    "casts, slices and structs": (
        "\\set n 9\n\\set x 8\nselect '1'::int as a, [1,2,3][1:2] as b, {'n':1} as c;",
        'a,b,c\n1,"[1,2]","{""n"":1}"\n',
    ),
    "several words are joined": ("\\set x a b 'c d'\n\\echo :x", "abc d\n"),
    "one is unset": ("\\set x 1\n\\unset x\n\\echo :x :{?x}", ":x FALSE\n"),
    "all are shown": (
        "\\set b 2\n\\set a 'it''s'\n\\set",
        "DBNAME = 'memory'\nENCODING = 'UTF8'\na = 'it''s'\nb = '2'\n",
    ),
    "the connection": (
        "select :'DBNAME' as d, 1 as n;\n\\echo :ENCODING :{?HOST}\n\\set DBNAME own\n\\echo :DBNAME\n"
        "\\unset DBNAME\n\\echo :{?DBNAME}\n\\c :memory:\n\\echo :DBNAME",
        "d,n\nmemory,1\nUTF8 FALSE\nown\nFALSE\nmemory\n",
    ),
    "the connection in a later statement of a script": ("select 1 as a;\nselect :'DBNAME' as d;", "a\n1\nd\nmemory\n"),
    "the connection in the value of a variable": ("\\set q 'select :''DBNAME'' as d;'\n:q", "d\nmemory\n"),
    "the current database": ("attach ':memory:' as other;\nuse other;\n\\echo :DBNAME", "other\n"),
    "the connection in a condition": (
        "\\if :{?SERVER_VERSION_NUM}\n\\echo a server\n\\elif :{?DBNAME}\n\\echo :DBNAME\n\\endif",
        "memory\n",
    ),
    "the environment": ("\\getenv home HOME\n\\getenv nope NOPE_NOPE\n\\echo :{?home} :{?nope}", "TRUE FALSE\n"),
    "the shell's output": ("\\set d `printf 'a b'`\n\\echo :d", "a b\n"),
    "a variable in the shell's command": ("\\set x 'a b'\n\\echo `printf '%s|' :'x'`", "a b|\n"),
    "echo without a line's end": ("\\echo -n a\n\\echo b", "ab\n"),
    "if": ("\\if true\n\\echo a\n\\else\n\\echo b\n\\endif", "a\n"),
    "if not": ("\\if off\nselect 1/;\n\\nonsense\n\\else\n\\echo b\n\\endif", "b\n"),
    "elif": ("\\if 0\n\\echo a\n\\elif yes\n\\echo b\n\\elif yes\n\\echo c\n\\else\n\\echo d\n\\endif", "b\n"),
    "nested": (
        "\\if 0\n\\if nonsense\n\\echo a\n\\else\n\\echo b\n\\endif\n\\elif 1\n\\if 0\n\\else\n"
        "\\echo c\n\\endif\n\\endif",
        "c\n",
    ),
    "what a statement leaves": (
        "select 1 as a union all select 2 order by a;\n\\echo :ERROR :SQLSTATE :ROW_COUNT",
        "a\n1\n2\nfalse 00000 2\n",
    ),
    "gset": ("select 1 as a, 'x y' as b, null as c \\gset p_\n\\echo :p_a :p_b :{?p_c}", "1 x y FALSE\n"),
    "gset of bytes": ("select 'ab'::blob as a \\gset\n\\echo :a", "\\x6162\n"),
    "gset is no command": (
        "select '\\! touch hacked' as a \\gset\n\\echo :a\nselect ':a' as b;",
        "\\! touch hacked\nb\n:a\n",
    ),
    "gexec": (
        "select 'create table t' || i || ' as select ' || i || ' as v' from range(2) r(i) \\gexec\n"
        "select t0.v + t1.v as s from t0, t1;",
        "s\n1\n",
    ),
    "gexec passes NULL over": ("select null as a, 'select 5 as b' as c \\gexec", "b\n5\n"),
    "gdesc": ("select 1 as a, 'x' as b \\gdesc", "name,type,nullable\na,INTEGER,true\nb,VARCHAR,true\n"),
    "the last one again": ("select 1 as a;\n\\g", "a\n1\na\n1\n"),
    "print": ("select 1 as a \\p", "select 1 as a\na\n1\n"),
    "drop": ("select 1 as a \\r\nselect 2 as b;", "b\n2\n"),
    "names with quotes": ('\\set x \'a"b\'\nselect 1 as :"x";', '"a""b"\n1\n'),
    "an option of psql": ("\\set ON_ERROR_STOP off\nselect 1/;\n\\echo on", "on\n"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_script(program: Program, name: str) -> None:
    script, expected = CASES[name]
    done = program("-q", "--format", "csv", stdin=f"{script}\n")
    assert done.out == expected, done.err


@pytest.mark.parametrize("way", ["-f", "-c", "stdin"])
def test_every_way_of_running(program: Program, tmp_path: Path, way: str) -> None:
    script = "\\set x 3\n\\if :{?x}\nselect :x + 1 as a;\n\\endif\n"
    if way == "-f":
        (tmp_path / "s.sql").write_text(script)
        done = program("-q", "-f", "s.sql", "--format", "csv")
    elif way == "-c":
        done = program("-q", "-c", script, "--format", "csv")
    else:
        done = program("-q", "--format", "csv", stdin=script)
    assert (done.code, done.out) == (0, "a\n4\n")


def test_double_quotes_stay_in_values_and_not_around_file_names(program: Program, tmp_path: Path) -> None:
    tmp_path.joinpath("t.csv").write_text("A b\nX\n")
    tmp_path.joinpath("my file.sql").write_text("select :c as low from t;\n")
    script = (
        '\\set c lower("A b")\n\\echo "a  b" :c\n\\qecho "q"\n\\warn "w  x"\n.print "p  p"\n\\i "my file.sql"\n'
        '\\n+ kept select "A b" from t\n\\n kept\n'
    )
    done = program("t.csv", "-q", "--format", "csv", stdin=script)
    assert done.out == '"a  b" lower("A b")\n"q"\np  p\nlow\nx\nA b\nX\n'
    assert done.err == '"w  x"\nsaved as kept\n'


def test_the_message_of_the_last_error_is_one_line(program: Program) -> None:
    script = "select nope\n  from range(3);\n\\echo [:LAST_ERROR_MESSAGE]\n"
    done = program("-q", "--on-error", "continue", stdin=script)
    assert re.fullmatch(r"\[.*nope.*\]\n", done.out)


def test_the_failure_of_a_statement_in_the_background_is_one_line(program: Program) -> None:
    done = program(stdin="insert into nowhere values (1);&\n")
    told = next(line for line in done.err.splitlines() if line.startswith("[1] failed"))
    assert re.fullmatch(r"\[1\] failed \(3D020\): insert into nowhere values \(1\): .*nowhere.*", told)


def test_a_script_may_ask(program: Program) -> None:
    assert program("-q", stdin="\\prompt a b c\n").code == 2


def test_the_command_line_gives_values(program: Program) -> None:
    done = program("-q", "--set", "x=a b", "--set", "y", "-c", "\\echo [:x] [:y]")
    assert done.out == "[a b] []\n"
    assert program("--set", "a-b=1", "-c", "select 1").code == 2


def test_a_script_that_relies_on_autocommit_off_ends_there(program: Program) -> None:
    done = program("-q", "--on-error", "continue", stdin="\\set AUTOCOMMIT off\nselect 'run anyway';\n")
    assert (done.code, done.out) == (2, "")
    assert "AUTOCOMMIT cannot be off" in done.err


def test_no_commands(program: Program) -> None:
    done = program("-q", "--no-commands", "--format", "csv", stdin="select 1 as a;\n\\! touch hacked\nselect 2;\n")
    assert done.code == 2
    assert done.out == "a\n1\n"
    assert "--no-commands" in done.err
    for text in (".shell touch hacked", "!system touch hacked", "select 1 \\g |touch hacked"):
        assert program("-q", "--no-commands", stdin=f"{text}\n").code == 2


@pytest.mark.parametrize(
    ("script", "message", "code"),
    [
        ("\\if nonsense\n\\echo a\n\\endif", "expected on or off", 2),
        ("\\if true\n\\echo a", "inside an \\if block", 2),
        ("\\endif", "no matching \\if", 2),
        ("\\else", "no matching \\if", 2),
        ("\\elif 1", "no matching \\if", 2),
        ("\\elif", "no matching \\if", 2),
        ("\\if 1\n\\else\n\\elif 1\n\\endif", "after \\else", 2),
        ("\\if 1\n\\else\n\\else\n\\endif", "occur after \\else", 2),
        (
            "\\set a-b 1",
            "'a-b' is not a valid variable name\nhelp: a name consists of letters, digits and underscores",
            2,
        ),
        ("\\n+ a/b select 1", "'a/b' is not a valid query name\nhelp: a name consists of", 2),
        ("\\set AUTOCOMMIT off", "AUTOCOMMIT cannot be off", 2),
        ("select 1;\n/* a\nselect 2;", "<stdin>:2: error[42601]: unterminated comment at the end of the script", 1),
        ("\\unset", "requires NAME", 2),
        ("\\set x 'a", "unterminated quote", 2),
        ("\\echo `exit 3`", "exit code 3", 2),
        ("select 1 as a where false \\gset", "the result has none", 2),
        ("select 1 as a from range(2) \\gset", "the result has more", 2),
        ("select 'select 1/' as a \\gexec", "42601", 1),
        ("create table t(a int) \\gdesc", "may write", 2),
        ("\\gset", "no statement to send", 2),
        ("\\prompt x", "requires a terminal", 2),
        ("select 1 \\watch x", "not a number", 2),
        ("select 1 \\watch i=-1", "at least 0", 2),
        ("\\w", "requires FILE", 2),
        ("\\w x.sql", "query buffer is empty", 2),
        ("select 1 \\w nope/x.sql", "cannot write", 1),
        ("\\cd nope", "cannot change to nope", 2),
        ("\\ir nope.sql", "nope.sql", 2),
        (".nope", "unknown command .nope", 2),
        ("\\dtS", "help: \\dt pg_catalog.* lists system relations", 2),
        ("\\dtt", "\\dt", 2),
        ("\\copy t from 'x.csv'", "t", 1),
    ],
)
def test_what_is_wrong(program: Program, script: str, message: str, code: int) -> None:
    done = program("-q", stdin=f"{script}\n")
    assert message in done.err
    assert done.code == code


def test_statements_of_a_service_name_no_files(program: Program, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    done = program("-v", "-c", "select 'create x with (''file'' = ''@secret.txt'')' as s \\gexec")
    assert done.code == 2
    assert "the name of a file to upload cannot be a value for \\gexec: the value came from the service" in done.err
    assert "attached" not in done.err


def test_a_policy_holds_for_what_a_service_gave(program: Program) -> None:
    for script in (
        "select 'create table t(a int)' as s \\gexec",
        "create table t(a int) \\watch c=1",
        "\\set s 'create table t(a int)'\n:s;",
        "\\set s 'select 1; drop table t'\n:s;",
    ):
        done = program("-q", "--read-only", stdin=f"{script}\n")
        assert done.code == 2, script
        assert "--read-only allows only" in done.err


def test_conditions_that_do_not_count_are_not_looked_at(program: Program, tmp_path: Path) -> None:
    script = "\\if 1\n\\elif `touch a`\n\\elif 'open\n\\endif\n\\if 0\n\\if `touch b`\n\\endif\n\\endif\n\\echo end\n"
    done = program("-q", stdin=script)
    assert (done.code, done.out) == (0, "end\n"), done.err
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("condition", ["`exit 1`", "'open", "maybe", ""])
def test_a_condition_that_fails_runs_nothing(program: Program, condition: str) -> None:
    for script in (
        f"\\if {condition}\n\\echo a\n\\else\n\\echo b\n\\endif\n\\echo end\n",
        f"\\if 0\n\\elif {condition}\n\\echo a\n\\else\n\\echo b\n\\endif\n\\echo end\n",
    ):
        done = program("-q", "--on-error", "continue", stdin=script)
        assert (done.code, done.out) == (2, "b\nend\n"), done.err
        assert done.err.count("error") == 1


def test_a_value_of_a_service_is_one_local_statement(program: Program, tmp_path: Path) -> None:
    script = "select '1; copy (select 1) to ''hacked.csv'';' as x \\gset\nselect 1 as a;\n\\local select :x from _\n"
    done = program("-q", stdin=script)
    assert done.code == 2
    assert "several statements" in done.err
    assert not (tmp_path / "hacked.csv").exists()


def test_watch_in_a_script(program: Program) -> None:
    done = program("--format", "csv", stdin="select 1 as a \\watch i=0.01 c=3\nselect 2 as b;\n")
    assert done.err.count("every 0.01s") == 3
    assert done.out == "a\n1\n" * 3 + "b\n2\n"
    done = program("--format", "csv", stdin="select 1 as a where false \\watch i=0.01 m=1\n")
    assert (done.err.count("every"), done.out) == (1, "a\n")
    assert program("-q", stdin="select 1 as a \\watch i=0.01 c=2\n").err == ""


def test_watch_in_a_script_shows_every_row(program: Program) -> None:
    done = program("-q", "--format", "csv", stdin="from range(12000) \\watch c=1\n")
    assert done.out.splitlines()[-1] == "11999"


def test_the_exit_code_of_a_command_that_a_signal_ended(program: Program) -> None:
    assert program(stdin="\\! kill -9 $$\n\\echo :SHELL_ERROR :SHELL_EXIT_CODE\n").out == "true 137\n"


def test_times_in_a_script(program: Program) -> None:
    script = "select 1 as a;\n\\timing on\nselect 2 as b;\ncreate table t (i int);\n\\timing off\nselect 3 as c;\n"
    done = program("--format", "csv", stdin=script)
    assert done.out == "a\n1\nb\n2\nc\n3\n"
    message = [re.sub(r"[\d.]+ m?s", "TIME", line) for line in done.err.splitlines()]
    assert message == ["Timing is on.", "1 row (TIME)", "CREATE TABLE (TIME)", "Timing is off."]


@pytest.mark.slow("a pipeline of processes")
def test_watch_ends_with_its_reader(tmp_path: Path) -> None:
    command = f"{sys.executable} -m sqlshell -q --format csv | head -4"
    done = subprocess.run(
        command,
        shell=True,
        input=b"select 1 as a \\watch i=0.05\n",
        capture_output=True,
        env=clean_environment(tmp_path, {}),
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.stdout == b"a\n1\na\n1\n"
    assert done.stderr == b""


def test_words_for_nobody(tmp_path: Path) -> None:
    command = f"{sys.executable} -m sqlshell -q -c '\\echo a' -c '\\echo b' | true"
    env = clean_environment(tmp_path, {})
    done = subprocess.run(command, shell=True, capture_output=True, env=env, cwd=tmp_path, timeout=60, check=False)
    assert done.stderr == b""


def test_a_file_of_the_buffer_has_no_semicolon_that_nobody_wrote(program: Program, tmp_path: Path) -> None:
    program("-c", "select 1 as a \\w unfinished.sql", "-c", "select 2 as b; \\w last.sql")
    assert (tmp_path / "unfinished.sql").read_text() == "select 1 as a\n"
    assert (tmp_path / "last.sql").read_text() == "select 2 as b;\n"


def test_buffers_and_files(program: Program) -> None:
    script = "select 1 as a \\w one.sql\n\\i one.sql\n\\! echo shell\n\\echo :SHELL_EXIT_CODE\n"
    done = program("-q", "--format", "csv", stdin=script)
    assert done.out == "a\n1\nshell\n0\na\n1\n"


def test_scripts_beside_scripts(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "deep"
    folder.mkdir()
    (folder / "a.sql").write_text("\\ir b.sql\n")
    (folder / "b.sql").write_text("select 5 as a;\n")
    assert program("-q", "--format", "csv", "-f", "deep/a.sql").out == "a\n5\n"


def test_what_a_failure_leaves_out_is_told(program: Program, tmp_path: Path) -> None:
    script = "select 1 as a; selct; select 2;\n\\x\nselect 3"
    (tmp_path / "a.sql").write_text(script)
    for words, stdin, number in (["-c", script], None, ""), (["-f", "a.sql"], None, ""), ([], script, "at least "):
        done = program("-q", "--format", "csv", *words, stdin=stdin)
        assert done.out == "a\n1\n"
        left = [line for line in done.err.splitlines() if "not run" in line]
        assert left == [f"warning: {number}2 statements and 1 command were not run"]


def test_leaving_discards_what_is_unfinished(program: Program) -> None:
    done = program("-q", "--format", "csv", stdin="select 1 as a \\q\nselect 2;")
    assert (done.code, done.out) == (0, "")
    assert "the unfinished statement before \\q was discarded" in done.err


FAILING = {
    "a number that is none": "delete from d \\watch abc",
    "too few times": "delete from d \\watch c=0",
    "a word too many": "delete from d \\gset a b",
    "a prefix too many": "delete from d \\gset :'x \\\\",
    "no such format": "delete from d \\clip nonsense",
    "nobody to look": "delete from d \\browse",
    "it may write": "delete from d \\gdesc",
    "no such command": "delete from d \\nonsense",
    "no such file": "delete from d \\i nonsense.sql",
    "no such variable": "delete from d \\if nonsense\nwhere false\n\\endif",
}


@pytest.mark.parametrize("name", FAILING)
def test_a_statement_whose_command_failed_never_runs_later(program: Program, tmp_path: Path, name: str) -> None:
    script = f"create table d as select 1 as a;\n{FAILING[name]}"
    (tmp_path / "s.sql").write_text(script)
    ways = ["-f", "s.sql"] if len(name) % 2 else ["-c", script]
    done = program("-q", "--on-error", "continue", "--format", "csv", *ways, "-c", "from d")
    assert (done.code, done.out) == (2, "a\n1\n")
    assert "the unfinished statement" in done.err


def test_a_statement_whose_command_failed_does_not_join_the_next(program: Program) -> None:
    script = "select 1 as a \\gset a b\nselect 5 as five;\nselect 6 as six \\watch abc\n"
    done = program("-q", "--on-error", "continue", "--format", "csv", stdin=script)
    assert done.out == "five\n5\n"
    assert [line for line in done.err.splitlines() if "warning" in line] == [
        "warning: the unfinished statement before \\gset was discarded",
        "warning: the unfinished statement before \\watch was discarded",
    ]


def test_commands_that_are_off_send_nothing(program: Program) -> None:
    script = "create table d as select 1 as a;\ndelete from d \\g\nselect 2 as b;\nfrom d;\ndelete from d \\x"
    done = program("-q", "--no-commands", "--on-error", "continue", "--format", "csv", stdin=script)
    assert done.out == "b\n2\na\n1\n"


def test_a_statement_goes_on_behind_a_command_that_failed(program: Program) -> None:
    done = program(
        "-q",
        "--on-error",
        "continue",
        "--format",
        "csv",
        stdin="select 1 as a\n\\nonsense\n, 2 as b;\n\\echo `false`\nselect 3 as c",
    )
    assert (done.code, done.out) == (2, "a,b\n1,2\nc\n3\n")


@pytest.mark.parametrize("on_error", ["stop", "continue"])
def test_leaving_ends_the_script_that_says_so(program: Program, tmp_path: Path, on_error: str) -> None:
    (tmp_path / "q.sql").write_text("select 1 as a;\n\\if true\n\\q\n\\endif\nselect 2 as b;\n")
    (tmp_path / "caller.sql").write_text("\\i q.sql\nselect 3 as c;\n\\i q.sql\n\\q\nselect 4 as d;\n")
    options = ["-q", "--format", "csv", "--on-error", on_error]
    for ways, out in (
        (["-c", "\\i q.sql", "-c", "select 5 as e"], "a\n1\ne\n5\n"),
        (["-f", "q.sql", "-c", "\\q", "-c", "select 5 as e"], "a\n1\ne\n5\n"),
        (["-f", "caller.sql", "-f", "q.sql"], "a\n1\nc\n3\na\n1\na\n1\n"),
    ):
        done = program(*options, *ways)
        assert (done.code, done.out, done.err) == (0, out, "")


GEXEC = "select unnest(['select 1 as a', 'selct', 'select 2 as b', 'selct 2', 'select 3 as c']) \\gexec\nselect 4 as d;"


def test_the_statements_that_gexec_runs_fail_one_by_one(program: Program) -> None:
    done = program("-q", "--format", "csv", "--on-error", "continue", stdin=GEXEC)
    assert (done.code, done.out) == (1, "a\n1\nb\n2\nc\n3\nd\n4\n")
    assert done.err.count("selct") >= 2
    done = program("-q", "--format", "csv", "-c", GEXEC)
    assert (done.code, done.out) == (1, "a\n1\n")
    assert "warning: \\gexec: 3 statements were not run" in done.err


def test_a_failure_within_a_condition_is_one_failure(program: Program) -> None:
    done = program("-q", "-c", "\\if true\nselct;\n\\endif")
    assert (done.code, len(re.findall("^error|: error", done.err, re.M))) == (1, 1)
    assert "ends inside" not in done.err
    done = program("-q", "-c", "\\if true\nselect 1;")
    assert (done.code, len(re.findall("^error|: error", done.err, re.M))) == (2, 1)
    assert "ends inside" in done.err


def test_the_scripts_behind_a_failure_are_told(program: Program, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("select 1;")
    done = program("-q", "-c", "select 1 as a", "-c", "selec 2", "-c", "select 3", "-f", "a.sql", "-f", "a.sql")
    assert done.code == 1
    assert "warning: 1 later -c and 2 later -f were not run" in done.err
    assert "not run" not in program("-q", "-c", "select 1 as a", "-c", "selec 2").err
    assert "not run" not in program("-q", "--on-error", "continue", "-c", "selec 2", "-c", "select 3").err


@pytest.mark.parametrize("word", ["commit", "/* all of it */ END"])
def test_the_commit_of_a_failed_transaction_rolls_back_and_says_so(program: Program, word: str) -> None:
    script = f"create table t(a int primary key);\nbegin;\ninsert into t values (1), (1);\n{word};\n"
    done = program("--on-error", "continue", stdin=f"\\timing on\n{script}")
    assert "none of its changes were committed" in done.err
    assert re.search(r"^ROLLBACK \(", done.err, re.M), done.err
    assert "done (" not in done.err


def test_a_command_in_backticks_that_fails_is_an_error(program: Program) -> None:
    script = "\\set y before\n\\set y `echo after; false`\n\\echo :y\n\\set y `echo after; false; true`\n\\echo :y\n"
    done = program("-q", "--on-error", "continue", stdin=script)
    assert (done.code, done.out) == (2, "before\nafter\n")
    assert "failed with exit code 1" in done.err
    assert "append ; true" in done.err


@pytest.mark.parametrize("closing", ["\\o", "\\o other.csv\n\\o"])
def test_an_output_ends_although_the_command_of_a_copy_failed(program: Program, tmp_path: Path, closing: str) -> None:
    script = f"\\o kept.csv\n\\tee |false\nselect 1 as a;\n{closing}\nselect 2 as b;\n"
    done = program("-q", "--on-error", "continue", "--format", "csv", stdin=script)
    assert (done.code, done.out) == (1, "b\n2\n"), done
    assert "the command 'false' failed with exit code 1" in done.err
    assert (tmp_path / "kept.csv").read_text() == "a\n1\n"
