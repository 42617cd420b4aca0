"""The table of settings, its precedence, and TARGET."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from sqlshell.config.settings import BY_NAME, OF_ONE_RUN, SETTINGS
from sqlshell.config.values import Config, read_config, resolve
from sqlshell.errors import UsageError
from sqlshell.launch.commands import shell_command
from sqlshell.launch.targets import LocalService, RemoteService, find_destination, machine_timezone
from sqlshell.shell.options import DISPLAY
from tests.conftest import Program


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


def test_the_environment_takes_the_name_of_a_setting(tmp_path: Path) -> None:
    found = read_config(tmp_path)
    assert resolve({}, {"SQLSHELL_DURATION": "5s"}, found)["duration"] == 5.0
    with pytest.raises(UsageError, match="SQLSHELL_DURATION"):
        resolve({}, {"SQLSHELL_DURATION": "soon"}, found)
    assert resolve({}, {"SQLSHELL_FOR": "5s"}, found)["duration"] == 0.0


def test_the_default_profile_holds_without_being_named(tmp_path: Path) -> None:
    found = config(tmp_path, '[profiles.default]\ntheme = "x"\n')
    assert resolve({}, {}, found)["theme"] == "x"


def test_a_byte_order_mark_is_not_part_of_the_config(tmp_path: Path) -> None:
    assert resolve({}, {}, config(tmp_path, "\ufeff[profiles.default]\nnull = '-'\n"))["null"] == "-"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[profiles.w]\nformt = 'csv'", "unknown key 'formt'\ndid you mean \"format\"?"),
        ("[profiles.w]\nprofile = 'x'", "'profile' is not allowed in a profile"),
        ("[profiles.w]\nattach = 'x'", "'attach' is not allowed in a profile"),
        ("[profiles]\nw = 'x'", "[profiles.w] is not a table"),
        ("profiles = 1", "unexpected top-level key profiles"),
        ("url = 'x'", "unexpected top-level key url"),
        ("[profiles", "config.toml"),
    ],
)
def test_a_broken_config_names_file_and_key(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve({}, {}, config(tmp_path, text), "w")
    assert "config.toml" in caught.value.message
    assert words in f"{caught.value.message}\n{caught.value.hint}"


def test_a_bad_key_spoils_its_own_profile_alone(tmp_path: Path) -> None:
    found = config(
        tmp_path, "[profiles.bad]\nnonsense = 1\n[profiles.worse]\nretries = 'x'\n[profiles.good]\nformat = 'csv'\n"
    )
    assert resolve({}, {}, found, "good")["format"] == "csv"
    assert resolve({}, {}, found)["format"] == "table"
    for name in ("bad", "worse"):
        with pytest.raises(UsageError, match=name):
            resolve({}, {}, found, name)


def test_a_profile_holds_every_setting_of_the_help(tmp_path: Path) -> None:
    """But for what one run does; and every option of \\pset."""
    names = {flag: setting.name for setting in SETTINGS for flag in setting.flags}
    parameters = shell_command().params
    flags = {
        names.get(opt, opt.removeprefix("--").replace("-", "_"))
        for item in parameters
        for opt in item.opts
        if opt[:2] == "--" and not getattr(item, "hidden", False)
    }
    for name in sorted(flags | DISPLAY.keys() | {"tuples_only"}):
        setting = BY_NAME.get(name)
        if name in OF_ONE_RUN:
            with pytest.raises(UsageError, match="is not allowed in a profile"):
                resolve({}, {}, config(tmp_path, f"[profiles.w]\n{name} = 'x'"), "w")
            continue
        assert setting is not None, name
        values = {"on|off": "true", "integer": "7", "duration": "'5s'", "list of strings": "['a=b']"}
        value = values.get(setting.kind.takes) or repr((setting.kind.words or ("x",))[-1])
        resolved = resolve({}, {}, config(tmp_path, f"[profiles.w]\n{name} = {value}"), "w")
        assert resolved.source(setting.name) == "profile"


def test_what_a_profile_says_holds(program: Program, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        """
        [profiles.default]
        timing = true
        tuples_only = true
        expanded = "off"
        null = "(none)"
        maxwidth = 3
        set = {limit = 2, name = "a b"}
        """
    )
    env = {"SQLSHELL_CONFIG_DIR": str(tmp_path)}
    done = program("-c", "select 'abcdef' as a, null as b from range(:limit)", "-c", "\\echo :name", env=env)
    assert done.code == 0, done.err
    assert "(none)" in done.out
    assert "abcdef" not in done.out
    assert done.out.count("(none)") == 2
    assert " a " not in done.out
    assert "a b\n" in done.out
    assert re.search(r"[0-9] m?s\b", done.err), done.err


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"SQLSHELL_ON_ERROR": "maybe"}, "SQLSHELL_ON_ERROR"),
        ({"SQLSHELL_QUIET": "perhaps"}, "SQLSHELL_QUIET"),
        ({"SQLSHELL_TIMEOUT": "-1"}, "SQLSHELL_TIMEOUT"),
        ({"SQLSHELL_VERBOSE": "lots"}, "SQLSHELL_VERBOSE"),
        ({"SQLSHELL_PROFILE": "nowhere"}, "nowhere"),
        ({"SQLSHELL_WAIT": "5s"}, "unknown variable SQLSHELL_WAIT"),
    ],
)
def test_bad_values_name_where_they_stand(tmp_path: Path, environ: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        resolve({}, environ, read_config(tmp_path))


def test_no_flag_takes_a_tokens_text() -> None:
    assert [setting.flags for setting in SETTINGS if setting.name == "token"] == [()]


PROFILE = '[profiles.work]\nurl = "https://work.example/v2"\ntoken = "work-token"\ndatabase = "d"\n'


def where(tmp_path: Path, text: str, environ: dict[str, str]) -> tuple[RemoteService | LocalService, list[str]]:
    warnings: list[str] = []
    found = find_destination(text, {}, environ, config(tmp_path, PROFILE), warnings.append)
    return found.service, warnings


def test_a_profile_by_name(tmp_path: Path) -> None:
    place, warnings = where(tmp_path, "work", {})
    assert isinstance(place, RemoteService)
    assert (place.target.base, place.token, warnings) == ("https://work.example", "work-token", [])


@pytest.mark.parametrize("url", ["https://other.example", "http://work.example", "https://work.example:444"])
def test_a_profiles_token_stays_with_its_origin(tmp_path: Path, url: str) -> None:
    place, warnings = where(tmp_path, url, {"SQLSHELL_PROFILE": "work"})
    assert isinstance(place, RemoteService)
    assert place.token == ""
    assert "not sent" in warnings[0]
    assert "work-token" not in warnings[0]


def test_the_same_origin_may_have_it(tmp_path: Path) -> None:
    place, _ = where(tmp_path, "https://WORK.example:443/v2", {"SQLSHELL_PROFILE": "work"})
    assert isinstance(place, RemoteService)
    assert place.token == "work-token"


def test_the_environments_token_belongs_to_the_environments_url(tmp_path: Path) -> None:
    environ = {"SQLSHELL_URL": "https://a.example", "SQLSHELL_TOKEN": "a-token"}
    own, _ = where(tmp_path, "", environ)
    other, warnings = where(tmp_path, "https://b.example", environ)
    free, _ = where(tmp_path, "https://b.example", {"SQLSHELL_TOKEN": "a-token"})
    assert isinstance(own, RemoteService)
    assert isinstance(other, RemoteService)
    assert isinstance(free, RemoteService)
    assert (own.token, other.token, free.token) == ("a-token", "", "a-token")
    assert warnings


def test_a_token_in_a_url_on_the_command_line_is_warned_of(tmp_path: Path) -> None:
    place, warnings = where(tmp_path, "https://:tok@b.example?databaseName=x", {})
    assert isinstance(place, RemoteService)
    assert (place.token, dict(place.parts)) == ("tok", {"database": "x"})
    assert len(warnings) == 1
    assert "tok@" not in warnings[0]


def test_files(tmp_path: Path) -> None:
    data = tmp_path / "a b.csv.gz"
    data.write_text("x")
    database = tmp_path / "odd"
    duckdb.connect(str(database)).close()
    new = tmp_path / "new.duckdb"
    assert where(tmp_path, str(data), {})[0] == LocalService(views={"a b": data})
    assert where(tmp_path, str(database), {})[0] == LocalService(database=database)
    assert where(tmp_path, str(new), {})[0] == LocalService(database=new)
    empty = tmp_path / "empty"
    empty.mkdir()
    for missing in (tmp_path / "none", tmp_path / "none.csv", tmp_path / "no" / "new.db", empty):
        with pytest.raises(UsageError):
            where(tmp_path, str(missing), {})
    with pytest.raises(UsageError, match="not a URL, profile or existing file"):
        where(tmp_path, "nothing", {})


def test_the_machines_time_zone_is_an_iana_name() -> None:
    assert machine_timezone({})
    assert machine_timezone({"TZ": "Europe/Paris"})
