"""The command line of `sqlshell serve`: options that would be accepted but could not work are refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from sqlshell.launch.serve import SERVE, is_size
from sqlshell.service.catalog import ROLES
from sqlshell.service.setup import open_storage
from tests.conftest import Program


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--public-url", "bogus"], ["--public-url: invalid value 'bogus'", "https://"]),
        (["--public-url", "http://[::1"], ["--public-url"]),
        (["--store-root", "nowhere"], ["--store-root nowhere is not an existing directory"]),
        (["--store-root", "file"], ["--store-root file"]),
        (["--memory", "bogus"], ["--memory: invalid value 'bogus'", "2GB"]),
        (["--memory", "-5GB"], ["--memory: invalid value '-5GB'"]),
        (["--memory", "0GB"], ["--memory: invalid value '0GB'"]),
        (["--allow-host", "http://name"], ["--allow-host: invalid value 'http://name'"]),
        (["--host", "999.1.1.1"], ["--host: invalid value '999.1.1.1'", "an address of this machine"]),
        (["--host", "192.0.2.1"], ["192.0.2.1", "an address of this machine"]),
        (["--data", "file"], ["--data file is not a directory"]),
        (["--data", "file/inside"], ["--data file/inside", "not a directory"]),
        (["--new-token", "--data", "file"], ["--data file is not a directory"]),
        (["--new-token", "--data", "data", "--role", "bogus"], ["--role", "bogus", "reader", "writer", "owner"]),
        (["--new-token", "--data", "nowhere"], ["nowhere is not a data directory of sqlshell serve"]),
        (["--new-token", "--data", "lost"], ["lost is not a data directory of sqlshell serve"]),
        (["--data", "lost"], ["service.sqlite does not exist", "contains databases"]),
        (["--data", "emptied"], ["service.sqlite is empty", "contains databases"]),
        (["--uds", "x" * 200], ["--uds x", "the path of a socket may have at most 10"]),
        (["--quota", "nan"], ["--quota", "invalid value 'nan'", "expected a number"]),
        (["--quota", "1e400"], ["--quota", "invalid value '1e400'", "expected a number"]),
        (["--retention", "inf"], ["--retention", "expected a number"]),
        (["--grace", "nan"], ["--grace", "expected a number"]),
        (["--max-seconds", "nan"], ["--max-seconds", "expected a number"]),
        (["--max-seconds", "nan"], ["--max-seconds", "expected a number"]),
        (["--max-spill-size", "9" * 400], ["--max-spill-size", "expected an integer"]),
        (["--port", "99999"], ["--port", "invalid value '99999'", "expected an integer from 0 to 65535"]),
        (["--port", "http"], ["--port", "invalid value 'http'", "expected an integer from 0 to 65535"]),
        (["--max-running", "0"], ["--max-running", "invalid value '0'", "expected an integer from 1 to 1000"]),
        (["--memory", "9" * 400 + "GB"], ["--memory"]),
        (["--memory", "000000512MiB", "--data", "file"], ["--data file is not a directory"]),
        (["--memory", "0000000512MiB", "--data", "file"], ["--memory: invalid value '0000000512MiB'"]),
        (["--legacy-anonymous"], ["--legacy-anonymous requires --legacy"]),
        (["--engine-url", "postgresql://x"], ["--engine-url requires --engine postgresql or --engine spark"]),
        (
            ["--engine", "postgresql", "--engine-url", "postgresql://x", "--memory", "1GB"],
            ["--memory cannot be used with --engine postgresql"],
        ),
        (
            ["--new-token"],
            ["--new-token requires --data DIR or --state-url URL", "add the option that the service runs with"],
        ),
        (["--role", "owner"], ["--role requires --new-token"]),
        (["--organization", "local"], ["--organization requires --new-token"]),
    ],
)
def test_a_service_with_a_wrong_option_does_not_start(
    program: Program, tmp_path: Path, argv: list[str], words: list[str]
) -> None:
    (tmp_path / "file").write_text("")
    for name in ("lost", "emptied"):
        (tmp_path / name / "organizations" / "one").mkdir(parents=True)
    (tmp_path / "emptied" / "service.sqlite").write_text("")
    done = program("serve", "--port", "0", *argv)
    assert (done.code, done.out) == (2, "")
    assert [word for word in words if word not in done.err] == []
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("postgresql://ann:sesame@127.0.0.1:1/d", True),
        ("postgresql://ann@127.0.0.1:1/d?password=sesame", True),
        ("postgresql://ann@127.0.0.1:1/d", False),
    ],
)
def test_a_password_on_the_command_line_can_be_read_by_others(program: Program, url: str, *, warned: bool) -> None:
    given = ["--engine", "postgresql", "--memory", "1GB"]
    done = program("serve", *given, "--engine-url", url)
    said = "password in --engine-url: set SQLSHELL_SERVE_ENGINE_URL instead"
    assert (said in done.err) is warned
    assert "sesame" not in done.err
    assert said not in program("serve", *given, env={"SQLSHELL_SERVE_ENGINE_URL": url}).err


def test_a_variable_of_no_option_is_told(program: Program) -> None:
    given = ("serve", "--new-token", "--data", "nowhere")
    environment = {"SQLSHELL_SERVE_MAX_SESSION": "5", "SQLSHELL_SERVE_MAX_SESSIONS": "5", "SQLSHELL_SERVED": "x"}
    said = "no option has the environment variable SQLSHELL_SERVE_MAX_SESSION; see sqlshell serve --help"
    assert said in program(*given, env=environment).err
    assert "environment variable" not in program(*given).err


LIMITED = 'ulimit -f 0; exec "$@"'
"""A command that can write no file, as on a full disk."""


@pytest.mark.slow("starts a service")
@pytest.mark.parametrize("argv", [["--new-token"], ["--port", "0"]])
def test_a_folder_that_cannot_be_written_is_told(program: Program, tmp_path: Path, argv: list[str]) -> None:
    assert program("serve", "--port", "0", "--data", "data", "--new-token").code == 2
    open_storage(tmp_path / "data").close()
    (tmp_path / "data" / "token").write_text("t0ken\n")
    (tmp_path / "data" / "token").chmod(0o600)
    done = subprocess.run(
        ["/bin/sh", "-c", LIMITED, "sh", sys.executable, "-m", "sqlshell", "serve", "--data", "data", *argv],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, "service.sqlite" in done.stderr) == (2, True), done.stderr
    assert "token file" not in done.stderr


@pytest.mark.parametrize("size", ["2GB", "512 MiB", "1.5gb", "0.5GB", "80%"])
def test_sizes_of_memory(size: str) -> None:
    with duckdb.connect() as database:
        database.execute(f"SET memory_limit = '{size}'")
    assert is_size(size)


def test_the_roles_of_a_token_are_those_of_the_service() -> None:
    assert [set(kind) for flag, kind, _, _ in SERVE if flag == "--role"] == [set(ROLES)]
