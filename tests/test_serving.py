"""The command line of `sqlshell serve`: what a service would take and then not work as asked is refused."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from sqlshell.service.catalog import ROLES
from sqlshell.serving import SERVE, is_size
from tests.conftest import Program


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--public-url", "bogus"], ["--public-url 'bogus'", "https://"]),
        (["--public-url", "http://[::1"], ["--public-url"]),
        (["--store-root", "nowhere"], ["--store-root nowhere", "no such folder"]),
        (["--store-root", "file"], ["--store-root file"]),
        (["--memory", "bogus"], ["--memory 'bogus'", "2GB"]),
        (["--memory", "-5GB"], ["--memory '-5GB'"]),
        (["--memory", "0GB"], ["--memory '0GB'"]),
        (["--allow-host", "http://name"], ["--allow-host 'http://name'"]),
        (["--host", "999.1.1.1"], ["--host 999.1.1.1", "an address of this machine"]),
        (["--host", "192.0.2.1"], ["192.0.2.1", "an address of this machine"]),
        (["--data", "file"], ["--data file is not a folder"]),
        (["--data", "file/inside"], ["--data file/inside", "Not a directory"]),
        (["--new-token", "--data", "file"], ["--data file is not a folder"]),
        (["--new-token", "--data", "data", "--role", "bogus"], ["--role", "bogus", "reader", "writer", "owner"]),
        (["--legacy-anonymous"], ["--legacy-anonymous needs --legacy"]),
    ],
)
def test_a_service_with_a_wrong_option_does_not_start(
    program: Program, tmp_path: Path, argv: list[str], words: list[str]
) -> None:
    (tmp_path / "file").write_text("")
    done = program("serve", "--port", "0", *argv)
    assert (done.code, done.out) == (2, "")
    assert [word for word in words if word not in done.err] == []


@pytest.mark.parametrize("size", ["2GB", "512 MiB", "1.5gb", "0.5GB", "80%"])
def test_sizes_of_memory(size: str) -> None:
    with duckdb.connect() as database:
        database.execute(f"SET memory_limit = '{size}'")
    assert is_size(size)


def test_the_roles_of_a_token_are_those_of_the_service() -> None:
    assert [set(kind) for flag, kind, _, _ in SERVE if flag == "--role"] == [set(ROLES)]
