"""The destination of a shell: resolves TARGET, environment and profile to a remote or the local service."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from msgspec import Struct, field

from sqlshell.client.target import Target, is_url, parse
from sqlshell.config.values import Config, Settings, resolve
from sqlshell.context import SessionContext, is_timezone
from sqlshell.errors import MISSING, UsageError, reason
from sqlshell.runtime.files import COMPRESSED_ENDINGS, DATA_ENDINGS, DATABASE_ENDINGS, expanded, without_compression
from sqlshell.service.engines.servers import SERVERS
from sqlshell.text import MASK, any_of, did_you_mean

_LIBPQ = re.compile(r"(?:\A|\s)(?:host|hostaddr|port|dbname|user|password|service)\s*=")
"""In a connection string of libpq."""

LOOKS_LIKE_PATH = ("/", "\\", ".", "~")

MEMORY: Final = ":memory:"
"""The TARGET of a new database in memory, as DuckDB and SQLite name it."""

STDIN: Final = "stdin"
"""The view of the data on stdin."""
_ENDINGS: Final = "|".join(map(re.escape, (*DATA_ENDINGS, *DATABASE_ENDINGS)))
_HEADER: Final = 16
"""The bytes that distinguish a DuckDB database from other files."""
_NAME: Final = re.compile(r"[\w.-]{1,24}")
_PATH: Final = re.compile(rf"(?!/?/)[^:\s]*/[^:\s]*|(?:~?/|\.{{1,2}}/)[^:@\n]*|[^:\n]*(?:{_ENDINGS})")
_URL: Final = re.compile(r"https?://[\w.-]{1,99}(?::\d{1,5})?(?:/[\w.-]{1,24}){0,4}/?")
_URL_BEGUN: Final = re.compile(r"https?[/\\;]|//|bearer\b|basic\b", re.I)
_RANDOM: Final = re.compile(r"[A-Za-z0-9+=]{20}|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-|\beyJ")
"""Text that tokens contain, and names seldom do."""
_WHICH: Final = f"data files end in {', '.join(DATA_ENDINGS)}, or in one of these and {' or '.join(COMPRESSED_ENDINGS)}"
_BY_SCHEME: Final = {scheme: name for name, server in SERVERS.items() for scheme in server.schemes}
_PORT: Final = re.compile(r":(\d*)\Z")


class EngineUrl(Struct, frozen=True):
    """An engine by name, and its URL, which may contain a password or token."""

    engine: str
    url: str

    def __repr__(self) -> str:
        return f"EngineUrl({self.shown!r})"

    @property
    def shown(self) -> str:
        """The URL without password, token and parameters."""
        scheme, _, rest = self.url.partition("://")
        place = rest.partition("?")[0].partition(";")[0].partition("#")[0].rstrip("/")
        user, at, host = place.rpartition("@")
        return f"{scheme.lower()}://{user.partition(':')[0]}{at}{host}"

    @property
    def host(self) -> str:
        """The name of the server, for the prompt."""
        return self.shown.partition("://")[2].rpartition("@")[2].partition("/")[0] or self.engine

    def url_of_other_database(self, database: str, user: str = "", host: str = "", port: str = "") -> str:
        """The URL of another database of a PostgreSQL server, also as another user or on another server; "" keeps the
        present value. As in psql, the password is only for the same user on the same server.
        """
        place, _, query = self.url.partition("?")
        scheme, _, rest = place.partition("://")
        place, _, path = rest.partition("/")
        login, _, hosts = place.rpartition("@")
        options = dict(item.partition("=")[::2] for item in query.split("&") if item)
        if database:
            path = quote(database, safe="")
            options.pop("dbname", None)
        same = user in {"", unquote(login.partition(":")[0] or options.get("user", ""))}
        if host or port or not same:
            login = login.partition(":")[0]
            options.pop("password", None)
        if not same:
            login = quote(user, safe="")
            options.pop("user", None)
        if host:
            # The addresses of a server are not those of the other server.
            ports = {match[1] for each in hosts.split(",") if (match := _PORT.search(each))}
            port = port or options.pop("port", "") or (ports.pop() if len(ports) == 1 else "")
            options = {name: value for name, value in options.items() if name not in {"host", "hostaddr", "port"}}
            is_socket = host.startswith(("/", "@"))
            hosts = "" if is_socket else f"[{host}]" if ":" in host else quote(host, safe=",")
            options |= {"host": quote(host, safe="/")} if is_socket else {}
        if port:
            options.pop("port", None)
            hosts = ",".join(f"{_PORT.sub('', each)}:{port}" for each in hosts.split(","))
        given = "&".join(f"{name}={value}" for name, value in options.items())
        return f"{scheme}://{login}{'@' * bool(login)}{hosts}/{path}{'?' * bool(given)}{given}"

    @property
    def has_secret(self) -> bool:
        """Whether the URL contains a password or a token."""
        try:
            parts = urlsplit(self.url)
            given = bool(parts.password)
        except ValueError:
            given = True
        low = self.url.lower()
        return given or "password=" in low or "token=" in low


def engine_at(text: str) -> EngineUrl | None:
    """The engine that a TARGET names by the scheme of its URL, None for other targets."""
    scheme, separator, _ = text.strip().partition("://")
    engine = _BY_SCHEME.get(scheme.lower(), "") if separator else ""
    return EngineUrl(engine, text.strip()) if engine else None


class RemoteService(Struct, frozen=True):
    """A remote service; `token` is "" if none is known, `parts` are the context settings of its DSN.

    `token_command` prints the token, and runs again if the service rejects it.
    """

    target: Target
    token: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)
    token_command: str = ""

    def __repr__(self) -> str:
        return f"Remote({self.target!r})"


class LocalService(Struct, frozen=True):
    """The embedded service on a database file (None: in memory), with a view for each data file. `stdin` says that the
    view of this name is a copy of stdin. With a `server` it runs statements there instead."""

    database: Path | None = None
    views: dict[str, Path] = field(default_factory=dict)
    stdin: bool = False
    server: EngineUrl | None = None


class Destination(Struct, frozen=True):
    """Settings and service; `profile` is the profile that gave the URL, "" if the URL comes from elsewhere."""

    settings: Settings
    service: RemoteService | LocalService
    profile: str = ""

    @property
    def address(self) -> str:
        """The URL, without secrets, or the files."""
        if isinstance(self.service, RemoteService):
            return self.service.target.name
        if self.service.server is not None:
            return self.service.server.shown
        if self.service.database is not None:
            return str(self.service.database)
        views = self.service.views | ({STDIN: Path(STDIN)} if self.service.stdin else {})
        return ", ".join(str(path) for path in views.values()) or "DuckDB in memory"

    @property
    def storage_name(self) -> str:
        """The name of the service for its history and catalog files; "" for one that no later shell can reach."""
        if isinstance(self.service, RemoteService):
            return self.service.target.name
        if self.service.server is not None:
            return self.service.server.shown
        return str(self.service.database.resolve()) if self.service.database is not None else ""

    @property
    def label(self) -> str:
        """The name for people, which the prompt shows as the target."""
        return f"{self.profile} ({self.address})" if self.profile else self.address

    @property
    def short_name(self) -> str:
        """The profile, or the host of the URL; "" for files."""
        if not isinstance(self.service, RemoteService):
            return self.profile or (self.service.server.host if self.service.server is not None else "")
        return self.profile or self.service.target.name.partition("://")[2].partition("/")[0]


def find_destination(
    text: str,
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    config: Config,
    warn: Callable[[str], None],
    command_line: str | None = None,
    *,
    visible: bool = True,
) -> Destination:
    """The destination that `text`, a TARGET or "", refers to. Raises UsageError.

    `command_line` is the TARGET of the command line if `text` comes from elsewhere: tokens of the command line and
    the environment may belong to its URL, but never to a URL from the journal or the prompt. `visible` says that other
    users of the machine can read it.
    """
    from sqlshell.launch.credentials import TokenSources, token_for

    command_line_target = text if command_line is None else command_line
    profile_name = text if names_profile(text, config) else ""
    settings = resolve(flags, environ, config, profile_name)

    def remote(target: Target) -> RemoteService:
        table = config.profiles.get(settings.profile, {})
        token, command = token_for(
            target, TokenSources(command_line_target, flags, environ, settings.profile, table), warn
        )
        return RemoteService(target, token, target.parts, command)

    if (server := engine_at(text)) is not None:
        if server.has_secret and visible and text == command_line_target:
            warn(
                "other users of this machine can read a password on the command line: use SQLSHELL_URL, a profile, or "
                "PostgreSQL's password file"
            )
        return Destination(settings, LocalService(server=server))
    if is_url(text):
        target = parse(text)
        if target.token and visible and text == command_line_target:
            warn("other users of this machine can read a token on the command line: use SQLSHELL_URL or a profile")
        return Destination(settings, remote(target))
    if text and not profile_name:
        return Destination(settings, _local_service(text, config.profiles))
    if not settings["url"]:
        if profile_name:
            warn(f"profile {profile_name!r} has no url: using the embedded service in memory; its data is lost on exit")
        return Destination(settings, LocalService())
    service = _service_of(settings)
    profile = settings.profile if settings.source("url") == "profile" else ""
    return Destination(settings, service if isinstance(service, LocalService) else remote(service), profile)


def names_profile(text: str, config: Config) -> bool:
    """Whether a TARGET is a profile, not a URL or a file."""
    return bool(text) and not is_url(text) and text in config.profiles


def chosen_parts(destination: Destination) -> dict[str, tuple[str, str]]:
    """Return the parts of the initial context that a setting or the DSN names, each with its source."""
    settings, service = destination.settings, destination.service
    named = service.parts if isinstance(service, RemoteService) else {}
    parts = {name: (value, "DSN") for name, value in named.items()}
    for name in SessionContext.__struct_fields__:
        if name in settings.values and settings[name] and (source := settings.source(name)) != "default":
            parts[name] = settings[name], f"profile {settings.profile}" if source == "profile" else source
    return parts


def context_of(destination: Destination) -> SessionContext:
    """Return the initial context: from settings, then from the DSN. The sessionID always has a value, and the time
    zone unless the server has its own. Raises UsageError for an unknown time zone."""
    from sqlshell.client.statements.polling import new_session_id

    parts = {name: value for name, (value, _) in chosen_parts(destination).items()}
    zone = checked_timezone(parts.pop("timezone", ""))
    if not zone and not _has_own_timezone(destination):
        zone = machine_timezone(os.environ)
    return SessionContext(**{"session_id": new_session_id()} | parts, timezone=zone)


def sources_of(destination: Destination) -> dict[str, str]:
    """Return the source of each part of context_of()."""
    zone = "server" if _has_own_timezone(destination) else "system"
    chosen = {name: source for name, (_, source) in chosen_parts(destination).items()}
    return {"timezone": zone, "session_id": "new"} | chosen


def own_session(destination: Destination, context: SessionContext) -> str:
    """Return the session of context_of() if it is new, "" if the user named a session to join."""
    return "" if "session_id" in chosen_parts(destination) else context.session_id


def checked_timezone(name: str) -> str:
    """The name of a time zone, checked. Raises UsageError if this machine's time zone database does not have it."""
    if name and not is_timezone(name):
        import zoneinfo

        known = zoneinfo.available_timezones()
        if known:
            hint = did_you_mean(name, sorted(known), "use an IANA name, such as Europe/Berlin or UTC")
            raise UsageError(f"unknown time zone {name[:80]!r}", hint)
    return name


