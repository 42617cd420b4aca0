"""From settings to the parts of a shell, each on its own: labels, limits, options, messages at the start."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sqlshell.client.http.curl import curl_printer
from sqlshell.client.statements.client import Submission
from sqlshell.config.settings import SETTINGS, seconds_of
from sqlshell.config.values import Config, config_folder, read_config, resolve, state_folder
from sqlshell.context import SessionContext
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import UsageError
from sqlshell.launch.configure import wrong_values
from sqlshell.launch.connector import TARGET_FLAGS, asking, redactor_of
from sqlshell.launch.first_prompt import HINTS, first_prompt, greeting, selected_by
from sqlshell.launch.invocation import initial_options
from sqlshell.launch.modes import modes_of
from sqlshell.launch.serve import _is_service
from sqlshell.launch.services import EMBEDDED_TARGET, network_of, open_endpoint, policy_of, unopened_endpoint
from sqlshell.launch.targets import (
    Destination,
    EngineUrl,
    LocalService,
    RemoteService,
    checked_timezone,
    context_of,
    find_destination,
    machine_timezone,
    names_profile,
    own_session,
    service_at_url,
    sources_of,
    views_of,
)
from sqlshell.origin import Trusted
from sqlshell.runtime.streams import Streams
from sqlshell.shell.options import DISPLAY
from sqlshell.version import __version__

URL = "https://host:8443/v2"
NAME = "https://host:8443"
OTHERWISE = "known profiles: files, local, work; to create a database, use the extension .db, .duckdb or .ddb"
PROFILES = f"""
[profiles.work]
url = "{URL}"
database = "sales"
timezone = "Europe/Berlin"
session_id = "00000000-0000-4000-8000-000000000001"
token = "secret"
[profiles.local]
format = "csv"
[profiles.files]
url = "missing.duckdb"
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.toml").write_text(PROFILES)
    (tmp_path / "config.toml").chmod(0o600)
    return read_config(tmp_path)


def found(
    text: str, config: Config, flags: Mapping[str, Any] = {}, environ: Mapping[str, str] = {}, **given: Any
) -> tuple[Destination, list[str]]:
    warnings: list[str] = []
    return find_destination(text, flags, environ, config, warnings.append, **given), warnings


def streams(*, terminal: bool = False) -> Streams:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    return Streams(Stream(), Stream(), Stream())


@pytest.mark.parametrize(
    ("text", "address", "label", "short", "storage"),
    [
        ("work", NAME, f"work ({NAME})", "work", NAME),
        (URL, NAME, NAME, "host:8443", NAME),
        ("", "DuckDB in memory", "DuckDB in memory", "", ""),
        ("local", "DuckDB in memory", "DuckDB in memory", "", ""),
        ("new.duckdb", "new.duckdb", "new.duckdb", "", "/new.duckdb"),
        ("files", "missing.duckdb", "files (missing.duckdb)", "files", "/missing.duckdb"),
    ],
)
def test_what_a_destination_is_called(
    config: Config, text: str, address: str, label: str, short: str, storage: str
) -> None:
    destination, _ = found(text, config)
    assert (destination.address, destination.label, destination.short_name) == (address, label, short)
    name = destination.storage_name
    assert name == storage if not storage.startswith("/") else name == str(config.folder.resolve()) + storage


def test_data_files_have_their_paths_as_address(config: Config) -> None:
    (config.folder / "a.csv").write_text("x\n1\n")
    destination, _ = found("a.csv", config)
    assert destination.address == "a.csv"
    assert destination.storage_name == ""
    assert isinstance(destination.service, LocalService)
    with_stdin = Destination(destination.settings, LocalService(views=destination.service.views, stdin=True))
    assert with_stdin.address == "a.csv, stdin"
    assert Destination(destination.settings, LocalService(stdin=True)).address == "stdin"


