"""URLs of engines that are servers elsewhere: a service in this process runs statements on them."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlsplit

from msgspec import Struct

SCHEMES: Final = {"postgresql": "postgresql", "postgres": "postgresql", "sc": "spark"}
"""Engines by the scheme of their URLs."""


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

    def beside(self, database: str) -> str:
        """The URL of another database of a PostgreSQL server."""
        place, _, query = self.url.partition("?")
        scheme, _, rest = place.partition("://")
        options = [item for item in query.split("&") if item and item.partition("=")[0] != "dbname"]
        given = f"?{'&'.join(options)}" if options else ""
        return f"{scheme}://{rest.partition('/')[0]}/{quote(database, safe='')}{given}"

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
    engine = SCHEMES.get(scheme.lower(), "") if separator else ""
    return EngineUrl(engine, text.strip()) if engine else None
