"""Where the data of COPY end within a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlshell.shell.loading import end_of_data
from sqlshell.shell.loading.end_of_data import cut_at_end

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
@pytest.mark.parametrize("piece", [1, 2, 3, 5, 1 << 20])
def test_the_data_before_the_end(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    data: bytes,
    quote: bytes,
    escape: bytes,
    expected: bytes | None,
    piece: int,
) -> None:
    monkeypatch.setattr(end_of_data, "PIECE", piece)
    (tmp_path / "data").write_bytes(data)
    found = cut_at_end(tmp_path / "data", tmp_path / "cut", quote, escape)
    assert (tmp_path / "cut").read_bytes() == expected if found else expected is None
