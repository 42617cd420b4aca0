"""LIST ENGINES, and how a service announces its engine."""

from __future__ import annotations

import contextlib
import inspect

import msgspec
import pytest

from sqlshell.service.engines.engine import Capabilities, EngineSession
from sqlshell.service.engines.server_engine import ServerSession
from sqlshell.service.failure import Failure
from sqlshell.service.objects.grammar import INTERFACE, SERVER, Dialect
from sqlshell.service.objects.listing import List
from tests.conftest import Served
from tests.service.client import Client


def test_list_engines_shows_what_the_engine_can_and_cannot_do(served: Served) -> None:
    with Client(served) as client:
        answer = client.run("LIST ENGINES")
    shown = [column["name"] for column in answer["metadata"]["columns"]]
    assert shown == ["Name", "Version", "State", "Supported", "NotSupported"]
    ((name, version, state, supported, unsupported),) = answer["data"]
    assert (name, version.split()[0], state) == ("duckdb", "DuckDB", "ready")
    assert {"transactions", "temporary tables", "streams"} <= set(supported.split(", "))
    assert unsupported == "reattaching"


def test_each_capability_is_either_supported_or_not() -> None:
    some = Capabilities(transactions=True, temporary_tables=True)
    assert some.named(present=True) == ["transactions", "temporary tables"]
    assert len(some.named(present=False)) == len(msgspec.structs.fields(Capabilities)) - 2


@pytest.mark.parametrize(
    "sql",
    [
        "create database d",
        "drop database if exists d",
        "create role r login",
        "create user u",
        "grant select on t to r",
        "create materialized view v as select 1",
        "drop materialized view v",
        "create table t (a int) with (fillfactor = 70)",
        "create function f(a int) returns int language sql as 'select a'",
        "drop function f(int)",
        "show schemas",
        "show roles",
    ],
)
def test_what_an_engine_of_its_own_has_is_left_to_it(sql: str) -> None:
    assert SERVER.read(sql) is None
    with contextlib.suppress(Failure):
        assert INTERFACE.read(sql) is not None


@pytest.mark.parametrize("dialect", [INTERFACE, SERVER])
@pytest.mark.parametrize(
    "sql", ["list engines", "show stores", "use schema s", "create api_token t", "terminate query 'x'", "can i read"]
)
def test_the_services_own_objects_are_its_own_on_every_engine(sql: str, dialect: Dialect) -> None:
    assert dialect.read(sql) is not None


def test_show_of_an_engine_is_read_once() -> None:
    assert isinstance(SERVER.read("SHOW ENGINES"), List)


def test_the_base_of_sessions_on_servers_names_every_method_of_a_connection() -> None:
    """Otherwise a session with all abstract methods could lack one that is called only later."""
    methods = {name for name, found in vars(EngineSession).items() if inspect.isfunction(found) and name[0] != "_"}
    assert {"run", "lose_transaction"} <= methods
    assert methods <= set(dir(ServerSession))