def _has_own_timezone(destination: Destination) -> bool:
    """Whether the time zone is that of a PostgreSQL server, role or PGTZ, unless the user sets one: another one would
    change the instants that statements without a time zone store."""
    service = destination.service
    return isinstance(service, LocalService) and service.server is not None and service.server.engine == "postgresql"


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


def service_at_url(url: str) -> Target | LocalService:
    """The service, database or data file that the setting `url` refers to. Raises UsageError."""
    if (server := engine_at(url)) is not None:
        return LocalService(server=server)
    return parse(url) if is_url(url) else _local_service(url)


def _service_of(settings: Settings) -> Target | LocalService:
    source = {"environment": "SQLSHELL_URL", "profile": f"profile {settings.profile!r}"}.get(
        settings.source("url"), "url"
    )
    try:
        return service_at_url(settings["url"])
    except UsageError as error:
        raise UsageError(f"{source}: {error.message}", error.hint) from None


def _local_service(text: str, profiles: Iterable[str] | None = None) -> LocalService:
    """The local service for a file that a TARGET names, or a url (`profiles` is None). Raises UsageError."""
    if text == MEMORY:
        return LocalService()
    path = expanded(text)
    bare = without_compression(path)
    if path.is_dir() or (path.exists() and bare.endswith(DATA_ENDINGS)):
        return LocalService(views=views_of([text]))
    if path.exists():
        check_not_a_pipe(path)
        check_is_database(path)
        return LocalService(database=path)
    if bare.endswith(DATABASE_ENDINGS):
        if not path.parent.is_dir():
            folder, exists = shown_target(str(path.parent)), path.parent.exists()
            why = f"{folder} is not a directory" if exists else f"directory {folder} does not exist"
            raise UsageError(f"cannot create {path.name}: {why}", "" if exists else "create the directory first")
        return LocalService(database=path)
    if _LIBPQ.search(text):
        raise UsageError(
            "a libpq connection string is not a TARGET",
            "write it as a URL: postgresql://USER@HOST/DATABASE?OPTION=VALUE",
        )
    ending = f"to create a database, use the extension {any_of(DATABASE_ENDINGS)}"
    if " " in text:
        ending = f"to run a statement, use -c; {ending}"
    # A mistyped URL, such as `https//host` or `//host/v2`.
    if text.startswith("//") or re.match(r"https?[/\\;]", text, re.I):
        raise UsageError(f"not a valid URL: {shown_target(text)}", "write a URL as https://host/v2")
    if bare.endswith(DATA_ENDINGS):
        raise UsageError(f"cannot read {shown_target(text)}: {MISSING}")
    if text.startswith(LOOKS_LIKE_PATH) or os.sep in text:
        raise UsageError(f"cannot read {shown_target(text)}: {MISSING}", ending)
    if profiles is None:
        raise UsageError(
            f"{shown_target(text)!r} is neither a URL nor an existing file", f"write a URL as https://host/v2; {ending}"
        )
    from sqlshell.launch.options import SUBCOMMANDS

    known = sorted(profiles)
    otherwise = f"known profiles: {', '.join(known)}; {ending}" if known else ending
    similar = {name: f"sqlshell {name}" for name in SUBCOMMANDS} | {name: f'"{name}"' for name in known}
    hint = did_you_mean(text, similar, otherwise, shown=similar.__getitem__)
    raise UsageError(f"{shown_target(text)!r} is not a URL, profile or existing file", hint)


