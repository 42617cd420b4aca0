"""A role with fewer rights runs nothing on an engine that cannot restrict statements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases import lines
from tests.conftest import Served, serve, stop
from tests.service.client import Client
from tests.service.postgresql import needs_postgresql

pytestmark = needs_postgresql

ROLES = ("reader", "writer")


@pytest.fixture
def served_on(tmp_path: Path, postgresql_database: str) -> Iterator[Served]:
    made = serve(tmp_path, "--engine", "postgresql", "--engine-url", postgresql_database)
    yield made
    stop(made)


def token(owner: Client, role: str) -> str:
    answer = owner.run(f"create api_token t_{role} with ('roles' = '{role}')")
    names = [column["name"].lower() for column in answer["metadata"]["columns"]]
    return str(answer["data"][0][names.index("token")])


@pytest.mark.parametrize("role", ROLES)
def test_no_statement_of_a_lesser_role_reaches_the_engine(served_on: Served, role: str) -> None:
    with Client(served_on) as owner:
        owner.rows("create table t (i int)")
        owner.rows("insert into t values (1)")
        given = token(owner, role)
        with Client(served_on, token=given) as client:
            for sql in lines("roles", "refused"):
                assert client.run(sql)["sqlState"] in {"42501", "0A000"}, sql
            attached = client.run("copy t from '@f'", [("f", b"PAR1")])
            assert attached["sqlState"] == "42501"
            assert client.run("list stores")["sqlState"] == "00000"
            assert client.run("list relations")["sqlState"] == "00000"
            assert client.run("describe relation columns t")["sqlState"] == "00000"
        assert owner.rows("select i from t") == [["1"]]


@pytest.mark.parametrize("role", ROLES)
def test_can_i_says_what_a_lesser_role_can_do_on_this_engine(served_on: Served, role: str) -> None:
    with Client(served_on) as owner:
        given = token(owner, role)
        with Client(served_on, token=given) as client:
            for privilege in ("select", "insert", "create_query", "print"):
                assert client.state(f"can i {privilege}") == "42501"
            assert client.state("can i list") == "00000"
        assert owner.state("can i insert") == "00000"
