"""Which token goes to which service: a token is sent only to the origin of the URL that stands in the same place.

The places are the command line (TARGET, `--token-file`), the environment (`SQLSHELL_URL`, `SQLSHELL_TOKEN` and its
kin), a profile, a DSN, and the prompt (`\\c`, the hidden question). `SQLSHELL_TOKEN` in front of a command line with a
URL belongs to that URL where `SQLSHELL_URL` is not set.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from sqlshell.client.target import Target, is_url, parse, without_token
from sqlshell.config.settings import PREFIX
from sqlshell.config.values import Config
from sqlshell.errors import UsageError

Warn = Callable[[str], None]

KEYS = ("token", "token_file", "token_keyring", "token_command")
"""The settings that give a token; within one place the first of them counts."""

FLAG = "--token-file"


class Given(Struct, frozen=True):
    """Where tokens may stand: the command line, the environment and the chosen profile.

    `command_line` is the TARGET that the program was started with, "" for none: `\\c` does not change it.
    """

    command_line: str
    flags: Mapping[str, Any]
    environ: Mapping[str, str]
    profile: str
    table: Mapping[str, Any]


class Held(Struct, frozen=True):
    """A token in one place, not yet read; `owner` is the service of the URL in that place, None without one."""

    key: str
    value: str
    name: str
    remedy: str
    owner: Target | None

    def __repr__(self) -> str:
        return f"Held({self.name!r})"


def token_for(target: Target, given: Given, warn: Warn) -> tuple[str, str]:
    """The token for exactly this service, and the command that makes it: one of them, or two empty texts.

    Warns of each token that belongs elsewhere where none belongs here, and of a flag's that belongs nowhere in any
    case. Raises UsageError for one that cannot be read.
    """
    elsewhere: list[Held] = []
    for held in _held(given, target):
        if held.owner is not None and held.owner.origin == target.origin:
            for other in elsewhere:
                if other.name == FLAG and other.owner is None:
                    warn(f"{_why(other, target)}; {held.name} is sent")
            return _read(held, warn)
        elsewhere.append(held)
    for held in elsewhere:
        warn(_why(held, target))
    return "", ""


def _held(given: Given, target: Target) -> Iterator[Held]:
    """The tokens of all places, in the order of their precedence."""
    started = _parsed(given.command_line)
    if given.flags.get("token_file"):
        yield Held("token_file", str(given.flags["token_file"]), FLAG, "give the URL as TARGET", started)
    if target.token:
        yield Held("token", target.token, "the token of the URL", "", target)
    url = given.environ.get(f"{PREFIX}URL", "")
    values = {key: given.environ.get(PREFIX + key.upper(), "") for key in KEYS}
    # What a profile's URL gets stands in the profile: SQLSHELL_URL would not lead there.
    remedy = "give the profile a token_file of its own" if given.table.get("url") else "set SQLSHELL_URL to that URL"
    yield from _of_place(values, _parsed(url) if url else started, PREFIX, remedy, bool(url))
    remedy = "use a profile that has both that url and its token"
    values = {key: str(given.table.get(key, "")) for key in KEYS}
    yield from _of_place(values, _parsed(str(given.table.get("url", ""))), f"profile {given.profile}", remedy)


def _of_place(
    values: Mapping[str, str], owner: Target | None, place: str, remedy: str, dsn: bool = True
) -> Iterator[Held]:
    """The token of one place; one inside its URL counts where the place holds that URL itself (`dsn`)."""
    for key, value in values.items():
        if value:
            name = f"{place}{key.upper()}" if place == PREFIX else f"the token of {place}"
            yield Held(key, value, name, remedy, owner)
            return
    if dsn and owner is not None and owner.token:
        yield Held("token", owner.token, "the token in SQLSHELL_URL" if place == PREFIX else place, remedy, owner)


def _why(held: Held, target: Target) -> str:
    """Why a token stays, and what to do."""
    reason = f"it belongs to {held.owner.name}" if held.owner is not None else "no URL stands beside it"
    return f"{held.name} is not sent to {target.name}: {reason}; {held.remedy}"


def _parsed(url: str) -> Target | None:
    """The service of a URL; None for a text that is none, of which whoever goes there is told."""
    try:
        return parse(url) if is_url(url) else None
    except UsageError:
        return None


def _read(held: Held, warn: Warn) -> tuple[str, str]:
    match held.key:
        case "token_file":
            return read_token(held.value, warn), ""
        case "token_keyring":
            return keyring_token(held.value), ""
        case "token_command":
            return "", held.value
    return held.value, ""


def read_token(path: str, warn: Callable[[str], None]) -> str:
    """The token in a file: its one line. Raises UsageError."""
    file = Path(path).expanduser()
    try:
        text = file.read_text(encoding="utf-8").strip()
        mode = file.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(f"the token file {path} cannot be read: {reason}") from None
    if not text or len(text.split()) != 1:
        raise UsageError(f"the token file {path} does not hold one token", "it has one line, the token")
    if os.name == "posix" and mode & (stat.S_IRGRP | stat.S_IROTH | stat.S_IWGRP | stat.S_IWOTH):
        done = "read" if mode & (stat.S_IRGRP | stat.S_IROTH) else "written"
        warn(f"the token file {path} can be {done} by others: chmod 600 {shlex.quote(str(file))}")
    return text


def exposed(config: Config) -> Iterator[str]:
    """What is wrong with who may read or write config.toml, and what to do."""
    if os.name != "posix":
        return
    try:
        mode = config.path.stat().st_mode
    except OSError:
        return
    remedy = f"chmod 600 {shlex.quote(str(config.path))}"
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        yield f"{config.path} can be written by others, who could have tokens sent elsewhere: {remedy}"
    elif mode & (stat.S_IRGRP | stat.S_IROTH) and (held := _held_in(config)):
        yield f"{config.path} holds {held} and can be read by others: {remedy}"


def tokens_of(environ: Mapping[str, str], config: Config) -> Iterator[str]:
    """The tokens that stand in the environment and in profiles, whichever of them is sent."""
    given = [environ.get(f"{PREFIX}TOKEN", ""), _token_in(environ.get(f"{PREFIX}URL", ""))]
    for table in config.profiles.values():
        if isinstance(table, Mapping):
            given += [str(table.get("token", "")), _token_in(str(table.get("url", "")))]
    yield from filter(None, given)


def _token_in(url: str) -> str:
    target = _parsed(url)
    return target.token if target is not None else ""


def without_secrets(name: str, value: object) -> object:
    """The value of a setting as it may be shown: without a token, and without the values of variables named for one."""
    from sqlshell.sql.analysis.secrets import NAMES

    if name == "token":
        return "***" if value else value
    if name == "set" and isinstance(value, tuple):
        pairs = [str(item).partition("=") for item in value]
        return tuple(f"{key}=***" if NAMES.search(key) else f"{key}{sign}{text}" for key, sign, text in pairs)
    return without_token(value) if isinstance(value, str) else value


def _held_in(config: Config) -> str:
    """The first secret that a profile holds, in words; "" without one."""
    from sqlshell.sql.analysis.secrets import NAMES

    for name, table in sorted(config.profiles.items()):
        if not isinstance(table, Mapping):
            continue
        if table.get("token"):
            return f"the token of profile {name}"
        url = str(table.get("url", ""))
        if without_token(url) != url:
            return f"the token in the url of profile {name}"
        given = table.get("set")
        if isinstance(given, Mapping) and any(NAMES.search(str(key)) for key in given):
            return f"a secret in the variables of profile {name}"
    return ""


def keyring_token(named: str) -> str:
    """The token that the system's keyring has for SERVICE/USER. Raises UsageError."""
    service, _, user = named.partition("/")
    if not service or not user:
        raise UsageError(f"token_keyring: {named!r} is not SERVICE/USER")
    try:
        import keyring
    except ImportError:
        raise UsageError("token_keyring requires keyring (extra: keyring)", "run: pip install keyring") from None
    try:
        token = keyring.get_password(service, user)
    except Exception as error:
        # Every backend has errors of its own.
        raise UsageError(f"the keyring did not give a token: {error}") from None
    if not token:
        raise UsageError(f"the keyring has no token {named}", f"keyring set {service} {user} puts one there")
    return str(token)


def run_token_command(command: str) -> str:
    """The token that a command of the person's own prints. Raises UsageError."""
    import subprocess

    try:
        done = subprocess.run(
            command, shell=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=120, check=False
        )
        text = done.stdout.decode().strip()
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise UsageError(f"token_command did not give a token: {type(error).__name__}") from None
    if done.returncode:
        raise UsageError(f"token_command ended with code {done.returncode}", "run it by hand to see why")
    if not text or len(text.split()) != 1:
        raise UsageError("token_command did not print one token", "its output is one line, the token")
    return text
