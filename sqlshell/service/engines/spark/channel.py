"""The connection to a Spark Connect server."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

import grpc
import grpc.aio

from sqlshell.errors import UsageError
from sqlshell.service.engines.spark.library import DefaultChannelBuilder, PySparkException, SparkConnectServiceStub

EXAMPLE = "example: sc://host:15002, or sc://host:443/;token=…"

CHANNEL = (
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
)
"""A server that no longer answers is noticed within the first two, also while it runs a long statement. One that was
restarted is used again within the last; gRPC would wait for up to two minutes."""


class Address:
    """The parts of a URL sc://host:port/;token=…;use_ssl=true, by pyspark's rules. Its repr contains no token.

    Raises UsageError.
    """

    def __init__(self, url: str) -> None:
        try:
            builder = DefaultChannelBuilder(_with_path(url), channelOptions=list(CHANNEL))
        except (PySparkException, ValueError):
            # The message of the exception would repeat the URL, which may contain a token.
            raise UsageError("the URL of the Spark Connect server is not valid", EXAMPLE) from None
        self._builder = builder
        self.endpoint = str(builder.endpoint)
        self.user = builder.userId or os.getenv("SPARK_USER") or os.getenv("USER") or "sqlshell"
        self.agent = f"{builder.getDefault(builder.PARAM_USER_AGENT, 'sqlshell')}"
        self.metadata = tuple(builder.metadata())

    def __repr__(self) -> str:
        return f"Address({self.endpoint!r})"

    @property
    def secure(self) -> bool:
        return bool(self._builder.secure)

    def connect(self) -> grpc.aio.Channel:
        """A channel, which connects when it is first used. Called in the event loop that uses it.

        A token is only sent over TLS, or to this machine.
        """
        options: Any = self._builder._channel_options
        if not self.secure:
            return grpc.aio.insecure_channel(self.endpoint, options=options)
        local = not self._builder.use_ssl and self._builder.host == "localhost"
        credentials = grpc.local_channel_credentials() if local else grpc.ssl_channel_credentials()
        if self._builder.token is not None:
            credentials = grpc.composite_channel_credentials(
                credentials, grpc.access_token_call_credentials(self._builder.token)
            )
        return grpc.aio.secure_channel(self.endpoint, credentials, options=options)


def stub_of(channel: grpc.aio.Channel) -> Any:
    """The methods of the server, which are awaited."""
    return SparkConnectServiceStub(channel)


def _with_path(url: str) -> str:
    """A URL with a slash before its parameters: without one, they would be taken for a part of the port."""
    scheme, separator, rest = url.partition("://")
    host, semicolon, parameters = rest.partition(";")
    if semicolon and not host.endswith("/"):
        host += "/"
    address = f"{scheme.lower()}{separator}{host}{semicolon}{parameters}"
    if urlsplit("http" + address[2:]).username:
        raise ValueError("a user is given as ;user_id=")
    return address
