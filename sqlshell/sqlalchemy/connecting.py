"""Translates SQLAlchemy URLs to DB-API options, and decides which errors end a connection."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any, Final

from sqlalchemy import pool
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.engine.interfaces import ConnectArgsType
from sqlalchemy.engine.url import URL

from sqlshell.config.values import config_folder, read_config, resolve
from sqlshell.errors import UsageError
from sqlshell.launch.targets import engine_at

MEMORY: Final = ":memory:"
AUTOCOMMIT: Final = "AUTOCOMMIT"
ENGINE: Final = "engine"
"""The parameter of a URL that says which dialect a service's engine requires."""

LOST = frozenset({"08003", "57P02"})
"""The sqlStates of errors that end a session."""


class Connecting(DefaultDialect):
    """The methods of a dialect that do not depend on the service's engine."""

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        import sqlshell.dbapi

        return sqlshell.dbapi

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        memory = not url.host and not url.query.get("profile") and url.database in {None, "", MEMORY}
        # A database in memory belongs to one connection, so each thread keeps its connection.
        return pool.SingletonThreadPool if memory else pool.QueuePool

    def create_connect_args(self, url: URL) -> ConnectArgsType:
        options: dict[str, Any] = {name: value for name, value in url.query.items() if name != ENGINE}
        token = url.password or url.username
        if token:
            options["token"] = token
        if not url.host:
            return [url.database or ("" if options.get("profile") else MEMORY)], options
        scheme = "http" if url.drivername.endswith("+http") else "https"
        host = f"[{url.host}]" if ":" in url.host else url.host
        port = f":{url.port}" if url.port else ""
        return [f"{scheme}://{host}{port}/{url.database or ''}"], options

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        if getattr(connection, "closed", False):
            return True
        kind = getattr(self.loaded_dbapi, "OperationalError", Exception)
        state = getattr(e, "sqlstate", None)
        return isinstance(e, kind) and (state == "" or state in LOST)


def engine_of(url: URL) -> str:
    """The engine that a URL's parameter or profile names; "" for DuckDB, and for services that have to be asked."""
    if given := url.query.get(ENGINE):
        return str(given)
    profile = url.query.get("profile")
    if url.host or not isinstance(profile, str):
        return ""
    try:
        target = resolve({}, {}, read_config(config_folder(os.environ)), profile)["url"]
    except UsageError:
        # connect() reports it.
        return ""
    server = engine_at(target or "")
    return server.engine if server is not None else ""
