"""Files that are compressed on the way come back as they were, and a failed result is taken back."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from backports.zstd import decompress

from sqlshell.errors import UsageError
from sqlshell.origin import Trusted
from sqlshell.output.sinks.file import CompressedFileSink

READ: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".zst": decompress}


@pytest.mark.parametrize("suffix", READ)
def test_results_come_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.csv{suffix.upper()}"
    sink = CompressedFileSink(Trusted(str(path)))
    sink.write(b"first\n" * 1000)
    sink.mark()
    sink.write(b"lost\n" * 100_000)
    sink.rewind()
    sink.write(b"second\n")
    sink.mark()
    assert not path.exists()
    sink.close()
    assert READ[suffix](path.read_bytes()) == b"first\n" * 1000 + b"second\n"
    assert path.stat().st_size < 200
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", READ)
def test_an_abandoned_file_leaves_what_was_there(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.csv{suffix}"
    path.write_bytes(b"before")
    sink = CompressedFileSink(Trusted(str(path)))
    assert sink.unused
    sink.write(b"x" * 1000)
    sink.abort()
    assert path.read_bytes() == b"before"


def test_gzip_reads_all_results(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    sink = CompressedFileSink(Trusted(str(path)))
    for text in (b"a\n", b"", b"b\n"):
        if text:
            sink.write(text)
        sink.mark()
    sink.close()
    assert subprocess.run(["gzip", "-dc", str(path)], capture_output=True, check=True).stdout == b"a\nb\n"


@pytest.mark.parametrize("suffix", READ)
def test_an_empty_result_is_a_file_that_can_be_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.csv{suffix}"
    sink = CompressedFileSink(Trusted(str(path)))
    sink.mark()
    sink.mark()
    sink.close()
    assert path.stat().st_size
    assert READ[suffix](path.read_bytes()) == b""


def test_a_result_after_one_that_is_marked_begins_a_member(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    sink = CompressedFileSink(Trusted(str(path)))
    sink.write(b"a\n")
    sink.mark()
    size = len(gzip.compress(b"a\n"))
    sink.mark()
    sink.write(b"b\n")
    sink.close()
    assert path.stat().st_size == 2 * size
    assert gzip.decompress(path.read_bytes()) == b"a\nb\n"


def test_a_failed_first_result_leaves_a_file_to_write(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    sink = CompressedFileSink(Trusted(str(path)))
    sink.write(b"lost\n" * 100_000)
    sink.rewind()
    assert sink.unused
    sink.write(b"kept\n")
    sink.close()
    assert gzip.decompress(path.read_bytes()) == b"kept\n"


def test_without_the_package_no_file_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("backports.zstd", "compression.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=r"requires the package backports\.zstd") as caught:
        CompressedFileSink(Trusted(str(tmp_path / "t.csv.zst")))
    assert caught.value.hint.startswith("write .gz, or run: pip install backports.zstd (with pipx: ")
    assert list(tmp_path.iterdir()) == []
    CompressedFileSink(Trusted(str(tmp_path / "t.csv.gz"))).abort()