@pytest.mark.parametrize(
    ("text", "given", "warned"),
    [
        ("https://_:secret@host/v2", {}, "other users of this machine can read a token on the command line"),
        ("https://_:secret@host/v2", {"visible": False}, ""),
        ("https://_:secret@host/v2", {"command_line": "work"}, ""),
        ("local", {}, "profile 'local' has no url: using the embedded service in memory"),
        ("", {}, ""),
    ],
)
def test_warnings_of_a_destination(config: Config, text: str, given: dict[str, Any], warned: str) -> None:
    _, warnings = found(text, config, **given)
    assert [warning.startswith(warned) for warning in warnings] == ([True] if warned else [])


def test_a_database_in_memory_is_a_target(config: Config) -> None:
    destination, _ = found(":memory:", config)
    assert destination.service == LocalService()


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("wrk", "'wrk' is not a URL, profile or existing file", 'did you mean "work"?'),
        (
            "host=x dbname=y",
            "a libpq connection string is not a TARGET",
            "write it as a URL: postgresql://USER@HOST/DATABASE?OPTION=VALUE",
        ),
        ("dctor", "'dctor' is not a URL, profile or existing file", "did you mean sqlshell doctor?"),
        ("qqqqqq", "'qqqqqq' is not a URL, profile or existing file", OTHERWISE),
        ("no/where.duckdb", "cannot create where.duckdb: directory no does not exist", "create the directory first"),
        ("a.csv", "cannot read a.csv: no such file or directory", ""),
        ("https//host/v2", "not a valid URL: ***", "write a URL as https://host/v2"),
        ("basic", "'basic' is not a URL, profile or existing file", OTHERWISE),
        (
            "./a",
            "cannot read ./a: no such file or directory",
            "to create a database, use the extension .db, .duckdb or .ddb",
        ),
        (
            "a/b",
            "cannot read a/b: no such file or directory",
            "to create a database, use the extension .db, .duckdb or .ddb",
        ),
    ],
)
def test_what_is_no_target(config: Config, text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        found(text, config)
    assert (refused.value.message, refused.value.hint) == (message, hint)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "https//:secret@host/v2",
            "https//secret@host/v2",
            ":secret@host/v2",
            "https:\\\\:secret@host",
            "//:secret@host",
        ),
        *("https:/:secret@host", "http:secret@host", "user:secret@host", "secret@host", "https;//:secret@host/a.csv"),
        *("https//:secret@host/a.db", "https//:sec/ret@secret@host"),
    ],
)
def test_a_mistyped_url_is_told_without_its_token(config: Config, text: str) -> None:
    for environ in ({}, {"SQLSHELL_URL": text}):
        with pytest.raises(UsageError) as refused:
            found("" if environ else text, config, {}, environ)
        assert "***@host" in refused.value.message
        assert "sec" not in refused.value.message.replace("SQLSHELL_URL", "") + refused.value.hint


@pytest.mark.parametrize(
    "text",
    [
        *("unix:///:T0ken@x", "unix:///T0ken@x", "unix://T0ken@/run/x", "unix:///run/:T0ken@x", "Bearer T0ken"),
        *("https://host/v2 T0ken", "https://host/v2%20T0ken", "https://host/v2\nT0ken", "https://host/v2:T0ken"),
        *("https://host/v2/:T0ken@x", "https://host/v2?T0ken", "https://host/v2;T0ken", "T0ken:https://host/v2"),
        *("@host:T0ken", "host:T0ken", "T0ken,https", "token=T0ken", "T0ken https://host/v2", "https:/host/v2 T0ken"),
        *("T0ken@host:1", "abcT0ken0123456789xyz", "0abcdef0-0000-T0ken", "Bearer T0ken.csv", "https/T0ken/a b"),
    ],
)
def test_an_address_that_cannot_be_used_shows_no_token(config: Config, text: str) -> None:
    for environ in ({}, {"SQLSHELL_URL": text}):
        with pytest.raises(UsageError) as refused:
            found("" if environ else text, config, {}, environ)
        shown = (refused.value.message + refused.value.hint).replace("SQLSHELL_TOKEN", "")
        assert "t0ken" not in shown.lower()


