"""`sqlshell serve`: the command line, and the start of the service."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO
from urllib.parse import urlsplit

import click

from sqlshell.launch.options import Choice, Command, Option, invalid
from sqlshell.service.engines.servers import SERVERS, open_server
from sqlshell.service.settings import MOST, NUMBERS, Number, Settings

if TYPE_CHECKING:
    from sqlshell.diagnostics import Diagnostics
    from sqlshell.runtime.streams import Streams

OptionSpec = tuple[str, Any, Any, str]

LONGEST_SIZE: Final = 12
"""The maximum length of a value of --memory."""

VARIABLES: Final = "SQLSHELL_SERVE"
"""The beginning of the environment variables of options."""

ENGINES: Final = ("duckdb", *SERVERS)

_SIZE = re.compile(r"0*+[1-9][0-9]*(?:\.[0-9]+)?\s*(?:[kmgt]i?b?|%)|0*+\.[0-9]*[1-9][0-9]*\s*[kmgt]i?b?", re.I)


class _Number(click.ParamType):  # type: ignore[type-arg]
    """A number of this type from `least` to `most`."""

    name = "number"

    def __init__(self, type_: type[int] | type[float], least: float, most: float) -> None:
        self._type = type_
        self._least, self._most = least, most
        unbounded = most >= MOST
        self.stated = (
            f"at least {_figure(least)}" * bool(least) if unbounded else f"{_figure(least)} to {_figure(most)}"
        )
        """The range, for the help."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Raises UsageError."""
        with contextlib.suppress(ValueError, OverflowError):
            # NaN is in no range.
            if self._least <= (number := self._type(value)) <= self._most:
                return number
        kind = "an integer" if self._type is int else "a number"
        raise invalid(param, value, f"{kind} from {_figure(self._least)} to {_figure(self._most)}")


def _figure(number: float) -> str:
    """A number as it is typed, without groups of digits."""
    return f"{number:.12g}"


def _number(number: Number) -> OptionSpec:
    """The option of a number of the settings."""
    return number.option, _Number(number.kind, number.least, number.most), number.default, number.help


SERVE: tuple[OptionSpec, ...] = (
    ("--host", "ADDRESS", "127.0.0.1", "address to listen on [default: 127.0.0.1]"),
    ("--port", _Number(int, 0, 65535), 8765, "port to listen on; 0 = any free port"),
    (
        "--uds",
        "PATH",
        None,
        "listen on a Unix socket instead of a port; missing directories of its path are created (mode 0700)",
    ),
    ("--allow-host", "NAME", (), "accept NAME in the Host header too; repeatable"),
    (
        "--data",
        "DIR",
        None,
        "directory for databases, results, tokens and everything else [default: in memory; lost on exit]",
    ),
    (
        "--token-file",
        "FILE",
        None,
        "file with the operator's token, which is valid for every organization [default: a new token, stored in "
        "DIR/token with --data DIR]",
    ),
    (
        "--engine",
        ENGINES,
        "duckdb",
        "engine that runs the statements: DuckDB in a process of this service, or an external server",
    ),
    (
        "--engine-url",
        "URL",
        None,
        "with --engine postgresql or spark: the server, such as postgresql://user@host/db or sc://host; set it with "
        "SQLSHELL_SERVE_ENGINE_URL if it contains a password",
    ),
    (
        "--state-url",
        "URL",
        None,
        "PostgreSQL database in which several processes of the service share their records, such as "
        "postgresql://user@host/db; requires --engine postgresql or spark, --results-url and --token-file",
    ),
    (
        "--results-url",
        "URL",
        None,
        "with --state-url: where the processes share large results, such as s3://bucket/prefix or file:///directory",
    ),
    (
        "--peer-url",
        "URL",
        None,
        "with --state-url: the URL at which the other processes reach this one [default: http://HOST:PORT]",
    ),
    ("--new-token", bool, False, "create a token for the service of --data or --state-url, print it, and exit"),
    ("--organization", "NAME", None, "with --new-token: the organization of the token [default: the first one]"),
    (
        "--role",
        ("reader", "writer", "owner"),
        (),
        "with --new-token: a role of the token; repeatable [default: reader]",
    ),
    (
        "--memory",
        "SIZE",
        None,
        "memory of each organization's engine, such as 2GB [default: 20% of the machine's memory; with more than four "
        "organizations, 80% divided by their number]",
    ),
    *map(_number, NUMBERS),
    (
        "--data-plane",
        ("off", "large", "always"),
        "off",
        "which results to send through the data plane: none, those of at least 1 MiB, or all",
    ),
    (
        "--stream-scheme",
        ("ws", "http"),
        "ws",
        "scheme of the URIs of streams: ws (wss with an https --public-url), or http (https) for clients that require "
        "it",
    ),
    ("--public-url", "URL", None, "URL of the service for clients, if it is behind a proxy"),
    ("--store-root", "DIR", (), "allow stores only in DIR; repeatable [default: anywhere except in --data]"),
    (
        "--registry-host",
        "HOST",
        (),
        "allow schema registries at HOST or HOST:PORT too; repeatable [default: only on loopback]",
    ),
    ("--legacy", bool, False, "enable the legacy endpoints too, with the same tokens"),
    ("--legacy-anonymous", bool, False, "with --legacy: allow the legacy endpoints without a token"),
)
"""The options of `sqlshell serve`: flag, type (a string is the name of a value), default, help."""


