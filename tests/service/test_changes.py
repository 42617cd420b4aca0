"""Stores, entities, pools, relations, functions, secrets and schema registries, changed and tested by SQL."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sqlshell.interface.models import ContextEcho
from sqlshell.launch.embedded import start_embedded
from sqlshell.service.catalog import OPERATOR, ROLES, Caller, Catalog
from sqlshell.service.engines.duckdb.instance import DuckdbEngine
from sqlshell.service.engines.engine import CatalogQuery, Outcome, RunOptions
from sqlshell.service.engines.sandbox import beneath
from sqlshell.service.failure import Failure
from sqlshell.service.objects.kind import Execution, OfKind
from sqlshell.service.objects.secret import Secret
from sqlshell.service.organizations.organizations import Organizations
from sqlshell.service.organizations.sessions import Sessions
from sqlshell.service.results.results import Spool
from sqlshell.service.secrets.vault import FILE, Vault
from sqlshell.service.settings import Settings
from sqlshell.service.statements.statement import Statement
from sqlshell.service.storage.storage import Storage
from sqlshell.service.stores.stores import add, read_options
from tests.conftest import Served, serve, stop
from tests.http_servers import listening
from tests.service.client import Client
from tests.service.test_embedded import ask

VALUE = "a value that nobody is shown"
ENDLESS = "select count(*) from range(100000000000) a, range(1000) b"


class Registry(BaseHTTPRequestHandler):
    """A schema registry that says what the path asks for, and notes who came."""

    seen: ClassVar[list[tuple[str, str, str]]] = []
    base = ""

    def do_GET(self) -> None:
        path = self.path.removesuffix("/subjects")
        self.seen.append((self.path, self.headers["Authorization"] or "", self.headers["Host"]))
        wanted = "Basic " + base64.b64encode(f"user:{VALUE}".encode()).decode()
        allowed = path != "/locked" or self.headers["Authorization"] == wanted
        status, body = {"/ok": (200, '["a-value"]'), "/locked": (200 if allowed else 401, "[]")}.get(path, (200, VALUE))
        if path == "/moved":
            status = 302
        self.send_response(status)
        self.send_header("Location", f"{self.base}/ok/subjects")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    Registry.base = f"http://127.0.0.1:{server.server_port}"
    with listening(server):
        yield Registry.base


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("changes")


@pytest.fixture(scope="module")
def own(home: Path) -> Iterator[Served]:
    """A service with a writable store `w` in its granted folder, and a read-only one `r`."""
    root = home / "root"
    for name in ("w", "r"):
        (root / name / "in").mkdir(parents=True)
        (root / name / "x.csv").write_text("i\n1\n")
    options = ["--store-root", str(root), "--threads", "1", "--max-objects", "12", "--quota", "0.0007"]
    running = serve(home, "--data", "data", *options)
    with Client(running) as made:
        made.rows(f"create store w with ('uri' = '{root}/w', 'writable' = TRUE)")
        made.rows(f"create store r with ('uri' = '{root}/r')")
        made.rows("create function_source fs with ('file' = 'f.jar')", [("f.jar", b"x")])
    yield running
    stop(running)


@pytest.fixture
def client(own: Served) -> Iterator[Client]:
    with Client(own) as made:
        yield made


def states(client: Client, text: str) -> None:
    """Run the statements of a table, of which each line is a sqlState and a statement."""
    wrong = []
    for line in text.strip().splitlines():
        expected, _, sql = line.strip().partition(" ")
        answer = client.run(sql)
        if answer["sqlState"] != expected:
            wrong.append((expected, answer["sqlState"], sql, answer.get("message")))
    assert not wrong


# Stores and their entities


@pytest.mark.slow("starts a service")
def test_entities_are_made_filled_and_dropped(client: Client, home: Path) -> None:
    states(
        client,
        """
        00000 create entity orders in store w
        42710 create entity orders in store w
        42710 create entity "ORDERS" in store w
        00000 create entity if not exists orders in store w
        00000 insert into entity orders in store w value('{"n": 1, "t": "it''s"}')
        00000 insert into entity "orders" in store w values('{"n": 2}')
        00000 create entity "in/lines.ndjson" in store w
        00000 insert into entity w."in/lines.ndjson" value('{"n": 3}')
        00000 update entity orders in store w
        0A000 update entity orders in store w with ('color' = 'red')
        3D008 update entity none in store w
        3D006 create entity orders
        00000 test store w
        """,
    )
    assert client.rows("select n, t from w.orders order by n") == [["1", "it's"], ["2", None]]
    # What is added is seen by the next statement.
    client.rows("""insert into entity orders in store w value('{"n": {"deep": [1]}}')""")
    assert client.rows("select count(*) from w.orders") == [["3"]]
    assert len(client.rows("print entity orders in store w with ('from_beginning')")) == 3
    assert client.rows('select n from w."in/lines.ndjson"') == [["3"]]
    assert {"orders", "in/lines.ndjson", "x.csv"} <= {row[0] for row in client.rows("list entities in store w")}
    file = home / "root" / "w" / "orders"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    client.rows("use store w")
    client.rows("""insert into entity orders value('{"n": 4}')""")
    assert file.read_text().count("\n") == 4
    states(
        client,
        """
        00000 drop entity orders
        3D008 drop entity orders in store w
        00000 drop entity if exists orders in store w
        3D020 select * from w.orders
        3D008 insert into entity orders in store w value('{"n": 1}')
        """,
    )
    assert not file.exists()
    client.rows('drop entity "in/lines.ndjson" in store w')
    assert client.rows('select * from w."x.csv"') == [["1"]]


NAMES = [
    *("../x.ndjson", "in/../../x.ndjson", "/x.ndjson", "in//x.ndjson", "./x.ndjson", "", "x/", "..", "in/.x.ndjson"),
    *(".x", "a\\b", "x.csv", "x.parquet", "x.ndjson.gz", "x.sh", "a.b", "none/x.ndjson", "link/x.ndjson", "pipe/x"),
    *("x" * 300, "e" * 200 + "/" + "e" * 200 + ".json", "in"),
]


def test_no_name_leads_out_of_a_store(client: Client, home: Path) -> None:
    inside, outside = home / "root" / "w", home / "outside"
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    (inside / "out.ndjson").symlink_to(outside / "made.ndjson")
    os.mkfifo(inside / "pipe.ndjson")
    before = sorted(inside.rglob("*"))
    for name in [*NAMES, "out.ndjson", "pipe.ndjson"]:
        for verb in ("create", "drop") if name != "x.csv" else ("create",):
            answer = client.run(f'{verb} entity "{name}" in store w')
            assert answer["sqlState"] not in {"00000", "XX000"}, (verb, name, answer)
        answer = client.run(f"""insert into entity "{name}" in store w value('{{"a": 1}}')""")
        assert answer["sqlState"] not in {"00000", "XX000"}, (name, answer)
    assert sorted(inside.rglob("*")) == before
    assert not list(outside.iterdir())
    for name in ("link", "out.ndjson", "pipe.ndjson"):
        (inside / name).unlink()


def test_a_file_with_other_names_is_not_changed(client: Client, home: Path) -> None:
    inside = home / "root" / "w"
    (home / "kept.json").write_text('{"a": 1}\n')
    (inside / "hard.ndjson").hardlink_to(home / "kept.json")
    (inside / "list.json").write_text('[{"a": 1}]\n')
    for name, state in (("hard.ndjson", "3E001"), ("list.json", "0A000"), ("x.csv", "0A000")):
        assert client.state(f"""insert into entity "{name}" in store w value('{{"a": 2}}')""") == state
    assert (home / "kept.json").read_text() == '{"a": 1}\n'
    (inside / "unfinished.json").write_text('{"a": 1}')
    client.rows("""insert into entity "unfinished.json" in store w value('{"a": 2}')""")
    assert client.rows('select a from w."unfinished.json"') == [["1"], ["2"]]


def test_what_another_store_made_is_taken_over(client: Client, home: Path) -> None:
    inside = home / "root" / "w"
    (inside / "before").write_text('{"a": 1}\n')
    (inside / "Makefile").write_text("all:\n")
    (inside / "hard").hardlink_to(inside / "before")
    states(
        client,
        """
        3D020 select * from w.before
        42710 create entity before in store w
        3E001 create entity if not exists before in store w
        0A000 create entity if not exists "Makefile" in store w
        3D020 select * from w."Makefile"
        """,
    )
    (inside / "hard").unlink()
    client.rows("create entity if not exists before in store w")
    assert client.rows("select a from w.before") == [["1"]]
    client.rows("drop entity before in store w")
    (inside / "Makefile").unlink()


def test_a_file_that_becomes_a_link_is_not_written(client: Client, home: Path) -> None:
    inside, target = home / "root" / "w", home / "target.ndjson"
    target.write_text("")
    client.rows('create entity "swapped.ndjson" in store w')
    client.rows("create entity bare in store w")
    for name in ("swapped.ndjson", "bare"):
        (inside / name).unlink()
        (inside / name).symlink_to(target)
        assert client.state(f"""insert into entity "{name}" in store w value('{{"a": 2}}')""") == "3D008"
        assert client.state(f'select * from w."{name}"') == "3D020"
        assert client.state(f'drop entity "{name}" in store w') == "3D008"
        (inside / name).unlink()
    assert target.read_text() == ""


def test_a_folder_that_is_exchanged_for_a_link_is_not_entered(tmp_path: Path) -> None:
    """However fast somebody exchanges it while files are opened."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "in").mkdir(parents=True)
    outside.mkdir()
    for folder in (root / "in", outside):
        (folder / "x.json").write_text("")
    (root / "link").symlink_to(outside)
    ending = threading.Event()

    def exchange() -> None:
        while not ending.is_set():
            (root / "in").rename(root / "kept")
            (root / "link").rename(root / "in")
            (root / "in").rename(root / "link")
            (root / "kept").rename(root / "in")

    thread = threading.Thread(target=exchange)
    thread.start()
    place = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    written = refused = 0
    try:
        for turn in range(300_000):
            if turn > 2000 and written and refused:
                break
            try:
                with beneath.open_file(place, "in/x.json", os.O_WRONLY | os.O_APPEND) as file:
                    written += os.write(file, b"x")
            except OSError:
                refused += 1
    finally:
        ending.set()
        thread.join()
        os.close(place)
    assert (outside / "x.json").read_text() == ""
    assert len((root / "in" / "x.json").read_text()) == written


