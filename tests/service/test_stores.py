"""Stores: their files can be read and never changed, and no other files can be accessed."""

from __future__ import annotations

import base64
import gzip
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import duckdb
import pytest

from sqlshell.service.engines.sandbox import beneath
from sqlshell.service.stores import stores
from tests.cases import lines
from tests.conftest import Program, Served, serve, stop
from tests.service.client import Client
from tests.service.waiting import until


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stores")


@pytest.fixture(scope="module")
def stored(home: Path) -> Iterator[Served]:
    """A service with a store `s` that has the entity x.csv and a link that leads out of it."""
    folder = home
    inside = folder / "inside"
    inside.mkdir()
    (inside / "x.csv").write_text("i\n1\n")
    outside = folder / "secret.csv"
    outside.write_text("i\n2\n")
    (inside / "link.csv").symlink_to(outside)
    running = serve(folder, "--data", str(folder / "data"))
    with Client(running) as made:
        made.rows(f"create store s with ('uri' = '{inside}')")
        made.rows("create table t (i int)")
    yield running
    stop(running)


@pytest.fixture
def client(stored: Served) -> Iterator[Client]:
    with Client(stored) as made:
        yield made


@pytest.mark.parametrize(
    "sql",
    [
        'select * from s."link.csv"',
        'select * from s.main."link.csv"',
        'select count(*) from (select * from S."link.csv")',
        'describe s."link.csv"',
        'insert into t select * from s."link.csv"',
        'select * from t join s."nowhere.csv" n on n.i = t.i',
        "from s.nowhere",
        'print entity s."link.csv"',
    ],
)
def test_what_a_store_has_not_does_not_exist(client: Client, sql: str) -> None:
    answer = client.run(sql)
    assert answer["sqlState"] == ("3D008" if sql.startswith("print") else "3D020")
    assert answer["message"].startswith('entity "s.')
    assert "does not exist" in answer["message"]


def test_the_name_of_an_entity_is_quoted(client: Client) -> None:
    answer = client.run("select * from s.x.csv")
    assert (answer["sqlState"], answer["message"]) == ("3D020", 'the name of the entity must be quoted: s."x.csv"')


@pytest.mark.parametrize(
    "sql",
    lines("stores", "read-only"),
)
def test_nothing_changes_a_store(client: Client, sql: str) -> None:
    answer = client.run(sql)
    assert (answer["sqlState"], answer["message"][:21]) == ("0A000", 'cannot change store "')
    assert client.rows('select i from s."x.csv"') == [["1"]]


@pytest.mark.parametrize(
    "sql",
    ['create table copied as from s."x.csv"', 'insert into t from s."x.csv"', "select 'insert into s.x' as text"],
)
def test_what_reads_a_store_runs(client: Client, sql: str) -> None:
    assert client.state(sql) == "00000"


def test_a_name_that_a_schema_makes_ambiguous_has_its_own_error_in_a_transaction(client: Client) -> None:
    client.rows("create schema temp")
    client.rows("begin")
    assert client.state("insert into temp.s select 1") == "42000"
    client.rows("rollback")
    client.rows("drop schema temp")


def test_the_services_own_folder_is_no_store(client: Client, home: Path) -> None:
    answer = client.run(f"create store own with ('uri' = '{home / 'data'}')")
    assert (answer["sqlState"], "overlaps with the service's own directory" in answer["message"]) == ("42501", True)


def test_a_failure_elsewhere_stays_what_it_is(client: Client) -> None:
    answer = client.run('select * from s."x.csv" s join missing m on m.i = s.i')
    assert answer["sqlState"] == "3D020"
    assert "missing" in answer["message"]


def _store(client: Client, folder: Path, name: str, files: Mapping[str, str | bytes]) -> Path:
    """A store with these files, made in the service."""
    inside = folder / name
    inside.mkdir()
    for file, content in files.items():
        path = inside / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    client.rows(f"create store {name} with ('uri' = '{inside}')")
    return inside


NAMES = (
    "*.csv", "[a].csv", "a.csv", "x?.csv", "xy.csv", "a{b,c}.csv", "ab.csv", "ac.csv", "a=1/x.csv", "**.csv", "q'.csv",
    "back\\*z.csv", "[!a].csv", "~.csv", "new\nline.csv", "http:x.csv",
)  # fmt: skip


