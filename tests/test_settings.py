"""The table of settings, its precedence, and TARGET."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlshell.config import Config, read_config, resolve
from sqlshell.errors import UsageError
from sqlshell.places import Local, Remote, find_place, machine_timezone
from sqlshell.settings import SETTINGS


def config(tmp_path: Path, text: str) -> Config:
    tmp_path.joinpath("config.toml").write_text(text)
    return read_config(tmp_path)


def test_flag_beats_environment_beats_profile_beats_default(tmp_path: Path) -> None:
    found = config(tmp_path, '[profiles.work]\nformat = "csv"\ndatabase = "p"\ntheme = "p"\n')
    environ = {"SQLSHELL_PROFILE": "work", "SQLSHELL_FORMAT": "tsv", "SQLSHELL_DATABASE": "e"}
    settings = resolve({"format": "json"}, environ, found)
    assert [(settings[name], settings.source(name)) for name in ("format", "database", "theme", "on_error")] == [
        ("json", "flag"),
        ("e", "environment"),
        ("p", "profile"),
        ("stop", "default"),
    ]


def test_the_default_profile_holds_without_being_named(tmp_path: Path) -> None:
    found = config(tmp_path, '[profiles.default]\ntheme = "x"\n')
    assert resolve({}, {}, found)["theme"] == "x"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[profiles.w]\nformt = 'csv'", "did you mean 'format'"),
        ("[profiles.w]\nprofile = 'x'", "unknown key"),
        ("profiles = 1", "unexpected profiles"),
        ("url = 'x'", "unexpected url"),
        ("[profiles", "config.toml"),
    ],
)
def test_a_broken_config_names_file_and_key(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        config(tmp_path, text)
    assert "config.toml" in caught.value.message
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"SQLSHELL_ON_ERROR": "maybe"}, "SQLSHELL_ON_ERROR"),
        ({"SQLSHELL_QUIET": "perhaps"}, "SQLSHELL_QUIET"),
        ({"SQLSHELL_WAIT": "-1"}, "SQLSHELL_WAIT"),
        ({"SQLSHELL_VERBOSE": "lots"}, "SQLSHELL_VERBOSE"),
        ({"SQLSHELL_PROFILE": "nowhere"}, "nowhere"),
    ],
)
def test_bad_values_name_where_they_stand(tmp_path: Path, environ: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        resolve({}, environ, read_config(tmp_path))


def test_no_flag_takes_a_tokens_text() -> None:
    assert [setting.flags for setting in SETTINGS if setting.name == "token"] == [()]


PROFILE = '[profiles.work]\nurl = "https://work.example/v2"\ntoken = "work-token"\ndatabase = "d"\n'


def where(tmp_path: Path, text: str, environ: dict[str, str]) -> tuple[Remote | Local, list[str]]:
    warnings: list[str] = []
    found = find_place(text, {}, environ, config(tmp_path, PROFILE), warnings.append)
    return found.where, warnings


def test_a_profile_by_name(tmp_path: Path) -> None:
    place, warnings = where(tmp_path, "work", {})
    assert isinstance(place, Remote)
    assert (place.target.base, place.token, warnings) == ("https://work.example", "work-token", [])


@pytest.mark.parametrize("url", ["https://other.example", "http://work.example", "https://work.example:444"])
def test_a_profiles_token_stays_with_its_origin(tmp_path: Path, url: str) -> None:
    place, warnings = where(tmp_path, url, {"SQLSHELL_PROFILE": "work"})
    assert isinstance(place, Remote)
    assert place.token == ""
    assert "not sent" in warnings[0]
    assert "work-token" not in warnings[0]


def test_the_same_origin_may_have_it(tmp_path: Path) -> None:
    place, _ = where(tmp_path, "https://WORK.example:443/v2", {"SQLSHELL_PROFILE": "work"})
    assert isinstance(place, Remote)
    assert place.token == "work-token"


def test_the_environments_token_belongs_to_the_environments_url(tmp_path: Path) -> None:
    environ = {"SQLSHELL_URL": "https://a.example", "SQLSHELL_TOKEN": "a-token"}
    own, _ = where(tmp_path, "", environ)
    other, warnings = where(tmp_path, "https://b.example", environ)
    free, _ = where(tmp_path, "https://b.example", {"SQLSHELL_TOKEN": "a-token"})
    assert isinstance(own, Remote)
    assert isinstance(other, Remote)
    assert isinstance(free, Remote)
    assert (own.token, other.token, free.token) == ("a-token", "", "a-token")
    assert warnings


def test_a_token_in_a_url_on_the_command_line_is_warned_of(tmp_path: Path) -> None:
    place, warnings = where(tmp_path, "https://:tok@b.example?databaseName=x", {})
    assert isinstance(place, Remote)
    assert (place.token, dict(place.parts)) == ("tok", {"database": "x"})
    assert len(warnings) == 1
    assert "tok@" not in warnings[0]


def test_files(tmp_path: Path) -> None:
    data = tmp_path / "a b.csv.gz"
    data.write_text("x")
    database = tmp_path / "odd"
    database.write_text("x")
    new = tmp_path / "new.duckdb"
    assert where(tmp_path, str(data), {})[0] == Local(views={"a b": data})
    assert where(tmp_path, str(database), {})[0] == Local(database=database)
    assert where(tmp_path, str(new), {})[0] == Local(database=new)
    for missing in (tmp_path / "none", tmp_path / "none.csv", tmp_path / "no" / "new.db", tmp_path):
        with pytest.raises(UsageError):
            where(tmp_path, str(missing), {})
    with pytest.raises(UsageError, match="neither a URL, nor a profile, nor a file"):
        where(tmp_path, "nothing", {})


def test_the_machines_time_zone_is_an_iana_name() -> None:
    assert machine_timezone({})
    assert machine_timezone({"TZ": "Europe/Paris"})
