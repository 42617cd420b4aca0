"""Where a shell goes: TARGET, environment and profile become a remote service with its token, or the local service."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
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
    """`profile` is the profile whose URL this is, "" where the URL stands elsewhere."""

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
    """What `text`, a TARGET or "", means. Raises UsageError.

    `command_line` is the TARGET of the command line where `text` comes from elsewhere: tokens of the command line and
    the environment may belong to its URL, and never to one that the journal or the prompt gave.
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
            warn("a token on the command line can be read by others on this machine: use SQLSHELL_URL or a profile")
        return Place(settings, remote(target))
    if text and not named:
        return Place(settings, _file(text, config.profiles))
    if not settings["url"]:
        if named:
            warn(f"profile {named} has no url: this is the local service, and nothing is kept")
        return Place(settings, Local())
    found = _url_of(settings)
    profile = settings.profile if settings.source("url") == "profile" else ""
    return Place(settings, found if isinstance(found, Local) else remote(found), profile)


def names_profile(text: str, config: Config) -> bool:
    """Whether a TARGET is a profile, and neither a URL nor a file."""
    return bool(text) and not is_url(text) and text in config.profiles


def context_of(place: Place) -> SessionContext:
    """The context to begin with: settings first, then the DSN's parts; a time zone and sessionID in any case."""
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
    """The name of a time zone. Raises UsageError for one that is none, where this machine knows of any."""
    if not name:
        return ""
    import zoneinfo

    try:
        zoneinfo.ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        known = zoneinfo.available_timezones()
        if known:
            hint = did_you_mean(name, sorted(known), "give an IANA name, such as Europe/Berlin or UTC")
            raise UsageError(f"there is no time zone {name[:80]!r}", hint) from None
    return name


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


def own_session(place: Place, context: SessionContext) -> str:
    """The session of context_of() where it is a new one, "" where the person named one to join."""
    return context.session_id if sources_of(place)["session_id"] == "new" else ""


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


def located(url: str) -> Target | Local:
    """What the setting `url` means: a service, or a database or data file. Raises UsageError."""
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
    """The file of a TARGET, or of a url (which names no profile: None). Raises UsageError."""
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
            raise UsageError(f"{path.name} cannot be created: {path.parent} is not a folder")
        return Local(database=path)
    if bare.endswith(DATA_ENDINGS) or text.startswith(LOOKS_LIKE_PATH) or os.sep in text:
        raise UsageError(
            f"there is no file {without_token(text)}", f"a new database's name ends in {', '.join(DATABASE_ENDINGS)}"
        )
    ending = f"a new database's name ends in {', '.join(DATABASE_ENDINGS)}"
    if profiles is None:
        raise UsageError(f"{text!r} is neither a URL nor a file", f"write it as https://host/v2; {ending}")
    known = ", ".join(sorted(profiles)) or "none"
    raise UsageError(f"{text!r} is neither a URL, nor a profile, nor a file", f"profiles: {known}; {ending}")
