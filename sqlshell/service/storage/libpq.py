"""What the engine and the storage on PostgreSQL have in common: reading URLs, and which database a connection has."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from sqlshell.errors import UsageError

HINT: Final = "write postgresql://user@host:port/database?option=value, with %XX for characters such as @ and /"

_UNKNOWN: Final = re.compile(r'invalid URI query parameter: "([a-z_]{1,40})"')

_PREFIX: Final = re.compile(r"connection (?:failed|is bad): |^- host: .*, hostaddr: \S+: ", re.M)
"""The words that psycopg puts before a message of libpq, which begins in the same way."""

_EACH: Final = "All failures were:"
"""The words that psycopg puts before the messages of several hosts, of which it gives the last one first."""

MAY_IDENTIFY: Final = (
    "SELECT CASE WHEN pg_catalog.has_function_privilege("
    "pg_catalog.to_regprocedure('pg_catalog.pg_control_system()')::oid, 'EXECUTE') THEN 'yes' ELSE '' END, "
    "pg_catalog.current_database()"
)
"""Whether this user may run SYSTEM, and the name of the database."""

SYSTEM: Final = "SELECT system_identifier::text FROM pg_catalog.pg_control_system()"
"""The ID of the server's data, which its standbys share."""

ADDRESS: Final = (
    "SELECT coalesce(pg_catalog.host(pg_catalog.inet_server_addr()), 'local') || ':' || "
    "pg_catalog.current_setting('port')"
)


def parsed(url: str, name: str) -> dict[str, Any]:
    """The options of libpq in a URL. Raises UsageError for a malformed one; `name` says in it which URL that is."""
    malformed = UsageError(f"{name} is malformed", HINT)
    try:
        given: dict[str, Any] = conninfo_to_dict(url)
    except psycopg.Error as error:
        # The message of libpq may quote a part of the password, but the name of a parameter is not secret.
        named = _UNKNOWN.search(str(error))
        if named and _is_parameter(url, named[1]):
            raise UsageError(
                f'unknown option "{named[1]}" in {name}', "use an option of libpq, such as sslmode or connect_timeout"
            ) from None
        raise malformed from None
    # A password with @, /, ? or #: libpq takes a part of it for the host, the port or the database, and would show it.
    place = url.partition("://")[2].partition("?")[0]
    ports = str(given.get("port") or "").split(",")
    if "@" in str(given.get("host") or "") or "@" in place.partition("/")[2]:
        raise malformed
    if any(port and not port.isdecimal() for port in ports):
        raise malformed
    return given


def without(text: str, password: str) -> str:
    """A message of libpq without the password."""
    return text.replace(password, "…") if password else text


def stated(text: str) -> str:
    """libpq's message in an error of psycopg about a connection, each cause once."""
    first, _, each = text.partition(_EACH)
    lines = _PREFIX.sub("", each or first).replace("\n\t", ". ").splitlines()
    return "; ".join(" ".join(line.split()) for line in lines if line.strip())


def address(given: Mapping[str, Any]) -> str:
    """The host and port in the options of libpq, or the path of a socket."""
    host = str(given.get("host") or given.get("hostaddr") or os.environ.get("PGHOST") or "")
    port = str(given.get("port") or os.environ.get("PGPORT") or "5432")
    if host.startswith(("/", "@")) or not host:
        return f"{host}/.s.PGSQL.{port}" if host else f"the local socket of port {port}"
    ports = port.split(",")
    hosts = host.split(",")
    return ", ".join(f"{each}:{ports[min(at, len(ports) - 1)]}" for at, each in enumerate(hosts))


def _is_parameter(url: str, name: str) -> bool:
    """Whether a URL has an option of this name where it cannot be part of a password with a ? in it."""
    options = url.partition("?")[2]
    return "@" not in options and any(item.partition("=")[0] == name for item in options.split("&"))
