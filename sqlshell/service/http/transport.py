"""A transport that closes connections of clients that do not read, and that closes gracefully while they send."""

from __future__ import annotations

import asyncio
import fcntl
import struct
import sys
import termios
from typing import Any, Protocol

LOOKS = 4
"""How often the progress of a write is checked within its time limit."""

DRAIN_SECONDS = 15.0
DRAIN_IDLE_SECONDS = 2.0
"""How long, and with which pauses, a client may send after its response."""


class Owner(Protocol):
    """What the transport asks and tells its connection."""

    def to_discard(self) -> int: ...

    def pause_inner(self, *, pauses: bool) -> None: ...

    def upgrade(self, protocol: asyncio.Protocol) -> None: ...


class LimitedTransport(asyncio.Transport):
    """What uvicorn's protocol writes to. A peer that reads nothing for `seconds` is disconnected.

    A peer that is still sending is closed in two steps: first the write side, then, after the received data has been
    discarded for a while, the connection.
    """

    def __init__(self, transport: asyncio.Transport, owner: Owner, seconds: float) -> None:
        super().__init__()
        self._transport = transport
        self._owner = owner
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._reads = True
        self._look: asyncio.TimerHandle | None = None
        self.written = 0
        """The number of bytes that were written."""
        self._taken = 0
        self._taken_at = 0.0
        self._drain: asyncio.TimerHandle | None = None
        self._left = 0
        self._until = 0.0
        self.lingering = False
        """Whether what is received is discarded until the connection is closed."""

    def lost(self) -> None:
        """Note that the connection was lost."""
        for clock in (self._look, self._drain):
            if clock is not None:
                clock.cancel()

    def write(self, data: Any) -> None:
        self.written += len(data)
        self._transport.write(data)
        if self._look is None and self._transport.get_write_buffer_size():
            self._taken, self._taken_at = self._progress(), self._loop.time()
            self._look = self._loop.call_later(self._seconds / LOOKS, self._looked)

    def close(self) -> None:
        if self.is_closing():
            return
        self._left = self._owner.to_discard()
        if not self._left or not self._transport.can_write_eof():
            self._transport.close()
            return
        try:
            self._transport.write_eof()
        except OSError:
            # The peer has reset the connection.
            self._transport.close()
            return
        self.lingering = True
        self._until = self._loop.time() + DRAIN_SECONDS
        self._transport.resume_reading()
        self._drain = self._loop.call_later(DRAIN_IDLE_SECONDS, self._transport.close)

    def discarded(self, number: int) -> None:
        """Count bytes that were received after the response."""
        self._left -= number
        if self._drain is not None:
            self._drain.cancel()
        if self._left < 0 or self._loop.time() > self._until:
            self._transport.close()
        else:
            self._drain = self._loop.call_later(DRAIN_IDLE_SECONDS, self._transport.close)

    def set_reading(self, *, reads: bool) -> None:
        """Read from the peer, or not."""
        if reads == self._reads or self.is_closing():
            return
        self._reads = reads
        if reads:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def abort(self) -> None:
        self._transport.abort()

    def is_closing(self) -> bool:
        return self.lingering or self._transport.is_closing()

    def pause_reading(self) -> None:
        self._owner.pause_inner(pauses=True)

    def resume_reading(self) -> None:
        self._owner.pause_inner(pauses=False)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self._owner.upgrade(protocol)

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
        return self.written - self._transport.get_write_buffer_size() - self._in_kernel()

    def _in_kernel(self) -> int:
        if sys.platform != "linux":
            return 0
        socket = self._transport.get_extra_info("socket")
        try:
            # Otherwise a slow reader would make visible progress only when a third of the kernel's buffer is free.
            return int(struct.unpack("i", fcntl.ioctl(socket.fileno(), termios.TIOCOUTQ, b"\0" * 4))[0])
        except (OSError, AttributeError):
            return 0
