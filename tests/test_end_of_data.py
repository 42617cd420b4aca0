"""Where the data of COPY end within a file."""

from __future__ import annotations

import io

import pytest

from sqlshell.shell.loading.inspect import end_of_data

CASES = [
    (b"a\n\\.\nb\n", b"", b"", b"a\n"),
    (b"\\.\nb\n", b"", b"", b""),
    (b"a\r\n\\.\r\nb", b"", b"", b"a\r\n"),
    (b"a\n\\.", b"", b"", b"a\n"),
    (b"a\\.\n\\.b\n\\\\.\n \\.\n", b"", b"", None),
    (b"", b"", b"", None),
    (b'"y\n\\.\n"\n\\.\n', b'"', b'"', b'"y\n\\.\n"\n'),
    (b'"a""\n\\.\n"\n\\.\nc', b'"', b'"', b'"a""\n\\.\n"\n'),
    (b'"a\\"\n\\.\n"\n\\.\nc', b'"', b"\\", b'"a\\"\n\\.\n"\n'),
    (b'"a\\\\"\n\\.\n"', b'"', b"\\", b'"a\\\\"\n'),
]


@pytest.mark.parametrize(("data", "quote", "escape", "expected"), CASES)
def test_the_data_before_the_end(data: bytes, quote: bytes, escape: bytes, expected: bytes | None) -> None:
    length = end_of_data(io.BytesIO(data), quote, escape)
    assert (None if length is None else data[:length]) == expected