def test_odd_names_are_names(client: Client) -> None:
    odd = ('a"b', "a'b", "a*b", "[a]", "a b", "ü", "a;b", "n=1", "in/%2e%2e", "--x", "~x.json", "$HOME")
    names = ['"' + name.replace('"', '""') + '"' for name in odd]
    for number, name in enumerate(names):
        client.rows(f"create entity {name} in store w")
        client.rows(f"""insert into entity {name} in store w value('{{"a": {number}}}')""")
    found = client.rows(" union all ".join(f"select a from w.{name}" for name in names))
    assert sorted(int(row[0] or 0) for row in found) == list(range(len(names)))
    for name in names:
        client.rows(f"drop entity {name} in store w")


RECORDS = [
    *("1", "[1]", '"x"', "", "{", '{"a": 1} {"a": 2}', '{"a": 1, "a": 2}', '{"a": {"b": 1, "b": 2}}', '{"a": NaN}'),
    *("{a: 1}", '{"a": "\\ud800"}', '{"a": "line\nbreak"}', '{"a": 01}', '{"a": 1e999}', "\ufeff{}", "null"),
    '{"a": ' + "[" * 200 + "]" * 200 + "}",
    '{"a": ' + "[" * 5000 + "]" * 5000 + "}",
]


def test_what_the_engine_could_not_read_back_is_not_added(client: Client, home: Path) -> None:
    client.rows("create entity strict in store w")
    file = home / "root" / "w" / "strict"
    for record in RECORDS:
        text = record.replace("'", "''")
        assert client.state(f"insert into entity strict in store w value('{text}')") == "22032", record[:40]
    assert file.read_text() == ""
    good = [
        '{\n  "a": 1,\t"b": [{"c": "ü\U0001f600"}]\r\n}',
        '{"a": "x\\ny"}',
        "{}",
        '{"a": 123456789012345678901234567890}',
    ]
    for record in good:
        client.rows(f"insert into entity strict in store w value('{record}')")
    lines = file.read_text().splitlines()
    assert [json.loads(line) for line in lines] == [json.loads(record) for record in good]
    assert client.rows("select count(*) from w.strict") == [["4"]]
    large = json.dumps({"a": "x" * 300_000})
    client.rows(f"insert into entity strict in store w value('{large}')")
    assert client.rows("select count(*) from w.strict where length(a::varchar) > 300_000") == [["1"]]


