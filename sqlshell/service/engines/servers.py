"""The engines that are external servers: names, schemes of URLs, packages, and how they are opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sqlshell.errors import UsageError
from sqlshell.text import how_to_install

if TYPE_CHECKING:
    from sqlshell.service.engines.engine import Engine


class Server(Struct, frozen=True):
    """How to open an engine: a function of its URL, a password if the URL has none, and whether it is read-only.

    `packages` are those that the extra of the engine's name installs, for pip.
    """

    schemes: tuple[str, ...]
    packages: str
    open: Callable[[str, str, bool], Engine]


def _postgresql(url: str, password: str, read_only: bool) -> Engine:
    from sqlshell.service.engines.postgresql.engine import PostgresqlEngine

    if find_spec("pyarrow") is None:
        # pyarrow is imported with the first large result.
        raise ModuleNotFoundError(name="pyarrow")
    return PostgresqlEngine(url, password, read_only=read_only)


def _spark(url: str, password: str, read_only: bool) -> Engine:
    from sqlshell.service.engines.spark.engine import SparkEngine

    return SparkEngine(url)


SERVERS: Final[Mapping[str, Server]] = {
    "postgresql": Server(("postgresql", "postgres"), "'psycopg[binary]>=3.2,<4' 'pyarrow>=15'", _postgresql),
    "spark": Server(("sc",), "'pyspark-client>=4.0' 'pandas<3'", _spark),
}


def open_server(name: str, url: str, password: str = "", *, read_only: bool = False) -> Engine:
    """Connect to an engine, with a password if the URL has none. With `read_only`, transactions on PostgreSQL are
    read-only. Raises UsageError for a URL that cannot be used and for a package that is not installed, PasswordMissing,
    ServiceError if there is no connection."""
    server = SERVERS[name]
    try:
        return server.open(url, password, read_only)
    except ModuleNotFoundError as error:
        message = f"the engine {name} requires the package {error.name} (extra: {name})"
        raise UsageError(message, how_to_install(server.packages)) from None
