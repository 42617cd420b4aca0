"""What travels between the service and an engine's process: frames of MessagePack, with large bodies behind them.

A frame is four bytes of its length, then the message. Bodies follow as they are, their sizes are in the message. What
the engine's process says is decoded by types and never trusted further than that.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from struct import Struct as Packed
from typing import Any, Final

import msgspec
from msgspec import Struct

from sqlshell.service.engines.engine import Limits, Options, Outcome
from sqlshell.service.results.results import Layout

READ: Final = 64 << 10
"""The number of bytes that are read at once."""

MOST: Final = 256 << 20
"""The maximum size of a message in bytes."""

_LENGTH: Final = Packed("!I")

_dropped: Final = bytearray(READ)
"""Where what nobody needs is read to, when there is no memory for more."""


class Message(Struct, frozen=True, array_like=True, tag=True):
    """Anything that is sent."""


class Open(Message, frozen=True):
    """The first message to a process: its folder, the databases (name -> file; sessions begin in the first one), the
    stores, and the process that it belongs to."""

    folder: Path
    databases: dict[str, Path]
    limits: Limits
    parent: int


class Channel(Message, frozen=True):
    """The socket that comes with this takes calls from now on, one after another."""


class Interrupt(Message, frozen=True):
    """Interrupt statement `number` of a connection if it is running, or do not start it."""

    connection: int
    number: int


class Close(Message, frozen=True):
    """A connection is no longer needed."""

    connection: int


class Ask(Message, frozen=True):
    """How far is what runs in this connection? Answered by Progress. Number 0 is no connection: it only asks whether
    the process answers."""

    connection: int = 0


class Rest(Message, frozen=True):
    """Nobody is reading results; release the memory for it."""


class Stop(Message, frozen=True):
    """Shut down."""


Order = Open | Channel | Interrupt | Close | Ask | Rest | Stop


class Opened(Message, frozen=True):
    """The databases are open, but for those that are `broken`, and why; `protections` says what the process gave up."""

    first_database: str
    broken: dict[str, str]
    protections: str = ""


class Progress(Message, frozen=True):
    connection: int
    share: float | None = None


class Broken(Message, frozen=True):
    """The databases could not be opened, or the instance is of no more use: the process ends."""

    why: str


class ReplaceSoon(Message, frozen=True):
    """The process should be replaced as soon as nothing runs in it."""

    why: str


Report = Opened | Progress | Broken | ReplaceSoon


class Run(Message, frozen=True):
    """Run statements one after another; the first has number `first`. Rows are kept in `files`, or not at all where
    that is None."""

    connection: int
    first: int
    statements: list[str]
    options: Options
    files: list[str | None]
    trusted: bool = False


class Call(Message, frozen=True):
    """Call a method of a connection (0: of the engine)."""

    connection: int
    number: int
    method: str
    given: list[Any]


Request = Run | Call

State = tuple[str, str, str, str, bool]
"""Of a connection: database, schema, transaction, time zone, and whether it has what is gone with its process."""


class Error(Struct, frozen=True, array_like=True):
    """What was raised: a Failure, or for `code` other than 0 the OSError of that number. `fatal` says that the instance
    is of no more use."""

    sql_state: str
    message: str
    code: int = 0
    fatal: bool = False
    missing: tuple[str, ...] = ()


class Answer(Struct, frozen=True, array_like=True):
    """What came of a call, or of one statement of a run; `more` says that another one of it begins now. `size` is the
    bytes of the result, `body` the rows of a small one, `bodies` the sizes of what follows the frame."""

    error: Error | None = None
    state: State | None = None
    outcome: Outcome | None = None
    layout: Layout | None = None
    body: bytes = b""
    size: int = 0
    seconds: float = 0.0
    more: bool = False
    bodies: list[int] = []
    result: Any = None


def _plain(value: Any) -> Any:
    """Convert values that MessagePack does not support."""
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} cannot be sent to an engine")


def _made(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise NotImplementedError(f"{kind.__name__} cannot be received")


_encode = msgspec.msgpack.Encoder(enc_hook=_plain).encode
read_order = msgspec.msgpack.Decoder(Order, dec_hook=_made).decode
read_report = msgspec.msgpack.Decoder(Report).decode
read_request = msgspec.msgpack.Decoder(Request, dec_hook=_made).decode
read_answer = msgspec.msgpack.Decoder(Answer).decode


def frame(message: Struct) -> bytes:
    body = _encode(message)
    return _LENGTH.pack(len(body)) + body


def converted(value: Any, kind: Any) -> Any:
    """A decoded value as a type has it. Raises msgspec.ValidationError."""
    return msgspec.convert(value, kind, dec_hook=_made)


def send(to: socket.socket, message: Struct, bodies: Sequence[bytes] = ()) -> None:
    """Raises OSError."""
    to.sendall(frame(message))
    for body in bodies:
        to.sendall(body)


class Frames:
    """Reads frames from a socket that blocks."""

    def __init__(self, source: socket.socket) -> None:
        self._source = source
        self._held = b""

    def next(self, *, exact: bool = False) -> bytes:
        """The next message; b"" when the other side has closed. `exact` reads nothing of what follows it, so that a
        body is received where it stays. Raises OSError; MemoryError for a message that was read and dropped."""
        if len(self._held) < _LENGTH.size and not self._more(_LENGTH.size, exact=exact):
            return b""
        length = _LENGTH.unpack_from(self._held)[0]
        if length > MOST:
            raise msgspec.DecodeError(f"a message of {length:,} bytes")
        size = _LENGTH.size + length
        if len(self._held) < size and not self._more(size, exact=exact):
            return b""
        held, self._held = self._held, b""
        found = held[_LENGTH.size : size]
        self._held = held[size:]
        return found

    @property
    def whole(self) -> bool:
        """Whether next() finds a message without waiting."""
        held = self._held
        return len(held) >= _LENGTH.size and len(held) >= _LENGTH.size + _LENGTH.unpack_from(held)[0]

    def body(self, size: int) -> bytes:
        """So many bytes as they are. Raises OSError, EOFError."""
        if not self._held:
            found = self._source.recv(size, socket.MSG_WAITALL) if size else b""
            if len(found) == size:
                return found
            self._held = found
        if len(self._held) < size and not self._more(size, exact=True):
            raise EOFError("the engine's process ended while it sent a result")
        found, self._held = self._held[:size], self._held[size:]
        return found

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are whole with some more data that somebody else read."""
        self._held += data
        found = []
        while len(self._held) >= _LENGTH.size:
            size = _LENGTH.size + _LENGTH.unpack_from(self._held)[0]
            if len(self._held) < size:
                break
            found.append(self._held[_LENGTH.size : size])
            self._held = self._held[size:]
        return found

    def _more(self, size: int, *, exact: bool = False) -> bool:
        parts, have = [self._held], len(self._held)
        try:
            return self._read(parts, have, size, exact=exact)
        except MemoryError:
            # The next message is to be found behind this one.
            have = sum(map(len, parts))
            parts.clear()
            self._held = b""
            while have < size and (read := self._source.recv_into(_dropped, min(READ, size - have))):
                have += read
            raise

    def _read(self, parts: list[bytes], have: int, size: int, *, exact: bool) -> bool:
        while have < size:
            part = self._source.recv(size - have if exact else max(READ, size - have))
            if not part:
                self._held = b"".join(parts)
                return False
            parts.append(part)
            have += len(part)
        self._held = b"".join(parts)
        return True
