"""The connection to a Spark Connect server, and requests for all sessions of an engine.

Everything but Address runs in the engine's loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Coroutine, Iterator
from typing import Any
from urllib.parse import urlsplit

import grpc
import grpc.aio
from msgspec import Struct

from sqlshell.errors import UsageError
from sqlshell.runtime.event_loops import spawn


@contextlib.contextmanager
def _with_file() -> Iterator[None]:
    """pyspark takes a main module without a file, as in python -c, for a run of its doctests, and ends the process."""
    main = sys.modules["__main__"]
    if hasattr(main, "__file__"):
        yield
        return
    main.__file__ = ""
    try:
        yield
    finally:
        del main.__file__


# The messages of the protocol, and pyspark's rules for URLs. Its own client is not used: its iterator lets the server
# forget each response as it is read, so that no other process could take a statement up; and it sends a statement
# again that the server does not know, though it may have taken effect.
with _with_file():
    from pyspark.errors import PySparkException
    from pyspark.sql.connect import proto
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub

__all__ = ["RECONNECTING", "Address", "SparkClient", "SparkHandle", "proto"]

EXAMPLE = "example: sc://host:15002, or sc://host:443/;token=…"

CHANNEL = (
    *DefaultChannelBuilder.GRPC_DEFAULT_OPTIONS,
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
)
"""A server that no longer answers is noticed within the first two, also while it runs a long statement. One that was
restarted is used again within the last; gRPC would wait for up to two minutes."""

RECONNECTING = (0.1, 0.6)
"""Seconds before a request is repeated that did not reach the server: between its attempts to connect, gRPC fails all
requests."""

PATIENCE = 30.0
"""Seconds for a request that only asks or sets something. Statements have no limit."""


class Address:
    """The parts of a URL sc://host:port/;token=…;use_ssl=true, by pyspark's rules. Its repr contains no token.

    Raises UsageError.
    """

    def __init__(self, url: str) -> None:
        try:
            builder = DefaultChannelBuilder(_with_path(url))
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
        """Return a channel, which connects when it is first used. Called in the event loop that uses it.

        A token is only sent over TLS, or to this machine.
        """
        if not self.secure:
            return grpc.aio.insecure_channel(self.endpoint, options=CHANNEL)
        local = not self._builder.use_ssl and self._builder.host == "localhost"
        credentials = grpc.local_channel_credentials() if local else grpc.ssl_channel_credentials()
        if self._builder.token is not None:
            credentials = grpc.composite_channel_credentials(
                credentials, grpc.access_token_call_credentials(self._builder.token)
            )
        return grpc.aio.secure_channel(self.endpoint, credentials, options=CHANNEL)


class SparkHandle(Struct):
    """A session of the server: our ID of it, and the server's, with which it notices that it has lost the session."""

    id: str
    observed: str = ""


class SparkClient:
    """Sends requests. The channel is made when it is first used, in the loop that uses it."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.breaks = 0
        """How often the connection broke. A server that was restarted may know none of the sessions."""
        self.progressed = False
        """Whether the server has reported the progress of a statement."""
        self._channel: grpc.aio.Channel | None = None
        self._stub: Any = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def stub(self) -> Any:
        """The methods of the server."""
        if self._stub is None:
            self._channel = self.address.connect()
            self._stub = SparkConnectServiceStub(self._channel)
            self.start(self._watch(self._channel))
        return self._stub

    def fill(self, request: Any, handle: SparkHandle) -> Any:
        """Set the user and the session of a request."""
        request.session_id = handle.id
        request.user_context.user_id = self.address.user
        request.client_type = self.address.agent
        if handle.observed and "client_observed_server_side_session_id" in request.DESCRIPTOR.fields_by_name:
            request.client_observed_server_side_session_id = handle.observed
        return request

    async def ask(self, method: str, request: Any, handle: SparkHandle) -> Any:
        """Return the response to one request. Raises grpc.aio.AioRpcError."""
        call = getattr(self.stub, method)
        for wait in (*RECONNECTING, None):
            try:
                response = await call(self.fill(request, handle), metadata=self.address.metadata, timeout=PATIENCE)
                break
            except grpc.aio.AioRpcError as error:
                if wait is None or error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                await asyncio.sleep(wait)
        handle.observed = getattr(response, "server_side_session_id", "") or handle.observed
        return response

    async def version(self, handle: SparkHandle) -> str:
        """Return the version of Spark that the server is, or implements."""
        request = proto.AnalyzePlanRequest()
        request.spark_version.SetInParent()
        response = await self.ask("AnalyzePlan", request, handle)
        return str(response.spark_version.version)

    async def schema(self, plan: Any, handle: SparkHandle) -> Any:
        """Return the type of a plan's rows, a struct."""
        request = proto.AnalyzePlanRequest()
        request.schema.plan.CopyFrom(plan)
        return (await self.ask("AnalyzePlan", request, handle)).schema.schema

    async def set_timezone(self, timezone: str, handle: SparkHandle) -> None:
        """Change the time zone of a session."""
        request = proto.ConfigRequest()
        request.operation.set.pairs.add(key="spark.sql.session.timeZone", value=timezone)
        await self.ask("Config", request, handle)

    async def interrupt(self, operation: str, handle: SparkHandle) -> None:
        """Interrupt a running operation, if the server knows it."""
        request = proto.InterruptRequest(
            interrupt_type=proto.InterruptRequest.INTERRUPT_TYPE_OPERATION_ID, operation_id=operation
        )
        await self.ask("Interrupt", request, handle)

    async def release(self, operation: str, handle: SparkHandle, until: str = "") -> None:
        """Let the server forget the responses of an operation, up to the one with the ID `until`, or all."""
        request = proto.ReleaseExecuteRequest(operation_id=operation)
        if until:
            request.release_until.response_id = until
        else:
            request.release_all.SetInParent()
        await self.ask("ReleaseExecute", request, handle)

    async def end(self, handle: SparkHandle) -> None:
        """End a session, with everything that runs in it."""
        await self.ask("ReleaseSession", proto.ReleaseSessionRequest(), handle)

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine in the background and ignore its errors."""

        async def quietly() -> None:
            with contextlib.suppress(grpc.RpcError, grpc.aio.UsageError):
                await work

        spawn(quietly(), self._tasks)

    async def close(self) -> None:
        """End the connection, and cancel the work in the background."""
        for task in list(self._tasks):
            task.cancel()
        if self._channel is not None:
            await self._channel.close()

    async def _watch(self, channel: grpc.aio.Channel) -> None:
        """Count the breaks of the connection."""
        state = channel.get_state()
        while state is not grpc.ChannelConnectivity.SHUTDOWN:
            await channel.wait_for_state_change(state)
            before, state = state, channel.get_state()
            if before is grpc.ChannelConnectivity.READY:
                self.breaks += 1


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
