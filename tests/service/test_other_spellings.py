"""Alternative names of options and forms that clients use, and options that have no effect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import serve, stop
from tests.service.client import Client


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder: Path = tmp_path_factory.mktemp("outside")
    running = serve(tmp_path_factory.mktemp("spellings"), "--store-root", str(folder))
    with Client(running) as made:
        made.rows_of_nothing(f"create store outside with ('type' = files, 'uri' = '{folder}', 'writable' = true)")
        made.rows_of_nothing(f"create store other with ('type' = files, 'uri' = '{folder}')")
        made.rows_of_nothing("create function_source jar with ('file' = 'f.jar')", [("f.jar", b"PK")])
        yield made
    stop(running)


JAVA = "returns bigint language java with ('source.name' = 'jar', 'class.name' = 'a.B')"
STATES = [
    ("create compute_pool p with ('size' = 'SMALL', 'min.units' = '1', 'auto.suspend' = 'true')", "00000"),
    ("update compute_pool p with ('size' = 'LARGE', 'auto.suspend.minutes' = '5')", "00000"),
    ("create entity a.jsonl with ('store' = 'outside', 'topic.partitions' = 1)", "00000"),
    ("create entity b.jsonl in store outside with ('store' = 'outside', 'kafka.topic.retention.ms' = 1)", "00000"),
    ("create entity c.jsonl in store outside with ('store' = 'other')", "22023"),
    ("create entity c.jsonl in store outside with ('color' = 'red')", "0A000"),
    ("update entity a.jsonl in store outside with ('store' = 'outside')", "00000"),
    ("insert into entity a.jsonl value('{\"a\": 1}') with ('store' = 'outside', 'key.format' = 'json')", "00000"),
    ("create schema_registry r with ('url' = 'http://127.0.0.1:9/', 'auth.type' = 'basic', 'username' = 'u')", "00000"),
    ("update schema_registry r with ('color' = 'red')", "3D008"),
    ("update schema_registry gone with ('uris' = 'http://127.0.0.1:9/')", "3D009"),
    ("start stream s", "0A000"),
    ("stop stream s", "0A000"),
    ("create function_source f from '/f.jar'", "0A000"),
    ("create descriptor_source f from '/f.desc'", "0A000"),
    ("create function f as x + 1", "0A000"),
    ("create function f(x) as x + 1", "00000"),
    ("drop function f", "00000"),
    (f"create function g (x bigint) {JAVA}", "00000"),
    (f"create function g (x varchar) {JAVA}", "00000"),
    ("drop function g", "42725"),
    ("drop function g (varchar)", "00000"),
    ("drop function g", "00000"),
    ("drop function g (bigint)", "3D017"),
]  # fmt: skip


def test_other_words_for_the_same(client: Client) -> None:
    for sql, state in STATES:
        answer = client.run(sql)
        assert answer["sqlState"] == state, (sql, answer)
    assert client.rows('select a from outside."a.jsonl"') == [["1"]]


def test_a_registry_elsewhere_does_not_get_the_password_of_the_one_before(client: Client) -> None:
    kept = "'confluent.username' = 'u', 'confluent.password' = 'p'"
    client.rows_of_nothing(f"create schema_registry moved with ('uris' = 'http://127.0.0.1:9/a', {kept})")
    client.rows_of_nothing("create secret word with ('type' = generic_string, 'secret_string' = 's')")
    for sql in ("'uris' = 'http://127.0.0.1:9/a'", "'confluent.username' = 'v'"):
        client.rows_of_nothing(f"update schema_registry moved with ({sql})")
        # It has its password still, so that it takes no secret beside it.
        client.rows_of_nothing("update schema_registry moved with ('secret' = 'word')")
        assert client.state("drop secret word") == "2BP01"
        client.rows_of_nothing("update schema_registry moved with ('secret' = '', 'confluent.password' = 'p')")
    client.rows_of_nothing("update schema_registry moved with ('secret' = 'word')")
    client.rows_of_nothing("update schema_registry moved with ('uris' = 'http://127.0.0.1:9/b')")
    assert client.state("drop secret word") == "00000"


def test_a_test_answers_with_what_it_found(client: Client) -> None:
    ((status, message),) = client.rows("test store outside")
    assert status == "ready"
    assert str(message).startswith('store "outside" can be read and written: it has ')
    assert client.run("describe entity outside.none")["message"] == 'entity "outside.none" does not exist'
    assert "requires a directory" in client.run("create store nowhere with ('type' = 'files')")["message"]


def test_a_registry_that_is_there_already_has_its_own_code(client: Client) -> None:
    sql = "create schema_registry twice with ('url' = 'http://127.0.0.1:9/')"
    assert [client.state(sql), client.state(sql)] == ["00000", "42P018"]
