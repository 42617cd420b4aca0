"""Files loaded into tables: \\copy and `sqlshell import`, on the embedded service, a served one, and any other."""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from os import mkfifo
from pathlib import Path
from subprocess import PIPE

import duckdb
import pytest

from sqlshell.errors import ConnectionBroken, ConnectionFailed, ShellError, StatementError
from sqlshell.shell.loading.send import SentBatch, with_range, without_range
from tests.conftest import Done, Program, Served, serve, start, stop
from tests.service.client import Client

TABLE = (
    "create or replace table t (id bigint, name varchar, price decimal(20,2), x double, day date, happened timestamp, "
    "zoned timestamptz, flag boolean, data blob, tags varchar[], s struct(a int, b varchar), m map(varchar, int), "
    "t9 timestamp_ns, huge hugeint, u uuid)"
)
VALUES = (
    "(1, 'a, \"b\"\n''c'' \\ ; -- \u00fc', 1.10, 0.1, date '2024-02-29', timestamp '2024-01-02 03:04:05.678', "
    "timestamptz '2024-01-02 03:04:05+01', true, '\\x00\\xFFa'::blob, ['x', null, 'it''s'], {a: 1, b: 'q''\"'}, "
    "map {'k': 1, 'l': null}, timestamp_ns '2024-01-02 03:04:05.123456789', 170141183460469231731687303715884105727, "
    "'00000000-0000-0000-0000-000000000001'::uuid), "
    "(2, '', -3, 'nan', null, null, null, false, ''::blob, [], {a: null, b: null}, map {}, null, -1, null), "
    "(3, null, null, '-inf', null, null, null, null, null, null, null, null, null, null, null)"
)


class Plain:
    """A service behind a proxy that hides what the service announces: any other service."""

    def __init__(self, served: Served) -> None:
        self.connect_to(served)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self.drops = b""
        """The connection breaks when this was sent, before an answer to it."""
        self.holds = b""
        """What follows this is held back, after `held` is set."""
        self.held = threading.Event()
        self.hides = b", copy"
        """What the service announces and the proxy hides."""
        threading.Thread(target=self._accept, daemon=True).start()

    def connect_to(self, served: Served) -> None:
        self._port = int(served.url.rpartition(":")[2].split("/")[0])

    def close(self) -> None:
        # Closing alone does not end accept().
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._server.accept()
            except OSError:
                return
            there = socket.create_connection(("127.0.0.1", self._port))
            threading.Thread(target=self._connect, args=(here, there), daemon=True).start()

    def _connect(self, here: socket.socket, there: socket.socket) -> None:
        with here, there:
            back = threading.Thread(target=self._carry, args=(there, here), daemon=True)
            back.start()
            self._carry(here, there)
            back.join()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                data = data.replace(self.hides, b", nope") if self.hides else data
                if self.holds and self.holds in data:
                    self.held.set()
                    break
                dropped = self.drops and self.drops in data
                if dropped:
                    # Before the request arrives, for its answer may be faster than a break behind it.
                    source.shutdown(socket.SHUT_RDWR)
                target.sendall(data.replace(f":{self.url.rpartition(':')[2]}\r\n".encode(), b":%d\r\n" % self._port))
                if dropped:
                    break
        except OSError:
            pass
        finally:
            for each in (source, target):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = serve(tmp_path_factory.mktemp("loading"))
    yield running
    stop(running)


@pytest.fixture
def plain(service: Served) -> Iterator[Plain]:
    made = Plain(service)
    yield made
    made.close()


@pytest.fixture(params=["embedded", "served", "plain"])
def where(request: pytest.FixtureRequest, service: Served, plain: Plain, program: Program) -> Where:
    url = {"embedded": "work.duckdb", "served": service.url, "plain": plain.url}[request.param]
    return Where(program, url, service.token)


class Where:
    """A service, and the program to use it with."""

    def __init__(self, program: Program, target: str, token: str) -> None:
        self.target = target
        self._program = program
        self._env = {"SQLSHELL_TOKEN": token} if "://" in target else {}

    def __call__(self, *argv: str, stdin: str | bytes | None = None, code: int = 0) -> Done:
        done = self._program(*argv, stdin=stdin, env=self._env)
        assert done.code == code, done
        return done

    def run(self, *commands: str, stdin: str | bytes | None = None, code: int = 0) -> Done:
        args = [word for command in commands for word in ("-c", command)]
        return self(self.target, "--format", "csv", "--timezone", "UTC", *args, stdin=stdin, code=code)

    def load(self, file: str, *options: str, stdin: str | bytes | None = None, code: int = 0) -> Done:
        return self("import", file, self.target, "--timezone", "UTC", "--table", "t", *options, stdin=stdin, code=code)