def test_a_name_is_no_pattern(client: Client, stored: Served, tmp_path: Path) -> None:
    """Each entity has its own rows alone, and no columns that its path would tell."""
    _store(client, tmp_path, "names", {name: f"n\n{number}\n" for number, name in enumerate(NAMES)})
    # All are copied together.
    client.rows(f"select 1 /* names {' '.join(NAMES)} */")
    for number, name in enumerate(NAMES):
        answer = client.run(f'select * from names."{name}"')
        assert answer["sqlState"] == "00000", answer
        assert [column["name"] for column in answer["metadata"]["columns"]] == ["n"], name
        assert answer["data"] == [[str(number)]], name


def test_a_name_is_no_pattern_where_the_service_is_embedded(program: Program, tmp_path: Path) -> None:
    inside = tmp_path / "names"
    for number, name in enumerate(NAMES):
        path = inside / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"n\n{number}\n")
    plain = [(number, name) for number, name in enumerate(NAMES) if "\\" not in name]
    sql = [f"create store names with ('uri' = '{inside}');"]
    sql += [f'select * from names."{name}";' for _, name in plain]
    done = program("--format", "jsonl", "-c", "\n".join(sql))
    assert [line for line in done.out.splitlines() if line] == [f'{{"n":{number}}}' for number, _ in plain], done.err
    refused = program("-c", f"create store names with ('uri' = '{inside}'); from names.\"back\\*z.csv\"")
    assert "rename the file" in refused.err


def test_links_and_pipes_are_no_entities(client: Client, tmp_path: Path) -> None:
    inside = _store(client, tmp_path, "linked", {"x.csv": "n\n1\n"})
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "s.csv").write_text("n\n2\n")
    (inside / "within.csv").symlink_to("x.csv")
    (inside / "out.csv").symlink_to(secret / "s.csv")
    (inside / "folder").symlink_to(secret)
    os.mkfifo(inside / "pipe.csv")
    assert [row[0] for row in client.rows("list entities in store linked")] == ["x.csv"]
    for name in ("within.csv", "out.csv", "folder/s.csv", "pipe.csv"):
        assert client.state(f'select * from linked."{name}"') == "3D020"


def test_a_folder_that_became_a_link_is_not_followed(client: Client, tmp_path: Path) -> None:
    inside = _store(client, tmp_path, "moved", {"x.csv": "n\n1\n"})
    secret = tmp_path / "elsewhere"
    secret.mkdir()
    (secret / "y.csv").write_text("n\n2\n")
    shutil.rmtree(inside)
    inside.symlink_to(secret)
    answer = client.run('select * from moved."y.csv"')
    assert answer["sqlState"] == "3E001"
    assert client.rows("list stores")[0]
    assert "moved" in client.names("list stores where State = 'broken'")
    assert client.state("drop store moved") == "00000"


def test_a_file_that_is_swapped_for_a_link_is_not_read(tmp_path: Path) -> None:
    """What was looked at is what is opened, however fast somebody exchanges it."""
    root = tmp_path / "store"
    (root / "in").mkdir(parents=True)
    (root / "in" / "x.csv").write_text("n\n1\n")
    (tmp_path / "x.csv").write_text("secret")
    place = stores.open_folder(root)
    try:
        with beneath.open_file(place, "in/x.csv") as file:
            assert os.read(file, 100) == b"n\n1\n"
        (root / "in" / "x.csv").unlink()
        (root / "in" / "x.csv").symlink_to(tmp_path / "x.csv")
        with pytest.raises(OSError), beneath.open_file(place, "in/x.csv"):
            pass
        shutil.rmtree(root / "in")
        (root / "in").symlink_to(tmp_path)
        with pytest.raises(OSError), beneath.open_file(place, "in/x.csv"):
            pass
        for name in ("../x.csv", "in/../../x.csv"):
            with pytest.raises(OSError), beneath.open_file(place, name):
                pass
    finally:
        os.close(place)


def test_types_are_exact(client: Client, tmp_path: Path) -> None:
    inside = _store(client, tmp_path, "typed", {"j.jsonl": '{"a": 12345678901234567, "d": "2024-02-29"}\n'})
    duckdb.connect().execute(
        f"COPY (SELECT 1::UTINYINT AS t, 1.5::DECIMAL(30,10) AS d, [1, 2] AS l, {{'x': DATE '2024-02-29'}} AS s) "
        f"TO '{inside}/p.parquet' (FORMAT parquet)"
    )
    found = client.run('select typeof(t), typeof(d), typeof(l), typeof(s) from typed."p.parquet"')["data"]
    assert found == [["UTINYINT", "DECIMAL(30,10)", "INTEGER[]", "STRUCT(x DATE)"]]
    assert client.rows('select a, typeof(a), d from typed."j.jsonl"') == [["12345678901234567", "BIGINT", "2024-02-29"]]


