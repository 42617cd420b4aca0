"""A token is sent only to the origin of the URL that it was given with: every pair of places is tested."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sqlshell.config.values import read_config
from sqlshell.launch.credentials import permission_problems
from sqlshell.launch.targets import RemoteService, find_destination
from tests.conftest import Program

OWN, OTHER = "https://own.example/v2", "https://other.example/v2"

# Where a token may stand, always beside the URL of its own place: what the command line, the environment and the
# profile hold, with the token `T`.
TOKENS: Mapping[str, Callable[[str], Mapping[str, Any]]] = {
    "flag": lambda file: {"target": OWN, "flags": {"token_file": file}},
    "environment": lambda file: {"environ": {"SQLSHELL_URL": OWN, "SQLSHELL_TOKEN": "T"}},
    "environment, file": lambda file: {"environ": {"SQLSHELL_URL": OWN, "SQLSHELL_TOKEN_FILE": file}},
    "environment of a command with a URL": lambda file: {"target": OWN, "environ": {"SQLSHELL_TOKEN": "T"}},
    "environment, DSN": lambda file: {"environ": {"SQLSHELL_URL": "https://:T@own.example"}},
    "command line, DSN": lambda file: {"target": "https://:T@own.example"},
    "profile": lambda file: {"profile": {"url": OWN, "token": "T"}},
    "profile, file": lambda file: {"profile": {"url": OWN, "token_file": file}},
    "profile, DSN": lambda file: {"profile": {"url": "https://:T@own.example"}},
}
# Where the URL that is gone to stands.
WAYS = ("TARGET", "SQLSHELL_URL", "profile", "default profile", "SQLSHELL_PROFILE", "prompt", "journal")


def possible(place: str, way: str, same: bool) -> bool:
    """Whether the URL of the way and the token's own can stand side by side: a place has one URL."""
    if way == "TARGET":
        return same or place not in {"flag", "environment of a command with a URL", "command line, DSN"}
    if way == "SQLSHELL_URL":
        return same or not place.startswith("environment")
    if way in {"SQLSHELL_PROFILE", "default profile"} and place.startswith("environment") and place[11:12] != " ":
        return False  # SQLSHELL_URL goes before them
    return way in {"prompt", "journal"} or same or not place.startswith("profile")


