"""The messages between the service and an engine's process: frames of MessagePack. Those of the process that copies
stores are JSON.

A frame is its length in four bytes, followed by the message. Messages from the engine's process are decoded by type and
not trusted beyond that.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from struct import Struct as Packed
from typing import Any, Final

import msgspec
from msgspec import Struct

from sqlshell.service.engines.engine import Limits, Outcome
from sqlshell.service.engines.sandbox.beneath import Stamp
from sqlshell.service.results.results import Layout

MOST: Final = 256 << 20
"""The maximum size of a message in bytes."""

MEMORY_NOTE: Final = "(limit set by sqlshell serve --memory)"

COPY = "store.data"
"""The file name of the copy; DuckDB does not recognize its extension as that of a data file."""

_LENGTH: Final = Packed("!I")

_dropped: Final = bytearray(64 << 10)
"""A buffer for data that is read and discarded, for when there is no memory for more."""


class EngineConfig(Struct, frozen=True):
    """The first message to a process: the folder of its organization, the databases (name -> file; sessions begin in
    the first one), limits, and the columns of the service's own relations. With `renders`, the process has no
    databases: it renders the results of the organization.
    """

    folder: Path
    databases: Mapping[str, Path]
    limits: Limits
    system: Mapping[str, Sequence[tuple[str, str]]] = {}
    renders: bool = False


class Opened(Struct, frozen=True, array_like=True):
    """The result of the first message: the databases are open, except those that are `broken`, with the reasons;
    `protections` describes the restrictions of the process.
    """

    first_database: str
    broken: dict[str, str]
    protections: str


class Call(Struct, frozen=True, array_like=True):
    """Call a method of a connection (0: of the engine). `number` is that of the call in its connection.

    On the first socket it is an order, which has no answer and never waits for the engine.
    """

    method: str
    connection: int = 0
    number: int = 0
    given: Sequence[Any] = ()


class Error(Struct, frozen=True, array_like=True):
    """An exception: a Failure or, if `code` is not 0, the OSError with that number. `fatal` says that the instance is
    unusable, `spent` that the process has hardly any memory left.
    """

    sql_state: str
    message: str
    code: int = 0
    fatal: bool = False
    spent: bool = False
    missing: tuple[str, ...] = ()


State = tuple[str, str, str, str, bool]
"""The state of a connection: database, schema, transaction, time zone, and whether it has state that is lost with its
process.
"""


class Answer(Struct, frozen=True, array_like=True):
    """The result of a call, and the state of its connection."""

    error: Error | None = None
    state: State | None = None
    result: Any = None


class Ran(Struct, frozen=True, array_like=True):
    """The result of a statement. `layout`, and `size` in bytes, are those of its rows, `body` the rows if few."""

    outcome: Outcome
    layout: Layout | None = None
    body: bytes = b""
    size: int = 0


class Report(Struct, frozen=True, array_like=True):
    """The progress of a connection's statement."""

    connection: int
    progress: float | None


class CopyRequest(Struct, frozen=True):
    """Request to copy `entities` of the directory with the descriptor `root`, and the tables `keep` of `before`, a copy
    or "" for none, into the directory `into`. Limits are in bytes and seconds; the converter exits with the process
    `parent`.
    """

    root: int
    into: str
    entities: list[str]
    before: str
    keep: list[str]
    threads: int
    memory: int
    file_size: int
    seconds: int
    parent: int


class CopyReport(Struct, frozen=True, omit_defaults=True):
    """A line of the converter's output: it starts copying an entity; has copied it, as of `stamp`; or could not."""

    name: str
    stamp: Stamp | None = None
    reason: str = ""


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
read_config = msgspec.msgpack.Decoder(EngineConfig, dec_hook=_made).decode
read_call = msgspec.msgpack.Decoder(Call).decode
read_answer = msgspec.msgpack.Decoder(Answer).decode
read_report = msgspec.msgpack.Decoder(Report).decode


def convert_to(value: Any, kind: Any) -> Any:
    """Convert a decoded value to a type. Raises msgspec.ValidationError."""
    return msgspec.convert(value, kind, dec_hook=_made)


def frame(message: Struct) -> bytes:
    body = _encode(message)
    return _LENGTH.pack(len(body)) + body


def send(to: socket.socket, message: Struct) -> None:
    """Raises OSError."""
    to.sendall(frame(message))


def receive(source: socket.socket, descriptors: list[int] | None = None) -> bytes | bytearray:
    """Wait for the next message; it is empty if the other side has closed the socket. Descriptors that come with it
    are added to a list. Raises OSError; MemoryError for a message that was read and discarded."""
    if descriptors is None:
        # The kernel closes descriptors that nobody asks for: the service takes none from an engine's process.
        head = source.recv(_LENGTH.size, socket.MSG_WAITALL)
    else:
        head, taken, _, _ = socket.recv_fds(source, _LENGTH.size, 1, socket.MSG_WAITALL)
        descriptors += taken
    if len(head) < _LENGTH.size:
        return b""
    [length] = _LENGTH.unpack(head)
    if length > MOST:
        raise msgspec.DecodeError(f"a message of {length:,} bytes")
    try:
        body = bytearray(length)
    except MemoryError:
        # The next message begins after this one.
        while length and (read := source.recv_into(_dropped, min(len(_dropped), length))):
            length -= read
        raise
    left = memoryview(body)
    # A signal may cut a read short.
    while left and (read := source.recv_into(left, len(left), socket.MSG_WAITALL)):
        left = left[read:]
    return b"" if left else body
