"""Where a shell goes: TARGET, environment and profile become a remote service with its token, or the local service."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from sqlshell.client.target import Target, is_url, parse
from sqlshell.config import Config, Settings, resolve
from sqlshell.context import SessionContext
from sqlshell.errors import UsageError

DATABASE_ENDINGS = (".db", ".duckdb", ".ddb")
DATA_ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
PACKED_ENDINGS = (".gz", ".zst")
LOOKS_LIKE_PATH = ("/", "\\", ".", "~")


class Remote(Struct, frozen=True):
    """A service elsewhere; `token` is "" where none is known, `parts` are context settings that its DSN gave.

    `token_command` makes the token, and makes another when the service no longer takes it.
    """

    target: Target
    token: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)
    token_command: str = ""

    def __repr__(self) -> str:
        return f"Remote({self.target!r})"


class Local(Struct, frozen=True):
    """The embedded service on a database file (None: transient), with a view for each data file."""

    database: Path | None = None
    views: Mapping[str, Path] = field(default_factory=dict)


class Place(Struct, frozen=True):
    settings: Settings
    where: Remote | Local


def find_place(
    text: str, flags: Mapping[str, Any], environ: Mapping[str, str], config: Config, warn: Callable[[str], None]
) -> Place:
    """What `text`, the TARGET of the command line or "", means. Raises UsageError."""
    if not text:
        settings = resolve(flags, environ, config)
        return Place(settings, _configured(settings, environ, config, warn))
    if is_url(text):
        settings = resolve(flags, environ, config)
        target = parse(text)
        if target.token:
            warn("a token on the command line can be read by others on this machine: use SQLSHELL_URL or a profile")
        return Place(settings, _remote(target, settings, environ, config, warn))
    if text in config.profiles:
        settings = resolve(flags, environ, config, text)
        return Place(settings, _configured(settings, environ, config, warn))
    return Place(resolve(flags, environ, config), _file(text, config))


def context_of(place: Place) -> SessionContext:
    """The context to begin with: settings first, then the DSN's parts; a time zone and sessionID in any case."""
    settings = place.settings
    parts = place.where.parts if isinstance(place.where, Remote) else {}

    def part(name: str) -> str:
        chosen = settings[name]
        return str(chosen if chosen and settings.source(name) != "default" else parts.get(name, ""))

    from sqlshell.client.statements import fresh_session_id

    return SessionContext(
        organization=part("organization"),
        role=part("role"),
        database=part("database"),
        schema=part("schema"),
        store=part("store"),
        compute_pool=part("compute_pool"),
        timezone=part("timezone") or machine_timezone(os.environ),
        session_id=part("session_id") or fresh_session_id(),
    )


def sources_of(place: Place) -> dict[str, str]:
    """Where each part of context_of() came from."""
    settings = place.settings
    parts = place.where.parts if isinstance(place.where, Remote) else {}
    found = {"timezone": "machine", "session_id": "new"} | dict.fromkeys(parts, "DSN")
    for name in ("organization", "role", "database", "schema", "store", "compute_pool", "timezone", "session_id"):
        if settings[name] and settings.source(name) != "default":
            profile = f"profile {settings.profile}"
            found[name] = profile if settings.source(name) == "profile" else settings.source(name)
    return found


def machine_timezone(environ: Mapping[str, str]) -> str:
    """The machine's IANA time zone, "UTC" where none is known."""
    localtime = Path("/etc/localtime")
    if os.name == "posix" and not environ.get("TZ"):
        # What most machines have, without an import of 28 ms.
        if localtime.is_symlink():
            zone = str(localtime.readlink()).partition("zoneinfo/")[2]
            if zone:
                return zone
        elif not localtime.exists() and not Path("/etc/timezone").exists():
            return "UTC"
    import warnings

    import tzlocal

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            zone = tzlocal.get_localzone_name()
    except (LookupError, ValueError, OSError):
        return "UTC"
    return "UTC" if not zone or zone == "local" else str(zone)


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
    if os.name == "posix" and mode & (stat.S_IRGRP | stat.S_IROTH):
        warn(f"the token file {path} can be read by others: chmod 600 {path}")
    return text


