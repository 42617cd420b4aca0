"""The messages between the service and an engine's process: frames of MessagePack.

A frame is its length in four bytes, followed by the message. Messages from the engine's process are decoded by type and
not trusted beyond that.
"""

from __future__ import annotations

import socket
from pathlib import Path
from struct import Struct as Packed
from typing import Any, Final

import msgspec
from msgspec import Struct

from sqlshell.service.engines.engine import Limits, RunOptions
from sqlshell.service.results.results import Layout

READ: Final = 64 << 10
"""The number of bytes that are read at once."""

MOST: Final = 256 << 20
"""The maximum size of a message in bytes."""

_LENGTH: Final = Packed("!I")

_dropped: Final = bytearray(READ)
"""A buffer for data that is read and discarded, for when there is no memory for more."""


class Message(Struct, frozen=True, array_like=True, tag=True):
    """Base class of all messages."""


class Open(Message, frozen=True):
    """The first message to a process: its directory, the databases (name -> file; sessions begin in the first one), the
    columns of the service's own relations, and the parent process. With `renders`, the process has no databases: it
    renders the results of the organization.
    """

    folder: Path
    databases: dict[str, Path]
    limits: Limits
    parent: int
    system: dict[str, list[tuple[str, str]]] = {}
    renders: bool = False


class Channel(Message, frozen=True):
    """The socket that is sent with this message receives calls from now on, one after another."""


class Interrupt(Message, frozen=True):
    """Interrupt statement `number` of a connection if it is running, or do not start it."""

    connection: int
    number: int


class Close(Message, frozen=True):
    """A connection is no longer needed."""

    connection: int


class Ask(Message, frozen=True):
    """Request the progress of a connection's running statement; the reply is Progress. Number 0 is no connection: it
    only checks whether the process responds.
    """

    connection: int = 0


class ReleaseMemory(Message, frozen=True):
    """Request to release the memory for reading results, because none are being read."""


class TrimMemory(Message, frozen=True):
    """Request to return to the system the memory that statements no longer use."""


class CancelRows(Message, frozen=True):
    """The rows of a stream that a call evaluates are no longer needed."""

    number: int


class Stop(Message, frozen=True):
    """Shut down."""


Order = Open | Channel | Interrupt | Close | Ask | ReleaseMemory | TrimMemory | CancelRows | Stop


class Opened(Message, frozen=True):
    """The databases are open, except those that are `broken`, with the reasons; `protections` describes the
    restrictions of the process.
    """

    first_database: str
    broken: dict[str, str]
    protections: str = ""


class Progress(Message, frozen=True):
    connection: int
    share: float | None = None


class Broken(Message, frozen=True):
    """The databases could not be opened, or the instance is unusable: the process exits."""

    why: str


class Memory(Message, frozen=True):
    """The process has run short of memory and may crash: the reason to give if it does, or "" once it has recovered."""

    why: str


class ReplaceSoon(Message, frozen=True):
    """The process should be replaced as soon as nothing runs in it."""

    why: str


Report = Opened | Progress | Broken | Memory | ReplaceSoon


class Run(Message, frozen=True):
    """Run a statement. Its rows are stored in `file`, or discarded if that is None."""

    connection: int
    number: int
    statement: str
    options: RunOptions
    file: str | None


class Call(Message, frozen=True):
    """Call a method of a connection (0: of the engine)."""

    connection: int
    number: int
    method: str
    given: list[Any]


Request = Run | Call

State = tuple[str, str, str, str, bool]
"""The state of a connection: database, schema, transaction, time zone, and whether it has state that is lost with its
process.
"""


class Error(Struct, frozen=True, array_like=True):
    """An exception: a Failure or, if `code` is not 0, the OSError with that number. `fatal` says that the instance is
    unusable.
    """

    sql_state: str
    message: str
    code: int = 0
    fatal: bool = False
    missing: tuple[str, ...] = ()


class Answer(Struct, frozen=True, array_like=True):
    """The result of a call or a statement. `size` is the size of the result in bytes, `body` the rows of a small
    one."""

    error: Error | None = None
    state: State | None = None
    result: Any = None
    layout: Layout | None = None
    body: bytes = b""
    size: int = 0


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


def convert_to(value: Any, kind: Any) -> Any:
    """Convert a decoded value to a type. Raises msgspec.ValidationError."""
    return msgspec.convert(value, kind, dec_hook=_made)


def send(to: socket.socket, message: Struct) -> None:
    """Raises OSError."""
    to.sendall(frame(message))


class Frames:
    """Reads frames from a blocking socket."""

    def __init__(self, source: socket.socket) -> None:
        self._source = source
        self._held = b""

    def next(self) -> bytes:
        """The next message; b"" if the other side has closed the socket. Raises OSError; MemoryError for a message that
        was read and discarded."""
        if len(self._held) < _LENGTH.size and not self._more(_LENGTH.size):
            return b""
        length = _LENGTH.unpack_from(self._held)[0]
        if length > MOST:
            raise msgspec.DecodeError(f"a message of {length:,} bytes")
        size = _LENGTH.size + length
        if len(self._held) < size and not self._more(size):
            return b""
        message, self._held = self._held[_LENGTH.size : size], self._held[size:]
        return message

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are complete after adding data that another reader received."""
        self._held += data
        messages = []
        while len(self._held) >= _LENGTH.size:
            size = _LENGTH.size + _LENGTH.unpack_from(self._held)[0]
            if len(self._held) < size:
                break
            messages.append(self._held[_LENGTH.size : size])
            self._held = self._held[size:]
        return messages

    def _more(self, size: int) -> bool:
        """Read until `size` bytes are held; False if the other side has closed the socket before."""
        parts, have = [self._held], len(self._held)
        try:
            while have < size and (part := self._source.recv(max(READ, size - have))):
                parts.append(part)
                have += len(part)
            self._held = b"".join(parts)
            return have >= size
        except MemoryError:
            # The next message begins after this one.
            have = sum(map(len, parts))
            parts.clear()
            self._held = b""
            while have < size and (read := self._source.recv_into(_dropped, min(READ, size - have))):
                have += read
            raise
