"""The command line of `sqlshell serve`."""

from __future__ import annotations

from typing import Any

import click

Served = tuple[str, Any, Any, str]

SERVE: tuple[Served, ...] = (
    ("--host", "ADDRESS", "127.0.0.1", "address to listen at  [default: 127.0.0.1]"),
    ("--port", click.IntRange(0, 65535), 8765, "0 = any free"),
    ("--uds", "PATH", None, "a unix socket instead of a port"),
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
    ("--role", "ROLE", (), "with --new-token: reader (default), writer or owner; may be repeated"),
    ("--partition-rows", click.IntRange(1, 10_000_000), 10_000, "most rows of a result's partition, which ends at 8 MiB too"),
    ("--threads", click.IntRange(0, 1024), 0, "threads of each organization's engine; 0 = one per core"),
    ("--memory", "SIZE", None, "memory of each organization's engine, such as 2GB; without it 80 % of the machine's"),
    ("--retention", click.FloatRange(0.0), 24.0, "hours that a finished statement and its result are kept"),
    ("--quota", click.FloatRange(0.0), 10.0, "GiB that all results may take; the oldest go first"),
    ("--max-statement", click.IntRange(1, 1024), 16, "Mi characters of a submission's SQL"),
    ("--max-attachments", click.IntRange(0), 1024, "MiB of a request's attachments together"),
    ("--attachments", click.IntRange(0), 20, "attachments of a request"),
    ("--data-plane", ("off", "large", "always"), "off", "results that are read by the data plane: large is from 1 MiB"),
    ("--public-url", "URL", None, "where clients have the service, if that is behind a proxy"),
    ("--store-root", "DIR", (), "stores may only be in DIR; may be repeated. Without it anywhere but in --data"),
    ("--legacy", bool, False, "answer the legacy endpoints too, with the same tokens"),
    ("--legacy-anonymous", bool, False, "the legacy endpoints ask for no token"),
    ("--grace", click.FloatRange(0.0), 10.0, "seconds that running statements have to end at SIGTERM"),
)
"""The options of `sqlshell serve`: flag, type (a text is the name of a value), default, help."""


def serve_command() -> click.Command:
    """`sqlshell serve`."""
    return click.Command(
        "sqlshell serve",
        params=[_served(option) for option in SERVE],
        callback=_serve,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        help="Run the local service for others: the Statement Execution Service interface on DuckDB. When it is ready "
        "it prints `listening on http://HOST:PORT`, or `listening on unix:///PATH`.",
    )


def _serve(**given: Any) -> int:
    from sqlshell.modes import serve

    return serve(given)


def _served(option: Served) -> click.Option:
    flag, kind, default, text = option
    if kind is bool:
        return click.Option([flag], is_flag=True, default=False, help=text)
    if isinstance(kind, tuple):
        return click.Option([flag], type=click.Choice(kind), default=default, show_default=True, help=text)
    if isinstance(kind, str):
        return click.Option([flag], metavar=kind, default=default, multiple=default == (), help=text)
    return click.Option([flag], type=kind, default=default, show_default=True, help=text)