@pytest.mark.parametrize(
    "text",
    ["reports@2026/a.csv", "my file.csv", "/a b", "monthly_sales_report/2026-01/new", "a@b.csv", "./a@b", "@none/x"],
)
def test_a_file_with_an_at_sign_keeps_its_name(config: Config, text: str) -> None:
    with pytest.raises(UsageError) as refused:
        found(text, config)
    assert refused.value.message == f"cannot read {text}: no such file or directory"


@pytest.mark.parametrize(
    ("flags", "environ", "place"), [({"url": "x"}, {}, "url"), ({}, {"SQLSHELL_URL": "x"}, "SQLSHELL_URL")]
)
def test_a_wrong_url_names_its_place(
    config: Config, flags: dict[str, str], environ: dict[str, str], place: str
) -> None:
    if flags:
        with pytest.raises(UsageError, match="neither a URL nor an existing file"):
            service_at_url("x")
        return
    with pytest.raises(UsageError) as refused:
        found("", config, flags, environ)
    assert refused.value.message == f"{place}: 'x' is neither a URL nor an existing file"
    assert refused.value.hint.startswith("write a URL as https://host/v2; to create a database")


def test_names_of_profiles(config: Config) -> None:
    named = {text: names_profile(text, config) for text in ("work", "", URL, "a.csv")}
    assert named == {"work": True, "": False, URL: False, "a.csv": False}


def test_the_first_context_and_its_sources(config: Config) -> None:
    destination, _ = found("work", config, {"role": "analyst"}, {"SQLSHELL_SCHEMA": "s"})
    context = context_of(destination)
    assert (context.database, context.role, context.schema, context.store) == ("sales", "analyst", "s", "")
    assert (context.timezone, context.session_id) == ("Europe/Berlin", "00000000-0000-4000-8000-000000000001")
    assert sources_of(destination) == {
        "database": "profile work",
        "role": "flag",
        "schema": "environment",
        "timezone": "profile work",
        "session_id": "profile work",
    }
    assert own_session(destination, context) == ""
    destination, _ = found(f"{URL}?databaseName=d&roleName=r", config, {"role": "other"})
    context = context_of(destination)
    assert (context.database, context.role) == ("d", "other")
    assert sources_of(destination) == {
        "timezone": "system", "session_id": "new", "database": "DSN", "role": "flag",
    }  # fmt: skip
    assert own_session(destination, context) == context.session_id != ""
    assert context.timezone == machine_timezone({})


def test_zones() -> None:
    assert (checked_timezone(""), checked_timezone("Asia/Tokyo")) == ("", "Asia/Tokyo")
    with pytest.raises(UsageError) as refused:
        checked_timezone("Europe/Berlim")
    assert (refused.value.message, "Europe/Berlin" in refused.value.hint) == ("unknown time zone 'Europe/Berlim'", True)
    with pytest.raises(UsageError) as refused:
        checked_timezone("x" * 100)
    assert refused.value.message == f"unknown time zone '{'x' * 80}'"
    assert machine_timezone({"TZ": "Asia/Tokyo"}) != ""


