"""COPY … FROM '@file' over a real socket: an attachment is loaded, with the rights of an INSERT and none besides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.conftest import Served
from tests.service.client import Client
from tests.service.tested_engines import OnEngine

NAME = "rows.parquet"

pytestmark = pytest.mark.needs("attachments")


@pytest.fixture(scope="module")
def kept(engine: OnEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Path]]:
    folder = tmp_path_factory.mktemp("loading")
    with engine.serve(folder, "--data", str(folder / "data")) as running:
        yield running, folder / "data"


@pytest.fixture
def client(kept: tuple[Served, Path]) -> Iterator[Client]:
    with Client(kept[0]) as made:
        yield made


def parquet(tmp_path: Path, select: str) -> bytes:
    path = tmp_path / "made.parquet"
    with duckdb.connect() as made:
        made.execute(f"COPY ({select}) TO '{path}' (FORMAT parquet)")
    return path.read_bytes()


def make_table(client: Client, definition: str) -> None:
    client.run(f"DROP TABLE IF EXISTS {definition.split(maxsplit=1)[0]}")
    client.rows_of_nothing(f"CREATE TABLE {definition}")


def load(client: Client, sql: str, data: bytes, name: str = NAME) -> tuple[str, str]:
    answer = client.run(sql, [(name, data)])
    return answer["sqlState"], answer.get("message") or ""


def token(client: Client, role: str) -> str:
    answer = client.run(f"CREATE API_TOKEN loads_{role} WITH ('role' = '{role}')")
    return str(answer["data"][0][-1])


def test_it_is_announced(client: Client) -> None:
    assert "copy" in client.http.get("/v2/version").headers["Sqlshell-Extensions"].split(", ")


def test_rows_are_loaded_by_position_and_into_listed_columns(client: Client, engine: OnEngine, tmp_path: Path) -> None:
    place = f"{client.home()}.{engine.sql.schema}"
    make_table(client, "a (i INTEGER, t VARCHAR DEFAULT 'none', d DATE)")
    data = parquet(tmp_path, "SELECT 1 AS x, 'one' AS y, DATE '2024-02-29' AS z")
    assert load(client, f"COPY a FROM '@{NAME}'", data) == ("00000", "COPY 1")
    few = parquet(tmp_path, "SELECT DATE '2024-03-01' AS x, '2' AS y UNION ALL SELECT NULL, '3'")
    assert load(client, f"copy {place}.a (D, \"i\") from '@{NAME}' (format 'parquet');", few) == ("00000", "COPY 2")
    assert client.rows("SELECT * FROM a ORDER BY i") == [
        ["1", "one", "2024-02-29"],
        ["2", "none", "2024-03-01"],
        ["3", "none", None],
    ]


def test_all_rows_are_loaded_or_none(client: Client, tmp_path: Path) -> None:
    make_table(client, "b (i INTEGER PRIMARY KEY)")
    twice = parquet(tmp_path, "SELECT * FROM range(5) UNION ALL FROM range(1)")
    assert load(client, f"COPY b FROM '@{NAME}'", twice)[0][:2] == "23"
    state, message = load(client, f"COPY b FROM '@{NAME}'", parquet(tmp_path, "SELECT 'x' AS x"))
    assert state[:2] == "22" and "x" in message
    assert client.rows("SELECT count(*) FROM b") == [["0"]]


def test_a_transaction_holds_it(client: Client, tmp_path: Path) -> None:
    make_table(client, "c (i INTEGER)")
    client.rows_of_nothing("BEGIN")
    assert load(client, f"COPY c FROM '@{NAME}'", parquet(tmp_path, "FROM range(3)")) == ("00000", "COPY 3")
    assert client.rows("SELECT count(*) FROM c") == [["3"]]
    client.rows_of_nothing("ROLLBACK")
    assert client.rows("SELECT count(*) FROM c") == [["0"]]


@pytest.mark.needs("streams")
def test_a_stream_is_loaded_too(client: Client, tmp_path: Path) -> None:
    client.rows_of_nothing("CREATE STREAM loaded (i INTEGER)")
    assert load(client, f"COPY loaded FROM '@{NAME}'", parquet(tmp_path, "FROM range(3)"))[0] == "00000"
    client.rows_of_nothing("DROP STREAM loaded")


@pytest.mark.needs("roles")
def test_a_writer_may_and_a_reader_may_not(client: Client, kept: tuple[Served, Path], tmp_path: Path) -> None:
    make_table(client, "d (i INTEGER)")
    data = parquet(tmp_path, "FROM range(3)")
    with Client(kept[0], token(client, "writer")) as writer:
        assert load(writer, f"COPY d FROM '@{NAME}'", data) == ("00000", "COPY 3")
    with Client(kept[0], token(client, "reader")) as reader:
        state, message = load(reader, f"COPY d FROM '@{NAME}'", data)
        assert state == "42501" and "reader" in message
        # Nothing of the file is read before that is clear.
        assert load(reader, f"COPY d FROM '@{NAME}'", b"no parquet")[0] == "42501"
    assert client.rows("SELECT count(*) FROM d") == [["3"]]


@pytest.mark.parametrize("target", ['deltastream.sys."queries"', "system.main.duckdb_tables", "no_such", "a_view"])
@pytest.mark.needs("roles")
def test_what_an_insert_may_not_change_is_not_loaded(client: Client, tmp_path: Path, target: str) -> None:
    client.rows_of_nothing("CREATE OR REPLACE VIEW a_view AS SELECT 1 AS i")
    state, _ = load(client, f"COPY {target} FROM '@{NAME}'", parquet(tmp_path, "SELECT 1 AS i"))
    assert state not in {"00000", "XX000"}


def test_no_file_of_the_service_is_reachable(client: Client, kept: tuple[Served, Path], tmp_path: Path) -> None:
    make_table(client, "e (i INTEGER)")
    data = parquet(tmp_path, "FROM range(3)")
    other = tmp_path / "other.parquet"
    other.write_bytes(data)
    for name in (f"@{other}", "@../../../uploads/x", "@*", f"@{NAME[:-1]}?"):
        state, message = load(client, f"COPY e FROM '{name}'", data)
        assert state == "22023" and f"attachments: {NAME}" in message
    assert load(client, f"COPY e FROM '{other}'", data)[0] != "00000"
    state, message = load(client, f"COPY e FROM '@{NAME}'", b"no parquet")
    assert state == "22023" and "/" not in message and "read_parquet" not in message
    assert client.rows("SELECT count(*) FROM e") == [["0"]]


def test_nothing_stays_of_an_attachment(client: Client, kept: tuple[Served, Path], tmp_path: Path) -> None:
    make_table(client, "f (i INTEGER)")
    load(client, f"COPY f FROM '@{NAME}'", parquet(tmp_path, "FROM range(3)"))
    load(client, f"COPY f FROM '@{NAME}'", b"no parquet")
    left = [path for path in kept[1].rglob("*") if path.is_file() and path.parent.name in {"uploads", "temporary"}]
    assert not left


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("COPY a FROM '@rows.parquet' (FORMAT csv)", "0A000"),
        ("COPY a FROM '@rows.parquet' (FORMAT parquet, x 1)", "0A000"),
        ("COPY a FROM '@rows.parquet' trailing", "42601"),
        ("COPY a () FROM '@rows.parquet'", "42601"),
        pytest.param("COPY a FROM '@'", "42501", marks=pytest.mark.needs("roles")),
    ],
)
def test_bad_statements(client: Client, tmp_path: Path, sql: str, state: str) -> None:
    make_table(client, "a (i INTEGER)")
    answer = client.run(sql, [(NAME, parquet(tmp_path, "FROM range(3)"))])
    assert answer["sqlState"] == state, answer
