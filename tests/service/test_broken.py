"""A database, store or organization that cannot be opened is reported, and does not affect others."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Served, serve, stop
from tests.service.client import Client

FIRST = "00000000-0000-4000-8000-00000000c0de"
RESERVED = ("memory", '"Memory"', "system", "temp", '"TEMP"', "main", "pg_catalog", "information_schema", "deltastream")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("broken")


@pytest.fixture(scope="module")
def hurt(home: Path) -> Iterator[Served]:
    """A service on a folder in which much went wrong: databases are damaged, empty and lost, names clash as an older
    version let them, a store's folder is gone, and the folder of an organization is a file."""
    (home / "store").mkdir()
    (home / "store" / "x.csv").write_text("n\n1\n")
    running = serve(home, "--data", "data")
    with Client(running) as client:
        client.rows("create table t as select 42 as n")
        for name in ("damaged", "empty", "lost", "good"):
            client.rows(f"create database {name}")
            client.rows(f"create table {name}.main.t as select 7 as n")
        client.rows(f"create store gone with ('uri' = '{home}/store')")
        client.rows("create organization other")
        client.rows("create organization whole")
        ids = {str(row[0]): str(row[1]) for row in client.rows("list organizations")}
    stop(running)
    data = home / "data"
    with contextlib.closing(sqlite3.connect(data / "service.sqlite")) as storage, storage:
        files = {
            name: data / "organizations" / FIRST / "databases" / json.loads(detail)["file"]
            for name, detail in storage.execute("SELECT name, detail FROM objects WHERE kind = 'database'")
        }
        for kind, name in (("database", "memory"), ("database", "Good"), ("store", "GOOD"), ("store", "temp")):
            detail = {"file": files["good"].name} if kind == "database" else {"type": "files", "uri": f"{home}/store"}
            values = (FIRST, kind, name, json.dumps(detail), time.time())
            storage.execute(
                "INSERT INTO objects (organization, kind, name, detail, created) VALUES (?, ?, ?, ?, ?)", values
            )
    storage.close()
    files["damaged"].write_bytes(b"no database" * 1000)
    files["empty"].write_bytes(b"")
    files["lost"].unlink()
    shutil.rmtree(home / "store")
    folder = data / "organizations" / ids["other"]
    shutil.rmtree(folder, ignore_errors=True)
    folder.write_text("no folder")
    running = serve(home, "--data", "data")
    yield running
    stop(running)


@pytest.fixture
def client(hurt: Served) -> Iterator[Client]:
    with Client(hurt) as made:
        yield made


def test_what_is_whole_goes_on(client: Client) -> None:
    assert client.rows("select * from t") == [["42"]]
    assert client.rows("select * from good.main.t") == [["7"]]


def test_broken_databases_are_listed_with_their_reasons(client: Client) -> None:
    listed = client.listed("list databases")
    assert {row["Name"] for row in listed if row["State"] == "ready"} == {"local", "good"}
    reasons = {row["Name"]: str(row["Message"]) for row in listed if row["State"] == "broken"}
    assert reasons["lost"] == "its file does not exist"
    assert reasons["empty"] == "its file is empty"
    assert reasons["memory"] == "its name is reserved"
    assert reasons["Good"] == "its name differs from another only in case"
    assert "not a valid DuckDB database file" in reasons["damaged"]
    assert "/" not in reasons["damaged"]


@pytest.mark.parametrize("name", ["damaged", "empty", "lost"])
def test_who_uses_a_broken_database_is_told_why(client: Client, name: str) -> None:
    for sql in (f"use database {name}", f"select * from {name}.main.t", f"describe database {name}"):
        answer = client.run(sql)
        assert answer["sqlState"] == "58030", sql
        assert answer["message"].startswith(f'cannot open database "{name}": ')
    answer = client.run("select 1", database=name)
    assert answer["sqlState"] == "58030"
    assert client.state(f"create database {name}") == "42P04"


def test_broken_stores_are_listed_with_their_reasons(client: Client) -> None:
    reasons = {row["Name"]: row["Message"] for row in client.listed("list stores") if row["State"] == "broken"}
    assert reasons["gone"] == 'cannot open the directory of store "gone": it does not exist'
    assert reasons["temp"] == 'cannot read store "temp": its name is reserved'
    assert "GOOD" in reasons
    assert client.run('select * from gone."x.csv"')["sqlState"] == "3E001"
    assert client.state('select * from "GOOD"."x.csv"') == "3E001"


def test_a_broken_organization_fails_its_statements_and_no_others(client: Client, hurt: Served, home: Path) -> None:
    answer = client.run("use organization other")
    assert answer["sqlState"] == "58030"
    assert answer["message"] == 'cannot open organization "other": file exists'
    assert client.rows("select 1") == [["1"]]
    states = {row[0]: row[2] for row in client.rows("list organizations")}
    assert states == {"local": "ready", "other": "broken: file exists", "whole": "ready"}
    made = serve_token(home, "other")
    with Client(hurt, made) as bound:
        for sql in ("select 1", "list databases", "select 1; select 2"):
            assert bound.run(sql)["sqlState"] in {"58030", "57000"}
        refused = bound.run("select 1")
        assert (refused["sqlState"], refused["message"]) == ("58030", answer["message"])