@pytest.mark.parametrize("terminal", [False, True])
def test_tokens_are_asked_for_at_a_terminal(config: Config, monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    asked: list[str] = []

    def typed(text: str) -> str:
        asked.append(text)
        return " typed "

    monkeypatch.setattr("getpass.getpass", typed)
    bare, _ = found("https://other/v2", config)
    opened = open_endpoint(bare, ask=asking(streams(terminal=terminal)))
    assert opened.token == ("typed" if terminal else "")
    assert asked == (["token for https://other: "] if terminal else [])
    asked.clear()
    assert open_endpoint(bare).token == ""
    assert open_endpoint(found("work", config)[0], ask=asking(streams(terminal=True))).token == "secret"
    offline = found("https://other/v2", config, {"offline": True})[0]
    assert open_endpoint(offline, ask=asking(streams(terminal=True))).token == ""
    command = Destination(bare.settings, RemoteService(service_at_url("https://other/v2"), token_command="echo x"))  # type: ignore[arg-type]
    assert open_endpoint(command, ask=asking(streams(terminal=True))).token == ""
    assert asked == []


def test_endpoints_that_send_nothing(config: Config) -> None:
    remote, local = found("work", config)[0], found("", config)[0]
    assert unopened_endpoint(remote).target.name == NAME
    silent = unopened_endpoint(local)
    assert silent.target is EMBEDDED_TARGET
    assert silent.open_app is not None
    with pytest.raises(UsageError, match="nothing is sent with --dry-run"):
        silent.open_app()
    with pytest.raises(UsageError, match="--offline requires a remote service"):
        open_endpoint(found("", config, {"offline": True})[0])
    assert "secret" not in repr(open_endpoint(remote))


def test_network_options(config: Config) -> None:
    flags = {
        "connect_timeout": "1s",
        "read_timeout": "2s",
        "retry_timeout": "3s",
        "retries": 4,
        "ca_file": "a",
        "client_cert": "b",
        "client_key": "c",
        "insecure": True,
        "private_data_plane": True,
        "answer_limit": 5,
        "download_limit": 6,
    }
    network = network_of(resolve(flags, {}, config))
    assert (network.connect_timeout, network.read_timeout, network.timeout, network.retries) == (1, 2, 3, 4)
    assert (network.ca_file, network.client_cert, network.client_key) == ("a", "b", "c")
    assert (network.insecure, network.private_data_plane) == (True, True)
    assert (network.answer_limit, network.download_limit) == (5 << 20, 6 << 20)
    plain = network_of(resolve({}, {}, config))
    assert (plain.insecure, plain.private_data_plane, plain.ca_file) == (False, False, "")
    assert network_of(resolve({"retry_timeout": "0"}, {}, config)).timeout == 1e9


@pytest.mark.parametrize(
    ("flags", "environ", "by"),
    [
        ({"read_only": True}, {}, "--read-only"),
        ({}, {"SQLSHELL_READ_ONLY": "1"}, "SQLSHELL_READ_ONLY"),
        ({}, {}, "--read-only"),
    ],
)
def test_policies(config: Config, flags: dict[str, Any], environ: dict[str, str], by: str) -> None:
    for text, name in (("work", "work"), (URL, NAME)):
        policy = policy_of(found(text, config, flags | {"yes": True}, environ)[0])
        assert policy.read_only == bool(flags or environ)
        assert (policy.read_only_by, policy.name, policy.yes) == (by, name, True)
    assert not policy_of(found("work", config)[0]).yes


def test_a_wrong_pattern_of_secrets(config: Config) -> None:
    with pytest.raises(UsageError, match=r"^secret_names: '\(' is not a valid regular expression: "):
        redactor_of(resolve({"secret_names": ["("]}, {}, config))


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ({}, []),
        ({"ca_file": "a.pem"}, ["--cacert a.pem"]),
        ({"client_cert": "b.pem", "client_key": "c.pem"}, ["--cert b.pem", "--key c.pem"]),
        ({"insecure": True}, ["--insecure"]),
    ],
)
def test_requests_that_are_printed(config: Config, flags: dict[str, Any], options: list[str]) -> None:
    class Noting(io.StringIO):
        flushed = 0

        def flush(self) -> None:
            self.flushed += 1

    out = Noting()
    for api, path in (("v2", "/statements"), ("legacy", "/")):
        destination = found("work", config, flags | {"api": api})[0]
        target = unopened_endpoint(destination).target
        printer = curl_printer(target, network_of(destination.settings), out, legacy=api == "legacy")
        printer(Submission("select 1"), SessionContext())
        assert path in out.getvalue()
    words = " ".join(out.getvalue().replace("\\", " ").split())
    for option in ("--cacert a.pem", "--cert b.pem", "--key c.pem", "--insecure"):
        assert words.count(option) == (2 if option in options else 0)
    assert out.getvalue().count("curl") == 2
    assert out.getvalue().endswith("\n")
    assert out.flushed == 2
    assert "secret" not in out.getvalue()