def test_records_of_many_writers_are_whole_lines(own: Served, client: Client, home: Path) -> None:
    client.rows("create entity together in store w")

    def work(number: int) -> None:
        with Client(own) as other:
            for turn in range(10):
                record = json.dumps({"who": number, "turn": turn, "fill": "x" * (turn * 900)})
                other.rows(f"insert into entity together in store w value('{record}')")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (home / "root" / "w" / "together").read_text().splitlines()
    found = [(item["who"], item["turn"]) for item in map(json.loads, lines)]
    assert sorted(found) == [(who, turn) for who in range(6) for turn in range(10)]
    assert client.rows("select count(*), sum(turn) from w.together") == [["60", "270"]]


@pytest.mark.slow("connects to what does not answer")
def test_a_store_is_changed_and_tested(client: Client, home: Path) -> None:
    root = home / "root"
    for name, text in (("one", "i\n1\n"), ("two", "i\n2\n")):
        (root / name).mkdir()
        (root / name / "x.csv").write_text(text)
    client.rows(f"create store moved with ('uri' = '{root}/one')")
    assert client.rows('select * from moved."x.csv"') == [["1"]]
    client.rows(f"update store moved with ('uri' = '{root}/two', 'writable' = TRUE)")
    assert client.rows('select * from moved."x.csv"') == [["2"]]
    client.rows('create entity "e.json" in store moved')
    assert (root / "two" / "e.json").exists()
    assert client.rows("describe store moved")[0][2] == '{"Writable": true}'
    client.rows("update store moved with ('writable' = FALSE)")
    assert client.rows("describe store moved")[0][2] == '{"Writable": false}'
    assert client.state('drop entity "e.json" in store moved') == "0A000"
    # It may have become less than what it says.
    client.rows("update store moved with ('writable' = TRUE)")
    (root / "two").rename(root / "gone")
    assert client.state("test store moved") == "3E001"
    assert client.state('drop entity "e.json" in store moved') == "3E001"
    client.rows(f"update store moved with ('uri' = '{root}/one')")
    assert client.state("test store moved") == "00000"
    client.rows("use moved")
    assert client.state(f"update store moved with ('uri' = '{root}/gone')") == "2BP01"
    client.rows("use database local")