def test_what_is_broken_is_dropped(home: Path) -> None:
    """On a copy of the folder, so that the other tests find what is broken."""
    mine = home / "copy"
    shutil.copytree(home / "data", mine)
    (mine / "lock").unlink()
    running = serve(home, "--data", "copy")
    try:
        with Client(running) as client:
            for name in ("damaged", "empty", "lost", "memory"):
                assert client.state(f"drop database {name}") == "00000", name
            assert client.state('drop database "Good"') == "00000"
            for name in ("gone", "temp", '"GOOD"'):
                assert client.state(f"drop store {name}") == "00000", name
            assert client.state("drop organization other") == "00000"
            assert client.names("list databases") == ["good", "local"]
            assert client.rows("list stores") == []
            assert client.rows("select * from t") == [["42"]]
            assert client.state("create database damaged") == "00000"
    finally:
        stop(running)


def test_a_store_outside_of_what_is_granted_now_is_not_read(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.csv").write_text("n\n1\n")
    running = serve(tmp_path, "--data", "data")
    with Client(running) as client:
        for name in ("one", "two"):
            client.rows(f"create store {name} with ('uri' = '{tmp_path / name}')")
            assert client.rows(f'select * from {name}."x.csv"') == [["1"]]
    stop(running)
    running = serve(tmp_path, "--data", "data", "--store-root", str(tmp_path / "one"))
    try:
        with Client(running) as client:
            assert client.rows('select * from one."x.csv"') == [["1"]]
            answer = client.run('select * from two."x.csv"')
            assert answer["sqlState"] == "3E001"
            assert "--store-root" in answer["message"]
    finally:
        stop(running)


@pytest.mark.slow("starts three services")
def test_nothing_runs_elsewhere_where_the_first_database_is_broken(tmp_path: Path) -> None:
    running = serve(tmp_path, "--data", "data")
    with Client(running) as client:
        client.rows("create database second")
        client.rows("create table second.main.t as select 1 as n")
    stop(running)
    databases = tmp_path / "data" / "organizations" / FIRST / "databases"
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "service.sqlite")) as storage, storage:
        details = dict(storage.execute("SELECT name, detail FROM objects WHERE kind = 'database'"))
    storage.close()
    (databases / json.loads(details["local"])["file"]).write_bytes(b"x" * 5000)
    running = serve(tmp_path, "--data", "data", stderr=tmp_path / "err")
    try:
        with Client(running) as client:
            for sql in ("select n from t", "create table n1 (i int)", "use schema main"):
                answer = client.run(sql)
                assert (answer["sqlState"], '"local"' in answer["message"]) == ("58030", True), answer
            assert client.state("create table n1 (i int); create table n2 (i int)") not in {"00000", "01000"}
            assert client.run("select 1")["metadata"]["context"].get("databaseName") is None
            assert "second" in client.names("list databases where State = 'ready'")
            assert client.rows("select n from t", database="second") == [["1"]]
        with Client(running) as client:
            assert client.state("insert into second.main.t values (2)") == "58030"
            assert client.state("use database second") == "00000"
            assert client.rows("select current_database(), n from t") == [["second", "1"]]
    finally:
        stop(running)
    assert 'cannot open database "local"' in (tmp_path / "err").read_text()
    (databases / json.loads(details["second"])["file"]).write_bytes(b"x" * 5000)
    running = serve(tmp_path, "--data", "data")
    try:
        with Client(running) as client:
            assert client.state("create table t (i int)") == "58030"
            assert client.state("create database third") == "00000"
            assert client.state("drop database second") == "00000"
            assert client.state("drop database local") == "00000"
    finally:
        stop(running)


@pytest.mark.parametrize("name", RESERVED)
def test_names_of_the_engine_are_reserved(client: Client, name: str) -> None:
    # There is one of the first name, which is broken.
    for what in ("database", "database if not exists") if name != "memory" else ("database",):
        answer = client.run(f"create {what} {name}")
        assert answer["sqlState"] == "42P04", answer
        assert "reserved" in answer["message"]


def test_names_are_taken_whatever_their_case(client: Client, tmp_path: Path) -> None:
    assert client.state('create database "LOCAL"') == "42P04"
    assert client.state(f"create store \"Local\" with ('uri' = '{tmp_path}')") == "42P05"
    assert client.state('create organization "WHOLE"') == "42710"
    assert client.state(f'create organization "{FIRST.upper()}"') == "42710"


def serve_token(home: Path, organization: str) -> str:
    """A token for an organization of the service in a folder."""
    argv = [sys.executable, "-m", "sqlshell", "serve", "--data", "data", "--new-token", "--role", "owner"]
    done = subprocess.run([*argv, "--organization", organization], cwd=home, capture_output=True, text=True, check=True)
    return done.stdout.strip()
