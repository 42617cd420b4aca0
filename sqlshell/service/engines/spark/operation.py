"""One statement on a Spark Connect server, which continues when the connection breaks."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator
from typing import Any

import grpc
import grpc.aio

from sqlshell.service.engines.spark.client import RECONNECTING, SparkClient, SparkHandle, proto

KEPT_BYTES = 8 << 20
"""The server may forget responses after each of so many bytes. Until then it can send them again."""

UNSURE = RECONNECTING
BROKEN = (*RECONNECTING, 1.0, 2.0, 2.0, 2.0, 2.0)
"""Seconds between attempts to reach the server again: before its first response, and after it."""

SHORT = 1.0
EMPTY = 20
"""The server may end a stream at any time, to have it continued. So many streams that are shorter than this many
seconds and have no response are an error."""


class Ended(Exception):
    """The server ended the operation without a result."""


class Operation:
    """A statement that the server runs, by an ID that we choose, or that of another process. The server keeps responses
    until they are released.

    `canceled` is set when its interruption was requested, `left` when its result is no longer read; `progress` is the
    share of its tasks that are done, if known.
    """

    def __init__(self, client: SparkClient, handle: SparkHandle, id: str = "") -> None:
        self.id = id or str(uuid.uuid4())
        self.canceled = self.left = False
        self.progress: float | None = None
        self._client = client
        self._handle = handle
        self._last = ""
        self._done = False
        self._call: Any = None

    @property
    def begun(self) -> bool:
        """Whether the server has responded to it."""
        return bool(self._last)

    def run(self, plan: Any) -> AsyncGenerator[Any]:
        """Start it; the responses except those of progress. Nothing is read ahead of the caller.

        The generator raises grpc.aio.AioRpcError, and Ended.
        """
        request = self._client.fill(proto.ExecutePlanRequest(operation_id=self.id), self._handle)
        request.plan.CopyFrom(plan)
        request.request_options.add().reattach_options.reattachable = True
        self._call = self._client.stub.ExecutePlan(request, metadata=self._client.address.metadata)
        return self._responses()

    def continued(self) -> AsyncGenerator[Any]:
        """Return the responses of an operation that is running, from the first one that was not released, as of
        run()."""
        self._call = self._continue()
        return self._responses()

    async def interrupt(self) -> None:
        """Interrupt the operation on the server, which may not know it yet: then it is asked again. Raises
        grpc.aio.AioRpcError."""
        self.canceled = True
        if not self._done:
            await self._client.interrupt(self.id, self._handle)

    def leave(self) -> None:
        """Stop reading; a running read raises CancelledError."""
        self.left = True
        if self._call is not None:
            self._call.cancel()

    async def _responses(self) -> AsyncGenerator[Any]:
        kept, empty, failed, began = 0, 0, 0, time.monotonic()
        over = False
        try:
            while True:
                try:
                    response = await self._call.read()
                except grpc.aio.AioRpcError as error:
                    waits = BROKEN if self._last else UNSURE
                    if self.canceled or failed >= len(waits) or not _again(error):
                        over = True
                        raise
                    await asyncio.sleep(waits[failed])
                    failed += 1
                    self._call = self._continue()
                    continue
                if response is grpc.aio.EOF:
                    empty = empty + 1 if time.monotonic() - began < SHORT else 0
                    if self.canceled or empty > EMPTY:
                        over = True
                        raise Ended
                    self._call, began = self._continue(), time.monotonic()
                    continue
                self._last, empty, failed = response.response_id, 0, 0
                self._handle.observed = response.server_side_session_id or self._handle.observed
                kind = response.WhichOneof("response_type")
                if kind == "result_complete":
                    over = True
                    return
                if kind == "execution_progress":
                    self._note(response.execution_progress)
                    continue
                yield response
                kept += response.ByteSize()
                if kept > KEPT_BYTES:
                    kept = 0
                    self._client.start(self._client.release(self.id, self._handle, self._last))
        finally:
            self._done = True
            self._call.cancel()
            left = not over and not self.canceled
            self._client.start(self._given_up() if left else self._client.release(self.id, self._handle))

    async def _given_up(self) -> None:
        # To release a running operation does not end it.
        await self._client.interrupt(self.id, self._handle)
        await self._client.release(self.id, self._handle)

    def _continue(self) -> Any:
        request = self._client.fill(proto.ReattachExecuteRequest(operation_id=self.id), self._handle)
        if self._last:
            request.last_response_id = self._last
        return self._client.stub.ReattachExecute(request, metadata=self._client.address.metadata)

    def _note(self, progress: Any) -> None:
        tasks = sum(stage.num_tasks for stage in progress.stages)
        if tasks:
            self._client.progressed = True
            self.progress = sum(stage.num_completed_tasks for stage in progress.stages) / tasks


def _again(error: grpc.aio.AioRpcError) -> bool:
    """Whether the connection broke, or another reader took the stream over."""
    if error.code() is grpc.StatusCode.UNAVAILABLE:
        return True
    return error.code() is grpc.StatusCode.INTERNAL and "INVALID_CURSOR.DISCONNECTED" in (error.details() or "")
