"""Fetches the partitions of one finished statement from the service or from a data plane."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import quote

from msgspec import Struct

from sqlshell.client.http.transport import Response, Transport
from sqlshell.client.statements.protocol import poll_wait, read_partition
from sqlshell.errors import NotAuthenticated, ProtocolError, Where
from sqlshell.result import Body

PREPARING_SECONDS = 60.0
"""How long the service may prepare a partition of a finished statement, in seconds."""


def statement_path(statement_id: str) -> str:
    return f"/v2/statements/{quote(statement_id, safe='')}"


class PartitionFetcher(Struct):
    """Fetches partitions by number. `query` is sent with every request.

    `refresh` returns a new transport when the token has expired; tokens of a data plane are short-lived.
    """

    transport: Transport
    path: str
    query: Mapping[str, str | int]
    statement_id: str
    counts: list[int] | None
    refresh: Callable[[], Awaitable[Transport]] | None = None

    async def body(self, number: int) -> Body:
        """The response with partition `number`, whose number of rows has been checked.

        Raises ProtocolError, StatementError, and the errors of Transport.request.
        """
        count = self.counts[number] if self.counts and number < len(self.counts) else None
        began = time.monotonic()
        refreshed = False
        while True:
            transport = self.transport

            def read(answer: Response, base: str = transport.target.base) -> Body | None:
                whole = read_partition(
                    answer.status, answer.headers, answer.body, base, self.statement_id, number, count
                )
                return answer.body if whole else None

            try:
                body = await transport.call(
                    "GET", self.path, read, params={**self.query, "partitionID": number}, rows=count
                )
            except NotAuthenticated:
                if self.refresh is None or refreshed:
                    raise
                refreshed = True
                if self.transport is transport:
                    self.transport = await self.refresh()
                continue
            if body is not None:
                return body
            elapsed = time.monotonic() - began
            if elapsed > min(PREPARING_SECONDS, transport.network.timeout):
                raise ProtocolError(
                    f"{transport.target.base} is still preparing partition {number} of a finished statement",
                    where=Where(statement_id=self.statement_id),
                )
            await asyncio.sleep(poll_wait(elapsed))
