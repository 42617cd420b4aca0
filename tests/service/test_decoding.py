"""A request that is decoded in pieces gives the same result as one that is decoded as a whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from sqlshell.interface.models import StatementRequest
from sqlshell.service.http.decoding import LARGE, StatementDecoder, TooManyStrings, decode_request

ODD = 'é😀"\\ \n\x01/'
REQUESTS = [
    {"statement": ODD * 40, "database": "d" * 300, "parameters": {"sessionID": "s" * 300, "timezone": "UTC"}},
    {"statements": [ODD * number for number in range(40)], "onError": "continue"},
    {"statement": "select 1", "x" * 300: [{"y": ["v" * 300, 1.5, None, True]}, ""], "role": ""},
]


def in_pieces(body: bytes, size: int) -> StatementRequest:
    decoding = StatementDecoder(1000)
    for start in range(0, len(body), size):
        decoding.feed(body[start : start + size])
    return decoding.request()


@pytest.mark.parametrize("request_", REQUESTS, ids=["statement", "batch", "unknown"])
@pytest.mark.parametrize("ascii_", [True, False], ids=["escapes", "characters"])
def test_pieces_make_the_whole(request_: dict[str, object], ascii_: bool) -> None:
    body = json.dumps(request_, ensure_ascii=ascii_).encode()
    whole = msgspec.json.decode(body, type=StatementRequest)
    assert [size for size in (1, 2, 3, 5, 7, 11, 64, len(body)) if in_pieces(body, size) != whole] == []


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"statement":"x', msgspec.DecodeError),
        (b'{"statement":"x\\', msgspec.DecodeError),
        (b'{"statement":"\\x and more"}', msgspec.DecodeError),
        (b'{"statement":"\\ud800 and more"}', msgspec.DecodeError),
        (b'{"statement":"\xff and more"}', UnicodeDecodeError),
        (b'{"statement":"line\nline"}', msgspec.DecodeError),
        (b'{"statement":"x"', msgspec.DecodeError),
        (b'{"statement":1}', msgspec.DecodeError),
        (b'{"x":[' + b'"",' * 1001 + b'""]}', TooManyStrings),
        (b'{"x":' + b"1" * (3 << 20) + b"}", TooManyStrings),
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", RecursionError),
    ],
)
def test_what_is_no_request_is_none_in_pieces(body: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        in_pieces(body, 100_000)


def test_what_is_large_is_decoded_elsewhere_and_nothing_else() -> None:
    steps: list[int] = []

    async def elsewhere(step: Callable[[], None]) -> None:
        steps.append(1)
        step()

    async def chunks(body: bytes) -> AsyncIterator[bytes]:
        for start in range(0, len(body), 65_536):
            yield body[start : start + 65_536]

    small, large = (json.dumps({"statement": "x" * size}).encode() for size in (1000, 4 * LARGE))
    for body, number in ((small, 0), (large, 3)):
        steps.clear()
        found = asyncio.run(decode_request(chunks(body), 10, elsewhere))
        assert (found, len(steps)) == (msgspec.json.decode(body, type=StatementRequest), number)
