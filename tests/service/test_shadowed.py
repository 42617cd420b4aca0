"""Users' macros and views with the names of what the service asks DuckDB for: the service's answers stay the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sqlshell.sql.identifiers import always_quoted
from tests.cases import lines
from tests.conftest import Served, serve, stop
from tests.service.client import Client

NAMES = """
    array_extract array_to_string bool_and coalesce concat concat_ws contains count count_star current_database
    current_schema current_setting duckdb_columns duckdb_constraints duckdb_databases duckdb_functions duckdb_indexes
    duckdb_schemas duckdb_sequences duckdb_tables duckdb_types duckdb_views error from_json if json_deserialize_sql
    json_serialize_plan json_serialize_sql len list_append list_extract list_transform list_value list_zip lower max
    multiply nullif pragma_database_size pragma_storage_info read_csv read_json read_parquet replace row struct_extract
    struct_extract_at struct_pack to_json translate trim unnest ||
""".split()  # noqa: SIM905

MADE = """
create table parents (id int primary key);
create table kept (id int primary key, part int references parents (id), name varchar not null, check (part > 0));
create index by_part on kept (part);
create type mood as enum ('sad', 'glad');
create sequence numbers;
create view seen as select * from kept;
create view duckdb_columns as select 'spoofed' as column_name;
create view duckdb_tables as select 'spoofed' as table_name;
create view duckdb_schemas as select 'spoofed' as schema_name;
create table nested as select {'a': timestamptz '2024-01-01 00:00:00+00', 'b': 1.5::float} s, map {'k': 1.5::float} m;
create stream flow (a int);
insert into flow values (1);
create database other;
"""
COLUMNS = [["id", "INTEGER", "false"], ["part", "INTEGER", "true"], ["name", "VARCHAR", "false"]]
LOOKS = lines("shadowed", "looks")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("shadowed")
    (home / "store").mkdir()
    (home / "store" / "top.csv").write_text("a,b\n1,x\n")
    running = serve(home)
    with Client(running) as owner:
        for sql in filter(str.strip, MADE.split(";")):
            owner.rows(sql)
        owner.rows("create macro plus(a, b) as add(a, b)")
        owner.rows(f"create store files with ('type' = 'files', 'uri' = '{home / 'store'}')")
    yield running
    stop(running)


def test_no_object_of_a_user_changes_what_the_service_answers(served: Served) -> None:
    before = answers(served)
    assert [row[:3] for row in before["describe relation columns kept"][1]] == COLUMNS
    for scope in ("temp ", ""):
        with Client(served) as session:
            for name in NAMES:
                for kind in ("1", "table (select 1 as x)"):
                    forms = ", ".join(f"({', '.join('abcdefgh'[:n])}) as {kind}" for n in range(9))
                    state = session.state(f"create {scope}macro {always_quoted(name)}{forms}")
                    assert state in {"00000", "42501"}, name
            after = answers(served, session.session)
        changed = {sql: after[sql] for sql in LOOKS if after[sql] != before[sql]}
        assert changed == {}, scope


def answers(served: Served, session: str = "") -> dict[str, tuple[str, list[list[str | None]]]]:
    with Client(served, session=session) as client:
        told = {sql: client.run(sql) for sql in LOOKS}
        return {sql: (str(answer["sqlState"]), answer.get("data") or []) for sql, answer in told.items()}


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("pivot nosuch on a using count(*)", "3D020"),
        ("with x as (pivot nosuch on a using count(*)) from x", "3D020"),
        ("create table made as pivot nosuch on a using count(*)", "3D020"),
        ("insert into kept pivot nosuch on a using count(*)", "3D020"),
        ("pivot kept on id using nosuch(part)", "42883"),
    ],
)
def test_a_failing_pivot_tells_its_own_error(served: Served, sql: str, state: str) -> None:
    with Client(served) as client:
        assert client.state(sql) == state
