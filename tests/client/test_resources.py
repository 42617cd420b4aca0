"""Downloads are complete and verified, or do not appear; they are resumed, and never written where a name says."""

from __future__ import annotations

import asyncio
import base64
import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sqlshell.client.http import retries
from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.transport import Transport
from sqlshell.client.legacy import LegacyClient
from sqlshell.client.resources import Download, download, resource_path
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.service import Service
from sqlshell.client.statements.polling import StatementsClient
from sqlshell.client.target import parse
from sqlshell.context import SessionContext
from sqlshell.errors import Busy, OutputError, ProtocolError, ServiceError, ShellError, UsageError
from sqlshell.origin import Trusted
from sqlshell.shell.running.attachments import download_path
from tests.client.test_statements import ID, Scripted, done, scripted
from tests.http_servers import QuietHandler, listening

CONTENT = os.urandom(200_000)
SUM = hashlib.sha256(CONTENT).hexdigest()
DIGEST = base64.b64encode(bytes.fromhex(SUM)).decode()
NAMES = (Path(__file__).parents[1] / "data" / "strings" / "traversal-names.txt").read_text().splitlines()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.01)


class Kept:
    """A resource. Each request is cut after the next of `cuts` bytes of its body, the rest are whole."""

    def __init__(self, content: bytes = CONTENT, etag: str = f'"{SUM}"', cuts: tuple[int, ...] = ()) -> None:
        self.content = content
        self.etag = etag
        self.cuts = list(cuts)
        self.ranges: list[str] = []
        self.more: dict[str, str] = {}
        self.ignores_ranges = False
        self.status = 0
        self.sized = True
        self.body = b""
        self.range = ""
        """The Content-Range of a part, instead of the right one."""


