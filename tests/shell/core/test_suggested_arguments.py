"""The arguments that completion suggests after a command, as whole lists."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from sqlshell.context import SessionContext
from sqlshell.errors import UsageError
from sqlshell.origin import Trusted
from sqlshell.output.writers.formats import FORMATS
from sqlshell.shell.commands.arguments import SHOWN, arguments, files
from sqlshell.sql.completion.catalog import CachedCatalog
from sqlshell.sql.completion.suggestions import Suggestion
from tests.shell.core.scripted import Core


def suggested(
    name: str, typed: str, *before: str, prepare: Callable[[Core], None] = lambda core: None
) -> list[Suggestion]:
    async def work() -> list[Suggestion]:
        core = Core(context=SessionContext(database="d", schema="s"))
        await core.run("\\set alpha 1\n\\set beta 'two words'\n")
        prepare(core)
        return arguments(core.shell, name, typed, before)

    return asyncio.run(work())


def texts(name: str, typed: str, *before: str, prepare: Callable[[Core], None] = lambda core: None) -> list[str]:
    return [item.text for item in suggested(name, typed, *before, prepare=prepare)]


@pytest.mark.parametrize(
    ("name", "typed", "before", "expected"),
    [
        ("nope", "", (), []),
        ("refresh", "", (), []),
        ("x", "o", (), ["on", "off", "auto"]),
        ("x", "a", (), ["auto"]),
        ("x", "", ("on",), []),
        ("theme", "", (), ["default"]),
        ("pset", "", ("theme",), ["default"]),
        ("pset", "", ("footer",), ["on", "off"]),
        ("pset", "", ("tuples_only",), ["on", "off"]),
        ("pset", "", ("wide",), ["scroll", "fold"]),
        ("pset", "", ("on-error",), ["stop", "continue"]),
        ("pset", "", ("verbosity",), ["default", "terse", "verbose", "sqlstate"]),
        ("pset", "", ("rowlimit",), []),
        ("pset", "rowl", (), ["rowlimit"]),
        ("format", "", (), [item.name for item in FORMATS]),
        ("pset", "j", ("format",), ["json", "jsonl"]),
        ("unset", "", (), ["alpha", "beta"]),
        ("set", "al", (), ["alpha"]),
        ("set", "ON_ERROR_S", (), ["ON_ERROR_STOP"]),
        ("set", "", ("ECHO",), ["none", "queries", "all", "errors"]),
        ("set", "", ("ECHO", "all"), []),
        ("context", "", (), ["set", "reset"]),
        (
            "context",
            "",
            ("set",),
            ["organization", "role", "database", "schema", "store", "compute_pool", "timezone", "session_id"],
        ),
        ("context", "Europe/Berl", ("set", "timezone"), ["Europe/Berlin"]),
        ("context", "Europe/Berl", ("reset", "timezone"), []),
        ("context", "", ("set", "session_id"), []),
        ("context", "", ("set", "nope"), []),
        ("?", "gse", (), ["gset"]),
        ("n", "", (), []),
    ],
)
def test_words(name: str, typed: str, before: Sequence[str], expected: list[str]) -> None:
    assert texts(name, typed, *before) == expected


def test_details() -> None:
    assert suggested("unset", "") == [Suggestion("alpha", "unset", "1"), Suggestion("beta", "unset", "two words")]
    assert suggested("pset", "maxwi") == [Suggestion("maxwidth", "pset", "0")]
    assert suggested("pset", "footer")[:1] == [Suggestion("footer", "pset", "on")]
    assert suggested("pset", "durati")[:1] == [Suggestion("duration", "pset", "0")]
    assert suggested("context", "data", "set") == [Suggestion("database", "context", "d")]
    assert suggested("x", "au") == [Suggestion("auto", "x", "")]
    assert [(item.text, item.kind) for item in suggested("?", "replay")[:1]] == [("replay", "command")]


def test_databases_of_a_server_and_profiles_to_connect_to() -> None:
    def on_server(core: Core) -> None:
        core.front_end.catalog.replace(CachedCatalog(names={"database": ["shop", "warehouse"]}))
        core.environment.profiles = lambda: ["work"]  # type: ignore[method-assign]
        core.session.state.server = {"database": "shop"}

    def on_duckdb(core: Core) -> None:
        on_server(core)
        core.session.state.server = {}

    assert suggested("c", "w", prepare=on_server)[:2] == [
        Suggestion("warehouse", "c", "database"),
        Suggestion("work", "c", "profile"),
    ]
    # There a name is a file.
    assert suggested("c", "w", prepare=on_duckdb)[:1] == [Suggestion("work", "c", "profile")]


def test_themes_that_cannot_be_read() -> None:
    def prepare(core: Core) -> None:
        def themes() -> Sequence[str]:
            raise UsageError("no")

        core.environment.themes = themes  # type: ignore[method-assign]

    assert texts("theme", "", prepare=prepare) == []
    assert texts("pset", "", "theme", prepare=prepare) == []


def test_saved_queries(tmp_path: Path) -> None:
    async def work() -> list[list[Suggestion]]:
        core = Core()
        core.environment.queries = tmp_path / "queries.toml"
        await core.run("\\n+ report select 1\n")
        await core.shell.run_script([Trusted("\\n+ long select '" + "x" * 80 + "'\n")], "")
        found = [arguments(core.shell, "n", "", ()), arguments(core.shell, "n+", "re", ())]
        core.environment.queries = tmp_path
        return [*found, arguments(core.shell, "n", "", ())]

    listed, removed, unreadable = asyncio.run(work())
    long = f"select '{'x' * 52}"
    assert [(item.text, item.kind, item.detail) for item in listed] == [
        ("long", "n", long),
        ("report", "n", "select 1"),
    ]
    assert [item.text for item in removed] == ["report"]
    assert unreadable == []


def test_earlier_statements() -> None:
    async def work() -> list[Suggestion]:
        core = Core()
        await core.run(f"select '{'x' * 60}';\n")
        return arguments(core.shell, "fetch", "", ())

    assert asyncio.run(work()) == [Suggestion("id1", "fetch", f"finished select '{'x' * 32}")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("b.csv", "a b.csv", ".hidden", "sub/inside.sql", "sub/.secret"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", [("a b.csv", False), ("b.csv", False), ("sub/", True)]),
        ("b", [("b.csv", False)]),
        (".", [(".hidden", False)]),
        ("sub/", [("sub/inside.sql", False)]),
        ("sub/.", [("sub/.secret", False)]),
        ("./s", [("./sub/", True)]),
        ("nope/", []),
        ("b.csv/", []),
        ("\0/", []),
        ("~no-such-user/", []),
    ],
)
def test_files(folder: Path, typed: str, found: list[tuple[str, bool]]) -> None:
    assert files(typed) == found
    assert files(f"{folder}/{typed}") == [(f"{folder}/{name}", inside) for name, inside in found] or typed[:1] in "\0~"


def test_files_of_the_root() -> None:
    found = files("/")
    assert ("/tmp/", True) in found
    assert all(name.startswith("/") and not name.startswith(("/.", "//")) for name, _ in found)


def test_few_files_are_suggested(tmp_path: Path) -> None:
    for number in range(201):
        (tmp_path / f"{number}").write_text("")
    assert len(files(f"{tmp_path}/")) == 200 == SHOWN


def test_arguments_that_name_files(folder: Path) -> None:
    assert texts("i", "") == ["'a b.csv'", "b.csv", "sub/"]
    assert texts("cd", "") == ["sub/"]
    assert texts("c", "f", prepare=lambda core: core.environment.targets.update(first=UsageError("x"))) == ["first"]
