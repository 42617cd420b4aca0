"""`sqlshell serve`: its command line, and the service that it starts."""

from __future__ import annotations

import re
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import click

from sqlshell.service.bounds import Bounds, flag

if TYPE_CHECKING:
    from sqlshell.diagnostics import Diagnostics

Served = tuple[str, Any, Any, str]

LONGEST_SIZE: Final = 12
"""Characters of --memory: no machine has what needs more."""

_SIZE = re.compile(r"0*+[1-9][0-9]*(?:\.[0-9]+)?\s*(?:[kmgt]i?b?|%)|0*+\.[0-9]*[1-9][0-9]*\s*[kmgt]i?b?", re.I)

MOST: Final = 10**9
"""The largest value of an option that is a number, in its unit."""

BOUNDED: tuple[tuple[str, Any, int, str], ...] = (
    ("statements", click.IntRange(1), 0, "statements of a submission"),
    ("name", click.IntRange(1), 0, "characters of a name, of a session's ID, and of each field of a request's context"),
    ("option", click.IntRange(1), 0, "characters of a value of WITH (…)"),
    ("sessions", click.IntRange(1), 0, "sessions of a token"),
    ("all_sessions", click.IntRange(1), 0, "sessions of the service"),
    ("waiting", click.IntRange(1), 0, "statements of a token that have not ended; five times that of an organization"),
    ("waiting_size", click.IntRange(1), 1 << 20, "Mi characters of those; five times that of an organization"),
    ("objects", click.IntRange(1), 0, "objects of each kind in an organization: databases, stores, streams, tokens, …"),
    ("resources_size", click.IntRange(0), 1 << 30, "GiB of an organization's function and descriptor sources"),
    ("running", click.IntRange(1, 1000), 0, "statements of an organization that run at once; each takes a thread"),
    ("columns", click.IntRange(1), 0, "columns of a result"),
    ("seconds", click.FloatRange(0.0), 0, "seconds that a statement may run; 0 = any time"),
    ("spill_size", click.IntRange(0), 1 << 30, "GiB that an organization's statements may write while they run"),
    ("url_size", click.IntRange(1), 1 << 10, "KiB of a request's URL"),
    ("header_size", click.IntRange(1), 1 << 10, "KiB of a request's first line and headers"),
    ("connections", click.IntRange(1), 0, "connections; no more than four fifths of the files that may be open"),
    ("address_connections", click.IntRange(1), 0, "connections from one address, or from one /64 of IPv6"),
    ("token_connections", click.IntRange(1), 0, "connections with the same token"),
    ("header_seconds", click.FloatRange(0.1), 0, "seconds until a request's headers are complete"),
    ("body_seconds", click.FloatRange(0.1), 0, "seconds that a request's body may stand still"),
    ("write_seconds", click.FloatRange(0.1), 0, "seconds that a client may take nothing of its answer"),
    ("bodies_size", click.IntRange(1), 1 << 20, "MiB of all requests that arrive; a fourth of it for an organization"),
    ("uploads_size", click.IntRange(1), 1 << 30, "GiB of all attachments whose statements have not ended; likewise"),
    ("unread_size", click.IntRange(1), 1 << 20, "MiB of all rows that wait for their readers; a fourth of it likewise"),
)
"""The bounds that are options: name in Bounds, type, unit (0 for a count), help."""