@contextmanager
def serving(kept: Kept) -> Iterator[str]:
    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = self.headers.get("Range", "")
            kept.ranges.append(asked)
            if kept.status:
                self.send_response(kept.status)
                self.send_header("Content-Length", str(len(kept.body)))
                for name, value in kept.more.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(kept.body)
                return
            start = 0
            if asked and self.headers.get("If-Range") == kept.etag and not kept.ignores_ranges:
                start = int(asked.removeprefix("bytes=").rstrip("-"))
            body = kept.content[start:]
            if start and not body:
                self.send_response(416)
                self.send_header("Content-Range", kept.range or f"bytes */{len(kept.content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206 if start else 200)
            if start:
                end = len(kept.content) - 1
                self.send_header("Content-Range", kept.range or f"bytes {start}-{end}/{len(kept.content)}")
            if kept.etag:
                self.send_header("ETag", kept.etag)
            for name, value in kept.more.items():
                self.send_header(name, value)
            if kept.sized:
                self.send_header("Content-Length", str(len(body)))
            else:
                self.send_header("Connection", "close")
            self.end_headers()
            if kept.cuts:
                body = body[: kept.cuts.pop(0)]
                self.close_connection = True
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with listening(server):
        yield f"http://127.0.0.1:{server.server_address[1]}"


def get(url: str, place: Path, *, force: bool = False, retries: int = 3, limit: int = 1 << 20) -> Download:
    async def work() -> Download:
        transport = Transport(parse(url), "tok", network=NetworkOptions(retries=retries, download_limit=limit))
        told: list[Any] = []
        try:
            return await download(
                transport, "/v2/download/x", place, force=force, progress=lambda *item: told.append(item)
            )
        finally:
            await transport.aclose()

    return asyncio.run(work())


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def test_whole_and_checked(tmp_path: Path) -> None:
    kept = Kept()
    with serving(kept) as url:
        done = get(url, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert (done.size, done.sha256, done.checked, done.resumed) == (len(CONTENT), SUM, True, 0)
    assert leftovers(tmp_path) == []


def test_gone_on_with_after_breaks(tmp_path: Path) -> None:
    kept = Kept(cuts=(50_000, 70_000))
    with serving(kept) as url:
        get(url, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert kept.ranges == ["", "bytes=50000-", "bytes=120000-"]


@pytest.mark.parametrize("sized", [True, False])
def test_progress_is_reported_as_far_as_the_size_is_known(tmp_path: Path, sized: bool) -> None:
    kept = Kept(cuts=(50_000,) if sized else ())
    kept.sized = sized
    told: list[tuple[float | None, str]] = []
    said: list[str] = []

    async def work(url: str) -> None:
        transport = Transport(parse(url), "tok", say=said.append)
        try:
            await download(
                transport, "/x", tmp_path / "f", force=False, progress=lambda share, text: told.append((share, text))
            )
        finally:
            await transport.aclose()

    with serving(kept) as url:
        asyncio.run(work(url))
    if sized:
        assert told[-1] == (1.0, "200,000 of 200,000 bytes")
        assert (0.25, "50,000 of 200,000 bytes") in told
        assert [text.rpartition(": ")[2].partition(" in ")[0] for text in said] == ["resuming"]
        assert said[0].startswith(f"{url} closed the connection")
        assert said[0].endswith("s (attempt 1 of 5)")
    else:
        assert told[-1] == (None, "200,000 bytes")
        assert {share for share, _ in told} == {None}
        assert said == []


def test_gone_on_with_by_a_later_program(tmp_path: Path) -> None:
    kept = Kept(cuts=(50_000,))
    with serving(kept) as url:
        with pytest.raises(ServiceError):
            get(url, tmp_path / "f", retries=0)
        assert not (tmp_path / "f").exists()
        assert leftovers(tmp_path) == [".f.part", ".f.part.etag"]
        assert get(url, tmp_path / "f").resumed == 50_000
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert leftovers(tmp_path) == []


def test_another_copy_begins_again(tmp_path: Path) -> None:
    kept = Kept(cuts=(50_000,))
    with serving(kept) as url:
        with pytest.raises(ServiceError):
            get(url, tmp_path / "f", retries=0)
        kept.content, kept.etag = b"other", '"other"'
        assert get(url, tmp_path / "f").resumed == 0
    assert (tmp_path / "f").read_bytes() == b"other"


@pytest.mark.parametrize(
    "given",
    [
        "bytes 49999-199999/200000",
        "bytes 0-199999/200000",
        "pages 50000-199999/200000",
        f"bytes {'1' * 5000}-199999/200000",
    ],
)
def test_a_part_that_was_not_requested_is_not_added(tmp_path: Path, given: str) -> None:
    kept = Kept(cuts=(50_000,))
    with serving(kept) as url:
        with pytest.raises(ServiceError):
            get(url, tmp_path / "f", retries=0)
        kept.range = given
        with pytest.raises(ProtocolError, match="did not resume the download at byte 50,000"):
            get(url, tmp_path / "f", retries=0)
        assert not (tmp_path / "f").exists()
        kept.range = ""
        get(url, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT


@pytest.mark.parametrize("status", [200, 206])
def test_how_much_of_an_earlier_download_was_kept(tmp_path: Path, status: int) -> None:
    """A download that began again, and was itself continued, was not resumed."""
    kept = Kept(cuts=(50_000,))
    with serving(kept) as url:
        with pytest.raises(ServiceError):
            get(url, tmp_path / "f", retries=0)
        kept.cuts = [20_000]
        if status == 200:
            kept.content, kept.etag = bytes(100_000), '"other"'
        done = get(url, tmp_path / "f")
    assert len(kept.ranges) == 3
    assert (done.resumed, done.size) == ((50_000, len(CONTENT)) if status == 206 else (0, 100_000))


def complete(kept: Kept, url: str, place: Path) -> None:
    """Leave a part with all bytes, as a program that ended right before the end of a download does."""
    kept.cuts = [50_000]
    with pytest.raises(ServiceError):
        get(url, place, retries=0)
    place.with_name(f".{place.name}.part").write_bytes(CONTENT)


def test_a_part_that_is_complete_needs_no_more(tmp_path: Path) -> None:
    kept = Kept()
    with serving(kept) as url:
        complete(kept, url, tmp_path / "f")
        done = get(url, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert done.resumed == len(CONTENT)
    assert leftovers(tmp_path) == []


def test_a_part_that_is_longer_than_the_resource_begins_again(tmp_path: Path) -> None:
    kept = Kept()
    kept.range = "bytes */5"
    with serving(kept) as url:
        complete(kept, url, tmp_path / "f")
        get(url, tmp_path / "f", retries=1)
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert kept.ranges == ["", "bytes=200000-", ""]


def test_a_compressed_resource_is_not_written(tmp_path: Path) -> None:
    kept = Kept()
    kept.more = {"Content-Encoding": "gzip"}
    with serving(kept) as url, pytest.raises(ProtocolError, match="Content-Encoding"):
        get(url, tmp_path / "f", retries=0)
    assert list(tmp_path.iterdir()) == []
    kept.more = {"Content-Encoding": "identity"}
    with serving(kept) as url:
        assert get(url, tmp_path / "f").size == len(CONTENT)


@pytest.mark.parametrize("more", [{}, {"X-Checksum-SHA256": SUM}, {"Repr-Digest": f"sha-256=:{DIGEST}:"}])
def test_a_checksum_is_verified_where_there_is_one(tmp_path: Path, more: dict[str, str]) -> None:
    kept = Kept(etag='"1"')
    kept.more = more
    with serving(kept) as url:
        assert get(url, tmp_path / "f").checked == bool(more)


@pytest.mark.parametrize(
    ("more", "verified"),
    [
        ({"X-Checksum-SHA256": f'W/"sha256:{SUM}"'}, True),
        ({"X-Checksum-SHA256": SUM.upper()}, True),
        ({"Digest": f"sha-256={DIGEST}"}, True),
        ({"Content-Digest": f"sha-256=:{DIGEST}:"}, True),
        ({"Content-Digest": f"sha-512=:{DIGEST}:"}, False),
        ({"X-Checksum-SHA256": SUM[:-1]}, False),
        # Of a part only.
        ({"Content-Digest": f"sha-256=:{'A' * 43}=:", "Content-Range": "bytes 0-9/10"}, False),
    ],
)
def test_where_a_checksum_may_be(tmp_path: Path, more: dict[str, str], verified: bool) -> None:
    kept = Kept(etag="")
    kept.more = more
    with serving(kept) as url:
        assert get(url, tmp_path / "f").checked is verified


def test_a_part_without_a_tag_is_not_resumed(tmp_path: Path) -> None:
    (tmp_path / ".f.part").write_bytes(b"of another version")
    kept = Kept()
    with serving(kept) as url:
        assert get(url, tmp_path / "f").resumed == 0
    assert kept.ranges == [""]
    assert (tmp_path / "f").read_bytes() == CONTENT


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("etag", ["", 'W/"weak"'])
def test_without_a_strong_tag_it_begins_again(tmp_path: Path, etag: str, later: bool) -> None:
    kept = Kept(etag=etag, cuts=(50_000,))
    with serving(kept) as url:
        if later:
            with pytest.raises(ServiceError):
                get(url, tmp_path / "f", retries=0)
        assert get(url, tmp_path / "f").resumed == 0
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert kept.ranges == ["", ""]


def test_a_service_that_knows_no_ranges(tmp_path: Path) -> None:
    kept = Kept(cuts=(50_000,))
    kept.ignores_ranges = True
    with serving(kept) as url:
        get(url, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("etag", "more"),
    [
        (f'"{"0" * 64}"', {}),
        ("", {"X-Checksum-SHA256": "0" * 64}),
        ("", {"Repr-Digest": f"sha-256=:{'A' * 43}=:"}),
        ("", {"Digest": f"SHA-256={'A' * 43}="}),
    ],
)
def test_another_checksum_keeps_nothing(tmp_path: Path, etag: str, more: dict[str, str]) -> None:
    kept = Kept(etag=etag)
    kept.more = more
    with serving(kept) as url, pytest.raises(ProtocolError, match="SHA-256"):
        get(url, tmp_path / "f")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("sized", "cuts"), [(True, ()), (False, ()), (True, (50_000,))])
def test_what_is_too_large_leaves_nothing(tmp_path: Path, sized: bool, cuts: tuple[int, ...]) -> None:
    kept = Kept(cuts=cuts)
    kept.sized = sized
    with serving(kept) as url:
        with pytest.raises(ServiceError) as raised:
            get(url, tmp_path / "f", limit=len(CONTENT) - 1)
        assert "--download-limit" in raised.value.hint
        assert len(kept.ranges) == 1
        assert list(tmp_path.iterdir()) == []
        for limit in (len(CONTENT), 0):
            kept.cuts = []
            assert get(url, tmp_path / f"f{limit}", limit=limit).size == len(CONTENT)


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("mine")
    with serving(Kept()) as url:
        with pytest.raises(UsageError, match="already"):
            get(url, tmp_path / "f")
        assert (tmp_path / "f").read_text() == "mine"
        get(url, tmp_path / "f", force=True)
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_where_a_file_cannot_be_nothing_is_requested(tmp_path: Path) -> None:
    kept = Kept()
    with serving(kept) as url:
        for place, words in ((tmp_path, "is a directory"), (tmp_path / "no" / "f", "no does not exist")):
            with pytest.raises(UsageError, match=words):
                get(url, place, force=True)
    assert kept.ranges == []


def test_a_file_that_appeared_during_the_download_is_kept(tmp_path: Path) -> None:
    kept = Kept()
    place = tmp_path / "f"

    def appear(*_: object) -> None:
        place.write_text("mine")

    async def work(url: str) -> None:
        transport = Transport(parse(url), "tok")
        try:
            await download(transport, "/v2/download/x", place, force=False, progress=appear)
        finally:
            await transport.aclose()

    with serving(kept) as url, pytest.raises(UsageError, match="already exists"):
        asyncio.run(work(url))
    assert place.read_text() == "mine"


def test_a_disk_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with serving(Kept()) as url, monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OutputError, match="no space left"):
            get(url, tmp_path / "f")
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize("name", [".f.part", ".f.part.etag"])
def test_a_link_is_not_written_through(tmp_path: Path, name: str) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / name).symlink_to(tmp_path / "victim")
    with serving(Kept()) as url, pytest.raises(OutputError, match="link"):
        get(url, tmp_path / "f")
    assert (tmp_path / "victim").read_text() == "mine"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 408, 429, 500, 501, 502, 503, 504])