OFTEN: Final = frozenset(
    {
        *("--host", "--port", "--data", "--token-file", "--engine", "--engine-url", "--memory", "--retention"),
        *("--new-token", "--organization", "--role"),
    }
)
"""The options that are on the first screen of the help."""


def serve_command() -> click.Command:
    """`sqlshell serve`."""
    return Command(
        "sqlshell serve",
        map(_click_option, SERVE),
        callback=_serve,
        context_settings={"auto_envvar_prefix": VARIABLES},
        help="Run the local service for other programs: the interface of statement-execution services on DuckDB, "
        "PostgreSQL or Spark Connect. When it is ready, it prints `listening on http://HOST:PORT` or `listening on "
        "unix:///PATH`. Every option can also be set with an environment variable, for example "
        "SQLSHELL_SERVE_MAX_SESSIONS for --max-sessions.",
    )


def _serve(**given: Any) -> int:
    from sqlshell.diagnostics import Diagnostics
    from sqlshell.runtime.streams import Streams

    streams = Streams.standard()
    diagnostics = Diagnostics(streams.stderr)
    for flag, variable in _visible_secrets(given, click.get_current_context()):
        diagnostics.warn(f"other users of this machine can read the password in {flag}: set {variable} instead")
    if unknown := _unknown_variables(given):
        diagnostics.warn(f"no option has the environment variable {', '.join(unknown)}; see sqlshell serve --help")
    return serve(given, streams)


def _unknown_variables(given: Mapping[str, Any]) -> list[str]:
    """The environment variables that look like those of options, but belong to none of those `given`."""
    known = {f"{VARIABLES}_{name.upper()}" for name in given}
    return sorted(name for name in os.environ if name.startswith(f"{VARIABLES}_") and name not in known)


def _visible_secrets(given: Mapping[str, Any], context: click.Context) -> Iterator[tuple[str, str]]:
    """The options with a password or token that are on the command line, and the variables that replace them."""
    from sqlshell.launch.targets import EngineUrl

    for name in ("engine_url", "state_url", "results_url"):
        typed = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if typed and EngineUrl("", given[name]).has_secret:
            yield f"--{name.replace('_', '-')}", f"{VARIABLES}_{name.upper()}"


def _click_option(option: OptionSpec) -> Option:
    flag, kind, default, text = option
    often = flag in OFTEN
    if kind is bool:
        return Option([flag], is_flag=True, default=False, often=often, help=text)
    if isinstance(kind, tuple):
        many = default == ()
        shown: dict[str, Any] = {"type": Choice(kind), "show_default": not many}
        return Option([flag], default=default, multiple=many, often=often, help=text, **shown)
    if isinstance(kind, str):
        return Option([flag], metavar=kind, default=default, multiple=default == (), often=often, help=text)
    text = f"{text} [default: {'; '.join(filter(None, (_figure(default), kind.stated)))}]"
    return Option([flag], type=kind, metavar=_unit(flag, text), default=default, often=often, help=text)