@pytest.mark.slow("starts a service, runs the program six times")
@pytest.mark.parametrize("ending", ["csv", "tsv", "json", "jsonl", "csv.gz", "parquet", "csv.zst"])
def test_every_type_comes_back_as_it_went_out(where: Where, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"out.{ending}"
    where.run(TABLE, f"insert into t values {VALUES}")
    before = where.run("select * from t order by id")
    if ending in {"parquet", "csv.zst"}:
        with duckdb.connect() as made:
            # The engine's own writer; what Parquet does not hold is text.
            replaced = "huge::varchar as huge, t9::varchar as t9, u::varchar as u"
            if ending == "csv.zst":
                replaced += ", '\\x' || hex(data) as data, to_json(tags) as tags, to_json(s) as s, to_json(m) as m"
            made.execute(TABLE)
            made.execute("set timezone = 'UTC'")
            made.execute(f"insert into t values {VALUES}")
            made.execute(f"copy (select * replace ({replaced}) from t order by id) to '{file}'")
    else:
        where(
            where.target,
            "--timezone",
            "UTC",
            "-c",
            "select * from t order by id",
            "-o",
            f"x.{ending.split('.', maxsplit=1)[0]}",
        )
        data = (tmp_path / f"x.{ending.split('.', maxsplit=1)[0]}").read_bytes()
        file.write_bytes(gzip.compress(data, mtime=0) if ending.endswith("gz") else data)
    where.run("truncate t")
    assert "3 rows loaded into t" in where.load(file.name).err
    assert where.run("select * from t order by id").out == before.out


@pytest.mark.slow("runs the program five times")
def test_columns_are_matched_by_name_and_shown(where: Where, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('B;A\nx;1\n"y;z";2\n')
    where.run("create or replace table t (a int, b varchar, c int default 5)")
    shown = where.load("a.csv", "--dry-run")
    assert "B VARCHAR -> b VARCHAR" in shown.err and "c" in shown.err.splitlines()[-1]
    assert where.run("select count(*) as n from t").out == "n\n0\n"
    where.load("a.csv")
    assert where.run("select * from t order by a").out == "a,b,c\n1,x,5\n2,y;z,5\n"


def test_the_line_of_a_load_whose_table_cannot_be_created(program: Program, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "x.sql").write_text("create table t (a int);\n\n\\copy t from 'a.csv' (create true)\n")
    done = program("-f", "x.sql")
    assert (done.code, done.err) == (1, 'x.sql:3: error[42P017]: table "t" already exists\n')


@pytest.mark.slow("runs the program four times")
def test_a_table_is_created(where: Where, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"i": 1, "l": [1.5], "o": {"k": "v"}}, {"i": 2}]')
    where.run("drop table if exists t")
    where.load("a.json", "--create")
    assert where.run("select i, l[1] as x, o.k as k from t order by i").out == "i,x,k\n1,1.5,v\n2,,\n"
    assert "already exists" in where.load("a.json", "--create", code=1).err


@pytest.mark.slow("runs the program five times")
def test_bad_rows_are_named_and_nothing_is_sent(where: Where, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('a,b\n1,"x\ny"\nfoo,y\n3\n4,z\n')
    where.run("create or replace table t (a int, b varchar)")
    done = where.load("a.csv", "--max-errors", "1", "--rejects", "bad.csv", code=1)
    assert "a.csv, line 4, column \"a\": cannot convert 'foo' to INTEGER" in done.err and "line 5" in done.err
    assert "nothing was sent" in done.err
    assert where.run("select count(*) as n from t").out == "n\n0\n"
    rejected = (tmp_path / "bad.csv").read_text().splitlines()
    assert rejected[0] == "file,line,column,error,row" and [line.split(",")[1] for line in rejected[1:]] == ["4", "5"]
    done = where.load("a.csv", "--max-errors", "2")
    assert "2 rows of a.csv skipped" in done.err and "2 rows loaded" in done.err
    assert where.run("select * from t order by a").out == 'a,b\n1,"x\ny"\n4,z\n'


@pytest.mark.slow("runs the program four times")
@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_bad_records_are_named(where: Where, tmp_path: Path, ending: str) -> None:
    rows = [{"a": "1", "b": "x"}, {"a": "foo", "b": "y"}, {"a": "3", "b": None}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if ending == "parquet":
        duckdb.sql(f"copy (from '{tmp_path}/a.jsonl') to '{tmp_path}/a.parquet'")
    where.run("create or replace table t (a int, b varchar)")
    done = where.load(f"a.{ending}", code=1)
    assert (
        f"a.{ending}, {'record' if ending == 'jsonl' else 'row'} 2, column \"a\": cannot convert 'foo' to INTEGER"
        in done.err
    )
    where.load(f"a.{ending}", "--max-errors", "1")
    assert where.run("select * from t order by a").out == "a,b\n1,x\n3,\n"


@pytest.mark.slow("runs the program five times")
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.zst", "tsv", "jsonl"])
def test_bad_values_of_nested_columns_are_named_and_skipped(where: Where, tmp_path: Path, ending: str) -> None:
    values = {1: "[1, 2]", 2: '[1, "x"]', 3: "nope", 4: "[1.5]", 5: "[1.0]"}
    with duckdb.connect() as made:
        made.execute("create table t (a varchar, l varchar)")
        made.executemany("insert into t values (?, ?)", [(str(number), text) for number, text in values.items()])
        made.execute("insert into t values ('y', '[]'), ('6', null)")
        if ending == "jsonl":
            lists = "if(json_valid(l), l, to_json(l))::json"
            made.execute(f"copy (select a, {lists} as l from t) to '{tmp_path}/a.jsonl' (format json)")
        else:
            form = "delimiter '\t', quote '', escape '', nullstr '\\N', header" if ending == "tsv" else "header"
            made.execute(f"copy t to '{tmp_path}/a.{ending}' (format csv, {form})")
    where.run("create or replace table t (a int, l int[])")
    one, lines = ("record", [2, 3, 4, 6]) if ending == "jsonl" else ("line", [3, 4, 5, 7])
    done = where.load(f"a.{ending}", "--max-errors", "3", code=1)
    for line, text in zip(lines, [*values.values()][1:4], strict=False):
        shown = text.replace(" ", "") if ending == "jsonl" else text
        assert f'a.{ending}, {one} {line}, column "l": cannot convert {shown!r} to ARRAY<INTEGER>' in done.err
    assert f'a.{ending}, {one} {lines[3]}, column "a": ' in done.err
    assert where.run("select count(*) as n from t").out == "n\n0\n"
    done = where.load(f"a.{ending}", "--max-errors", "4", "--rejects", "bad.csv")
    assert "3 rows loaded into t" in done.err
    with (tmp_path / "bad.csv").open() as file:
        assert [row["line"] for row in csv.DictReader(file)] == [str(line) for line in lines]
    assert where.run("select * from t order by a").out == 'a,l\n1,"[1,2]"\n5,[1]\n6,\n'


@pytest.mark.slow("runs the program three times")
def test_bad_bytes_and_deeper_values_are_named(where: Where, tmp_path: Path) -> None:
    where.run("create or replace table t (d blob, s struct(a int, b blob), m map(varchar, decimal(20,2)))")
    good = '\\x61,"{""a"": 1, ""b"": ""YWI=""}","{""k"": 123456789012345678.10}"'
    (tmp_path / "a.csv").write_text(
        "d,s,m\n"
        f"{good}\n"
        "\\xZ,,\n"
        '\\x,"{""a"": 1.5, ""b"": null}",\n'
        '\\x,,"{""k"": ""x\ny""}"\n'
        '\\x,"{""a"": 1, ""b"": ""?""}",null\n'
        "\\x,,null\n"
    )
    done = where.load("a.csv", "--max-errors", "4")
    assert [line.split(":")[0].strip() for line in done.err.splitlines()[1:5]] == [
        'a.csv, line 3, column "d"',
        'a.csv, line 4, column "s"',
        'a.csv, line 5, column "m"',
        'a.csv, line 7, column "s"',
    ], done.err
    rows = 'd,s,m\n\\x61,"{""a"":1,""b"":""YWI=""}","{""k"":""123456789012345678.10""}"\n\\x,,\n'
    assert where.run("from t order by d desc").out == rows


@pytest.mark.slow("runs the program five times")
def test_texts_of_arrays_as_postgresql_writes_them(where: Where, tmp_path: Path) -> None:
    where.run(
        "create or replace table t (id int, l varchar[], n int[][], d decimal(20,2)[], b blob[], z timestamptz[], "
        "f boolean[], x double[], v varchar, s varchar)"
    )
    rows = (
        '1\t{"a b",NULL,"q\\\\"x"}\t{{1,2},{3,4}}\t{1.10,NULL,123456789012345678.12}\t{"\\\\\\\\x6162"}\t'
        '{"2024-01-02 03:04:05+01",infinity}\t{t,f}\t{NaN,-Infinity,1e+300}\t{1,2}\t{"a"}\n'
        '2\t{a,"","NULL",null,",","{","\\\\\\\\",é}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n'
    )
    (tmp_path / "a.txt").write_text(rows)
    where.run("\\copy t from 'a.txt'")
    assert where.run("select * from t order by id").out == (
        "id,l,n,d,b,z,f,x,v,s\n"
        '1,"[""a b"",null,""q\\""x""]","[[1,2],[3,4]]","[""1.10"",null,""123456789012345678.12""]","[""YWI=""]",'
        '"[""2024-01-02 02:04:05Z"",""infinity""]","[true,false]","[""NaN"",""-Infinity"",1e300]","{1,2}","{""a""}"\n'
        '2,"[""a"","""",""NULL"",null,"","",""{"",""\\\\"",""é""]",[],[],[],[],[],[],{},{}\n'
    )
    bad = ["{a", "{a,,b}", "{a}b", "[0:0]={a}", '{"a" "b"}', "{a}{b}", '{a"b"}', "a}"]
    (tmp_path / "a.txt").write_text("".join(f"{at}\t{text}\n" for at, text in enumerate(bad)))
    done = where.run("\\copy t (id, l) from 'a.txt' with (rejects 'bad.csv')", code=1)
    assert "8 rows of a.txt cannot be loaded" in done.err
    (tmp_path / "a.txt").write_text("1\t{1.5}\n2\t{1}\n3\t{{1,2}}\n")
    done = where.run("\\copy t (id, n) from 'a.txt' with (max_errors 9)", "select n from t where id = 3")
    assert 'a.txt, line 1, column "n"' in done.err and 'a.txt, line 2, column "n"' in done.err
    assert done.out == 'n\n"[[1,2]]"\n'


@pytest.mark.slow("runs the program three times")
@pytest.mark.parametrize(
    ("data", "options"),
    [
        (b"a,b\n1,x\n2,y\n", ()),
        (gzip.compress(b"a,b\n1,x\n2,y\n", mtime=0), ()),
        (b'{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n', ()),
        (b"1\tx\n2\ty\n", ("--input-format", "tsv")),
        (b"1|x\n2|y\n", ("--with", "FORMAT csv, HEADER false, DELIMITER '|'")),
    ],
    # What gzip writes first depends on the version of Python.
    ids=["csv", "csv.gz", "jsonl", "text", "delimiter"],
)
def test_stdin_is_loaded(where: Where, data: bytes, options: tuple[str, ...]) -> None:
    where.run("create or replace table t (a int, b varchar)")
    assert "2 rows loaded" in where.load("-", *options, stdin=data).err
    assert where.run("select * from t order by a").out == "a,b\n1,x\n2,y\n"


@pytest.mark.slow("runs the program six times")
def test_psql_options_are_taken(where: Where, tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("1;NULL;'it''s'\n2;;x\n")
    where.run("create or replace table t (a int, b varchar, c varchar)")
    where.run("\\copy t (a, b, c) from 'a b.txt' with (format csv, delimiter ';', null 'NULL', quote '''')")
    where.run("\\copy t from 'a b.txt' delimiter as ';' csv quote '''' null as 'NULL'")
    assert where.run("select distinct * from t order by a").out == 'a,b,c\n1,,it\'s\n2,"",x\n'
    (tmp_path / "plain").write_text("3\t\\N\ttab\\there\\\\n\\n\n")
    where.run("truncate t", "\\copy t from plain")
    assert where.run("from t").out == 'a,b,c\n3,,"tab\there\\n\n"\n'


BAD_COMMANDS = [
    ("\\copy", "\\copy requires a table"),
    ("\\copy t", "expected FROM or TO"),
    ("\\copy t from", "expected a file"),
    ("\\copy t from 'none.csv'", "no such file"),
    ("\\copy t from '.'", "is a directory"),
    ("\\copy t from 'a.csv' (format xml)", "unknown format 'xml'"),
    ("\\copy t from 'a.csv' (delimiter 'ab')", "single one-byte character"),
    ("\\copy t from 'a.csv' (nothing 1)", "unknown option 'nothing'"),
    ("\\copy t from 'a.csv' (header maybe)", "true or false"),
    ("\\copy t from 'a.csv' (max_errors x)", "a number of rows"),
    ("\\copy t from 'a.csv' (resume)", "there is no unfinished load"),
    ("\\copy t from program 'exit 3'", "failed with exit code 3"),
    ("\\copy t (nope) from 'a.csv'", 'has no column "nope"'),
    ("\\copy t from 'b.csv'", 'has no column "z"'),
    ("\\copy no_such from 'a.csv'", "no_such"),
    ("\\copy t from 'bad.parquet'", "cannot read bad.parquet"),
    ("\\copy t from 'bad.json'", "cannot read bad.json"),
    ("\\copy t from stdout", "expected STDIN"),
]


def test_bad_commands(program: Program, tmp_path: Path) -> None:
    """In one shell, which goes on after each."""
    (tmp_path / "a.csv").write_text("a,b\n1,x\n")
    (tmp_path / "b.csv").write_text("a,z\n1,x\n")
    (tmp_path / "bad.parquet").write_text("nothing")
    (tmp_path / "bad.json").write_text('{"a": 1')
    commands = [part for number, (command, _) in enumerate(BAD_COMMANDS) for part in (f"\\warn <{number}>", command)]
    script = ["create table t (a int, b varchar)", *commands]
    done = program("w.duckdb", "--on-error", "continue", *(word for part in script for word in ("-c", part)))
    assert done.code in {1, 2}
    for number, (command, said) in enumerate(BAD_COMMANDS):
        told = done.err.partition(f"<{number}>\n")[2].partition(f"<{number + 1}>\n")[0]
        assert said in told, (command, told)


def test_options_are_checked_before_a_command_runs(program: Program, tmp_path: Path) -> None:
    command = "\\copy t from program 'touch ran' with (format csv, max_errors 'x')"
    done = program("w.duckdb", "-c", "create table t (a int)", "-c", command)
    assert "MAX_ERRORS must be a number" in done.err
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow("runs the program three times")
def test_the_policy_is_asked(program: Program, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    program("w.duckdb", "-c", "create table t (a int)")
    done = program("import", "a.csv", "w.duckdb", "--table", "t", env={"SQLSHELL_READ_ONLY": "on"})
    assert done.code == 2 and "allows only statements that read" in done.err
    done = program("w.duckdb", "--no-commands", "-c", "\\copy t from 'a.csv'")
    assert done.code == 2 and "--no-commands" in done.err


def big(tmp_path: Path, rows: int = 30_000) -> None:
    text = "".join(f"{number},{'x' * 40}\n" for number in range(rows))
    (tmp_path / "big.csv").write_text(f"a,b\n{text}")


@pytest.mark.slow("runs the program eight times")
def test_many_statements_in_order_and_what_is_unknown_is_not_sent_again(
    plain: Plain, service: Served, program: Program, tmp_path: Path
) -> None:
    where = Where(program, plain.url, service.token)
    big(tmp_path)
    where.run("create or replace table t (a int, b varchar)")
    plain.drops = b"(15000, "
    done = where.load("big.csv", code=3)
    assert "unknown" in done.err and "are in t" in done.err
    plain.drops = b""
    there = int(where.run("select count(*) as n from t").out.split()[1])
    assert 0 < there < 30_000
    # A part of them is told as unknown, and is there or not; who goes on has to say it.
    done = where.load("big.csv", "--resume", code=2)
    assert "--if-unknown skip" in done.err
    first, then = done.err.split("rows ")[1].split(" of ")[0].replace(",", "").split(" to ")
    arrived = where.run(f"select count(*) as n from t where a = {int(first) - 1}").out.split()[1] == "1"
    done = where.load("big.csv", "--resume", "--if-unknown", "skip" if arrived else "send")
    here = int(first) - 1 + (int(then) - int(first) + 1 if arrived else 0)
    assert f"{30_000 - here:,} rows loaded into t, after {here:,} of the earlier load" in done.err
    assert where.run("select count(*) as n, count(distinct a) as d from t").out == "n,d\n30000,30000\n"
    assert "there is no unfinished load" in where.load("big.csv", "--resume", code=2).err


@pytest.mark.slow("runs the program six times")
@pytest.mark.parametrize("attached", [True, False])
def test_rows_that_were_being_sent_when_the_shell_was_killed_are_unknown(
    plain: Plain, service: Served, program: Program, tmp_path: Path, attached: bool
) -> None:
    where = Where(program, plain.url, service.token)
    where.run("create or replace table t (a int)")
    (tmp_path / "a.csv").write_text("a\n1\n2\n")
    plain.hides = b"" if attached else b", copy"
    plain.holds = b"COPY t (" if attached else b"INSERT INTO t"
    running = start(
        tmp_path, "import", "a.csv", plain.url, "--table", "t", env={"SQLSHELL_TOKEN": service.token}, stderr=PIPE
    )
    assert plain.held.wait(60)
    running.send_signal(signal.SIGKILL)
    running.communicate(None, 60)
    plain.holds = b""
    done = where.load("a.csv", "--resume", code=2)
    assert "rows 1 to 2 of a.csv: it is unknown whether they are in t" in done.err
    assert "otherwise delete those that it contains, and use --if-unknown send" in done.err
    done = where.load("a.csv", "--resume", "--if-unknown", "send")
    assert "2 rows loaded into t" in done.err
    assert where.run("select count(*) as n from t").out == "n\n2\n"
    assert "there is no unfinished load" in where.load("a.csv", "--resume", code=2).err


def test_rejected_rows_are_separated_in_a_pipe(program: Program, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\nx\n1\ny\n")
    program("w.duckdb", "-c", "create table t (a int)")
    done = program("import", "a.csv", "w.duckdb", "--table", "t")
    assert (done.code, '; a.csv, line 4, column "a":' in done.err) == (1, True), done.err


def test_ranges_of_rows() -> None:
    assert with_range([(0, 2), (6, 8)], (2, 6)) == [(0, 8)]
    assert without_range([(0, 8), (9, 10)], (2, 6)) == [(0, 2), (6, 8), (9, 10)]
    assert without_range([(0, 8)], (0, 8)) == []


@pytest.mark.parametrize(
    ("error", "arrived", "unknown"),
    [
        (ConnectionFailed("connection refused by the service"), False, False),
        # The service died while it ran the statement.
        (ConnectionFailed("connection refused by the service"), True, True),
        (ConnectionBroken("the connection was closed"), False, True),
        (StatementError("a value is wrong"), True, False),
    ],
)
def test_what_a_service_may_have_carried_out_is_unknown(error: ShellError, arrived: bool, unknown: bool) -> None:
    assert SentBatch((0, 1), error, arrived).unknown is unknown


@pytest.mark.slow("runs the program eight times")
def test_a_load_goes_on_behind_the_last_confirmed_statement(
    plain: Plain, service: Served, program: Program, tmp_path: Path
) -> None:
    where = Where(program, plain.url, service.token)
    big(tmp_path)
    where.run("create or replace table t (a int check (a <> 25000), b varchar)")
    done = where.load("big.csv", code=1)
    assert "continue with --resume (in \\copy: WITH (RESUME))" in done.err
    there = int(where.run("select count(*) as n from t").out.split()[1])
    assert f"{there:,} rows of big.csv are in t" in done.err and there > 0
    where.run("create or replace table u as from t", "create or replace table t (a int, b varchar)")
    where.run("insert into t from u")
    with (tmp_path / "big.csv").open("a") as file:
        file.write("1,x\n")
    assert "the file has changed" in where.load("big.csv", "--resume", code=2).err
    big(tmp_path)
    done = where.load("big.csv", "--resume")
    assert f"{30_000 - there:,} rows loaded into t, after {there:,} of the earlier load" in done.err
    assert where.run("select count(*) as n, count(distinct a) as d from t").out == "n,d\n30000,30000\n"


@pytest.mark.slow("runs the program four times")
def test_a_transcript_does_not_load_again(program: Program, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    program("w.duckdb", "-c", "create table t (a int)")
    program("w.duckdb", "-c", "\\transcript log", "-c", "\\copy t from 'a.csv'")
    done = program("replay", "log", "w.duckdb")
    assert done.code == 1 and "not run: the rows of a load are not recorded" in done.out
    assert program("w.duckdb", "-c", "from t", "--format", "csv").out == "a\n1\n"


def test_a_directory_is_a_target(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    assert "contains no data file" in program("data", "-c", "select 1").err
    (folder / "a.csv").write_text("i,t\n1,x\n")
    (folder / "b.json.gz").write_bytes(gzip.compress(b'{"i": 1, "u": "y"}', mtime=0))
    (folder / "notes.txt").write_text("no data")
    done = program("data", "--format", "csv", "-c", "select t, u from a join b using (i)")
    assert (done.code, done.out) == (0, "t,u\nx,y\n")
    (folder / "A.tsv").write_text("i\n1\n")
    done = program("data", "-c", "select 1")
    assert done.code == 2 and "would both become the view" in done.err


@pytest.mark.slow("runs the program four times")
def test_ctrl_c_says_how_many_rows_are_in_the_table(
    plain: Plain, service: Served, program: Program, tmp_path: Path
) -> None:
    where = Where(program, plain.url, service.token)
    big(tmp_path, 60_000)
    where.run("create or replace table t (a int, b varchar)")
    running = start(
        tmp_path, "import", "big.csv", plain.url, "--table", "t", env={"SQLSHELL_TOKEN": service.token}, stderr=PIPE
    )
    with Client(service) as client:
        while client.rows("select count(*) from t") == [["0"]]:
            assert running.poll() is None
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(None, 60)
        assert running.wait() == 130
        there = int(client.rows("select count(*) from t")[0][0] or 0)
    assert 0 < there < 60_000
    assert f"{there:,} rows of big.csv are in t" in err.decode()
    assert f"{60_000 - there:,} rows loaded into t, after {there:,} of" in where.load("big.csv", "--resume").err
    assert where.run("select count(*) as n, count(distinct a) as d from t").out == "n,d\n60000,60000\n"


@pytest.mark.slow("runs the program five times")
def test_ctrl_c_between_two_attachments_says_how_many_rows_are_in_the_table(program: Program, tmp_path: Path) -> None:
    with duckdb.connect() as database:
        rows = "select i as a, sha256(i::varchar) as b from range(100_000) t(i)"
        database.execute(f"copy ({rows}) to '{tmp_path / 'big.csv'}' (header)")
    program("w.duckdb", "-c", "create table t (a int, b varchar)")
    environment = {"SQLSHELL_UPLOAD_LIMIT": "1", "XDG_STATE_HOME": str(tmp_path / "state")}
    running = start(tmp_path, "import", "big.csv", "w.duckdb", "--table", "t", env=environment, stderr=PIPE)
    loads = tmp_path / "state/sqlshell/loads"
    while not any('"done":[[0' in file.read_text() for file in loads.glob("*.json")):
        assert running.poll() is None
        time.sleep(0.001)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(None, 60)
    assert running.wait() == 130
    there = int(program("w.duckdb", "--format", "csv", "-t", "-c", "select count(*) from t").out)
    assert 0 < there < 100_000
    assert f"{there:,} rows of big.csv are in t" in err.decode() and "continue with --resume" in err.decode()
    program("import", "big.csv", "w.duckdb", "--table", "t", "--resume", env=environment)
    done = program("w.duckdb", "--format", "csv", "-t", "-c", "select count(*), count(distinct a) from t")
    assert done.out == "100000,100000\n"


@pytest.mark.slow("runs the program eleven times")
def test_a_load_that_begins_again_ends_the_earlier_one(
    plain: Plain, service: Served, program: Program, tmp_path: Path
) -> None:
    where = Where(program, plain.url, service.token)
    big(tmp_path)
    where.run("create or replace table t (a int check (a <> 25000), b varchar)")
    where.load("big.csv", code=1)
    there = int(where.run("select count(*) as n from t").out.split()[1])
    where.run("create table other as from t", "drop table t")
    # It ends before it has sent a row.
    done = where.load("big.csv", code=1)
    assert f"an earlier load of big.csv left {there:,} rows in t; this load starts from the beginning" in done.err
    where.run("create or replace table t (a int, b varchar)")
    done = where.load("big.csv", "--resume", code=2)
    assert "the last load restarted from the beginning and stopped before it sent a row" in done.err
    assert "of the load before it, add --if-unknown skip" in done.err
    assert where.run("select count(*) as n from t").out == "n\n0\n"
    # Its user knows that the rows are there.
    where.run("insert into t from other", "drop table other")
    done = where.load("big.csv", "--resume", "--if-unknown", "skip")
    assert f"{30_000 - there:,} rows loaded into t, after {there:,} of the earlier load" in done.err
    assert where.run("select count(*) as n, count(distinct a) as d from t").out == "n,d\n30000,30000\n"


@pytest.mark.slow("runs the program four times")
def test_a_load_of_no_rows_ends_the_earlier_one(program: Program, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    program("w.duckdb", "-c", "create table t (a int check (a > 1))")
    assert program("import", "a.csv", "w.duckdb", "--table", "t").code == 1
    (tmp_path / "a.csv").write_text("")
    assert program("import", "a.csv", "w.duckdb", "--table", "t").code == 0
    (tmp_path / "a.csv").write_text("a\n1\n")
    done = program("import", "a.csv", "w.duckdb", "--table", "t", "--resume")
    assert (done.code, "there is no unfinished load" in done.err) == (2, True), done.err


def test_rows_are_not_loaded_into_a_database_that_is_lost(program: Program, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    done = program("import", "t.csv", "--table", "t", "--create")
    assert (done.code, done.out) == (2, "")
    assert "TARGET must be a file or a service: data in memory is lost" in done.err
    assert program("import", "t.csv", "--table", "t", "--create", "--dry-run").code == 0


@pytest.mark.slow("runs the program three times")
def test_the_encoding_is_advised_and_works(program: Program, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a,b\n1,K\xf6ln\n")
    done = program("import", "t.csv", "w.duckdb", "--table", "t", "--create")
    assert done.code == 1
    assert "--with ENCODING=latin1" in done.err and "--max-errors" not in done.err
    assert program("import", "t.csv", "w.duckdb", "--table", "t", "--create", "--with", "ENCODING=latin1").code == 0
    assert program("w.duckdb", "--format", "csv", "-c", "from t").out == "a,b\n1,Köln\n"


def test_a_missing_file_creates_no_database(program: Program, tmp_path: Path) -> None:
    done = program("import", "nofile.csv", "n.duckdb", "--table", "t")
    assert (done.code, done.out) == (2, "")
    assert "cannot read nofile.csv: no such file or directory" in done.err
    assert not (tmp_path / "n.duckdb").exists()


@pytest.mark.parametrize(
    ("argv", "option"),
    [
        (("import", "t.csv", "w.duckdb", "--table", "t", "--max-rows", "1"), "--max-rows"),
        (("import", "t.csv", "w.duckdb", "--table", "t", "-1"), "-1"),
        (("export", "w.duckdb", "--table", "t", "-o", "out.csv", "--checkpoint", "c"), "--checkpoint"),
    ],
)
def test_options_that_do_not_apply_are_refused(
    program: Program, tmp_path: Path, argv: tuple[str, ...], option: str
) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    done = program(*argv)
    assert (done.code, done.out) == (2, "")
    assert f"{option} does not apply to sqlshell {argv[0]}" in done.err
    assert not (tmp_path / "w.duckdb").exists()


@pytest.mark.slow("runs the program nine times")
@pytest.mark.parametrize("name", ["e.csv", "e.csv.gz", "e.jsonl", "e.tsv"])
def test_an_empty_file_has_no_rows_and_no_columns(program: Program, tmp_path: Path, name: str) -> None:
    tmp_path.joinpath(name).write_bytes(gzip.compress(b"") if name.endswith("gz") else b"")
    program("d.duckdb", "-c", "create table t (a int, b varchar)")
    none = [
        program("import", name, "d.duckdb", "--table", "t"),
        program("import", "-", "d.duckdb", "--table", "t", stdin=""),
        program("d.duckdb", "-c", f"\\copy t from '{name}'"),
        program("d.duckdb", "-c", f"\\copy t from '{name}' (format text)"),
    ]
    for done in none:
        assert (done.code, done.err) == (0, "0 rows loaded into t\n")
    shown = program("import", name, "d.duckdb", "--table", "t", "--dry-run")
    assert (shown.code, shown.err) == (0, f"{name} (empty) into t:\n")
    for done in program("import", name, "d.duckdb", "--table", "u", "--create"), program(name, "-c", "from e"):
        assert (done.code, done.err) == (2, f"error: {name} is empty\n")
    assert 'no column "x"' in program("import", name, "d.duckdb", "--table", "t (x)").err


@pytest.mark.parametrize("ending", ["json", "jsonl.zst", "json.zst", "json.gz", "jsonl"])
def test_an_empty_result_and_exact_numbers_are_loaded_again(program: Program, ending: str) -> None:
    digits = "12345678901234567890123456789012345678"
    made = f"create table t as select {digits}::hugeint as h, {digits[:28]}.1234567891::decimal(38, 10) as d"
    written = (f"\\copy t to 'a.{ending}'", f"\\copy (select * from t limit 0) to 'e.{ending}'")
    loaded = (f"\\copy t from 'a.{ending}'", f"\\copy t from 'e.{ending}'", "select distinct * from t")
    commands = [part for each in (made, *written, *loaded) for part in ("-c", each)]
    done = program("--format", "csv", "work.duckdb", *commands)
    assert done.code == 0 and done.out.endswith(f"h,d\n{digits},{digits[:28]}.1234567891\n"), done
    assert "0 rows loaded into t" in done.err
    done = program("import", f"e.{ending}", "work.duckdb", "--table", "new", "--create")
    assert (done.code, done.err) == (2, f"error: e.{ending} is empty\n")


@pytest.mark.slow("runs the program twice")
def test_the_encoding_is_named_also_where_the_format_is_looked_at(program: Program, tmp_path: Path) -> None:
    (tmp_path / "late.csv").write_bytes(b"".join(b"%d,x\n" % number for number in range(30)) + b"30,caf\xe9\n")
    (tmp_path / "late.jsonl").write_bytes(b'{"a": "caf\xe9"}\n')
    done = program("import", "late.csv", "w.duckdb", "--table", "t", "--create")
    assert (done.code, done.out) == (2, "")
    assert "error: late.csv, line 31: invalid UTF-8\n" in done.err
    assert "--with ENCODING=latin1" in done.err
    done = program("import", "late.jsonl", "w.duckdb", "--table", "t", "--create")
    assert (done.code, done.out) == (2, "")
    assert "error: late.jsonl: invalid UTF-8\n" in done.err
    assert "iconv" in done.err and "ENCODING" not in done.err


@pytest.mark.slow("runs the program three times")
@pytest.mark.parametrize("table", ["semi", "at (show, b)", "Select"])
def test_a_table_or_column_may_be_named_like_a_keyword(program: Program, tmp_path: Path, table: str) -> None:
    (tmp_path / "k.csv").write_text("show,b\n1,2\n")
    name = table.partition(" ")[0]
    made = () if name == table else ("-c", 'create table "at" ("show" int, b int)')
    if made:
        assert program("-q", "w.duckdb", *made).code == 0
    done = program("import", "k.csv", "w.duckdb", "--table", table, *(() if made else ("--create",)))
    assert done.code == 0, done
    done = program("export", "w.duckdb", "--table", name, "-o", "again.csv")
    assert (done.code, (tmp_path / "again.csv").read_text()) == (0, "show,b\n1,2\n"), done


@pytest.mark.slow("runs the program three times")
@pytest.mark.parametrize("name", ["a[1].csv", "a*.csv", "a?.jsonl.gz", "x=1/a.json", "x=1/a.parquet"])
def test_a_path_is_no_pattern_and_has_no_columns(program: Program, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    for other in (tmp_path / "a1.csv", tmp_path / "a12.csv"):
        other.write_text("i\n99\n")
    if name.endswith(".parquet"):
        duckdb.sql(f"copy (select 1 as i) to '{path}' (format parquet)")
    else:
        text = b"i\n1\n" if name.endswith(".csv") else b'{"i": 1}\n'
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    done = program("import", name, "w.duckdb", "--table", "t", "--create")
    assert (done.code, done.err) == (0, "1 row loaded into t\n")
    done = program("w.duckdb", "--format", "csv", "-c", f"\\copy t from '{name}'", "-c", "from t")
    assert (done.code, done.out) == (0, "i\n1\n1\n")
    path.write_bytes(b'{"i": \n' if "json" in name and not name.endswith(".gz") else b'i\n"1\n')
    done = program("import", name, "w.duckdb", "--table", "t")
    assert done.code and path.name in done.err and "/file" not in done.err


@pytest.mark.slow("runs the program four times")
def test_a_key_of_the_last_record_is_loaded(program: Program, tmp_path: Path) -> None:
    records = "".join(f'{{"i": {number}}}\n' for number in range(30_000))
    (tmp_path / "late.jsonl").write_text(records + '{"i": -1, "late": "x"}\n')
    assert program("import", "late.jsonl", "w.duckdb", "--table", "t", "--create").code == 0
    done = program("w.duckdb", "--format", "csv", "-c", "select * from t where late is not null")
    assert done.out == "i,late\n-1,x\n"
    assert program("w.duckdb", "-c", "create table u (i int)").code == 0
    done = program("import", "late.jsonl", "w.duckdb", "--table", "u")
    assert done.code == 2 and 'u has no column "late"' in done.err


def test_a_key_that_appears_twice_has_its_place(program: Program, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a": 1, "a": 2}\n')
    done = program("import", "a.jsonl", "w.duckdb", "--table", "t", "--create")
    assert done.code == 1 and 'a.jsonl, record 2: the key "a" appears twice in an object\n' in done.err
    done = program("a.jsonl", "-c", "from a")
    assert done.code and 'a.jsonl, line 2: the key "a" appears twice in an object' in done.err


@pytest.mark.slow("runs the program twice")
def test_times_with_nine_digits_keep_their_types(program: Program, tmp_path: Path) -> None:
    values = "time_ns '01:02:03.123456789' as t, timestamptz_ns '2024-01-01 00:00:00.123456789+00' as z"
    duckdb.sql(f"copy (select {values}) to '{tmp_path}/a.parquet'")
    assert program("import", "a.parquet", "w.duckdb", "--table", "t", "--create").code == 0
    done = program("w.duckdb", "--format", "csv", "-c", "select typeof(t), typeof(z), t, z from t")
    assert done.out.splitlines()[1] == "TIME_NS,TIMESTAMPTZ_NS,01:02:03.123456789,2024-01-01 00:00:00.123456789+00:00"


def test_a_named_pipe_is_refused(program: Program, tmp_path: Path) -> None:
    mkfifo(tmp_path / "a.csv")
    done = program("import", "a.csv", "w.duckdb", "--table", "t", "--create")
    assert (done.code, done.err.splitlines()[0]) == (2, "error: a.csv is a pipe, not a file")


@pytest.mark.slow("runs the program")
def test_a_device_without_data_is_no_rows(program: Program) -> None:
    copies = [f"\\copy t from '/dev/null'{options}" for options in ("", " csv", " (format json)")]
    done = program("-c", "create table t (a int)", *(word for copy in copies for word in ("-c", copy)))
    assert (done.code, done.err) == (0, "0 rows loaded into t\n" * 3)