def test_refusals(tmp_path: Path, status: int) -> None:
    kept = Kept()
    kept.status = status
    with serving(kept) as url, pytest.raises(ShellError):
        get(url, tmp_path / "f", retries=1)
    assert list(tmp_path.iterdir()) == []
    assert len(kept.ranges) == (2 if status in {408, 429, 500, 502, 503, 504} else 1)


@pytest.mark.parametrize(("status", "tries"), [(500, 2), (503, 4)])
def test_how_often_a_refused_download_is_requested(tmp_path: Path, status: int, tries: int) -> None:
    kept = Kept()
    kept.status = status
    with serving(kept) as url, pytest.raises(Busy, match=f"responded with {status}"):
        get(url, tmp_path / "f", retries=3)
    assert len(kept.ranges) == tries


def test_a_download_is_not_requested_again_before_retry_after(tmp_path: Path) -> None:
    kept = Kept()
    kept.status, kept.more = 503, {"Retry-After": "3600"}
    with serving(kept) as url, pytest.raises(Busy):
        get(url, tmp_path / "f", retries=3)
    assert len(kept.ranges) == 1


def test_a_refusal_says_what_the_service_said(tmp_path: Path) -> None:
    kept = Kept()
    kept.status, kept.body = 403, b'{"message": "not yours"}'
    with serving(kept) as url:
        with pytest.raises(ShellError, match="not yours"):
            get(url, tmp_path / "f", retries=0)
        # Only the beginning of an error is read.
        kept.body = b" " * (3 << 20) + b'{"message": "late"}'
        with pytest.raises(ShellError, match=r"denied the request$"):
            get(url, tmp_path / "f", retries=0)
        kept.status = 404
        with pytest.raises(ServiceError) as raised:
            get(url, tmp_path / "f", retries=0)
    assert "LIST FUNCTION_SOURCES" in raised.value.hint


