"""Where connect() goes: the shell's targets, profiles and rules for tokens."""

from __future__ import annotations

import uuid
import warnings
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sqlshell import dbapi
from sqlshell.dbapi import connect
from tests.conftest import Served


def profile(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(text)
    (folder / "config.toml").chmod(0o600)


def answer(target: str | Path = "", **options: object) -> object:
    with connect(target, autocommit=True, **options) as connection:
        return connection.execute("select current_database()").fetchone()


def test_nothing_is_a_database_in_memory() -> None:
    assert answer() == ("memory",)


def test_files(tmp_path: Path) -> None:
    with connect(tmp_path / "new.duckdb") as connection:
        connection.execute("create table t as select 1 as i")
    with connect(str(tmp_path / "new.duckdb"), read_only=True) as connection:
        assert connection.execute("from t").fetchall() == [(1,)]
        with pytest.raises(dbapi.ProgrammingError, match="cannot run INSERT"):
            connection.execute("insert into t values (2)")
        with pytest.raises(dbapi.ProgrammingError, match="cannot run INSERT"):
            connection.cursor().executemany("insert into t values (?)", [(2,)])
    with duckdb.connect() as database:
        database.execute(f"copy (select 7 as i) to '{tmp_path}/data.parquet'")
    with connect(tmp_path / "data.parquet") as connection:
        assert connection.execute("from data").fetchall() == [(7,)]


def test_profiles_and_the_environment(configured: Path, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    profile(configured, f'[profiles.work]\nurl = "{served.url}"\ntoken = "{served.token}"\nschema = "public"\n')
    with connect("work") as connection:
        assert connection.execute("select current_schema()").fetchone() == ("public",)
    with connect(profile="work", schema="main") as connection:
        assert connection.execute("select current_schema()").fetchone() == ("main",)
    monkeypatch.setenv("SQLSHELL_PROFILE", "work")
    assert answer() == ("local",)
    assert answer(":memory:") == ("memory",)
    monkeypatch.delenv("SQLSHELL_PROFILE")
    monkeypatch.setenv("SQLSHELL_URL", served.url)
    monkeypatch.setenv("SQLSHELL_TOKEN", served.token)
    assert answer() == ("local",)


def test_a_policy_of_a_profile_holds(configured: Path) -> None:
    profile(configured, '[profiles.careful]\nurl = ":memory:.duckdb"\nconfirm = ["DROP"]\n')
    with connect(":memory:", confirm=("DROP",), autocommit=True) as connection:
        connection.execute("create table t as select 1 as i")
        with pytest.raises(dbapi.ProgrammingError, match="DROP TABLE on DuckDB in memory requires confirmation"):
            connection.execute("drop table t")
    with connect(":memory:", confirm=("DROP",), yes=True, autocommit=True) as connection:
        connection.execute("create table t as select 1 as i")
        connection.execute("drop table t")


def test_a_token_goes_to_the_url_that_it_was_given_with(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(served.token)
    file.chmod(0o600)
    host = served.url.removeprefix("http://")
    for target, options in (
        (served.url, {"token": served.token}),
        (f"{served.url}/v2", {"token_file": str(file)}),
        (f"http://:{served.token}@{host}?databaseName=local", {}),
    ):
        assert answer(target, **options) == ("local",)
    with pytest.raises(dbapi.OperationalError, match="rejected the token"):
        connect(served.url, token="another-token-012345")
    with pytest.raises(dbapi.OperationalError, match="requires a token"):
        connect(served.url)


def test_a_token_without_its_url_is_not_sent(configured: Path, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    profile(configured, f'[profiles.work]\nurl = "{served.url}"\n')
    with (
        pytest.warns(dbapi.Warning, match="the argument token is not sent to .*: no URL is configured with it"),
        pytest.raises(dbapi.OperationalError),
    ):
        connect("work", token=served.token)
    monkeypatch.setenv("SQLSHELL_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("SQLSHELL_TOKEN", served.token)
    with pytest.warns(dbapi.Warning, match="is not sent to"), pytest.raises(dbapi.OperationalError):
        connect(served.url)


def test_a_file_that_others_can_read_is_warned_of(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(served.token)
    file.chmod(0o644)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert answer(served.url, token_file=str(file)) == ("local",)
    assert [item.category for item in said] == [dbapi.Warning]
    assert "other users can read token file" in str(said[0].message)
    assert said[0].filename == __file__


@pytest.mark.parametrize(
    ("target", "options", "kind", "message"),
    [
        ("nowhere", {}, dbapi.ProgrammingError, "not a URL, profile or existing file"),
        ("ftp://host", {}, dbapi.ProgrammingError, "unsupported URL scheme"),
        ("missing.csv", {}, dbapi.ProgrammingError, "no such file"),
        (":memory:", {"databse": "x"}, dbapi.ProgrammingError, "unknown option 'databse'"),
        (":memory:", {"offline": True}, dbapi.ProgrammingError, "unknown option 'offline'"),
        (":memory:", {"timeout": "soon"}, dbapi.ProgrammingError, "is not a duration"),
        (":memory:", {"timezone": "Mars/Olympus"}, dbapi.ProgrammingError, "unknown time zone"),
        ("http://127.0.0.1:9", {"retries": 0}, dbapi.OperationalError, "connection refused"),
    ],
)
def test_what_cannot_be_opened(target: str, options: dict[str, Any], kind: type[dbapi.Error], message: str) -> None:
    with pytest.raises(kind, match=message):
        connect(target, **options)


def test_a_statement_that_takes_too_long_is_canceled(served: Served) -> None:
    session: dict[str, Any] = {"session_id": str(uuid.uuid4()), "token": served.token, "autocommit": True}
    with connect(served.url, timeout=0.2, **session) as connection:
        with pytest.raises(dbapi.OperationalError, match=r"has not ended after .*; it is being canceled"):
            connection.execute("select count(*) from range(100000) a, range(100000) b, range(100) c")
        # It runs when the earlier statement of its session has ended.
        with connect(served.url, **session) as other:
            assert other.execute("select 1").fetchall() == [(1,)]


def test_errors_name_options_not_flags(served: Served) -> None:
    with pytest.raises(dbapi.ProgrammingError, match=r"^timeout: 'soon' is not a duration"):
        connect(":memory:", timeout="soon")
    with connect(":memory:", read_only=True) as connection, pytest.raises(dbapi.ProgrammingError) as refused:
        connection.execute("create table t (i int)")
    assert str(refused.value) == "cannot run CREATE TABLE: read_only allows only statements that read"
    with pytest.raises(dbapi.OperationalError, match="rejected the token") as rejected:
        connect(served.url, token="wrong")
    assert "pass token with the URL as target" in rejected.value.hint
    assert "--" not in rejected.value.hint + refused.value.hint
    with pytest.raises(dbapi.ProgrammingError, match=r"^the target must be a str or a path, not int"):
        connect(5)  # type: ignore[arg-type]
