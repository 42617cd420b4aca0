"""Named queries: whatever text is saved comes back, from a file that a person can edit."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from sqlshell.errors import UsageError
from sqlshell.shell.records.saved_queries import SavedQueries

TEXTS = [
    "select 1",
    "select 'it''s'\n  from \"t\"\n\twhere a = '\\'",
    "select '''x'''\nfrom t",
    "select\n'x'",
    "select '\x1b[31m'\n",
    "select '\x7f', '\x00', '\u2028', '\u0085', 'é😀'",
    "a\r\nb\rc",
    "\n\n;",
]


def test_each_text_comes_back(tmp_path: Path) -> None:
    queries = SavedQueries(tmp_path / "made" / "queries.toml")
    for number, text in enumerate(TEXTS):
        queries.save(f"q.{number}-x_", text)
    assert list(queries.all().values()) == TEXTS
    assert stat.S_IMODE((tmp_path / "made" / "queries.toml").stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["queries.toml"]


def test_a_text_of_several_lines_is_written_as_it_stands(tmp_path: Path) -> None:
    queries = SavedQueries(tmp_path / "queries.toml")
    queries.save("a", TEXTS[1])
    assert f"'''\n{TEXTS[1]}'''" not in tmp_path.joinpath("queries.toml").read_text()
    queries.save("b", "select 1\n  from t")
    assert "\"b\" = '''\nselect 1\n  from t'''\n" in tmp_path.joinpath("queries.toml").read_text()


def test_a_query_is_replaced_and_deleted(tmp_path: Path) -> None:
    queries = SavedQueries(tmp_path / "queries.toml")
    queries.save("b", "1")
    queries.save("a", "2")
    queries.save("b", "3")
    assert list(queries.all().items()) == [("a", "2"), ("b", "3")]
    queries.delete("a")
    assert queries.all() == {"b": "3"}
    with pytest.raises(UsageError, match="no named query 'a'"):
        queries.delete("a")
    assert queries.all() == {"b": "3"}


def test_an_empty_query_is_not_saved_and_can_be_deleted(tmp_path: Path) -> None:
    path = tmp_path / "queries.toml"
    queries = SavedQueries(path)
    queries.save("a", "select 1")
    for text in ("", " \n"):
        with pytest.raises(UsageError, match="the query 'e' would be empty"):
            queries.save("e", text)
    path.write_text("a = 'select 1'\ne = ''\n")
    queries.delete("e")
    assert queries.all() == {"a": "select 1"}


EDITED = """# my queries
"b" = '''
-- b = 'not an entry'
select 1'''  # one

a = "select 2"
limits = [1, 2]
# the end

[colors]
b = 'red'
"""


def test_what_a_user_has_written_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "queries.toml"
    path.write_text(EDITED)
    queries = SavedQueries(path)
    queries.save("a", "select 3")
    assert path.read_text() == EDITED.replace('a = "select 2"', '"a" = "select 3"')
    queries.save("c", "select\n4")
    assert queries.all() == {"a": "select 3", "b": "-- b = 'not an entry'\nselect 1", "c": "select\n4"}
    queries.delete("c")
    queries.delete("a")
    assert path.read_text() == EDITED.replace('a = "select 2"\n', "")
    queries.delete("b")
    assert path.read_text() == "# my queries\n\nlimits = [1, 2]\n# the end\n\n[colors]\nb = 'red'\n"


def test_an_entry_that_cannot_be_replaced_alone_is_left(tmp_path: Path) -> None:
    path = tmp_path / "queries.toml"
    for content in ("a.b = 1\n", "[a]\nb = 1\n", '"\\u0061" = "select 1"\n'):
        path.write_text(content)
        with pytest.raises(UsageError, match=r"cannot change 'a' in .*it is not written as NAME = 'SQL'"):
            SavedQueries(path).save("a", "select 2")
        assert path.read_text() == content


@pytest.mark.parametrize("name", ["", "a b", ".a", "-a", "a/b", "a\n", "é"])
def test_a_name_that_is_refused(tmp_path: Path, name: str) -> None:
    queries = SavedQueries(tmp_path / "queries.toml")
    with pytest.raises(UsageError, match="is not a valid query name") as raised:
        queries.save(name, "select 1")
    assert raised.value.hint == "a name consists of letters, digits, _ . and -"
    assert queries.all() == {}


def test_no_secret_is_saved(tmp_path: Path) -> None:
    queries = SavedQueries(tmp_path / "queries.toml")
    with pytest.raises(UsageError, match="may contain a secret") as raised:
        queries.save("a", "create secret s with ('secret_string' = 'hunter2')")
    assert "replace the secret with a variable" in raised.value.hint
    assert not any(tmp_path.iterdir())


def test_half_of_a_surrogate_pair_is_refused(tmp_path: Path) -> None:
    queries = SavedQueries(tmp_path / "queries.toml")
    queries.save("a", "select 1")
    with pytest.raises(UsageError, match=r"\Acannot write to .*a lone surrogate"):
        queries.save("b", "select '\ud800'")
    assert queries.all() == {"a": "select 1"}
    assert [path.name for path in tmp_path.iterdir()] == ["queries.toml"]


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    path = tmp_path / "queries.toml"
    path.write_bytes(b"a = \xff")
    with pytest.raises(UsageError, match=r"\Acannot read .*queries\.toml: "):
        SavedQueries(path).all()
    path.write_text("a = ")
    with pytest.raises(UsageError, match=r"\Acannot read .*queries\.toml: "):
        SavedQueries(path).save("b", "select 1")
    assert path.read_text() == "a = "
    path.write_text("a = 1\nb = 'x'\n")
    assert SavedQueries(path).all() == {"b": "x"}
    with pytest.raises(UsageError, match=r"\Acannot read .*below: "):
        SavedQueries(path / "below").save("b", "select 1")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"\Acannot (read|write to) "):
        SavedQueries(tmp_path / "file" / "queries.toml").save("b", "select 1")