@pytest.mark.parametrize("name", NAMES)
def test_names_never_leave_the_folder(tmp_path: Path, name: str) -> None:
    try:
        place = download_path(Trusted(name), Trusted(str(tmp_path)))
    except UsageError:
        return
    assert place.parent == tmp_path
    assert place.resolve().parent == tmp_path.resolve()


async def downloaded(state: Scripted, context: SessionContext, place: Path, *, legacy: bool) -> None:
    transport = Transport(parse(state.url), "tok", network=NetworkOptions(retries=0))
    client = LegacyClient(transport) if legacy else StatementsClient(transport, ResultFactory(transport))
    try:
        await Service(transport, client).download(
            "function_source", "f", place, context, force=False, progress=lambda share, text: None
        )
    finally:
        await transport.aclose()


@pytest.mark.parametrize("echoed", [True, False])
def test_the_organization_of_a_path_is_the_one_of_the_service(tmp_path: Path, echoed: bool) -> None:
    echo = {"organizationID": ID} if echoed else {}
    with scripted((200, done(data=[], metadata={"columns": [], "context": echo})), (200, b"content")) as state:
        asyncio.run(downloaded(state, SessionContext(organization="named"), tmp_path / "f", legacy=False))
        assert [item[1].partition("?")[0] for item in state.asked] == [
            "/v2/statements",
            f"/v2/download/function_source/{ID if echoed else 'named'}/f",
        ]
    with scripted((200, done(data=[]))) as state, pytest.raises(UsageError, match="did not return an organization ID"):
        asyncio.run(downloaded(state, SessionContext(), tmp_path / "g", legacy=False))


def test_a_legacy_service_is_not_asked_for_its_organization(tmp_path: Path) -> None:
    with scripted((200, b"content")) as state:
        asyncio.run(downloaded(state, SessionContext(organization="named"), tmp_path / "f", legacy=True))
        assert [item[1] for item in state.asked] == ["/copy/function_source/named/f"]
        with pytest.raises(UsageError, match="did not return an organization ID"):
            asyncio.run(downloaded(state, SessionContext(), tmp_path / "g", legacy=True))
        assert len(state.asked) == 1


def test_paths_of_resources() -> None:
    assert resource_path("function_source", "o/1", "a/../b c", legacy=False) == (
        "/v2/download/function_source/o%2F1/a%2F..%2Fb%20c"
    )
    assert resource_path("descriptor_source", "o", "n", legacy=True) == "/copy/descriptor_source/o/n"
    for kind in ("", "../x", "a/b", "a" * 100):
        with pytest.raises(UsageError):
            resource_path(kind, "o", "n", legacy=False)
