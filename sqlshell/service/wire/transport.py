"""A transport that closes connections of clients that do not read, and that closes gracefully while they send."""

from __future__ import annotations

import asyncio
import fcntl
import struct
import sys
import termios
from collections.abc import Callable, Iterable
from typing import Any

LOOKS = 4
"""How often the progress of a write is checked within its time limit."""

MANY = 128 << 10
"""Unsent data of a connection is counted from this many bytes on."""

DRAIN_BODY = 64 << 20
DRAIN_HEAD = 8 << 20
DRAIN_SECONDS = 15.0
DRAIN_IDLE_SECONDS = 2.0
"""How much of a body is still read after an early response, so that the client can read it; less if the request
was refused because of its headers."""


class LingeringTransport(asyncio.Transport):
    """A transport that closes the connection of a peer that does not read for `seconds`.

    If the peer is still sending, it is closed in two steps: first the write side, then, after the received data has
    been discarded for a while, the connection. `sending` returns how many bytes of the current request to discard;
    `ended` is called when the connection is lost; `waits` is called with the number of unsent bytes if there are many.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        seconds: float,
        sending: Callable[[], int],
        ended: Callable[[], None],
        waits: Callable[[int], None],
    ) -> None:
        super().__init__()
        self._transport = transport
        self._seconds = seconds
        self._sending = sending
        self._ended = ended
        self._waits = waits
        self._waiting = False
        self._loop = asyncio.get_running_loop()
        self._look: asyncio.TimerHandle | None = None
        self._written = 0
        self._taken = 0
        self._taken_at = 0.0
        self._drain: asyncio.TimerHandle | None = None
        self._drained = 0
        self._drain_most = 0
        self._drain_until = 0.0
        self.lingering = False
        self.held = False
        """Whether received data waits to be parsed; until then nothing more is read."""
        self.known: object = None
        """The value for KEY in the scopes of its requests."""

    def lost(self) -> None:
        """Note that the connection was lost."""
        for clock in (self._look, self._drain):
            if clock is not None:
                clock.cancel()
        self._look = self._drain = None
        self._ended()

    def write(self, data: Any) -> None:
        self._written += len(data)
        self._transport.write(data)
        waiting = self._transport.get_write_buffer_size()
        if waiting > MANY:
            self._waiting = True
            self._waits(waiting)
        if self._look is None and waiting:
            self._taken, self._taken_at = self._progress(), self._loop.time()
            self._look = self._loop.call_later(self._seconds / LOOKS, self._looked)

    def writelines(self, parts: Iterable[Any]) -> None:
        self.write(b"".join(parts))

    def taken(self) -> None:
        """Note that all data has been sent."""
        if self._waiting:
            self._waiting = False
            self._waits(0)

    def close(self) -> None:
        if self.lingering or self._transport.is_closing():
            return
        self._drain_most = self._sending()
        if not self._drain_most or not self._transport.can_write_eof():
            self._transport.close()
            return
        try:
            self._transport.write_eof()
        except OSError:
            # The peer has reset the connection.
            self._transport.close()
            return
        self.lingering = True
        self._drain_until = self._loop.time() + DRAIN_SECONDS
        self._transport.resume_reading()
        self._drain = self._loop.call_later(DRAIN_IDLE_SECONDS, self._transport.close)

    def drained(self, number: int) -> None:
        """Count bytes that were received after the response."""
        self._drained += number
        now = self._loop.time()
        if self._drain is not None:
            self._drain.cancel()
        if self._drained > self._drain_most or now > self._drain_until:
            self._transport.close()
        else:
            self._drain = self._loop.call_later(DRAIN_IDLE_SECONDS, self._transport.close)

    def abort(self) -> None:
        self._transport.abort()

    def is_closing(self) -> bool:
        return self.lingering or self._transport.is_closing()

    def write_eof(self) -> None:
        self._transport.write_eof()

    def can_write_eof(self) -> bool:
        return self._transport.can_write_eof()

    def is_reading(self) -> bool:
        return self._transport.is_reading()

    def pause_reading(self) -> None:
        if not self.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if not self.is_closing() and not self.held:
            self._transport.resume_reading()

    def hold(self) -> None:
        """Read nothing until release()."""
        self.held = True
        self.pause_reading()

    def release(self, *, reading: bool) -> None:
        """End hold(); `reading` is whether nothing else has paused reading."""
        self.held = False
        if reading:
            self.resume_reading()

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high, low)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._transport.set_protocol(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._transport.get_protocol()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def _looked(self) -> None:
        self._look = None
        if not self._transport.get_write_buffer_size():
            return
        taken, now = self._progress(), self._loop.time()
        if taken != self._taken:
            self._taken, self._taken_at = taken, now
        elif now - self._taken_at >= self._seconds * 0.99:
            self._transport.abort()
            return
        self._look = self._loop.call_later(self._seconds / LOOKS, self._looked)

    def _progress(self) -> int:
        """The number of bytes that the peer has acknowledged so far."""
        return self._written - self._transport.get_write_buffer_size() - self._in_kernel()

    def _in_kernel(self) -> int:
        if sys.platform != "linux":
            return 0
        socket = self._transport.get_extra_info("socket")
        try:
            # Otherwise a slow reader would make visible progress only when a third of the kernel's buffer is free.
            return int(struct.unpack("i", fcntl.ioctl(socket.fileno(), termios.TIOCOUTQ, b"\0" * 4))[0])
        except (OSError, AttributeError):
            return 0