SERVE: tuple[Served, ...] = (
    ("--host", "ADDRESS", "127.0.0.1", "address to listen at  [default: 127.0.0.1]"),
    ("--port", click.IntRange(0, 65535), 8765, "0 = any free"),
    (
        "--uds",
        "PATH",
        None,
        "a unix socket instead of a port; folders of its path that are missing are made (mode 0700)",
    ),
    ("--allow-host", "NAME", (), "answer to this Host too; may be repeated"),
    ("--data", "DIR", None, "keep databases, results, tokens and all else in DIR; without it nothing is kept"),
    (
        "--token-file",
        "FILE",
        None,
        "file that holds the operator's token; without it one is made, and kept in DIR/token with --data",
    ),
    ("--new-token", bool, False, "make a token for the service in --data, print it once, and end"),
    ("--organization", "NAME", None, "with --new-token: the organization it is bound to; without it the first one"),
    (
        "--role",
        ("reader", "writer", "owner"),
        (),
        "with --new-token: what it may do, reader by default; may be repeated",
    ),
    (
        "--partition-rows",
        click.IntRange(1, 10_000_000),
        10_000,
        "most rows of a result's partition, which ends at 8 MiB too",
    ),
    ("--threads", click.IntRange(0, 1024), 0, "threads of each organization's engine; 0 = one per core"),
    (
        "--memory",
        "SIZE",
        None,
        "memory of each organization's engine, such as 2GB; without it a fifth of the machine's, and at most half of "
        "what other organizations left of 80 % of it",
    ),
    ("--retention", click.FloatRange(0.0), 24.0, "hours that a finished statement and its result are kept"),
    ("--quota", click.FloatRange(0.0), 10.0, "GiB that the results of an organization may take; the oldest go first"),
    ("--max-statement", click.IntRange(1, 1024), 16, "Mi characters of a submission's SQL"),
    ("--max-attachments", click.IntRange(0), 1024, "MiB of a request's attachments together"),
    ("--attachments", click.IntRange(0), 20, "attachments of a request"),
    *(
        (flag(name), kind, getattr(Bounds(), name) // unit if unit else getattr(Bounds(), name), text)
        for name, kind, unit, text in BOUNDED
    ),
    ("--data-plane", ("off", "large", "always"), "off", "results that are read by the data plane: large is from 1 MiB"),
    (
        "--stream-scheme",
        ("ws", "http"),
        "ws",
        "how the uris of endless results begin: ws (wss behind an https --public-url), or http (https) for clients "
        "that take no other",
    ),
    ("--public-url", "URL", None, "where clients have the service, if that is behind a proxy"),
    ("--store-root", "DIR", (), "stores may only be in DIR; may be repeated. Without it anywhere but in --data"),
    (
        "--registry-host",
        "HOST",
        (),
        "ask schema registries at HOST, or HOST:PORT, too; may be repeated. Without it at loopback only",
    ),
    ("--legacy", bool, False, "answer the legacy endpoints too, with the same tokens"),
    ("--legacy-anonymous", bool, False, "with --legacy: the legacy endpoints ask for no token"),
    ("--grace", click.FloatRange(0.0), 10.0, "seconds that running statements have to end at SIGTERM"),
)
"""The options of `sqlshell serve`: flag, type (a text is the name of a value), default, help."""


def serve_command() -> click.Command:
    """`sqlshell serve`."""
    return click.Command(
        "sqlshell serve",
        params=[_served(option) for option in SERVE],
        callback=_serve,
        context_settings={
            "help_option_names": ["-h", "--help"],
            "max_content_width": 100,
            "auto_envvar_prefix": "SQLSHELL_SERVE",
        },
        help="Run the local service for others: the Statement Execution Service interface on DuckDB. When it is ready "
        "it prints `listening on http://HOST:PORT`, or `listening on unix:///PATH`. Each option has an "
        "environment variable too: that of --max-sessions is SQLSHELL_SERVE_MAX_SESSIONS.",
    )


def _serve(**given: Any) -> int:
    return serve(given)


def _served(option: Served) -> click.Option:
    flag, kind, default, text = option
    if kind is bool:
        return click.Option([flag], is_flag=True, default=False, help=text)
    if isinstance(kind, tuple):
        many = default == ()
        kinds = click.Choice(kind)
        return click.Option([flag], type=kinds, default=default, show_default=not many, multiple=many, help=text)
    if isinstance(kind, str):
        return click.Option([flag], metavar=kind, default=default, multiple=default == (), help=text)
    return click.Option([flag], type=kind, default=default, show_default=True, callback=_sane, help=text)


def _sane(context: click.Context, option: click.Parameter, value: Any) -> Any:
    """A value that a computer can count with. Raises click.BadParameter."""
    if isinstance(value, int | float) and not value <= MOST:
        # NaN is neither smaller nor larger than anything.
        raise click.BadParameter(f"{str(value)[:40]} is not a number from 0 to {MOST:,}", context, option)
    return value


def serve(asked: Mapping[str, Any]) -> int:
    """Run the service for others until it is told to stop, or make a token for it. The exit code.

    `asked` are the options of `sqlshell serve` by name.
    """
    from sqlshell.diagnostics import Diagnostics
    from sqlshell.errors import UsageError
    from sqlshell.service.engines.process.process import begin_early, end_early
    from sqlshell.service.objects.catalog import least_role
    from sqlshell.service.setup import make_folder

    data = Path(asked["data"]) if asked["data"] else None
    if asked["new_token"]:
        if data is None:
            raise UsageError("--new-token needs --data DIR", "a token is kept in the folder of its service")
        from sqlshell.service.server import new_token

        roles = asked["role"] or (least_role(),)
        sys.stdout.write(new_token(data, asked["organization"] or "", roles) + "\n")
        return 0
    for name in ("role", "organization"):
        if asked[name]:
            raise UsageError(f"--{name} goes with --new-token")
    if asked["legacy_anonymous"] and not asked["legacy"]:
        raise UsageError("--legacy-anonymous needs --legacy")
    _check(asked)
    diagnostics = Diagnostics(sys.stderr)
    if data is not None:
        make_folder(data)
    # It loads DuckDB while this process loads the server.
    begin_early()
    try:
        return _run(asked, data, diagnostics)
    finally:
        end_early()


def _run(asked: Mapping[str, Any], data: Path | None, diagnostics: Diagnostics) -> int:
    from sqlshell.launch.credentials import read_token
    from sqlshell.runtime.scratch import sweep
    from sqlshell.runtime.shutdown import end_by_signals, say_logs
    from sqlshell.service.engines.engine import Limits
    from sqlshell.service.options import Options as ServiceOptions
    from sqlshell.service.server import Address, kept_token
    from sqlshell.service.server import serve as run_service

    sweep()
    end_by_signals()
    say_logs(diagnostics.warn)
    token_file = asked["token_file"] or ""
    own_file = data / "token" if data is not None and not token_file else None
    made = ""
    if own_file is not None:
        made = kept_token(own_file)
    elif not token_file:
        made = secrets.token_urlsafe(32)
    token = made or read_token(token_file or str(own_file), diagnostics.warn)

    def ready(url: str, protections: str) -> None:
        if protections:
            diagnostics.say(protections)
        if own_file is None and made:
            diagnostics.say(f"token: {made}\n  SQLSHELL_TOKEN={made} sqlshell {url}")
        elif own_file is not None:
            # Not the token itself: what is said here often goes to a log.
            diagnostics.say(f"the token is kept in {own_file}: sqlshell {url} --token-file {own_file}")
        if data is None:
            diagnostics.say("nothing is kept after the end: --data DIR keeps databases, results and all else")
        sys.stdout.write(f"listening on {url}\n")
        sys.stdout.flush()

    options = ServiceOptions(
        partition_rows=asked["partition_rows"],
        data_plane=asked["data_plane"],
        public_url=asked["public_url"] or "",
        stream_scheme=asked["stream_scheme"],
        retention=asked["retention"] * 3600.0,
        quota=int(asked["quota"] * (1 << 30)),
        statement_limit=asked["max_statement"] << 20,
        attachment_limit=asked["max_attachments"] << 20,
        attachments=asked["attachments"],
        legacy=asked["legacy"],
        legacy_anonymous=asked["legacy_anonymous"],
        registry_hosts=tuple(_plain_host(name) for name in asked["registry_host"]),
        store_roots=tuple(Path(root).resolve() for root in asked["store_root"]),
        grace=asked["grace"],
        engine=Limits(asked["threads"], asked["memory"] or ""),
        bounds=Bounds(**{name: asked[f"max_{name}"] * (unit or 1) for name, _, unit, _ in BOUNDED}),
    )
    uds = Path(asked["uds"]) if asked["uds"] else None
    address = Address(asked["host"], asked["port"], uds, tuple(asked["allow_host"]))
    return run_service(address, data, token, options, ready)


def _check(asked: Mapping[str, Any]) -> None:
    """Raises UsageError for values that a service would take and then not work as asked."""
    from sqlshell.errors import UsageError

    if asked["public_url"] and not _is_service(asked["public_url"]):
        raise UsageError(f"--public-url {asked['public_url']!r} is not a URL", "such as https://sql.example.com")
    for root in asked["store_root"]:
        if not Path(root).is_dir():
            raise UsageError(f"--store-root {root}: there is no such folder")
    for flag_name, names in (("--allow-host", asked["allow_host"]), ("--registry-host", asked["registry_host"])):
        for name in names:
            if not re.fullmatch(r"(?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::[0-9]+)?", name):
                raise UsageError(f"{flag_name} {name!r} is not the name of a host", "such as sql.example.com")
    memory = asked["memory"]
    if memory is not None and not (is_size(memory) and len(memory) <= LONGEST_SIZE):
        raise UsageError(f"--memory {memory!r} is not a size", "such as 2GB, 512MiB or 50%")


def _plain_host(name: str) -> str:
    """A host as URLs are read: in small letters, an address of IPv6 without brackets where no port follows."""
    return name.lower()[1:-1] if name.startswith("[") and name.endswith("]") else name.lower()


def is_size(text: str) -> bool:
    """Whether a text is a size of memory, larger than none, as DuckDB reads it."""
    return _SIZE.fullmatch(text.strip()) is not None


def _is_service(url: str) -> bool:
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        return False
    return bool(known) and not parts.query and not parts.fragment