def _unit(flag: str, text: str) -> str:
    """The name of a numeric value in the help: its unit, which is one of the first two words, or N for a count."""
    units = ("KiB", "MiB", "GiB", "seconds", "hours")
    return "PORT" if flag == "--port" else next((unit.upper() for unit in units if unit in text.split()[:2]), "N")


def serve(given: Mapping[str, Any], streams: Streams) -> int:
    """Run the service until it is stopped, or create a token for it; returns the exit code.

    `given` are the options of `sqlshell serve` by name.
    """
    from sqlshell.diagnostics import Diagnostics
    from sqlshell.errors import UsageError
    from sqlshell.service.catalog import least_role
    from sqlshell.service.setup import make_folder

    data = Path(given["data"]) if given["data"] else None
    if given["new_token"]:
        if data is None and not given["state_url"]:
            cause = "--new-token requires --data DIR or --state-url URL"
            raise UsageError(cause, "add the option that the service runs with")
        from sqlshell.service.server import new_token

        roles = given["role"] or (least_role(),)
        streams.stdout.write(new_token(data, given["organization"] or "", roles, given["state_url"] or "") + "\n")
        return 0
    for name in ("role", "organization"):
        if given[name]:
            raise UsageError(f"--{name} requires --new-token")
    if given["legacy_anonymous"] and not given["legacy"]:
        raise UsageError("--legacy-anonymous requires --legacy")
    _check(given)
    diagnostics = Diagnostics(streams.stderr)
    if data is not None:
        make_folder(data)
    return _run(given, data, diagnostics, streams.stdout)


def _run(given: Mapping[str, Any], data: Path | None, diagnostics: Diagnostics, stdout: TextIO) -> int:
    from sqlshell.launch.credentials import read_token
    from sqlshell.runtime.scratch import sweep
    from sqlshell.runtime.shutdown import forward_logs, install_exit_handlers
    from sqlshell.service.server import Address, kept_token
    from sqlshell.service.server import serve as run_service
    from sqlshell.service.setup import Peers

    sweep()
    install_exit_handlers()
    forward_logs(diagnostics.log_warning, diagnostics.log)
    token_file = given["token_file"] or ""
    own_file = data / "token" if data is not None and not token_file else None
    new_token = ""
    if own_file is not None:
        new_token = kept_token(own_file)
    elif not token_file:
        new_token = secrets.token_urlsafe(32)
    token = new_token or read_token(token_file or str(own_file), diagnostics.warn)

    peers = Peers(given["state_url"], given["results_url"]) if given["state_url"] else None

    def ready(url: str, protections: str) -> None:
        if protections:
            diagnostics.log(protections)
        if own_file is None and new_token:
            diagnostics.say(
                f"token: {new_token}\nconnect with: SQLSHELL_TOKEN={new_token} sqlshell {url}", verbatim=True
            )
        elif own_file is not None:
            # Not the token itself, because this output often goes to a log.
            diagnostics.say(f"connect with: sqlshell {url} --token-file {own_file}", verbatim=True)
        if data is None and peers is None:
            diagnostics.log("everything is in memory and lost on exit; use --data DIR to keep databases and results")
        stdout.write(f"listening on {url}\n")
        stdout.flush()

    settings = settings_of(given)
    uds = Path(given["uds"]) if given["uds"] else None
    names, peer_url = tuple(given["allow_host"]), (given["peer_url"] or "").rstrip("/")
    address = Address(given["host"], given["port"], uds, names, peer_url)
    if given["engine"] == ENGINES[0]:
        return run_service(address, data, token, settings, ready)
    engine = open_server(given["engine"], given["engine_url"])
    try:
        return run_service(address, data, token, settings, ready, engine, peers)
    finally:
        engine.close()


