"""The destination of a shell: resolves TARGET, environment and profile to a remote or the local service."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from sqlshell.client.target import Target, is_url, parse, without_token
from sqlshell.config.values import Config, Settings, resolve
from sqlshell.context import SessionContext
from sqlshell.errors import UsageError
from sqlshell.spelling import did_you_mean

DATABASE_ENDINGS = (".db", ".duckdb", ".ddb")
DATA_ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
PACKED_ENDINGS = (".gz", ".zst")
LOOKS_LIKE_PATH = ("/", "\\", ".", "~")


class Remote(Struct, frozen=True):
    """A remote service; `token` is "" if none is known, `parts` are the context settings of its DSN.

    `token_command` prints the token, and runs again if the service rejects it.
    """

    target: Target
    token: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)
    token_command: str = ""

    def __repr__(self) -> str:
        return f"Remote({self.target!r})"


class Local(Struct, frozen=True):
    """The embedded service on a database file (None: in memory), with a view for each data file."""

    database: Path | None = None
    views: Mapping[str, Path] = field(default_factory=dict)


class Place(Struct, frozen=True):
    """Settings and service; `profile` is the profile that gave the URL, "" if the URL comes from elsewhere."""

    settings: Settings
    where: Remote | Local
    profile: str = ""


def find_place(
    text: str,
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    config: Config,
    warn: Callable[[str], None],
    command_line: str | None = None,
) -> Place:
    """The destination that `text`, a TARGET or "", refers to. Raises UsageError.

    `command_line` is the TARGET of the command line if `text` comes from elsewhere: tokens of the command line and
    the environment may belong to its URL, but never to a URL from the journal or the prompt.
    """
    from sqlshell.launch.credentials import Given, token_for

    given = text if command_line is None else command_line
    named = text if names_profile(text, config) else ""
    settings = resolve(flags, environ, config, named)

    def remote(target: Target) -> Remote:
        table = config.profiles.get(settings.profile, {})
        token, command = token_for(target, Given(given, flags, environ, settings.profile, table), warn)
        return Remote(target, token, target.parts, command)

    if is_url(text):
        target = parse(text)
        if target.token and text == given:
            warn("other users of this machine can read a token on the command line: use SQLSHELL_URL or a profile")
        return Place(settings, remote(target))
    if text and not named:
        return Place(settings, _file(text, config.profiles))
    if not settings["url"]:
        if named:
            warn(f"profile {named} has no url: using the local service in memory; its data is lost on exit")
        return Place(settings, Local())
    found = _url_of(settings)
    profile = settings.profile if settings.source("url") == "profile" else ""
    return Place(settings, found if isinstance(found, Local) else remote(found), profile)


def names_profile(text: str, config: Config) -> bool:
    """Whether a TARGET is a profile, not a URL or a file."""
    return bool(text) and not is_url(text) and text in config.profiles


def context_of(place: Place) -> SessionContext:
    """The initial context: from settings, then from the DSN; time zone and sessionID always have a value."""
    settings = place.settings
    parts = place.where.parts if isinstance(place.where, Remote) else {}

    def part(name: str) -> str:
        chosen = settings[name]
        return str(chosen if chosen and settings.source(name) != "default" else parts.get(name, ""))

    from sqlshell.client.statements.polling import new_session_id

    return SessionContext(
        organization=part("organization"),
        role=part("role"),
        database=part("database"),
        schema=part("schema"),
        store=part("store"),
        compute_pool=part("compute_pool"),
        timezone=known_zone(part("timezone")) or machine_timezone(os.environ),
        session_id=part("session_id") or new_session_id(),
    )


def known_zone(name: str) -> str:
    """The name of a time zone, checked. Raises UsageError if this machine's time zone database does not have it."""
    if not name:
        return ""
    import zoneinfo

    try:
        zoneinfo.ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        known = zoneinfo.available_timezones()
        if known:
            hint = did_you_mean(name, sorted(known), "use an IANA name, such as Europe/Berlin or UTC")
            raise UsageError(f"unknown time zone {name[:80]!r}", hint) from None
    return name


def sources_of(place: Place) -> dict[str, str]:
    """The source of each part of context_of()."""
    settings = place.settings
    parts = place.where.parts if isinstance(place.where, Remote) else {}
    found = {"timezone": "machine", "session_id": "new"} | dict.fromkeys(parts, "DSN")
    for name in ("organization", "role", "database", "schema", "store", "compute_pool", "timezone", "session_id"):
        if settings[name] and settings.source(name) != "default":
            profile = f"profile {settings.profile}"
            found[name] = profile if settings.source(name) == "profile" else settings.source(name)
    return found


def own_session(place: Place, context: SessionContext) -> str:
    """The session of context_of() if it is new, "" if the user named a session to join."""
    return context.session_id if sources_of(place)["session_id"] == "new" else ""


def machine_timezone(environ: Mapping[str, str]) -> str:
    """The machine's IANA time zone, "UTC" if it is unknown."""
    localtime = Path("/etc/localtime")
    if os.name == "posix" and not environ.get("TZ"):
        # Works on most machines and avoids an import of 28 ms.
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


def located(url: str) -> Target | Local:
    """The service, database or data file that the setting `url` refers to. Raises UsageError."""
    return parse(url) if is_url(url) else _file(url)


def _url_of(settings: Settings) -> Target | Local:
    source = {"environment": "SQLSHELL_URL", "profile": f"profile {settings.profile}"}.get(
        settings.source("url"), "url"
    )
    try:
        return located(settings["url"])
    except UsageError as error:
        raise UsageError(f"{source}: {error.message}", error.hint) from None


def _file(text: str, profiles: Iterable[str] | None = None) -> Local:
    """The local service for a file that a TARGET names, or a url (`profiles` is None). Raises UsageError."""
    path = Path(text).expanduser()
    bare = path.name.lower()
    for ending in PACKED_ENDINGS:
        bare = bare.removesuffix(ending)
    if path.is_dir():
        raise UsageError(f"{text} is a directory; expected a database or data file")
    if path.exists():
        if bare.endswith(DATA_ENDINGS):
            name = path.name[: len(bare)].rpartition(".")[0]
            return Local(views={name: path})
        return Local(database=path)
    if bare.endswith(DATABASE_ENDINGS):
        if not path.parent.is_dir():
            raise UsageError(f"cannot create {path.name}: {path.parent} is not a directory")
        return Local(database=path)
    if bare.endswith(DATA_ENDINGS) or text.startswith(LOOKS_LIKE_PATH) or os.sep in text:
        raise UsageError(
            f"no such file: {without_token(text)}",
            f"to create a database, use the extension {_any_of(DATABASE_ENDINGS)}",
        )
    ending = f"to create a database, use the extension {_any_of(DATABASE_ENDINGS)}"
    if profiles is None:
        raise UsageError(f"{text!r} is neither a URL nor an existing file", f"write a URL as https://host/v2; {ending}")
    known = ", ".join(sorted(profiles)) or "none"
    raise UsageError(f"{text!r} is not a URL, profile or existing file", f"known profiles: {known}; {ending}")


def _any_of(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
