"""Opens engines that are external servers, by name."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from sqlshell.errors import UsageError
from sqlshell.service.engines.engine import Engine

NAMES: Final = ("postgresql", "spark")

_PACKAGES: Final = {
    "postgresql": "'psycopg[binary]>=3.2,<4' 'pyarrow>=15'",
    "spark": "'pyspark-client>=4.0' 'pandas<3'",
}
"""The packages that the extras of these names install, for pip."""


def open_server(name: str, url: str, password: str = "", *, read_only: bool = False) -> Engine:
    """Connect to an engine, with a password if the URL has none. With `read_only`, transactions on PostgreSQL are
    read-only. Raises UsageError for a URL that cannot be used and for a package that is not installed, PasswordMissing,
    ServiceError if there is no connection."""
    try:
        match name:
            case "postgresql":
                from sqlshell.service.engines.postgresql.engine import PostgresqlEngine

                if find_spec("pyarrow") is None:
                    # It is imported with the first large result.
                    raise ModuleNotFoundError(name="pyarrow")
                return PostgresqlEngine(url, password, read_only=read_only)
            case "spark":
                from sqlshell.service.engines.spark.engine import SparkEngine

                return SparkEngine(url)
    except ModuleNotFoundError as error:
        said = f"the engine {name} requires the package {error.name} (extra: {name})"
        raise UsageError(said, f"run: pip install {_PACKAGES[name]}") from None
    raise UsageError(f"unknown engine {name!r}", f"expected one of {', '.join(NAMES)}")