def settings_of(given: Mapping[str, Any]) -> Settings:
    """The settings of a service with these options."""
    numbers: dict[str, Any] = {number.name: number.setting(given[_parameter(number.option)]) for number in NUMBERS}
    return Settings(
        data_plane=given["data_plane"],
        public_url=given["public_url"] or "",
        stream_scheme=given["stream_scheme"],
        legacy=given["legacy"],
        legacy_anonymous=given["legacy_anonymous"],
        registry_hosts=tuple(_plain_host(name) for name in given["registry_host"]),
        store_roots=tuple(Path(root).resolve() for root in given["store_root"]),
        memory=given["memory"] or "",
        **numbers,
    )


def _parameter(option: str) -> str:
    """The name of an option's value."""
    return option.removeprefix("--").replace("-", "_")


def _check(given: Mapping[str, Any]) -> None:
    """Raises UsageError for values that the service would accept but that cannot work."""
    from sqlshell.errors import UsageError

    for name in ("public_url", "peer_url"):
        if given[name] and _has_login(given[name]):
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{flag} cannot contain a user or a password", "the URL is visible to clients and other processes"
            )
    if given["public_url"] and not _is_service(given["public_url"]):
        raise UsageError(
            f"--public-url: invalid value {given['public_url']!r}", "expected a URL such as https://sql.example.com"
        )
    server = given["engine"] != ENGINES[0]
    if server and not given["engine_url"]:
        example = {"postgresql": "postgresql://user@host/db", "spark": "sc://host"}[given["engine"]]
        raise UsageError(f"--engine {given['engine']} requires --engine-url URL", f"example: {example}")
    if given["engine_url"] and not server:
        raise UsageError("--engine-url requires --engine postgresql or --engine spark")
    if given["state_url"]:
        _check_peers(given, server=server)
    for name in ("results_url", "peer_url"):
        if given[name] and not given["state_url"]:
            raise UsageError(f"--{name.replace('_', '-')} requires --state-url")
    if server and given["memory"] is not None:
        raise UsageError(f"--memory cannot be used with --engine {given['engine']}", "limit the memory of the server")
    for root in given["store_root"]:
        if not Path(root).is_dir():
            raise UsageError(f"--store-root {root} is not an existing directory")
    for flag_name, names in (("--allow-host", given["allow_host"]), ("--registry-host", given["registry_host"])):
        for name in names:
            if not re.fullmatch(r"(?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::[0-9]+)?", name):
                raise UsageError(f"{flag_name}: invalid value {name!r}", "expected a host such as sql.example.com")
    memory = given["memory"]
    if memory is not None and not (is_size(memory) and len(memory) <= LONGEST_SIZE):
        raise UsageError(f"--memory: invalid value {memory!r}", "expected a size such as 2GB, 512MiB or 50%")


def _check_peers(given: Mapping[str, Any], *, server: bool) -> None:
    """Raises UsageError for options of several processes that cannot work together."""
    from sqlshell.errors import UsageError

    if not server:
        raise UsageError(
            "--state-url requires --engine postgresql or --engine spark",
            "each process has its own DuckDB, so several processes cannot share their data",
        )
    for name, why in (
        ("results_url", "all processes must be able to read each other's results"),
        ("token_file", "all processes must accept the same token"),
    ):
        if not given[name]:
            raise UsageError(f"--state-url requires --{name.replace('_', '-')}", why)
    url = given["peer_url"]
    if url and not _is_service(url):
        raise UsageError(f"--peer-url: invalid value {url!r}", "expected a URL such as http://10.0.0.5:8765")
    if not url and (given["uds"] or given["host"] in {"0.0.0.0", "::"}):
        raise UsageError(
            f"--state-url with {'--uds' if given['uds'] else '--host ' + given['host']} requires --peer-url",
            "set the URL at which the other processes reach this one, such as http://10.0.0.5:8765",
        )


def _plain_host(name: str) -> str:
    """A host in lower case; an IPv6 address without a port has no brackets, as in a parsed URL."""
    return name.lower()[1:-1] if name.startswith("[") and name.endswith("]") else name.lower()


def is_size(text: str) -> bool:
    """Whether a text is a positive size of memory in DuckDB's syntax."""
    return _SIZE.fullmatch(text.strip()) is not None


def _has_login(url: str) -> bool:
    return "@" in url.partition("://")[2].partition("?")[0]


def _is_service(url: str) -> bool:
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        return False
    return bool(known) and not parts.query and not parts.fragment