def views_of(texts: Sequence[str]) -> dict[str, Path]:
    """A view for each data file: those of `texts`, and those in directories of `texts`, but not in their
    subdirectories. Raises UsageError for other files, and for two of the same name in any case.
    """
    views: dict[str, Path] = {}
    taken: dict[str, Path] = {}
    for text in texts:
        for path in _data_files(text):
            name = path.name[: len(without_compression(path))].rpartition(".")[0]
            other = taken.setdefault(name.lower(), path)
            if other is not path:
                raise UsageError(
                    f"{other} and {path} would both become the view {name}",
                    "rename one of them, or give only one of them as TARGET",
                )
            views[name] = path
    return views


def check_not_a_pipe(path: Path) -> None:
    """Raises UsageError for a pipe or device: a query may read a file more than once, and the service opens it by
    name."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UsageError(
            f"{shown_target(str(path))} is not a regular file",
            "pass its data on stdin, sqlshell - -c 'from stdin' < PIPE, or copy it to a file",
        )


def check_is_database(path: Path) -> None:
    """Raises UsageError for a file that DuckDB cannot open as a database."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER)
    except OSError:
        # The error of DuckDB says why.
        return
    if head and head[8:12] != b"DUCK" and not head.startswith(b"SQLite"):
        raise UsageError(
            f"{shown_target(str(path))} is not a DuckDB database",
            "save it as csv or parquet"
            if head.startswith((b"PK\x03\x04", b"ARROW1"))
            else f"{_WHICH}; rename it, or use: sqlshell - < FILE",
        )


