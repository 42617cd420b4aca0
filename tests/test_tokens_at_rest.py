"""Where a token is kept: what a file, a keyring or a command must hold, and what is said of one that does not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from sqlshell.errors import UsageError
from sqlshell.launch.credentials import keyring_token, read_token, run_token_command, without_secrets


def ignore(text: str) -> None:
    raise AssertionError(text)


def refused(act: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(UsageError) as raised:
        act()
    return raised.value.message, raised.value.hint


def kept(folder: Path, content: bytes, mode: int = 0o600) -> str:
    path = folder / "to ken"
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


def test_a_file_has_one_token(tmp_path: Path) -> None:
    assert read_token(kept(tmp_path, b"\n t0ken \n"), ignore) == "t0ken"
    for content in (b"", b"\n \n", b"one two", b"one\ntwo\n"):
        path = kept(tmp_path, content)
        assert refused(lambda path=path: read_token(path, ignore)) == (  # type: ignore[misc]
            f"token file {path} does not contain exactly one token",
            "expected one line with the token",
        )
    path = kept(tmp_path, b"\xff")
    assert refused(lambda: read_token(path, ignore))[0] == f"cannot read token file {path}: invalid UTF-8"
    assert refused(lambda: read_token(str(tmp_path), ignore))[0] == f"cannot read token file {tmp_path}: is a directory"


@pytest.mark.parametrize(
    ("mode", "done"), [(0o640, "read"), (0o604, "read"), (0o620, "write to"), (0o602, "write to"), (0o660, "read")]
)
def test_a_file_that_others_can_use_is_warned_of(tmp_path: Path, mode: int, done: str) -> None:
    told: list[str] = []
    path = kept(tmp_path, b"t0ken", mode)
    assert read_token(path, told.append) == "t0ken"
    assert told == [f"other users can {done} token file {path}; run: chmod 600 '{path}'"]


class Ring(ModuleType):
    """A system keyring with one entry."""

    def get_password(self, service: str, user: str) -> str | None:
        if service == "broken":
            raise RuntimeError("the keyring is locked")
        return "t0ken" if (service, user) == ("s", "u/v") else None


def test_a_keyring_has_the_token_of_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", Ring("keyring"))
    assert keyring_token("s/u/v") == "t0ken"
    for entry in ("s", "s/", "/u", ""):
        said = refused(lambda entry=entry: keyring_token(entry))[0]  # type: ignore[misc]
        assert said == f"token_keyring: {entry!r} does not have the form SERVICE/USER"
    assert refused(lambda: keyring_token("s/other")) == (
        "the keyring has no token for s/other",
        "add it with: keyring set s other",
    )
    assert refused(lambda: keyring_token("broken/u"))[0] == (
        "cannot read the token from the keyring: the keyring is locked"
    )


def test_a_command_prints_the_token() -> None:
    assert run_token_command("printf ' t0ken\\n'; cat") == "t0ken"
    for command in ("true", "echo one two", "printf 'one\\ntwo'"):
        assert refused(lambda command=command: run_token_command(command)) == (  # type: ignore[misc]
            "token_command did not print exactly one token",
            "make it print one line with only the token",
        )
    assert refused(lambda: run_token_command("echo t0ken; exit 3")) == (
        "token_command failed with exit code 3",
        "run it in a terminal to see why",
    )
    assert refused(lambda: run_token_command("printf '\\377'"))[0] == "token_command failed: UnicodeDecodeError"


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("token", "t0ken", "***"),
        ("token", "", ""),
        ("set", ("password=hunter2", "a=b=c", "bare", "api_key"), ("password=***", "a=b=c", "bare", "api_key=***")),
        ("url", "https://:t0ken@host/v2", "https://***@host/v2"),
        ("url", "https://host/v2", "https://host/v2"),
        ("retries", 5, 5),
        ("ca_file", None, None),
    ],
)
def test_a_setting_is_shown_without_its_secret(name: str, value: object, shown: object) -> None:
    assert without_secrets(name, value) == shown