@pytest.mark.parametrize(
    ("text", "flags", "environ", "expected"),
    [
        ("work", {}, {}, ""),
        ("", {}, {"SQLSHELL_URL": URL}, "SQLSHELL_URL"),
        ("", {"profile": "work"}, {}, "--profile"),
        ("", {}, {"SQLSHELL_PROFILE": "work"}, "SQLSHELL_PROFILE"),
        ("", {}, {}, ""),
    ],
)
def test_what_selected_the_target(
    config: Config, text: str, flags: dict[str, str], environ: dict[str, str], expected: str
) -> None:
    destination = found(text, config, flags, environ)[0]
    assert selected_by(destination, text, flags, environ) == expected


def test_the_default_profile_is_named_as_what_selected_the_target(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f'[profiles.default]\nurl = "{URL}"\n')
    config = read_config(tmp_path)
    destination = found("", config)[0]
    assert selected_by(destination, "", {}, {}) == "profile default"


def test_greetings(config: Config) -> None:
    lines = greeting(found("", config)[0], "", 1)
    assert lines == (
        f"sqlshell {__version__}: in memory, lost on exit (to keep data: sqlshell FILE.duckdb)",
        f"Try \\demo (sample data), \\? start or \\?. {HINTS[1]}",
    )
    assert greeting(found("local", config)[0], "", 0)[0] == (
        f"sqlshell {__version__}: in memory, lost on exit (profile 'local' has no url)"
    )
    remote = found("work", config)[0]
    assert greeting(remote, "--profile", len(HINTS) + 2) == (
        f"sqlshell {__version__}: work ({NAME}) (--profile)",
        f"Type \\? for help, \\q to quit. {HINTS[2]}",
    )
    assert greeting(remote, "", 0)[0] == f"sqlshell {__version__}: work ({NAME})"
    assert all(len(lines[1]) - len(HINTS[1]) + len(hint) <= 80 for hint in HINTS)


@pytest.mark.parametrize(
    ("flags", "output", "prompt", "expected"),
    [
        ({}, "", False, ("table", False, "off", 0, False)),
        ({}, "", True, ("table", False, "auto", DISPLAY["maxwidth"].at_prompt, True)),
        ({"format": "csv"}, "a.json", False, ("csv", True, "off", 0, False)),
        ({}, "a.json", False, ("json", True, "off", 0, False)),
        ({}, "a", False, ("table", False, "off", 0, False)),
        ({"format": "aligned"}, "", False, ("table", True, "off", 0, False)),
        ({"maxwidth": 7, "timing": True}, "", False, ("table", False, "off", 7, True)),
    ],
)
def test_options_at_the_start(
    config: Config, flags: dict[str, Any], output: str, prompt: bool, expected: tuple[object, ...]
) -> None:
    flags = {name: value for name, value in flags.items() if name in {item.name for item in SETTINGS}}
    options = initial_options(resolve(flags, {}, config), output, prompt=prompt)
    assert (options.format, "format" in options.chosen, options.expanded) == expected[:3]
    if "maxwidth" not in flags:
        assert (options.maxwidth, options.timing) == ((DISPLAY["maxwidth"].at_prompt if prompt else 0), prompt)
    assert options.pager == ""
    assert options.header