def shown_target(text: str) -> str:
    """A TARGET that refers to nothing, as an error shows it: with its text if that has the form of a name, path or URL.

    Any other text may contain a token: it may be a mistyped URL, or a token in the place of one.
    """
    forms = (_NAME, _URL) if _URL_BEGUN.match(text) else (_NAME, _URL, _PATH)
    if not _RANDOM.search(text) and any(form.fullmatch(text) for form in forms):
        return text
    login, _, rest = text.rpartition("@")
    is_host = _NAME.fullmatch(rest.replace("/", "_")) and not _RANDOM.search(rest)
    return f"{MASK}@{rest}" if login and is_host else MASK


def _data_files(text: str) -> Sequence[Path]:
    path = expanded(text)
    if not path.is_dir():
        check_not_a_pipe(path)
        if not without_compression(path).endswith(DATA_ENDINGS):
            raise UsageError(
                f"{shown_target(text)!r} is not a data file",
                f"several TARGETs must all be data files, which end in {', '.join(DATA_ENDINGS)}",
            )
        if not path.exists():
            raise UsageError(f"cannot read {shown_target(text)}: {MISSING}")
        return [path]
    try:
        files = sorted(item for item in path.iterdir() if item.is_file() and not item.name.startswith("."))
    except OSError as error:
        raise UsageError(f"cannot read the directory {path}: {reason(error)}") from None
    found = [item for item in files if without_compression(item).endswith(DATA_ENDINGS)]
    if not found:
        raise UsageError(f"the directory {path} contains no data file", _WHICH)
    return found