@pytest.mark.parametrize(
    ("place", "way", "same"), [each for each in itertools.product(TOKENS, WAYS, (True, False)) if possible(*each)]
)
def test_every_pair_of_places(tmp_path: Path, place: str, way: str, same: bool) -> None:
    token = tmp_path / "token"
    token.write_text("T")
    token.chmod(0o600)
    held: Mapping[str, Any] = TOKENS[place](str(token))
    gone = OWN if same else OTHER
    environ: dict[str, str] = dict(held.get("environ", {}))
    profiles: dict[str, dict[str, str]] = {"holder": held["profile"]} if "profile" in held else {}
    target, text = held.get("target", ""), ""
    if way in {"TARGET", "SQLSHELL_URL", "prompt", "journal"}:
        if profiles:
            environ["SQLSHELL_PROFILE"] = "holder"
        if way == "TARGET":
            text = target = target or gone
        elif way == "SQLSHELL_URL":
            environ.setdefault("SQLSHELL_URL", gone)
        else:
            text = gone
    else:
        name = "default" if way == "default profile" else "going"
        profiles = {name: profiles.get("holder", {"url": gone})}
        text = name if way == "profile" else ""
        if way == "SQLSHELL_PROFILE":
            environ["SQLSHELL_PROFILE"] = name
    lines = [
        line
        for profile, table in profiles.items()
        for line in (f"[profiles.{profile}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items()))
    ]
    (tmp_path / "config.toml").write_text("\n".join(lines))
    warnings: list[str] = []
    found = find_destination(text, held.get("flags", {}), environ, read_config(tmp_path), warnings.append, target)
    assert isinstance(found.service, RemoteService)
    assert found.service.target.base == gone.removesuffix("/v2")
    # The token in a TARGET is for that TARGET: who goes elsewhere, or there again without it, has none.
    kept = place == "command line, DSN" and way != "TARGET"
    assert found.service.token == ("T" if same and not kept else "")
    if not same and not kept:
        assert any("is not sent to https://other.example" in line for line in warnings)
    assert not any("T@" in line for line in warnings)


@pytest.mark.parametrize("way", ["default", "named"])
def test_a_token_without_a_url_goes_to_no_profile(tmp_path: Path, way: str) -> None:
    name = "default" if way == "default" else "work"
    (tmp_path / "config.toml").write_text(f'[profiles.{name}]\nurl = "{OWN}"\ntoken = "its own"\n')
    file = tmp_path / "token"
    file.write_text("T")
    file.chmod(0o600)
    text = "" if way == "default" else "work"
    config = read_config(tmp_path)
    for flags, environ in (
        ({}, {"SQLSHELL_TOKEN": "T"}),
        ({}, {"SQLSHELL_TOKEN_FILE": str(file)}),
        ({}, {"SQLSHELL_TOKEN_COMMAND": "echo T"}),
        ({"token_file": str(file)}, {}),
        ({}, {"SQLSHELL_TOKEN": "T", "SQLSHELL_URL": OTHER, "SQLSHELL_PROFILE": name} if way == "named" else {}),
    ):
        warnings: list[str] = []
        where = find_destination(text, flags, environ, config, warnings.append).service
        message = (
            "--token-file is not sent to https://own.example: no URL is configured with it; give the URL as TARGET; "
        )
        assert warnings == ([f"{message}the token of profile {name!r} is sent instead"] if flags else [])
        assert isinstance(where, RemoteService)
        # The profile's own token is found behind one that does not belong there.
        assert (where.target.base, where.token, where.token_command) == ("https://own.example", "its own", "")


def test_a_profile_that_is_named_goes_before_the_environments_url(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f'[profiles.work]\nurl = "{OWN}"\n')
    environ = {"SQLSHELL_URL": OTHER}
    for text, flags in (("work", {}), ("", {"profile": "work"})):
        where = find_destination(text, flags, environ, read_config(tmp_path), pytest.fail).service
        assert isinstance(where, RemoteService)
        assert where.target.base == "https://own.example"


class Recorder(ThreadingHTTPServer):
    """Answers every statement as done, and remembers what credentials came."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Recording)
        self.seen: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Recording(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Recorder

    def do_POST(self) -> None:
        self.server.seen.append(self.headers.get("Authorization", ""))
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.dumps({
            "sqlState": "00000", "statementID": "3f2a91c0-0000-4000-8000-000000000001", "createdOn": 0,
            "metadata": {"encoding": "json", "partitionInfo": [{"rowCount": 0}], "columns": [], "context": {}},
        }).encode()  # fmt: skip
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def recorders() -> Iterator[tuple[Recorder, Recorder]]:
    pair = Recorder(), Recorder()
    for each in pair:
        threading.Thread(target=each.serve_forever, args=(0.02,), daemon=True).start()
    yield pair
    for each in pair:
        each.shutdown()
        each.server_close()


def test_the_program_keeps_tokens_at_home(
    program: Program, recorders: tuple[Recorder, Recorder], tmp_path: Path
) -> None:
    """Over real sockets: what each of two services was sent, by every way from one to the other."""
    own, other = recorders
    token = tmp_path / "token"
    token.write_text("T")
    token.chmod(0o600)
    (tmp_path / "config.toml").write_text(
        f'[profiles.default]\nurl = "{other.url}"\ntoken = "theirs"\n'
        f'[profiles.there]\nurl = "{other.url}"\ntoken = "theirs"\n'
        f'[profiles.bare]\nurl = "{other.url}"\n'
    )
    config = {"SQLSHELL_CONFIG_DIR": str(tmp_path)}
    env = {"SQLSHELL_TOKEN": "T", **config}
    beside = {"SQLSHELL_URL": own.url, **env}
    for argv, environ in (
        (["-c", "select 1"], env),
        (["there", "-c", "select 1"], env),
        (["bare", "-c", "select 1"], env),
        (["bare", "--token-file", str(token), "-c", "select 1"], config),
        ([own.url, "-c", "select 1", "-c", f"\\c {other.url}", "-c", "select 2"], env),
        ([own.url, "--token-file", str(token), "-c", "select 1", "-c", "\\c bare", "-c", "select 2"], config),
        ([other.url, "-c", "select 1"], beside),
        (["-c", f"\\c {other.url}", "-c", "select 2", "-c", f"\\c {own.url}", "-c", "select 3"], beside),
        (["doctor", "bare"], env),
        (["version", "--server", "bare"], env),
        (["download", "function_source", "f", "bare"], env),
    ):
        done = program(*argv, env=environ)
        if argv[0] == "bare" and environ is env:
            assert "set token_file in the profile" in done.err
            assert "set SQLSHELL" not in done.err
        assert "T" not in {word.strip(";,:'\"") for word in (done.out + done.err).split()}, argv
    assert other.seen
    assert set(other.seen) <= {"", "Bearer theirs"}
    assert set(own.seen) == {"Bearer T"}


def test_the_journals_service_gets_no_token_that_was_not_its_own(
    program: Program, recorders: tuple[Recorder, Recorder]
) -> None:
    _, other = recorders
    ran = program(other.url, "-c", "select 1")
    assert ran.code == 0, ran.err
    fetched = program("fetch", "3f2a91c0", env={"SQLSHELL_TOKEN": "T"})
    assert "SQLSHELL_TOKEN is not sent to" in fetched.err
    assert set(other.seen) == {""}
    program("fetch", "3f2a91c0", other.url, env={"SQLSHELL_TOKEN": "T"})
    assert other.seen[-1] == "Bearer T"


def test_fetch_goes_where_the_statement_ran(
    program: Program, recorders: tuple[Recorder, Recorder], tmp_path: Path
) -> None:
    """A profile that was only there for its settings, or has another URL by now, does not have the statement."""
    own, other = recorders
    profile = f'[profiles.default]\nurl = "{other.url}"\ntoken = "theirs"\n'
    (tmp_path / "config.toml").write_text(profile)
    env = {"SQLSHELL_CONFIG_DIR": str(tmp_path)}
    ran = program(own.url, "-v", "-c", "select 1", env=env)
    assert ran.code == 0, ran.err
    asked = len(own.seen)
    program("fetch", "3f2a91c0", env=env)
    assert len(own.seen) > asked
    (tmp_path / "config.toml").write_text(profile.replace(other.url, own.url))
    fetched = program("fetch", "3f2a91c0", env=env)
    assert own.seen[-1] == "Bearer theirs", fetched.err
    assert not other.seen


def test_another_target_without_a_token_is_told_of(
    program: Program, recorders: tuple[Recorder, Recorder], tmp_path: Path
) -> None:
    own, other = recorders
    (tmp_path / "config.toml").write_text(f'[profiles.work]\nurl = "{own.url}"\ntoken = "T"\n')
    env = {"SQLSHELL_CONFIG_DIR": str(tmp_path)}
    moved = program("work", "-c", f"\\c {other.url}", "-c", "select 2", env=env)
    assert f"no token is configured for {other.url}" in moved.err
    moved = program("work", "-c", "\\c work", "-c", "select 2", env=env)
    assert "no token" not in moved.err


@pytest.mark.parametrize(
    ("text", "mode", "told"),
    [
        (
            'url = "http://127.0.0.1:9"\ntoken = "hunter2"',
            0o644,
            "which contains the token of profile 'p'",
        ),
        ('url = "http://:hunter2@127.0.0.1:9"', 0o640, "which contains the token in the url of profile 'p'"),
        ('set = {db_password = "hunter2"}', 0o604, "which contains a secret in the variables of profile 'p'"),
        ('url = "http://127.0.0.1:9"', 0o666, "other users can write"),
        ('url = "http://127.0.0.1:9"\ntoken = "hunter2"', 0o600, ""),
        ('url = "http://127.0.0.1:9"\ntoken_command = "pass"', 0o644, ""),
    ],
)
def test_a_config_that_others_may_read(tmp_path: Path, text: str, mode: int, told: str) -> None:
    path = tmp_path / "a folder" / "config.toml"
    path.parent.mkdir()
    path.write_text(f"[profiles]\nfirst = 1\n[profiles.p]\n{text}\n")
    path.chmod(mode)
    found = list(permission_problems(read_config(path.parent)))
    assert [told in line for line in found] == [True] * bool(told)
    assert all(line.endswith(f"run: chmod 600 '{path}'") for line in found)
    assert "hunter2" not in "".join(found)


def test_a_config_that_others_may_read_is_warned_of_once(program: Program, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[profiles.p]\nset = {db_password = "hunter2"}\n')
    (tmp_path / "config.toml").chmod(0o644)
    env = {"SQLSHELL_CONFIG_DIR": str(tmp_path)}
    done = program("p", "-c", "select 1", "-c", "\\c p", "-c", "select 2", env=env)
    assert done.err.count("other users can read") == 1
    examined = program("doctor", "p", env=env)
    assert "!!  config: " in examined.out
    assert f"chmod 600 {tmp_path / 'config.toml'}" in examined.out
    assert "hunter2" not in done.err + examined.out