def test_more_options_at_the_start(config: Config) -> None:
    def options(prompt: bool = False, at_terminal: bool = False, **flags: Any) -> Any:
        return initial_options(resolve(flags, {}, config), "", prompt=prompt, at_terminal=at_terminal)

    assert options(at_terminal=True).expanded == "auto"
    assert not options(at_terminal=True).timing
    assert not options(tuples_only=True).header
    assert options(tuples_only=False).header
    assert [options(pager=text).pager for text in ("off", "on", "more")] == ["off", "", "more"]
    assert (options(fieldsep="\\t").fieldsep, options(recordsep="\\n").recordsep) == ("\t", "\n")
    with pytest.raises(UsageError):
        options(prompt=True, prompt_color="no such color")
    # Nobody sees the prompt of a script.
    options(prompt_color="no such color")
    with pytest.raises(UsageError):
        options(format="cvs")


@pytest.mark.parametrize(
    ("flags", "target", "scripts", "message"),
    [
        ({"dry_run": True}, "t", False, "--dry-run requires a script"),
        ({"resume": True}, "t", True, "--resume requires --checkpoint FILE"),
        ({"if_unknown": "skip"}, "t", True, "--if-unknown requires --checkpoint FILE and --resume"),
        (
            {"checkpoint": "c", "single_transaction": True}, "t", True,
            "--checkpoint cannot be used with --single-transaction",
        ),
        ({"checkpoint": "c", "dry_run": True}, "t", True, "--checkpoint cannot be used with --dry-run"),
        ({"checkpoint": "c"}, "t", False, "--checkpoint requires a script"),
        ({"checkpoint": "c", "session_id": "x"}, "t", True, "--checkpoint cannot be used with --session-id"),
        ({"checkpoint": "c", "if_unknown": "skip"}, "t", True, "--if-unknown requires --resume"),
        ({"checkpoint": "c"}, "", True, "--checkpoint requires a TARGET: a database in memory is lost with the run"),
    ],
)  # fmt: skip
def test_modes_that_do_not_go_together(
    config: Config, flags: dict[str, Any], target: str, scripts: bool, message: str
) -> None:
    with pytest.raises(UsageError) as refused:
        modes_of(resolve(flags, {}, config), Diagnostics(io.StringIO()), target, scripts=scripts)
    assert refused.value.message == message


def test_modes(config: Config) -> None:
    def modes(**flags: Any) -> Any:
        return modes_of(resolve(flags, {}, config), Diagnostics(io.StringIO()), "t", scripts=True)

    assert (modes().dry_run, modes().statistics, modes().checkpoint) == (False, None, None)
    assert modes(dry_run=True, stats=str(config.folder / "s")).dry_run
    assert not (config.folder / "s").exists()
    statistics = modes(stats=str(config.folder / "s")).statistics
    assert statistics is not None
    statistics.close()


