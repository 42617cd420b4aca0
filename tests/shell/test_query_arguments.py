"""The arguments of saved queries, and what stays of a file of queries that is changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlshell.errors import UsageError
from sqlshell.origin import Trusted, trusted_text
from sqlshell.shell.records.saved_queries import SavedQueries, with_arguments


def given(text: str, *arguments: str) -> str:
    return with_arguments(Trusted(text), [trusted_text(Trusted(argument)) for argument in arguments]).text


@pytest.mark.parametrize(
    ("text", "arguments", "made"),
    [
        ("select 1", [], "select 1"),
        ("select $1", ["7"], "select 7"),
        ("select $1, $2 from t", ["a", "'b'"], "select a, 'b' from t"),
        ("$2 $1 $2", ["a", "b"], "b a b"),
        ("select '$1', $1, \"$1\" -- $2", ["a"], "select '$1', a, \"$1\" -- $2"),
        ("select $ 1, $1", ["a"], "select $ 1, a"),
        ("select $1.5, $1", ["a"], "select $1.5, a"),
        ("select $1 + $1", ["$1"], "select $1 + $1"),
        ("select $10", list("abcdefghij"), None),
        ("select $1;$2", ["a", "b"], "select a;b"),
    ],
)
def test_arguments_take_the_places_of_their_numbers(text: str, arguments: list[str], made: str | None) -> None:
    assert given(text, *arguments) == (made or "select j")


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("select $1", [], "the query uses $1, but 0 arguments were given"),
        ("select $1, $2", ["a"], "the query uses $2, but 1 argument was given"),
        ("select $0", ["a"], "the query uses $0, but 1 argument was given"),
        ("select 1", ["a"], "the query takes 0 arguments, but 1 argument was given"),
        ("select $1, $1", ["a", "b"], "the query takes 1 argument, but 2 arguments were given"),
        ("select '$1'", ["a"], "the query takes 0 arguments, but 1 argument was given"),
    ],
)
def test_another_number_of_arguments_is_refused(text: str, arguments: list[str], said: str) -> None:
    with pytest.raises(UsageError) as told:
        given(text, *arguments)
    assert (told.value.message, told.value.hint) == (said, text)


@pytest.fixture
def queries(tmp_path: Path) -> SavedQueries:
    return SavedQueries(tmp_path / "config" / "sqlshell" / "queries.toml")


def content(tmp_path: Path) -> str:
    return (tmp_path / "config" / "sqlshell" / "queries.toml").read_text()


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("select 1", 'a = "select 1"'),
        ("select 'é'\t\"b\"", 'a = "select \'é\'\\t\\"b\\""'),
        ("select 1,\n\t2", "a = '''\nselect 1,\n\t2'''"),
        ("select 1,\n'2'", "a = \"select 1,\\n'2'\""),
        ("select '''\n1", "a = \"select '''\\n1\""),
        ("select '\x7f\x01\n' x", "a = \"select '\\u007f\\u0001\\n' x\""),
    ],
)
def test_how_a_text_is_written(queries: SavedQueries, tmp_path: Path, text: str, written: str) -> None:
    queries.save("a", text)
    assert content(tmp_path) == f'"a"{written[1:]}\n'
    assert queries.all() == {"a": text}
    folder = tmp_path / "config"
    modes = [path.stat().st_mode & 0o777 for path in (folder / "sqlshell", folder / "sqlshell" / "queries.toml")]
    assert modes == [0o700, 0o600]
    assert [path.name for path in (folder / "sqlshell").iterdir()] == ["queries.toml"]


FILE = "# mine\nb = 'select 2' # two\n'c' = '''\nselect 3,\na = 4\n'''\n\n[other]\nd = 1\n"


def test_everything_else_in_the_file_is_kept(queries: SavedQueries, tmp_path: Path) -> None:
    queries.save("x", "select 1")
    (tmp_path / "config" / "sqlshell" / "queries.toml").write_text(FILE)
    assert queries.all() == {"b": "select 2", "c": "select 3,\na = 4\n"}
    queries.save("a", "select 1")
    before, after = FILE.split("[other]")
    assert content(tmp_path) == f'{before}"a" = "select 1"\n[other]{after}'
    queries.save("c", "select 5")
    queries.delete("a")
    assert content(tmp_path) == '# mine\nb = \'select 2\' # two\n"c" = "select 5"\n\n[other]\nd = 1\n'
    queries.delete("b")
    queries.delete("c")
    assert content(tmp_path) == "# mine\n\n[other]\nd = 1\n"


def test_an_entry_that_is_not_text_is_not_changed(queries: SavedQueries, tmp_path: Path) -> None:
    queries.save("x", "select 1")
    path = tmp_path / "config" / "sqlshell" / "queries.toml"
    text = "a.b = 1\n[t]\n"
    path.write_text(text)
    with pytest.raises(UsageError) as told:
        queries.save("a", "select 1")
    assert told.value.message == f"cannot change 'a' in {path}: it is not written as NAME = 'SQL'"
    assert told.value.hint == "change it in an editor"
    assert path.read_text() == text


def test_a_query_that_would_be_empty(queries: SavedQueries) -> None:
    with pytest.raises(UsageError, match=r"^the query 'a' would be empty; it was not saved$") as told:
        queries.save("a", " \n")
    assert told.value.hint == "\\n+ a '' deletes a query"
    queries.save("_a.b-1", "select 1")
    with pytest.raises(UsageError, match=r"^no named query 'a'$"):
        queries.delete("a")