@pytest.mark.slow("large files")
def test_a_file_that_changes_is_copied_again(client: Client, stored: Served, tmp_path: Path) -> None:
    inside = _store(client, tmp_path, "changing", {"x.csv": "n\n1\n", "y.csv": "n\n5\n"})
    with Client(stored) as other:
        other.rows("begin")
        assert other.rows('select * from changing."x.csv"') == [["1"]]
        (inside / "x.csv").write_text("n,m\n2,3\n")
        assert client.rows('select * from changing."x.csv"') == [["2", "3"]]
        # A transaction sees what it saw before.
        assert other.rows('select count(*) from changing.main."x.csv"') == [["1"]]
        other.rows("commit")
    assert client.rows('select * from changing."y.csv"') == [["5"]]
    (inside / "x.csv").unlink()
    assert client.state('select * from changing."x.csv"') == "3D020"
    assert client.rows('select * from changing."y.csv"') == [["5"]]


@pytest.mark.slow("starts two services")
def test_a_view_over_a_store_outlives_the_service(tmp_path: Path) -> None:
    running = serve(tmp_path, "--data", "data")
    with Client(running) as client:
        _store(client, tmp_path, "outside", {"x.csv": "n\n1\n", "y.csv": "m\n2\n"})
        client.rows('create view v as from outside."x.csv"')
        client.rows('create view pairs as from outside."x.csv", outside."y.csv"')
        # Its name is part of most statements, which are then looked at twice.
        client.rows("create stream s (a int)")
    stop(running)
    running = serve(tmp_path, "--data", "data")
    try:
        with Client(running) as client:
            assert client.rows("select * from pairs") == [["1", "2"]]
            assert client.rows("select * from v") == [["1"]]
            batch = {"statements": ["select * from v", 'from outside."x.csv"']}
            answer = client.http.post("/v2/statements", json=batch).json()
            assert [item["data"] for item in answer["statements"]] == [[["1"]], [["1"]]]
            assert client.state("drop store outside") == "00000"
            assert client.state("select * from v") != "00000"
    finally:
        stop(running)


def test_copies_of_a_dropped_store_are_removed(client: Client, home: Path, tmp_path: Path) -> None:
    _store(client, tmp_path, "leaving", {"x.csv": "n\n1234567\n"})
    before = _copies(home)
    assert client.rows('select * from leaving."x.csv"') == [["1234567"]]
    assert client.state("drop store leaving") == "00000"
    assert _copies(home) < before
    assert client.state('select * from leaving."x.csv"') != "00000"


UNREADABLE = {
    "latin.csv": (
        b"a,b\n1,2\nK\xf6ln,3\n",
        "latin.csv, line 3: invalid UTF-8; convert it with: iconv -f latin1 -t UTF-8 FILE > NEW_FILE",
    ),
    "zero.csv": (
        b"\xff\x00",
        "zero.csv, line 1: invalid UTF-8; convert it with: iconv -f latin1 -t UTF-8 FILE > NEW_FILE",
    ),
    "wide16.csv": (
        "a,b\n1,2\n".encode("utf-16"),
        "the file is UTF-16, not UTF-8; convert it with: iconv -f UTF-16 -t UTF-8 FILE > NEW_FILE",
    ),
    "wide.csv": (
        b"a,b\n" + b"1,2\n" * 30_000 + b"1,2,3\n",
        "wide.csv, line 30002: expected 2 columns, found 3",
    ),
    "late.jsonl": (b'{"a":1}\n{"a":\n', "late.jsonl, line 2, byte 7: unexpected end of data"),
    "short.parquet": (
        b"",
        "File 'short.parquet' too small to be a Parquet file; the file is damaged or has the wrong",
    ),
    "tail.parquet": (
        b"x" * 100,
        "No magic bytes found at end of file 'tail.parquet'; the file is damaged or has",
    ),
    "text.csv.gz": (
        b"a,b",
        "Input is not a GZIP stream: text.csv.gz; the file is damaged or has the wrong extension",
    ),
}
TYPES = {
    "types.csv": b"a\n" + b"1\n" * 30_000 + b"zz\n",
    "types.jsonl": b'{"a":1}\n' * 30_000 + b'{"a":"zz"}\n',
}


