"""Runs statements on one libpq connection without blocking: the event loop waits for the socket.

Rows are taken one at a time as they arrive, so that memory holds one row at most, and nothing is read from the server
while the caller is busy with a row.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, Final

import psycopg
from psycopg import pq

from sqlshell.interface import sqlstate
from sqlshell.service.engines.postgresql.failures import ConnectionLost, error_of
from sqlshell.service.failure import Failure

BLOCK: Final = 256 << 10
"""Bytes of rows that are passed on together."""

BINARY: Final = "the binary format of COPY … TO STDOUT is not supported; use csv or text"

_ROWS: Final = {pq.ExecStatus.SINGLE_TUPLE, pq.ExecStatus.TUPLES_OK}
_FAILED: Final = {pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE, pq.ExecStatus.PIPELINE_ABORTED}


class Wire:
    """Runs one statement at a time. Methods raise Failure for errors of the server, ConnectionLost for a lost
    connection.
    """

    def __init__(self, pgconn: Any) -> None:
        self._pgconn = pgconn
        pgconn.nonblocking = 1
        self._waiting: asyncio.Future[None] | None = None
        self._aborted = False

    @property
    def usable(self) -> bool:
        """Whether the connection is still there, as far as is known without asking the server."""
        if self._aborted or self._pgconn.status != pq.ConnStatus.OK:
            return False
        try:
            # Messages of an idle server: that it shuts down, or the end of the connection.
            while select.select([self._pgconn.socket], [], [], 0)[0]:
                self._pgconn.consume_input()
        except (psycopg.Error, OSError, ValueError):
            return False
        return bool(self._pgconn.status == pq.ConnStatus.OK)

    def abort(self) -> None:
        """Fail what is being waited for with ConnectionLost, and everything after it."""
        self._aborted = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ConnectionLost(""))

    async def described(self, sql: str) -> Any:
        """Parse one statement without running it; the PGresult has its columns and parameters."""
        self._call(self._pgconn.enter_pipeline_mode)
        try:
            self._call(self._pgconn.send_prepare, b"", sql.encode())
            self._call(self._pgconn.send_describe_prepared, b"")
            self._call(self._pgconn.pipeline_sync)
            await self._flush()
            description, failed = None, None
            while True:
                result = await self._result()
                if result is None:
                    continue
                if result.status == pq.ExecStatus.PIPELINE_SYNC:
                    break
                if result.status in _FAILED:
                    failed = failed or result
                else:
                    description = result
        finally:
            if not self._aborted and self._pgconn.status == pq.ConnStatus.OK:
                self._pgconn.exit_pipeline_mode()
        if failed is not None:
            raise error_of(failed, sql)
        return description

    async def run(self, sql: str, took: Callable[[Any], None], *values: str) -> Any:
        """Run one statement, and pass each PGresult with a row to `took`; returns the last one with columns, or else
        the last, without rows.

        The data of a COPY … TO STDOUT is passed on as blocks of bytes, of which the first is empty.
        """
        if ";" in sql or values:
            # The extended protocol refuses a second statement.
            self._call(self._pgconn.send_query_params, sql.encode(), [value.encode() for value in values])
        else:
            # The simple protocol also returns the rows that a rule adds to a statement.
            self._call(self._pgconn.send_query, sql.encode())
        self._pgconn.set_single_row_mode()
        return await self._ended(sql, 0, took)

    async def copied_out(self, sql: str, start: int, shown: str) -> AsyncGenerator[bytes, None]:
        """Run a COPY … TO STDOUT, one statement, and yield its data in blocks of whole lines. In errors its text is
        `shown`, which begins at character `start`."""
        self._call(self._pgconn.send_query, sql.encode())
        await self._flush()
        result = await self._result()
        while result is not None:
            if result.status in _FAILED:
                await self._rest()
                raise error_of(result, shown, start)
            if result.status == pq.ExecStatus.COPY_OUT:
                async for block in self._blocks():
                    yield block
            result = await self._result()

    async def copied_in(self, sql: str, blocks: AsyncIterator[bytes]) -> Any:
        """Run a COPY … FROM STDIN with the data of `blocks`; returns its PGresult. An exception of `blocks` undoes
        it."""
        self._call(self._pgconn.send_query_params, sql.encode(), None)
        await self._flush()
        result = await self._result()
        if result is not None and result.status == pq.ExecStatus.COPY_IN:
            try:
                async for block in blocks:
                    while not self._call(self._pgconn.put_copy_data, block):
                        await self._writable()
                    # libpq keeps in memory the bytes that the server does not accept yet.
                    await self._flush()
            except ConnectionLost:
                raise
            except BaseException:
                await self._end_copy(b"the data cannot be read")
                await self._rest()
                raise
            await self._end_copy(None)
            result = await self._result()
        if result is None:
            raise ConnectionLost(self._error_message())
        await self._rest()
        if result.status in _FAILED:
            raise error_of(result, sql)
        return result

    async def drain(self) -> None:
        """Discard the remaining results of the current statement."""
        with contextlib.suppress(psycopg.Error, ConnectionLost):
            async for _ in self._blocks():
                pass
        await self._rest()

    async def _ended(self, sql: str, start: int, took: Callable[[Any], None]) -> Any:
        """Take all results of the statement that was sent."""
        await self._flush()
        last, failed = None, None
        while (result := await self._result()) is not None:
            if result.status in _FAILED:
                failed = failed or result
            elif result.status == pq.ExecStatus.COPY_OUT:
                if result.binary_tuples:
                    raise Failure(sqlstate.UNSUPPORTED, BINARY)
                took(b"")
                async for block in self._blocks():
                    took(block)
            elif result.status == pq.ExecStatus.COPY_IN:
                await self._end_copy(b"no data")
                await self._rest()
                raise Failure(sqlstate.UNSUPPORTED, "no data is attached to this COPY … FROM STDIN")
            else:
                if result.status in _ROWS and result.ntuples:
                    took(result)
                if last is None or result.status in _ROWS or last.status not in _ROWS:
                    last = result
        if failed is not None:
            raise error_of(failed, sql, start)
        if last is None:
            raise ConnectionLost(self._error_message())
        return last

    async def _rest(self) -> None:
        while await self._result() is not None:
            pass

    async def _end_copy(self, reason: bytes | None) -> None:
        while not self._call(self._pgconn.put_copy_end, reason):
            await self._writable()
        await self._flush()

    async def _blocks(self) -> AsyncIterator[bytes]:
        """The data of a COPY … TO STDOUT in blocks of whole lines."""
        lines, idle = bytearray(), False
        while True:
            size = len(lines)
            state = self._call(self._take, lines)
            idle = idle and len(lines) == size
            if state > 0:
                yield bytes(lines)
                lines.clear()
                # Other sessions have their turn.
                await asyncio.sleep(0)
            elif state < 0:
                if lines:
                    yield bytes(lines)
                return
            else:
                # Mostly something has arrived meanwhile: to ask the event loop each time would take as long as to read.
                if idle:
                    await self._readable()
                self._call(self._pgconn.consume_input)
                idle = True

    def _take(self, lines: bytearray) -> int:
        """Add the lines of a COPY that have arrived, up to about BLOCK bytes in all; returns 1 if there may be more, 0
        if the others have not arrived, -1 if there are no others."""
        get = self._pgconn.get_copy_data
        while len(lines) < BLOCK:
            number, line = get(1)
            if number <= 0:
                return int(number)
            # To keep a million of them and join them would take three times as long as to read them.
            lines += line
        return 1

    async def _result(self) -> Any:
        """The next PGresult; None at the end of a statement."""
        while self._call(self._pgconn.is_busy):
            self._call(self._pgconn.consume_input)
            if self._call(self._pgconn.is_busy):
                await self._readable()
        result = self._call(self._pgconn.get_result)
        if self._pgconn.status != pq.ConnStatus.OK:
            raise ConnectionLost(result.get_error_message() if result is not None else self._error_message())
        return result

    async def _flush(self) -> None:
        while self._call(self._pgconn.flush):
            # The server may have to send something before it takes more.
            await self._writable()
            self._call(self._pgconn.consume_input)

    def _call(self, function: Any, *given: Any) -> Any:
        if self._aborted:
            raise ConnectionLost("")
        try:
            return function(*given)
        except psycopg.Error as error:
            if self._pgconn.status != pq.ConnStatus.OK or isinstance(error, psycopg.OperationalError):
                raise ConnectionLost(str(error)) from None
            raise

    def _error_message(self) -> str:
        return str(self._pgconn.get_error_message()) if not self._aborted else ""

    async def _readable(self) -> None:
        await self._ready(writes=False)

    async def _writable(self) -> None:
        """Wait until the socket takes data, or has some: a server that does not read may wait for us to."""
        await self._ready(writes=True)

    async def _ready(self, *, writes: bool) -> None:
        loop = asyncio.get_running_loop()
        future = self._waiting = loop.create_future()
        place = self._pgconn.socket
        loop.add_reader(place, _done, future)
        if writes:
            loop.add_writer(place, _done, future)
        try:
            await future
        finally:
            self._waiting = None
            loop.remove_reader(place)
            if writes:
                loop.remove_writer(place)


def _done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
