"""The text of scripts as it arrives: pieces, encodings, and what is not text."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlshell.errors import OutputError, UsageError
from sqlshell.origin import Trusted
from sqlshell.runtime.event_loops import in_daemon_thread
from sqlshell.shell.scripts import reading
from sqlshell.shell.scripts.reading import decode, relative_to_script, write_text


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CHUNK", 4)


def text(content: bytes) -> str:
    return "".join(decode(io.BytesIO(content), "s.sql"))


@pytest.mark.parametrize("content", ["", "a", "select 1;\nselect 2;\n", "ü" * 5, "aü€😀" * 3])
def test_all_of_a_script_is_read_whatever_the_pieces(content: str) -> None:
    assert text(content.encode()) == content
    # A byte order mark is no part of the text.
    assert text(b"\xef\xbb\xbf" + content.encode()) == content


def test_text_is_given_out_as_it_arrives() -> None:
    asked: list[int] = []

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            asked.append(1)
            return super().read(size)

    chunks = decode(Slow(b"abcdefgh"), "s.sql")
    assert next(chunks) == "abcd"
    assert len(asked) == 1
    assert list(chunks) == ["efgh"]


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"\xff", "s.sql:1: "),
        (b"a;\nb;\n\n\xff", "s.sql:4: "),
        (b"a\nbcd\n\xc3", "s.sql:3: "),
        (b"1\n2\n\xff\n4", "s.sql:3: "),
    ],
)
def test_bytes_that_are_not_text_are_named_by_their_line(content: bytes, where: str) -> None:
    with pytest.raises(UsageError) as raised:
        text(content)
    assert raised.value.message == f"{where}invalid UTF-8"


def test_a_binary_file_is_not_a_script() -> None:
    chunks = decode(io.BytesIO(b"abcd\0fgh"), "s.sql")
    assert next(chunks) == "abcd"
    with pytest.raises(UsageError, match="binary file"):
        next(chunks)


def test_reading_goes_on_beside_other_work() -> None:
    async def work(chunks: Iterator[Trusted]) -> list[Trusted | None]:
        return [await in_daemon_thread(lambda: next(chunks, None), "script") for _ in range(3)]

    assert asyncio.run(work(decode(io.BytesIO(b"abcdef"), "s.sql"))) == ["abcd", "ef", None]
    with pytest.raises(UsageError, match="binary file"):
        asyncio.run(work(decode(io.BytesIO(b"\0"), "s.sql")))


@pytest.mark.parametrize(
    ("script", "path", "found"),
    [
        ("a/b.sql", "c.sql", "a/c.sql"),
        ("a/b.sql", "../c.sql", "a/../c.sql"),
        ("b.sql", "c.sql", "c.sql"),
        ("a/b.sql", "/c.sql", "/c.sql"),
        ("-", "c.sql", "c.sql"),
        ("a/b.sql", "~/c.sql", "~/c.sql"),
    ],
)
def test_a_path_is_relative_to_its_script(script: str, path: str, found: str) -> None:
    assert relative_to_script(script, Trusted(path)) == found


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    write_text(Trusted(str(tmp_path / "a")), "ü\n")
    assert (tmp_path / "a").read_bytes() == "ü\n".encode()
    for path in (str(tmp_path), str(tmp_path / "no" / "a"), "~nobody-of-that-name/a"):
        with pytest.raises(OutputError, match=r"cannot write|is a directory"):
            write_text(Trusted(path), "x")


def test_a_text_that_is_not_unicode_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.sql"
    path.write_text("precious")
    with pytest.raises(OutputError, match=r"to .*a\.sql: the text contains a lone surrogate \(.udcff\), which"):
        write_text(Trusted(str(path)), "select 1 as \udcff")
    assert path.read_text() == "precious"
    assert [each.name for each in tmp_path.iterdir()] == ["a.sql"]