@pytest.mark.slow("large files")
def test_an_error_of_a_file_says_what_can_be_done_to_it(client: Client, tmp_path: Path) -> None:
    _store(client, tmp_path, "unreadable", {})
    for name, content in ({name: content for name, (content, _) in UNREADABLE.items()} | TYPES).items():
        (tmp_path / "unreadable" / name).write_bytes(content)
    for name, (_, message) in UNREADABLE.items():
        answer = client.run(f'select * from unreadable."{name}"')
        assert answer["message"].startswith(f'cannot read entity "unreadable.{name}": {message}')
        assert not {"read_", "CREATE", "LINE"} & set(answer["message"].replace("(", " ").split())
    # A late row of another type is read too.
    for name in TYPES:
        assert client.rows(f'select count(*), count(distinct a::varchar) from unreadable."{name}"') == [["30001", "2"]]


def test_a_file_that_cannot_be_read_is_told_and_the_others_are_read(client: Client, tmp_path: Path) -> None:
    _store(
        client,
        tmp_path,
        "mixed",
        {
            "bad.parquet": b"PAR1 nothing",
            "bad.json": "{",
            "bad.csv.gz": b"no gzip",
            "A.csv": "n\n1\n",
            "a.csv": "n\n2\n",
            "good.csv": "n\n3\n",
        },
    )
    for name in ("bad.parquet", "bad.json", "bad.csv.gz", "A.csv", "a.csv"):
        answer = client.run(f'select * from mixed."{name}"')
        assert answer["sqlState"] == "3E001", name
        assert f'cannot read entity "mixed.{name}": ' in answer["message"]
        assert "/fd/" not in answer["message"]
    assert client.rows('select * from mixed."good.csv"') == [["3"]]


def test_a_store_that_cannot_be_mounted_is_not_made(client: Client, tmp_path: Path) -> None:
    before = client.rows("list stores")
    for name in ("memory", '"Memory"', "temp", "system", "deltastream", "information_schema", '"LOCAL"', "pg_catalog"):
        answer = client.run(f"create store if not exists {name} with ('uri' = '{tmp_path}')")
        assert answer["sqlState"] == "42P05", name
    assert client.rows("list stores") == before
    assert client.state(f"create store \"S\" with ('uri' = '{tmp_path}')") == "42P05"
    assert client.state('create database "S"') == "42P04"
    assert client.state('create database if not exists "S"') == "42P04"


@pytest.mark.slow("starts a service")
def test_a_bomb_is_an_error(tmp_path: Path) -> None:
    """A small file that becomes a large one ends at the bound, in words; the service goes on."""
    inside = tmp_path / "bombs"
    inside.mkdir()
    rows = b"".join(base64.b64encode(os.urandom(3000)) + b"\n" for _ in range(3000))
    (inside / "b.csv.gz").write_bytes(gzip.compress(b"text\n" + rows, 1))
    running = serve(tmp_path, "--quota", "0.001")
    try:
        with Client(running) as client:
            client.rows(f"create store bombs with ('uri' = '{inside}')")
            answer = client.run('select count(*) from bombs."b.csv.gz"')
            assert (answer["sqlState"], answer["message"]) == (
                "3E001",
                'cannot read entity "bombs.b.csv.gz": its copy would be too large '
                "(limit set by sqlshell serve --quota)",
            )
            assert client.rows("select 1") == [["1"]]
    finally:
        stop(running)


def test_the_copy_is_ended_with_its_statement(client: Client, stored: Served, tmp_path: Path) -> None:
    inside = _store(client, tmp_path, "slow", {})
    some = gzip.compress(b"1,some text that is no number\n" * 200_000, 1)
    (inside / "s.csv.gz").write_bytes(gzip.compress(b"n,t\n") + some * 100)
    begun = client.submit('select count(*) from slow."s.csv.gz"')
    assert begun["sqlState"] == "03000"
    with Client(stored) as other:
        until(lambda: _converters(stored))
        other.run(f"terminate query {begun['statementID']}")
    assert client.wait(begun)["sqlState"] == "57000"
    assert not _converters(stored)
    assert client.rows("select 1") == [["1"]]


def _copies(folder: Path) -> int:
    """Bytes of all copies of the service in a folder."""
    return sum(file.stat().st_size for file in folder.glob("data/organizations/*/copies/**/*") if file.is_file())


def _converters(served: Served) -> list[str]:
    """The processes of a service that copy files."""
    asked = ["ps", "-axwwo", "ppid,comm,args"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in found if line.split()[0] == str(served.process.pid) and "converter" in line]