def test_writing_needs_a_root_that_was_named(storage: Storage, tmp_path: Path) -> None:
    """Without --store-root a store may be anywhere to be read, and nowhere to be changed."""
    (tmp_path / "in").mkdir()
    asked = {"uri": str(tmp_path / "in")}
    for roots, refused in (((), True), ((tmp_path / "other",), True), ((tmp_path,), False)):
        organizations = Organizations(Catalog(storage), Settings(store_roots=roots), tmp_path / "data")
        assert organizations.allows_writing(tmp_path / "in") != refused
        if refused:
            with pytest.raises(Failure) as caught:
                read_options({**asked, "writable": "TRUE"}, organizations)
            assert caught.value.sql_state == "42501"
    # What was granted once is asked again at each change.
    assert not Organizations(Catalog(storage), Settings(store_roots=(tmp_path,)), tmp_path).allows_writing(tmp_path)


def test_where_the_service_is_embedded(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    service = start_embedded()
    try:
        for sql in (
            f"create store s with ('uri' = '{tmp_path}/in', 'writable' = TRUE)",
            "create entity e in store s",
            """insert into entity e in store s value('{"a": 1}')""",
            """insert into entity e in store s value('{"a": 2}')""",
            f"create secret kept with ('type' = generic_string, 'secret_string' = '{VALUE}')",
            "drop secret kept",
            # The engine's own.
            "create secret engines (type http, bearer_token 'x')",
            "drop secret engines",
            "drop secret if exists engines",
            "select sum(a)::varchar from s.e",
        ):
            answer = json.loads(ask(service, "POST", "/v2/statements", json.dumps({"statement": sql}).encode())[1])
            while answer["sqlState"] == "03000":
                answer = json.loads(ask(service, "GET", f"/v2/statements/{answer['statementID']}")[1])
            assert answer["sqlState"] == "00000", (sql, answer)
        assert answer["data"] == [["3"]]
    finally:
        service.close()


def test_files_of_a_store_have_bounds(client: Client, home: Path) -> None:
    (home / "root" / "full").mkdir()
    client.rows(f"create store filled with ('uri' = '{home}/root/full', 'writable' = TRUE)")
    for number in range(12):
        client.rows(f"create entity e{number} in store filled")
    assert client.state("create entity more in store filled") == "53000"
    client.rows('create entity "more.json" in store filled')
    record = json.dumps({"a": "x" * 500_000})
    client.rows(f"insert into entity e1 in store filled value('{record}')")
    assert client.state(f"insert into entity e2 in store filled value('{record}')") == "53000"
    assert (home / "root" / "full" / "e2").read_text() == ""
    longer = json.dumps({"a": "x" * 1_000_000})
    assert client.state(f"insert into entity e2 in store filled value('{longer}')") == "53000"
    client.rows("drop store filled")


# Pools, relations, queries and functions


def test_pools_have_the_sizes_that_clients_name(client: Client) -> None:
    states(
        client,
        """
        00000 create compute_pool p with ('compute_pool.size' = 'small', 'compute_pool.timeout_min' = 5)
        00000 update compute_pool p with ('queue' = 7)
        00000 update compute_pool p
        22023 update compute_pool p with ('compute_pool.size' = 'huge')
        3D008 update compute_pool p with ('color' = 'red')
        22023 update compute_pool p with ('compute_pool.timeout_min' = 'soon')
        3D023 update compute_pool none with ('queue' = 7)
        00000 stop compute_pool p
        00000 update compute_pool p with ('compute_pool.size' = MEDIUM)
        00000 use compute_pool p
        3E004 select 1
        00000 start compute_pool p
        00000 select 1
        00000 update compute_pool default with ('concurrency' = 17)
        00000 use compute_pool default
        00000 drop compute_pool p
        """,
    )


def test_relations_are_emptied_and_described(client: Client) -> None:
    states(
        client,
        """
        00000 create table full_one as select 1 as i
        00000 create view looks as select * from full_one
        00000 create stream flows (i int)
        00000 insert into flows values (1)
        00000 alter relation full_one set description = 'it''s a table'
        00000 alter relation looks set description = 'a view'
        00000 alter stream flows set description = 'a stream'
        3D020 alter stream full_one set description = 'no stream'
        3D020 alter changelog flows set description = 'a stream'
        00000 create changelog flowed (i integer, primary key (i))
        00000 alter changelog flowed set description = 'a changelog'
        3D020 alter stream flowed set description = 'a changelog'
        00000 drop changelog flowed
        3D020 alter relation none set description = 'x'
        00000 truncate relation local.main.full_one
        3D020 truncate relation none
        0A000 truncate relation looks
        0A000 truncate relation flows
        0A000 insert into entity flows value('{"i": 2}')
        3D020 drop changelog full_one
        3D020 drop stream full_one
        00000 drop stream flows
        00000 drop relation looks
        """,
    )
    assert client.rows("select count(*) from full_one") == [["0"]]
    asked = "select comment from duckdb_tables() where table_name = 'full_one'"
    assert client.rows(asked) == [["it's a table"]]


def test_a_query_runs_again(own: Served, client: Client) -> None:
    client.rows("create schema if not exists aside")
    client.rows("create table aside.counted as select 0 as n")
    first = client.run("update counted set n = n + 1", schema="aside")
    assert first["sqlState"] == "00000"
    answer = client.run(f"restart query '{first['statementID']}'")
    again = str(answer["data"][0][0])
    assert again in answer["message"]
    done = client.wait(client.http.get(f"/v2/statements/{again}").json())
    assert done["sqlState"] == "00000"
    assert client.rows("select n from aside.counted") == [["2"]]
    running = client.submit(ENDLESS)["statementID"]
    with Client(own) as other:
        assert other.state(f"restart query '{running}'") == "55006"
        other.rows_of_nothing(f"terminate query '{running}'")
        assert other.state("restart query 'nothing'") == "3D019"
        secret = other.run(f"create secret q with ('type' = generic_string, 'secret_string' = '{VALUE}')")
        assert other.state(f"restart query '{secret['statementID']}'") == "0A000"
        other.rows("drop secret q")


def test_functions_of_java_are_recorded(client: Client) -> None:
    made = "create function area (w BIGINT, h DECIMAL(10, 2)) RETURNS DECIMAL(20,2) LANGUAGE JAVA"
    other = "RETURNS BIGINT LANGUAGE JAVA with ('source.name' = \"fs\", 'class.name' = 'a.B')"
    states(
        client,
        f"""
        3D018 {made} with ('source.name' = 'none', 'class.name' = 'a.B')
        22023 {made} with ('source.name' = 'fs')
        0A000 create function area (w BIGINT) RETURNS BIGINT LANGUAGE PYTHON with ('source.name' = 'fs')
        00000 {made} with ('source.name' = 'fs', 'class.name' = 'a.B', 'egress.allow.uris' = 'x:1')
        42P015 {made} with ('source.name' = 'fs', 'class.name' = 'a.B')
        42P015 create function upper (s VARCHAR) {other}
        00000 create function area (w BIGINT) {other}
        42P015 describe create function area (w BIGINT) {other}
        00000 create or replace function area (w BIGINT) {other}
        0A000 select area(1, 2)
        0A000 select "AREA" (1)
        2BP01 drop function_source fs
        00000 drop function area (x bigint)
        3D017 drop function area (x bigint)
        00000 drop function if exists area (x bigint)
        00000 drop function area (w BIGINT, h DECIMAL(10,2))
        42883 select area(1)
        00000 create function area(w, h) as w * h
        00000 select area(2, 3)
        00000 drop function area
        """,
    )


# Secrets


def test_a_secret_is_shown_nowhere_and_written_nowhere(own: Served, client: Client, home: Path) -> None:
    sql = f"create secret hidden with ('type' = generic_string, 'description' = 'told', 'secret_string' = '{VALUE}'"
    again = f"update secret hidden with ('description' = 'more', 'own' = '{VALUE}')"
    bare = "update secret hidden with (secret_string = bare_value_of_it)"
    inside = f"begin application a {sql}); end application"
    asked = [f"{sql})", f"{sql})", sql, f"describe {sql})", again, bare, inside, f"/* c */ {sql})", f"explain {sql})"]
    answers = [client.run(text) for text in asked]
    assert [answer["sqlState"] for answer in answers[:3]] == ["00000", "42P014", "42601"]
    assert [answer["sqlState"] for answer in answers[4:7]] == ["00000", "00000", "0A000"]
    client.rows(f"create secret properties with ('type' = generic_string, 'own' = '{VALUE}', 'access_region' = \"x\")")
    told = [
        *(client.run(text) for text in ("list secrets", "describe secret hidden", "list queries")),
        client.run('select * from deltastream.sys."secrets"'),
        *(client.run(f"describe query '{answer['statementID']}'") for answer in answers),
        *(client.http.get(f"/v2/statements/{answer['statementID']}").json() for answer in answers),
    ]
    seen = json.dumps([answers, told])
    assert VALUE not in seen
    assert "bare_value" not in seen
    assert "sealed" not in seen

    def holds(content: bytes) -> bool:
        return VALUE.encode() in content or b"bare_value" in content

    with closing(sqlite3.connect(home / "data" / "service.sqlite")) as storage:
        sealed = [row[0] for row in storage.execute("select detail from objects")]
    text = json.loads(next(item for item in sealed if "more" in item))["sealed"]["text"]
    assert text not in seen
    files = [path for path in home.rglob("*") if path.is_file() and holds(path.read_bytes())]
    assert files == []
    key = home / "data" / "secrets.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_text().strip() not in seen
    client.rows("drop secret hidden")
    client.rows("drop secret properties")


def test_what_a_secret_needs(client: Client) -> None:
    states(
        client,
        """
        0A000 create secret wrong with ('type' = aws, 'secret_string' = 'x')
        22023 create secret wrong with ('type' = generic_string, 'description' = 'x')
        42501 create secret wrong (type s3)
        3D016 update secret wrong with ('secret_string' = 'x')
        3D016 drop secret wrong
        00000 drop secret if exists wrong
        """,
    )
    assert (
        client.state(f"create secret long with ('type' = generic_string, 'secret_string' = '{'x' * 6000}')") == "53000"
    )


class Meanwhile(Vault):
    """A vault at which another thread does something while a value is encrypted, or waits to do it."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__(None, lambda: False)
        self._thread = threading.Thread(target=meanwhile)

    def seal(self, organization: str, kind: str, name: str, values: Mapping[str, str]) -> dict[str, str]:
        self._thread.start()
        self._thread.join(0.2)
        return super().seal(organization, kind, name, values)

    def end(self) -> None:
        self._thread.join()


def test_no_change_of_a_secret_undoes_another_one(storage: Storage) -> None:
    engine = DuckdbEngine()
    organizations = Organizations(Catalog(storage), Settings(), None, engine, embedded=True)
    sessions = Sessions(organizations, Settings())
    session = sessions.connect(Caller(OPERATOR, "", tuple(ROLES)))
    catalog, organization = organizations.catalog, session.organization.id

    def update(**options: str) -> None:
        record = Statement("", organization, "", Spool(Path, 1), ContextEcho())
        asked = OfKind(verb="update", of=Secret(), names=("x",), options=options)
        given = ("", session, session_options, record.spool, record.is_canceled, sessions, ())
        asked.run(Execution(*given, lambda sql: Outcome(), lambda outcome, *of: outcome, list, lambda sql: None))

    session_options = RunOptions()
    vault = Meanwhile(lambda: update(description="told"))
    try:
        sealed = Vault(None, lambda: False).seal(organization, "secret", "x", {"secret_string": "old"})
        catalog.add(organization, "secret", "x", {"type": "generic_string", "description": "", "sealed": sealed})
        session.organization.vault = vault
        update(secret_string="new")
        vault.end()
        assert catalog.get(organization, "secret", "x").detail["description"] == "told"
        kept = catalog.get(organization, "secret", "x").detail["sealed"]
        assert vault.opened(organization, "secret", "x", kept) == {"secret_string": "new"}
    finally:
        sessions.close()
        organizations.close()


def test_a_store_that_cannot_be_stored_is_not_mounted(storage: Storage, tmp_path: Path) -> None:
    engine = DuckdbEngine()
    organizations = Organizations(Catalog(storage), Settings(), None, engine, embedded=True)
    sessions = Sessions(organizations, Settings())
    organization = sessions.connect(Caller(OPERATOR, "", tuple(ROLES))).organization
    record = Statement("", organization.id, "", Spool(Path, 1), ContextEcho())
    detail = read_options({"uri": str(tmp_path)}, organizations)

    def mounted() -> bool:
        return "s" in {row[0] for row in engine.catalog(CatalogQuery("databases"))}

    try:
        organizations.catalog.add(organization.id, "store", "s", detail)
        with pytest.raises(Failure) as caught:
            add(organization, "s", detail, record.is_canceled)
        assert caught.value.sql_state.startswith("42P")
        assert (mounted(), "s" in organization.store_names) == (False, False)
        organizations.catalog.drop(organization.id, "store", "s")
        add(organization, "s", detail, record.is_canceled)
        assert (mounted(), "s" in organization.store_names) == (True, True)
        assert organizations.catalog.get(organization.id, "store", "s").detail == detail
    finally:
        sessions.close()
        organizations.close()


def test_a_lost_key_is_told_and_never_replaced(storage: Storage, tmp_path: Path) -> None:
    file = tmp_path / FILE
    catalog = Catalog(storage)
    vault = Vault(file, catalog.holds_sealed)
    sealed = vault.seal("o", "secret", "x", {"secret_string": VALUE})
    catalog.add("o", "secret", "x", {"sealed": sealed})
    whole = file.read_bytes()

    def text(content: bytes, mode: int = 0o600) -> None:
        file.unlink(missing_ok=True)
        file.write_bytes(content)
        file.chmod(mode)

    def link() -> None:
        file.unlink()
        file.symlink_to(tmp_path / "elsewhere")

    cases: list[tuple[str, Callable[[], None]]] = [
        ("does not exist", file.unlink),
        ("a different key", lambda: text(base64.b64encode(bytes(32)))),
        ("does not contain a key", lambda: text(b"nonsense")),
        ("does not contain a key", lambda: text(whole[:20])),
        ("other users can access the key file", lambda: text(whole, 0o644)),
        ("cannot open", link),
    ]
    for message, happens in cases:
        happens()
        with pytest.raises(Failure) as caught:
            vault.opened("o", "secret", "x", sealed)
        assert caught.value.sql_state == "58030"
        assert message in caught.value.message
        assert "from a backup" in caught.value.message
        if message != "a different key":
            with pytest.raises(Failure):
                vault.seal("o", "secret", "y", {"secret_string": "z"})
    assert not (tmp_path / "elsewhere").exists()
    file.unlink()
    text(whole)
    assert vault.opened("o", "secret", "x", sealed) == {"secret_string": VALUE}
    catalog.drop("o", "secret", "x")
    file.unlink()
    # Nothing is lost with a key that nothing needs.
    vault.seal("o", "secret", "y", {"secret_string": "z"})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_one_key_is_made_however_many_ask(tmp_path: Path) -> None:
    vaults = [Vault(tmp_path / FILE, lambda: False) for _ in range(4)]
    made: list[tuple[int, dict[str, str]]] = []

    def work(number: int) -> None:
        made.append((number, vaults[number % 4].seal("o", "secret", str(number), {"a": str(number)})))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, sealed in made:
        assert vaults[0].opened("o", "secret", str(number), sealed) == {"a": str(number)}
    assert len({sealed["text"] for _, sealed in made}) == 12


def test_a_value_opens_where_it_was_sealed_alone() -> None:
    vault = Vault(None, lambda: False)
    sealed = vault.seal("o", "secret", "x", {"a": "b"})
    for whose in (("p", "secret", "x"), ("o", "schema_registry", "x"), ("o", "secret", "X")):
        with pytest.raises(Failure, match="belongs to another object"):
            vault.opened(*whose, sealed)
    raw = bytearray(base64.urlsafe_b64decode(sealed["text"]))
    raw[-1] ^= 1
    for text in (base64.urlsafe_b64encode(raw).decode(), "", "x", "AAAA", sealed["text"][:24], "ä"):
        with pytest.raises(Failure, match="damaged"):
            vault.opened("o", "secret", "x", {"text": text})


def test_a_value_that_an_earlier_version_encrypted_is_read(tmp_path: Path) -> None:
    key, nonce = bytes(range(32)), bytes(12)
    (tmp_path / FILE).write_text(base64.b64encode(key).decode())
    (tmp_path / FILE).chmod(0o600)
    owner = json.dumps(["o", "secret", "x"]).encode()
    text = base64.b64encode(nonce + AESGCM(key).encrypt(nonce, b'{"a": "b"}', owner)).decode()
    vault = Vault(tmp_path / FILE, lambda: True)
    sealed = {"key": "0123456789abcdef", "text": text}
    assert vault.opened("o", "secret", "x", sealed) == {"a": "b"}
    for name, damaged in (("y", sealed), ("x", {**sealed, "text": "AAAA"}), ("x", {**sealed, "text": "ä"})):
        with pytest.raises(Failure, match="damaged"):
            vault.opened("o", "secret", name, damaged)


def test_a_value_opens_for_its_own_object_alone(client: Client, home: Path, registry: str) -> None:
    for name in ("mine", "theirs"):
        client.rows(f"create secret {name} with ('type' = generic_string, 'secret_string' = '{name}')")
    with closing(sqlite3.connect(home / "data" / "service.sqlite")) as storage, storage:
        moved = "update objects set detail = (select detail from objects where name = 'theirs' and kind = 'secret') "
        storage.execute(moved + "where name = 'mine' and kind = 'secret'")
    client.rows(f"create schema_registry moved with ('type' = CONFLUENT, 'uris' = '{registry}/ok', 'secret' = 'mine')")
    answer = client.run("test schema_registry moved")
    assert (answer["sqlState"], "belongs to another object" in answer["message"]) == ("58030", True)
    assert {row[0]: row[3] for row in client.rows("list secrets")}["mine"] == "broken"
    client.rows("drop schema_registry moved")


# Schema registries


def test_a_registry_is_asked_when_it_is_tested(client: Client, registry: str) -> None:
    place = registry.removeprefix("http://")
    made = "create schema_registry"
    user = f"'uris' = '{registry}/locked', 'confluent.username' = 'user'"
    states(
        client,
        f"""
        00000 {made} ok with ('type' = CONFLUENT, 'access_region' = "x", 'uris' = '{registry}/ok')
        00000 test schema_registry ok
        00000 {made} bare with ('type' = CONFLUENT, 'uris' = '{place}/ok', 'confluent.username' = '')
        00000 test schema_registry bare
        00000 drop schema_registry bare
        42P018 {made} ok with ('type' = CONFLUENT, 'uris' = '{registry}')
        00000 create or replace schema_registry ok with ('type' = CONFLUENT, 'uris' = '{registry}/moved')
        3E002 test schema_registry ok
        00000 {made} locked with ('type' = CONFLUENT, {user}, 'confluent.password' = '{VALUE}')
        00000 test schema_registry locked
        00000 create secret pw with ('type' = generic_string, 'secret_string' = '{VALUE}')
        00000 {made} named with ('type' = CONFLUENT, {user}, 'secret' = "pw")
        00000 test schema_registry named
        2BP01 drop secret pw
        3D016 {made} none with ('type' = CONFLUENT, 'uris' = '{registry}', 'secret' = none)
        00000 {made} other with ('type' = CONFLUENT, 'uris' = '{registry}/other')
        3E002 test schema_registry other
        00000 {made} closed with ('type' = CONFLUENT, 'uris' = 'http://localhost:1')
        57015 test schema_registry closed
        3D009 test schema_registry none
        3D009 drop schema_registry none
        0A000 {made} none with ('type' = GLUE, 'uris' = '{registry}')
        3D008 {made} none with ('type' = CONFLUENT, 'uris' = '{registry}', 'color' = 'red')
        00000 update schema_registry ok with ('uris' = '{registry}')
        """,
    )
    assert VALUE not in json.dumps([client.run(f"test schema_registry {name}") for name in ("ok", "locked", "other")])
    # What was moved was not followed.
    assert [path for path, _, _ in Registry.seen if path.startswith("/moved")]
    assert {host for _, _, host in Registry.seen} == {place}
    listed = json.dumps([client.run(text) for text in ("list schema_registries", "describe schema_registry locked")])
    assert VALUE not in listed
    for name in ("ok", "locked", "named", "other", "closed"):
        client.rows(f"drop schema_registry {name}")
    client.rows("drop secret pw")


@pytest.mark.parametrize(
    ("uris", "state"),
    [
        *(
            (f"http://{host}:1", "42501")
            for host in ("example.com", "10.0.0.1", "169.254.169.254", "[fe80::1]", "0.0.0.0")
        ),
        *((f"http://{host}:1", "42501") for host in ("127.1", "0x7f000001", "2130706433", "localhost.", "a.localhost")),
        *(
            (f"http://{host}:1", "42501")
            for host in ("localhost.example.com", "127.0.0.1.example.com", "[::ffff:10.0.0.1]")
        ),
        *(
            (f"http://{host}:1", "57015")
            for host in ("127.0.0.1", "127.9.9.9", "localhost", "[::1]", "[::ffff:127.0.0.1]")
        ),
        *((text, "22023") for text in ("file:///etc/passwd", "gopher://127.0.0.1", "a:b", "http://", "", "//x")),
        *(
            (text, "22023")
            for text in ("http://u:secret1@127.0.0.1", "http://127.0.0.1@example.com", "http://a/?b", "http://a#b")
        ),
        *(
            (text, "22023")
            for text in (
                "http://a:99999",
                "http://a b",
                "http://a\r\nX: y",
                "http://a/\r\nX:y",
                "http://a\\b",
                "http://ä",
            )
        ),
        *((text, "22023") for text in ("http://[::1%25eth0]", ",".join(["http://localhost"] * 9), "http://a:0")),
    ],
)
def test_where_a_registry_may_be(client: Client, uris: str, state: str) -> None:
    made = client.run(f"create schema_registry far with ('type' = CONFLUENT, 'uris' = '{uris}')")
    assert "secret1" not in json.dumps(made)
    if state == "22023":
        assert made["sqlState"] == state
        return
    assert made["sqlState"] == "00000", made
    answer = client.run("test schema_registry far")
    client.rows("drop schema_registry far")
    assert answer["sqlState"] == state, answer
