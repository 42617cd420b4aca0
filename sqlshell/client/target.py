"""The location of a service: base URLs, and the data source names (DSNs) that other clients of the interface use.

A DSN is `https://:TOKEN@host/v2?sessionID=&timezone=&organizationID=&roleName=&databaseName=&schemaName=&storeName=&computePoolName=`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from sqlshell.errors import UsageError
from sqlshell.runtime.addresses import is_loopback
from sqlshell.text import MASK, any_of

DSN_PARTS = {
    "sessionID": "session_id",
    "timezone": "timezone",
    "organizationID": "organization",
    "roleName": "role",
    "databaseName": "database",
    "schemaName": "schema",
    "storeName": "store",
    "computePoolName": "compute_pool",
}
DEFAULT_PORTS = {"http": 80, "https": 443}

_TOKEN = re.compile(r"^([a-z][a-z0-9+.-]*:/+).*@", re.IGNORECASE | re.DOTALL)

_TOKEN_IN_PATH = re.compile(r"/*[^/]*@|.*:.*@", re.DOTALL)
_TOKENS_PLACE = "set the token with SQLSHELL_TOKEN or --token-file; a URL is written as https://host/v2"


def without_token(url: str) -> str:
    """A DSN with *** in place of its token; any other text unchanged."""
    return _TOKEN.sub(rf"\1{MASK}@", url)


class Target(Struct, frozen=True):
    """One service: an origin (scheme, host, port) and the path before `/v2`.

    `token` and `parts` (setting name -> value) come from a DSN and are empty otherwise. `uds` is the path of the unix
    socket that reaches the service, "" for TCP.
    """

    scheme: str
    host: str
    port: int
    path: str = ""
    token: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)
    uds: str = ""
    known_as: str = ""
    """The name of the service for people, if its address is not meaningful."""

    def __repr__(self) -> str:
        return f"Target({self.base!r})"

    @property
    def origin(self) -> tuple[str, str, int]:
        """The origin, which the token belongs to."""
        if self.uds:
            return "unix", self.uds, 0
        return self.scheme, self.host, self.port

    @property
    def base(self) -> str:
        """The base address without `/v2` and without a trailing slash."""
        if self.uds:
            return f"http://localhost{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if DEFAULT_PORTS[self.scheme] == self.port else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"

    @property
    def name(self) -> str:
        """The name for people: the base address, the socket, or `known_as`."""
        if self.known_as:
            return self.known_as
        return f"unix://{self.uds}{self.path}" if self.uds else self.base

    def at(self, other: Target) -> Target:
        """`other`, reached in the same way as this target."""
        return replace(other, uds=self.uds)

    @property
    def loopback(self) -> bool:
        """Whether the service is on this machine, so that no proxy is used."""
        return bool(self.uds) or is_loopback(self.host)


def _named(text: str) -> str:
    """A wrong word of a URL in an error; "" for a text that may be a token."""
    return f" {text!r}" if re.fullmatch(r"[A-Za-z_+]{1,20}", text) else ""


def is_url(text: str) -> bool:
    return "://" in text


def parse(text: str) -> Target:
    """Parse a base URL or a DSN; `unix:///path` is a Unix socket. Raises UsageError that never contains a token."""
    try:
        parts = urlsplit(text.strip())
        scheme = parts.scheme.lower()
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise UsageError("invalid URL", "write the base URL, such as https://host/v2") from None
    # A path of a Unix socket may contain spaces.
    if scheme != "unix" and (re.search(r"\s", text.strip()) or re.search(r"\s", unquote(parts.path))):
        raise UsageError("the URL contains spaces", _TOKENS_PLACE)
    if (scheme == "unix" and (parts.username or _TOKEN_IN_PATH.match(unquote(parts.path)))) or (
        scheme in DEFAULT_PORTS and re.search(r"[:;,@=]", unquote(parts.path))
    ):
        raise UsageError("the path of the URL may contain a token", _TOKENS_PLACE)
    if scheme == "unix" and not host and parts.path:
        return Target("http", "localhost", 80, uds=unquote(parts.path))
    if scheme == "unix":
        raise UsageError(
            "a Unix socket requires an absolute path", "write it as unix:///path/to/socket (three slashes)"
        )
    if scheme not in DEFAULT_PORTS:
        raise UsageError(
            f"unsupported URL scheme{_named(scheme)}: expected http, https, unix, postgresql or sc",
            "write the base URL, such as https://host/v2 or unix:///path/to/socket",
        )
    if not host:
        raise UsageError("the URL has no host", "write the base URL, such as https://host/v2")
    path = parts.path.rstrip("/")
    if path.endswith("/v2/statements"):
        path = path.removesuffix("/statements")
    given: dict[str, str] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in DSN_PARTS:
            raise UsageError(f"unknown parameter{_named(name)} in the URL", f"expected {any_of(list(DSN_PARTS))}")
        if value:
            given[DSN_PARTS[name]] = value
    return Target(
        scheme=scheme,
        host=host.lower(),
        port=port or DEFAULT_PORTS[scheme],
        path=path.removesuffix("/v2"),
        token=unquote(parts.password or parts.username or ""),
        parts=given,
    )
