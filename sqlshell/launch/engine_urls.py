"""URLs of external servers on which a service in this process runs statements."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from msgspec import Struct

from sqlshell.service.engines.servers import SERVERS

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