def _configured(
    settings: Settings, environ: Mapping[str, str], config: Config, warn: Callable[[str], None]
) -> Remote | Local:
    if not settings["url"]:
        return Local()
    target = _parsed(settings)
    return _remote(target, settings, environ, config, warn)


def _remote(
    target: Target, settings: Settings, environ: Mapping[str, str], config: Config, warn: Callable[[str], None]
) -> Remote:
    token, command = _token(target, settings, environ, config, warn)
    return Remote(target, token, target.parts, command)


def keyring_token(named: str) -> str:
    """The token that the system's keyring has for SERVICE/USER. Raises UsageError."""
    service, _, user = named.partition("/")
    if not service or not user:
        raise UsageError(f"token_keyring: {named!r} is not SERVICE/USER")
    try:
        import keyring
    except ImportError:
        raise UsageError("token_keyring needs the package keyring", "pip install keyring") from None
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


def _parsed(settings: Settings) -> Target:
    source = {"environment": "SQLSHELL_URL", "profile": f"profile {settings.profile}"}.get(
        settings.source("url"), "url"
    )
    try:
        return parse(settings["url"])
    except UsageError as error:
        raise UsageError(f"{source}: {error.message}", error.hint) from None


def _token(
    target: Target, settings: Settings, environ: Mapping[str, str], config: Config, warn: Callable[[str], None]
) -> tuple[str, str]:
    """The token for exactly this target, or the command that makes it.

    A token of the environment or of a profile belongs to the origin that the same place names, and goes nowhere else.
    """
    if settings.source("token_file") == "flag":
        return read_token(settings["token_file"], warn), ""
    if target.token:
        return target.token, ""
    for source, url in (
        ("environment", environ.get("SQLSHELL_URL", "")),
        ("profile", str(config.profiles.get(settings.profile, {}).get("url", ""))),
    ):
        names = [
            name
            for name in ("token", "token_file", "token_keyring", "token_command")
            if settings.source(name) == source
        ]
        if not names and not url:
            continue
        owner = parse(url) if is_url(url) else None
        if owner is not None and owner.origin != target.origin:
            if names:
                warn(f"the {source}'s token belongs to {owner.base} and is not sent to {target.base}")
            continue
        if source == "profile" and owner is None:
            warn(f"profile {settings.profile} has a token but no url, so that it is sent nowhere")
            continue
        if names:
            if "token" in names:
                return str(settings["token"]), ""
            if "token_file" in names:
                return read_token(settings["token_file"], warn), ""
            if "token_keyring" in names:
                return keyring_token(str(settings["token_keyring"])), ""
            return "", str(settings["token_command"])
        if owner is not None and owner.token:
            return owner.token, ""
    return "", ""


def _file(text: str, config: Config) -> Local:
    path = Path(text).expanduser()
    bare = path.name.lower()
    for ending in PACKED_ENDINGS:
        bare = bare.removesuffix(ending)
    if path.is_dir():
        raise UsageError(f"{text} is a folder, not a database or data file")
    if path.exists():
        if bare.endswith(DATA_ENDINGS):
            name = path.name[: len(bare)].rpartition(".")[0]
            return Local(views={name: path})
        return Local(database=path)
    if bare.endswith(DATABASE_ENDINGS):
        if not path.parent.is_dir():
            raise UsageError(f"{path.parent} is no folder, so that {path.name} cannot be made there")
        return Local(database=path)
    if bare.endswith(DATA_ENDINGS) or text.startswith(LOOKS_LIKE_PATH) or os.sep in text:
        raise UsageError(f"there is no file {text}", f"a new database's name ends in {', '.join(DATABASE_ENDINGS)}")
    known = ", ".join(sorted(config.profiles)) or "none"
    raise UsageError(
        f"{text!r} is neither a URL, nor a profile, nor a file",
        f"profiles: {known}; a new database's name ends in {', '.join(DATABASE_ENDINGS)}",
    )
