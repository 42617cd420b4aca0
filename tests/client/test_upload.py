"""Attachments: what is refused before anything is sent, and bodies of exactly the announced size."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

import pytest

from sqlshell.client.http.upload import PIECE, Attachment, Upload, attachment
from sqlshell.errors import ServiceError, UsageError
from sqlshell.origin import Trusted

LIMIT = 1 << 20


def test_a_file_is_known_by_its_base_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "lib 1.jar"
    file.write_bytes(b"abc")
    found = attachment(Trusted("~/lib 1.jar"))
    assert (found.path, found.name, found.size) == (file, "lib 1.jar", 3)
    assert found.sha256() == hashlib.sha256(b"abc").hexdigest()
    file.unlink()
    with pytest.raises(UsageError, match=r"cannot read .*lib 1\.jar"):
        found.sha256()


@pytest.mark.parametrize("over", [0, 1])
def test_the_limit_is_the_largest_size(tmp_path: Path, over: int) -> None:
    file = tmp_path / "lib.jar"
    file.write_bytes(bytes(LIMIT + over))
    assert attachment(Trusted(str(file))).size == LIMIT + over
    if over:
        with pytest.raises(UsageError, match="larger than the upload limit of 1 MiB") as caught:
            attachment(Trusted(str(file)), LIMIT)
        assert "--upload-limit" in caught.value.hint
    else:
        assert attachment(Trusted(str(file)), LIMIT).size == LIMIT


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("folder", "is a directory"),
        ("pipe", "not a regular file"),
        ("nowhere", "no such file"),
        ("nul\0", "cannot read"),
        ("a/b", "cannot read"),
        ('quoted"', "contains characters that cannot be sent"),
        ("back\\slash", "contains characters that cannot be sent"),
        ("line\n", "contains characters that cannot be sent"),
        ("wide\u2028", "contains characters that cannot be sent"),
    ],
)
def test_what_is_refused(tmp_path: Path, name: str, words: str) -> None:
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
    elif name == "pipe":
        os.mkfifo(path)
    elif name == "a/b":
        (tmp_path / "a").write_text("")
    elif name not in {"nowhere", "nul\0"}:
        path.write_text("")
    with pytest.raises(UsageError, match=words):
        attachment(Trusted(str(path)))


def sent(upload: Upload) -> bytes:
    async def work() -> bytes:
        return b"".join([piece async for piece in upload.pieces()])

    return asyncio.run(work())


def held(path: Path, content: bytes) -> Attachment:
    path.write_bytes(content)
    return attachment(Trusted(str(path)))


def test_a_body_has_the_size_that_was_said_and_tells_how_much_has_left(tmp_path: Path) -> None:
    large = bytes(range(256)) * (PIECE // 128)
    told: list[int] = []
    files = [held(tmp_path / "a.bin", large), held(tmp_path / "empty", b"")]
    upload = Upload([("Content-Type: text/plain", b"x")], files, "attachments", sent=told.append, boundary="edge")
    before = b'Content-Disposition: form-data; name="attachments"; filename="%s"\r\n'
    kind = b"Content-Type: application/octet-stream\r\n\r\n"
    expected = (
        b"--edge\r\nContent-Type: text/plain\r\n\r\nx\r\n--edge\r\n"
        + (before % b"a.bin" + kind + large + b"\r\n--edge\r\n")
        + (before % b"empty" + kind + b"\r\n--edge--\r\n")
    )
    assert sent(upload) == expected
    assert upload.size == len(expected) == told[-1]
    assert told == sorted(told)
    assert max(after - earlier for earlier, after in zip([0, *told], told, strict=False)) == PIECE
    assert upload.content_type == "multipart/form-data; boundary=edge"
    upload.sent = None
    assert sent(upload) == expected


@pytest.mark.parametrize(
    ("change", "words"), [(b"abcd", "changed before"), (b"ab", "changed before"), (None, "cannot read")]
)
def test_a_file_that_is_no_longer_what_it_was(tmp_path: Path, change: bytes | None, words: str) -> None:
    upload = Upload([], [held(tmp_path / "a", b"abc")], "attachments", boundary="edge")
    if change is None:
        (tmp_path / "a").unlink()
    else:
        (tmp_path / "a").write_bytes(change)
    with pytest.raises(ServiceError, match=words):
        sent(upload)


def test_a_file_that_becomes_shorter_while_it_is_sent(tmp_path: Path) -> None:
    upload = Upload([], [held(tmp_path / "a", bytes(3 * PIECE))], "attachments", boundary="edge")
    upload.sent = lambda done: os.truncate(tmp_path / "a", PIECE) if done > PIECE else None
    with pytest.raises(ServiceError, match="was truncated"):
        sent(upload)
