"""Which token is sent to which service: a token is sent only to the origin of the URL configured in the same place.

The places are the command line (TARGET, `--token-file`), the environment (`SQLSHELL_URL`, `SQLSHELL_TOKEN` and its
variants), a profile, a DSN, and the prompt (`\\c`, the hidden question). If `SQLSHELL_URL` is not set, `SQLSHELL_TOKEN`
belongs to the URL on the command line.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from sqlshell.client.target import Target, is_url, parse, without_token
from sqlshell.config.settings import PREFIX
from sqlshell.config.values import Config
from sqlshell.errors import UsageError, reason
from sqlshell.runtime.files import expanded
from sqlshell.text import MASK, how_to_install

Warn = Callable[[str], None]

KEYS = ("token", "token_file", "token_keyring", "token_command")
"""The settings that provide a token; within one place the first one that is set is used."""

FLAG = "--token-file"

ARGUMENT = "the argument token"


class TokenSources(Struct, frozen=True):
    """The places that may provide a token: the command line, the environment and the selected profile.

    `command_line` is the TARGET that the program was started with, "" for none; `\\c` does not change it.
    """

    command_line: str
    flags: Mapping[str, Any]
    environ: Mapping[str, str]
    profile: str
    table: Mapping[str, Any]


class ConfiguredToken(Struct, frozen=True):
    """A token in one place, not yet read; `owner` is the service of the URL in that place, None if there is none."""

    key: str
    value: str
    name: str
    remedy: str
    owner: Target | None

    def __repr__(self) -> str:
        return f"ConfiguredToken({self.name!r})"


def token_for(target: Target, sources: TokenSources, warn: Warn) -> tuple[str, str]:
    """The token for exactly this service and the command that prints it; one of them is set, or both are "".

    If no token belongs to this service, warns about each token that belongs to another one; always warns about a token
    of a flag that belongs to none. Raises UsageError for a token that cannot be read.
    """
    elsewhere: list[ConfiguredToken] = []
    for configured in _configured_tokens(sources, target):
        if configured.owner is not None and configured.owner.origin == target.origin:
            for other in elsewhere:
                if other.name == FLAG and other.owner is None:
                    warn(f"{_why_not_sent(other, target)}; {configured.name} is sent instead")
            return _read_token(configured, warn)
        elsewhere.append(configured)
    for configured in elsewhere:
        warn(_why_not_sent(configured, target))
    return "", ""


def _configured_tokens(sources: TokenSources, target: Target) -> Iterator[ConfiguredToken]:
    """The tokens of all places, in order of precedence."""
    started = _target_of(sources.command_line)
    if sources.flags.get("token_file"):
        yield ConfiguredToken("token_file", str(sources.flags["token_file"]), FLAG, "give the URL as TARGET", started)
    if sources.flags.get("token"):
        yield ConfiguredToken("token", str(sources.flags["token"]), ARGUMENT, "give the URL as the target", started)
    if target.token:
        yield ConfiguredToken("token", target.token, "the token of the URL", "", target)
    url = sources.environ.get(f"{PREFIX}URL", "")
    values = {key: sources.environ.get(PREFIX + key.upper(), "") for key in KEYS}
    # For a profile with a URL, the token must be in the profile too: setting SQLSHELL_URL would not help.
    remedy = "set token_file in the profile" if sources.table.get("url") else f"set SQLSHELL_URL={target.name}"
    yield from _configured_in(values, _target_of(url) if url else started, PREFIX, remedy, bool(url))
    remedy = "use a profile that contains both the url and its token"
    values = {key: str(sources.table.get(key, "")) for key in KEYS}
    yield from _configured_in(
        values, _target_of(str(sources.table.get("url", ""))), f"profile {sources.profile!r}", remedy
    )


def _configured_in(
    values: Mapping[str, str], owner: Target | None, place: str, remedy: str, dsn: bool = True
) -> Iterator[ConfiguredToken]:
    """The token of one place; a token inside the URL is used if the place contains the URL itself (`dsn`)."""
    for key, value in values.items():
        if value:
            name = f"{place}{key.upper()}" if place == PREFIX else f"the token of {place}"
            yield ConfiguredToken(key, value, name, remedy, owner)
            return
    if dsn and owner is not None and owner.token:
        yield ConfiguredToken(
            "token", owner.token, "the token in SQLSHELL_URL" if place == PREFIX else place, remedy, owner
        )


def _why_not_sent(configured: ConfiguredToken, target: Target) -> str:
    """Why a token is not sent, and what to do."""
    reason = (
        f"it belongs to {configured.owner.name}" if configured.owner is not None else "no URL is configured with it"
    )
    return f"{configured.name} is not sent to {target.name}: {reason}; {configured.remedy}"


def _target_of(url: str) -> Target | None:
    """The service of a URL; None for an invalid URL, which is reported when it is used."""
    try:
        return parse(url) if is_url(url) else None
    except UsageError:
        return None


def _read_token(configured: ConfiguredToken, warn: Warn) -> tuple[str, str]:
    match configured.key:
        case "token_file":
            return read_token(configured.value, warn), ""
        case "token_keyring":
            return keyring_token(configured.value), ""
        case "token_command":
            return "", configured.value
    return configured.value, ""


def read_token(path: str, warn: Callable[[str], None]) -> str:
    """The token in a file, which has one line. Raises UsageError."""
    file = expanded(path)
    try:
        text = file.read_text(encoding="utf-8").strip()
        mode = file.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        hint = "check the path in --token-file or token_file" if isinstance(error, FileNotFoundError) else ""
        raise UsageError(f"cannot read token file {path}: {reason(error)}", hint) from None
    if not text or len(text.split()) != 1:
        raise UsageError(f"token file {path} does not contain exactly one token", "expected one line with the token")
    if os.name == "posix" and mode & (stat.S_IRGRP | stat.S_IROTH | stat.S_IWGRP | stat.S_IWOTH):
        done = "read" if mode & (stat.S_IRGRP | stat.S_IROTH) else "write to"
        warn(f"other users can {done} token file {path}; run: chmod 600 {shlex.quote(str(file))}")
    return text


def permission_problems(config: Config) -> Iterator[str]:
    """The problems with the permissions of config.toml, and how to fix them."""
    if os.name != "posix":
        return
    try:
        mode = config.path.stat().st_mode
    except OSError:
        return
    remedy = f"run: chmod 600 {shlex.quote(str(config.path))}"
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        yield f"other users can write to {config.path} and redirect tokens to another service; {remedy}"
    elif mode & (stat.S_IRGRP | stat.S_IROTH) and (secret := _secret_in(config)):
        yield f"other users can read {config.path}, which contains {secret}; {remedy}"


def tokens_of(environ: Mapping[str, str], config: Config) -> Iterator[str]:
    """All tokens in the environment and in profiles, whether they are used or not."""
    sources = [environ.get(f"{PREFIX}TOKEN", ""), _token_in(environ.get(f"{PREFIX}URL", ""))]
    for table in config.profiles.values():
        if isinstance(table, Mapping):
            sources += [str(table.get("token", "")), _token_in(str(table.get("url", "")))]
    yield from filter(None, sources)


def _token_in(url: str) -> str:
    target = _target_of(url)
    return target.token if target is not None else ""


def without_secrets(name: str, value: object) -> object:
    """The value of a setting for display: without tokens, and without the values of variables named like a secret."""
    from sqlshell.sql.analysis.secrets import names_secret

    if name == "token":
        return MASK if value else value
    if name == "set" and isinstance(value, tuple):
        pairs = [str(item).partition("=") for item in value]
        return tuple(f"{key}={MASK}" if names_secret(key) else f"{key}{sign}{text}" for key, sign, text in pairs)
    return without_token(value) if isinstance(value, str) else value


def _secret_in(config: Config) -> str:
    """A description of the first secret in the profiles; "" if there is none."""
    from sqlshell.sql.analysis.secrets import names_secret

    for name, table in sorted(config.profiles.items()):
        if not isinstance(table, Mapping):
            continue
        if table.get("token"):
            return f"the token of profile {name!r}"
        url = str(table.get("url", ""))
        if without_token(url) != url:
            return f"the token in the url of profile {name!r}"
        sources = table.get("set")
        if isinstance(sources, Mapping) and any(names_secret(str(key)) for key in sources):
            return f"a secret in the variables of profile {name!r}"
    return ""


def keyring_token(entry: str) -> str:
    """The token that the system keyring has for SERVICE/USER. Raises UsageError."""
    service, _, user = entry.partition("/")
    if not service or not user:
        raise UsageError(f"token_keyring: {entry!r} does not have the form SERVICE/USER")
    try:
        import keyring
    except ImportError:
        raise UsageError(
            "token_keyring requires the package keyring (extra: keyring)", how_to_install("keyring")
        ) from None
    try:
        token = keyring.get_password(service, user)
    except Exception as error:
        # Every backend raises its own exceptions.
        raise UsageError(f"cannot read the token from the keyring: {error}") from None
    if not token:
        raise UsageError(f"the keyring has no token for {entry}", f"add it with: keyring set {service} {user}")
    return str(token)


def run_token_command(command: str) -> str:
    """The token that the configured command prints. Raises UsageError."""
    import subprocess

    try:
        done = subprocess.run(
            command, shell=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=120, check=False
        )
        text = done.stdout.decode().strip()
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise UsageError(f"token_command failed: {type(error).__name__}") from None
    if done.returncode:
        raise UsageError(f"token_command failed with exit code {done.returncode}", "run it in a terminal to see why")
    if not text or len(text.split()) != 1:
        raise UsageError("token_command did not print exactly one token", "make it print one line with only the token")
    return text