def test_only_given_values_are_checked(config: Config) -> None:
    names = {
        "format": "cvs", "table_style": "gold", "theme": "none-such", "timezone": "Nowhere", "prompt_color": "no such",
        "confirm": ["NO SUCH"], "secret_names": ["("], "prompt": "{wrong}",
    }  # fmt: skip
    known = {name: value for name, value in names.items() if name in {item.name for item in SETTINGS}}
    assert len([*wrong_values(resolve(known, {}, config), config.folder / "themes")]) == len(known)
    assert [*wrong_values(resolve({}, {}, config), config.folder / "themes")] == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30.0), ("1.5s", 1.5), ("5m", 300.0), ("1h30m", 5400.0), ("200ms", 0.2), ("1h2m3s4ms", 3723.004),
        (" 7 ", 7.0), ("0", 0.0), ("999999999", 999999999.0), ("1000000000", None), ("", None), ("s", None),
        ("1.5m", None), ("-1", None), ("1x", None), ("1m2", 62.0), ("٣", None),
    ],
)  # fmt: skip
def test_durations(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        *(("quiet", word, True) for word in ("1", "true", "YES", "on")),
        *(("quiet", word, False) for word in ("0", "false", "no", "OFF")),
        ("quiet", "maybe", "SQLSHELL_QUIET: invalid value 'maybe'"),
        ("retries", "3", 3),
        ("retries", "0", 0),
        ("retries", "-1", "SQLSHELL_RETRIES: invalid value '-1'"),
        ("retries", "x", "SQLSHELL_RETRIES: invalid value 'x'"),
        ("on_error", "continue", "continue"),
        ("on_error", "never", "SQLSHELL_ON_ERROR: invalid value 'never'"),
        ("retry_timeout", "soon", "SQLSHELL_RETRY_TIMEOUT: 'soon' is not a duration"),
    ],
)
def test_values_of_the_environment(config: Config, name: str, given: str, expected: object) -> None:
    environ = {f"SQLSHELL_{name.upper()}": given}
    if isinstance(expected, str) and expected != given:
        with pytest.raises(UsageError) as refused:
            resolve({}, environ, config)
        assert refused.value.message == expected
    else:
        settings = resolve({}, environ, config)
        assert (settings[name], settings.source(name)) == (expected, "environment")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("format = 1", "1 is not a string"),
        ("confirm = [1]", "[1] is not a list of strings"),
        ("on_error = 'x'", "invalid value 'x'"),
        ("quiet = 'x'", "invalid value 'x'"),
    ],
)
def test_values_of_profiles(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "config.toml").write_text(f"[profiles.p]\n{line}\n")
    with pytest.raises(UsageError) as refused:
        resolve({}, {}, read_config(tmp_path), "p")
    name = line.partition(" ")[0]
    assert refused.value.message == f"{tmp_path}/config.toml: [profiles.p] {name}: {message}"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\n\n\xff", "{path}, line 3: invalid UTF-8"),
        (b"a = 1\n[x", "{path}, line 2: "),
        (b"a = [\n\n", "{path}, line "),
        (b"a = 1\nb = 2\n", "{path}: unexpected top-level key a, b"),
    ],
)
def test_files_that_are_no_configuration(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(data)
    with pytest.raises(UsageError) as refused:
        read_config(tmp_path)
    assert refused.value.message.startswith(message.format(path=path))
    path.unlink()
    path.mkdir()
    with pytest.raises(UsageError, match="cannot read"):
        read_config(tmp_path)


def test_folders(tmp_path: Path) -> None:
    assert config_folder({"SQLSHELL_CONFIG_DIR": "/x", "XDG_CONFIG_HOME": "/c"}) == Path("/x")
    assert state_folder({"SQLSHELL_STATE_DIR": "/y", "HOME": "/h"}) == Path("/y")
    assert config_folder({"XDG_CONFIG_HOME": "/c", "HOME": "/h"}) == Path("/c/sqlshell")
    assert state_folder({"XDG_STATE_HOME": "/s", "HOME": "/h"}) == Path("/s/sqlshell")
    config, state = ("Library/Application Support",) * 2 if sys.platform == "darwin" else (".config", ".local/state")
    assert config_folder({"HOME": "/h"}) == Path("/h", config, "sqlshell")
    assert state_folder({"HOME": "/h"}) == Path("/h", state, "sqlshell")
    assert state_folder({}).is_absolute()
    assert read_config(tmp_path / "none").profiles == {}
    assert read_config(tmp_path / "none").folder == tmp_path / "none"


def test_flags_that_stay_with_the_target_of_the_command_line() -> None:
    assert {setting.name for setting in SETTINGS} >= TARGET_FLAGS


@pytest.mark.parametrize(("given", "expected"), [("true", "on"), ("false", "off"), ("'auto'", "auto")])
def test_a_profile_may_turn_a_choice_on_or_off(tmp_path: Path, given: str, expected: str) -> None:
    (tmp_path / "config.toml").write_text(f"[profiles.p]\nexpanded = {given}\n")
    assert resolve({}, {}, read_config(tmp_path), "p")["expanded"] == expected


@pytest.mark.parametrize(
    ("url", "known"),
    [
        ("http://host", True),
        ("https://host:1/v2", True),
        ("ftp://host", False),
        ("http://", False),
        ("http://host:0", False),
        ("http://host:99999", False),
        ("http://[", False),
        ("http://host?a=b", False),
        ("http://host#a", False),
    ],
)
def test_addresses_of_services(url: str, known: bool) -> None:
    assert _is_service(url) is known


def test_a_directory_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def iterdir(path: Path) -> object:
        raise PermissionError(13, "Permission denied")

    with pytest.raises(UsageError, match="contains no data file"):
        views_of([str(tmp_path)])
    monkeypatch.setattr(Path, "iterdir", iterdir)
    with pytest.raises(UsageError) as refused:
        views_of([str(tmp_path)])
    assert refused.value.message == f"cannot read the directory {tmp_path}: permission denied"


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("target", "flags", "drawn"),
    [
        ("", {}, True),
        ("", {"prompt": "{database}> "}, False),
        ("", {"prompt_lines": "2"}, False),
        ("", {"dry_run": True}, False),
        ("", {"theme": "no such theme"}, False),
        ("no such profile", {}, False),
        ("new.duckdb", {}, False),
        (URL, {}, False),
        (URL, {"token_file": "token"}, True),
    ],
)
def test_the_first_prompt_is_drawn_if_nothing_comes_before_it(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, flags: dict[str, Any], drawn: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("token").write_text("t")
    Path("token").chmod(0o600)
    # Otherwise the terminal would be asked.
    monkeypatch.setenv("COLORFGBG", "15;0")
    out = Tty()
    # Neither is a terminal that has modes.
    terminal = Streams(Tty(), out, Tty())
    environ = {"TERM": "xterm", "HOME": str(tmp_path)}
    first = first_prompt(Trusted(target), flags, environ, config, terminal)
    assert (first is not None) is drawn
    assert ("> " in out.getvalue()) is drawn
    if first is not None:
        first.clear()
        first.close()
        assert out.getvalue().endswith("> \x1b[0m\r\x1b[K") or out.getvalue().endswith("> \r\x1b[K")


@pytest.mark.parametrize(
    ("url", "place", "expected"),
    [
        ("ann:pw@db:5433/shop?sslmode=require", ("b",), "ann:pw@db:5433/b?sslmode=require"),
        ("ann:pw@db:5433/shop", ("", "ann"), "ann:pw@db:5433/shop"),
        ("ann:pw@db:5433/shop", ("", "b o"), "b%20o@db:5433/shop"),
        ("ann:pw@db:5433/shop", ("b", "", "other"), "ann@other:5433/b"),
        ("ann:pw@db:5433/shop", ("", "", "", "7"), "ann@db:7/shop"),
        ("ann:pw@db/shop", ("", "", "/tmp/s"), "ann@/shop?host=/tmp/s"),
        ("ann@/shop?host=/run/pg&port=5433", ("b", "", "::1"), "ann@[::1]:5433/b"),
        ("h1:1,h2:2/shop?user=ann&password=pw", ("", "bob"), "bob@h1:1,h2:2/shop"),
        ("h1:1,h2:2/shop?user=ann&password=pw", ("", "ann", "h3"), "h3/shop?user=ann"),
        ("h1:1,h2:2/shop?user=ann&password=pw", ("", "", "", "7"), "h1:7,h2:7/shop?user=ann"),
        ("[::1]:5/x?hostaddr=::1", ("", "", "db"), "db:5/x"),
        ("?service=shop", ("b", "bob"), "bob@/b?service=shop"),
    ],
)
def test_a_password_is_for_the_same_user_on_the_same_server(url: str, place: Sequence[str], expected: str) -> None:
    found = EngineUrl("postgresql", f"postgresql://{url}").url_of_other_database(*place)
    assert found == f"postgresql://{expected}"
