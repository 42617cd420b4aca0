"""The limits of a request's body, to the byte; a refused request leaves no file and no memory behind."""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.requests import Request

from sqlshell.interface.models import StatementRequest
from sqlshell.service.http.bodies import (
    LARGE,
    OVERHEAD,
    PARTS,
    STATEMENT_BYTES,
    STRINGS,
    Form,
    base_name,
    decoded,
    media_type,
    read_body,
    text_limit,
)
from sqlshell.service.http.budget import SHARE, Budget, Lease
from sqlshell.service.http.responses import BadRequest
from sqlshell.service.settings import Settings

LIMITS = Settings(statement_limit=10, attachment_limit=5, attachments=2, name_length=4, statements=3)
LIMITS_OF_FILES = Settings(statement_limit=10, attachment_limit=1_000_000, attachments=2)


def part(name: str, value: bytes = b"", file: str | None = None, *headers: str) -> bytes:
    filename = "" if file is None else f'; filename="{file}"'
    lines = (f'Content-Disposition: form-data; name="{name}"{filename}', *headers)
    return b"--b\r\n" + "\r\n".join(lines).encode() + b"\r\n\r\n" + value + b"\r\n"


KIND = "multipart/form-data; boundary=b"


def free() -> Lease:
    """A lease that never ends."""
    return Lease(Budget(1 << 40), "o")


def sent(body: bytes, size: int = 1 << 20, kind: str = KIND) -> Request:
    """A request with a body that arrives in chunks."""
    pieces = [body[start : start + size] for start in range(0, len(body), size)]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": pieces.pop(0) if pieces else b"", "more_body": bool(pieces)}

    return Request({"type": "http", "headers": [(b"content-type", kind.encode())]}, receive)


def form(
    folder: Path,
    *parts: bytes,
    size: int = 1 << 20,
    limits: Settings = LIMITS,
    lease: Lease | None = None,
    files_lease: Lease | None = None,
) -> Form:
    form = Form(limits, ("request", "more"), "attachments", lambda: folder, lease or free(), files_lease or free())
    asyncio.run(form.read(sent(b"".join(parts) + b"--b--\r\n", size)))
    return form


def refused(act: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(BadRequest) as raised:
        act()
    return raised.value.status, raised.value.message


def of(name: str, value: str) -> dict[str, Any]:
    return {name: value}


def read(body: bytes, lease: Lease | None = None, limits: Settings = LIMITS, size: int = 1 << 20) -> StatementRequest:
    async def work() -> StatementRequest:
        return await decoded(await read_body(sent(body, size), limits, lease or free()), limits)

    return asyncio.run(work())


def request(lease: Lease | None = None, limits: Settings = LIMITS, **fields: object) -> StatementRequest:
    return read(json.dumps(fields).encode(), lease, limits)


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_a_form_is_its_fields_and_files(tmp_path: Path, size: int) -> None:
    given = [
        part("request", b"{}"),
        part("other", b"is ignored"),
        part("attachments", b"abc", "dir\\a.jar"),
        part("other", b"twice"),
        part("more", b""),
        part("attachments", b"\r\n", "../b"),
    ]
    read = form(tmp_path, *given, size=size)
    assert read.fields == {"request": b"{}", "more": b""}
    assert [(file.name, file.path.read_bytes()) for file in read.attachments.files] == [
        ("a.jar", b"abc"),
        ("b", b"\r\n"),
    ]
    assert {file.path.parent for file in read.attachments.files} == {tmp_path}
    read.attachments.close()
    assert list(tmp_path.iterdir()) == []
    assert read.attachments.files == []


@pytest.mark.parametrize(
    ("parts", "status", "message"),
    [
        ((part("attachments", b"abc", "a"), part("attachments", b"abc", "b")), 413, "attachments: more than 5 bytes"),
        ((part("attachments", b"", "a"),) * 3, 413, "attachments: more than 2 files"),
        ((part("attachments", b"x"),), 400, "part 'attachments' has no file name"),
        ((part("attachments", b"x", ".."),), 400, "part 'attachments' has no file name"),
        ((part("attachments", b"x", "a/"),), 400, "part 'attachments' has no file name"),
        ((part("attachments", b"x", "a"), part("more"), part("more")), 400, "part 'more' occurs more than once"),
        ((part("x"),) * (PARTS + 3), 413, f"the form has more than {PARTS + 2} parts"),
        ((part("x", b"", None, f"X-A: {'a' * 20_000}"),), 400, "cannot read the form"),
        ((part("x", b"", None, *["X-A: b"] * 100),), 400, "cannot read the form"),
        (
            (part("attachments", b"x", "a"), part("other", b"x" * (text_limit(LIMITS) + 1))),
            413,
            f"other: more than {text_limit(LIMITS)} bytes (limit set by sqlshell serve --max-bodies-size)",
        ),
        ((part("attachments", b"x", "a"), b"--b\r\nno header\r\n\r\n"), 400, "cannot read the form"),
    ],
)
def test_a_form_that_is_refused_leaves_nothing(
    tmp_path: Path, parts: tuple[bytes, ...], status: int, message: str
) -> None:
    told = refused(lambda: form(tmp_path, *parts))
    assert (told[0], told[1].startswith(message)) == (status, True), told
    assert list(tmp_path.iterdir()) == []


def test_a_form_may_be_as_large_as_its_limits(tmp_path: Path) -> None:
    given = [part("x")] * (PARTS - 1)
    files = [part("attachments", b"abc", "a"), part("attachments", b"ab", "b")]
    read = form(tmp_path, part("request", b"x" * text_limit(LIMITS)), *given, *files)
    assert len(read.fields["request"]) == text_limit(LIMITS) == 10 * STATEMENT_BYTES + OVERHEAD
    read.attachments.close()


def test_the_rest_of_a_large_form_is_read_elsewhere(tmp_path: Path) -> None:
    """Whichever thread reads a piece, the file is whole."""
    content = bytes(range(256)) * (LARGE // 100)
    limits = Settings(statement_limit=10, attachment_limit=len(content), attachments=1)
    read = form(tmp_path, part("attachments", content, "a"), size=LARGE // 3, limits=limits)
    assert read.attachments.files[0].path.read_bytes() == content
    read.attachments.close()


@pytest.mark.parametrize("body", [b"--\0", b"--b\r\nName\1: x\r\n\r\nx"])
def test_a_form_that_cannot_be_read_is_not_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, body: bytes
) -> None:
    form = Form(LIMITS, (), "attachments", lambda: tmp_path, free(), free())
    assert refused(lambda: asyncio.run(form.read(sent(body))))[0] == 400
    assert not caplog.records


def test_the_boundary_is_required(tmp_path: Path) -> None:
    async def read(kind: str, body: bytes) -> None:
        await Form(LIMITS, (), "attachments", lambda: tmp_path, free(), free()).read(sent(body, kind=kind))

    for kind in ("multipart/form-data", "multipart/form-data; boundary="):
        assert refused(lambda kind=kind: asyncio.run(read(kind, b""))) == (  # type: ignore[misc]
            400,
            "Content-Type: multipart/form-data has no boundary",
        )
    whole = part("attachments", b"x", "a")
    ended = refused(lambda: asyncio.run(read("multipart/form-data; boundary=b", whole)))
    assert ended == (400, "the form ends without its closing boundary")
    assert list(tmp_path.iterdir()) == []


def test_memory_and_space_are_leased_and_given_back(tmp_path: Path) -> None:
    async def work() -> None:
        texts, uploads = Budget(SHARE * 2), Budget(SHARE * 4)
        given = b"".join([part("request", b"{}"), part("attachments", b"abc", "a"), b"--b--\r\n"])

        async def read() -> Form:
            leases = Lease(texts, "o"), Lease(uploads, "o")
            form = Form(LIMITS, ("request",), "attachments", lambda: tmp_path, *leases)
            await form.read(sent(given))
            return form

        first = await read()
        assert not texts.take("o", 1)
        assert not uploads.take("o", 2)
        texts.give("o", 2)
        with pytest.raises(BadRequest) as raised:
            await read()
        assert (raised.value.status, raised.value.message) == (
            503,
            "too much data is being uploaded at once (limit set by sqlshell serve --max-uploads-size); try again later",
        )
        texts.give("o", 2)
        first.attachments.close()
        assert not any(tmp_path.iterdir())  # noqa: ASYNC240
        # The refused one has given back what it held, too.
        assert uploads.take("o", 4)
        assert texts.take("o", 1)
        with pytest.raises(BadRequest, match="--max-bodies-size"):
            await read()

    asyncio.run(work())


@pytest.mark.parametrize("size", [5, 100_000], ids=["behind the part", "in the part"])
def test_a_file_for_which_the_disk_has_no_space(tmp_path: Path, size: int) -> None:
    uploads = Budget(SHARE * 2 * size)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Python ignores the signal, so that a write beyond the limit fails as one to a full disk does.
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, limit[1]))
    try:
        told = refused(
            lambda: form(
                tmp_path,
                part("attachments", b"x" * size, "a"),
                limits=LIMITS_OF_FILES,
                files_lease=Lease(uploads, "o"),
            )
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert told == (507, "attachments: cannot store the file: file too large")
    assert not any(tmp_path.iterdir())
    assert uploads.take("o", 2 * size)


def test_a_body_is_as_long_as_the_memory_for_it() -> None:
    lease = Lease(Budget(SHARE * 20), "o")
    assert refused(lambda: request(lease, statement="select 1"))[0] == 503
    lease = Lease(Budget(SHARE * 25), "o")
    assert request(lease, statement="select 1").statement == "select 1"


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"statement": "x" * 11}, 413, "request.statement is longer than 10 characters"),
        ({"statement": " \n"}, 400, "request.statement is empty"),
        ({"statment": "x"}, 400, "request.statement is missing; unknown member 'statment'"),
        ({}, 400, "request.statement is empty"),
        ({"statement": "x", "statements": ["x"]}, 400, "request.statement and request.statements cannot be used"),
        ({"statements": []}, 400, "request.statements has 0 statements; 1 to 3 are allowed"),
        (
            {"statements": ["x"] * 4},
            400,
            "request.statements has 4 statements; 1 to 3 are allowed",
        ),
        ({"statements": ["x", " ", ""]}, 400, "request.statements[1] is empty"),
        ({"statements": ["xxxxx", "xxxxxx"]}, 413, "request.statements is longer than 10 characters"),
        ({"statements": ["x"], "onError": "panic"}, 400, "request.onError: expected stop or continue, not 'panic'"),
        ({"statement": "x", "parameters": {"rowLimit": -1}}, 400, "request.parameters.rowLimit must not be negative"),
        (
            {"statement": "x" * (20 + OVERHEAD)},
            413,
            f"the body is larger than {text_limit(LIMITS)} bytes (limit set by",
        ),
        ({"statement": "x", "parameters": {"timezone": "ROC "}}, 400, "request.parameters.timezone: unknown"),
    ],
)
def test_a_request_that_is_refused(fields: dict[str, Any], status: int, message: str) -> None:
    told = refused(lambda: request(**fields))
    assert (told[0], told[1].startswith(message)) == (status, True), told


def test_a_request_may_be_as_long_as_its_limits() -> None:
    for error in ("stop", "continue", None):
        read = request(statements=["xxxx", "xxx", "xxx"], onError=error)
        assert (read.statements, read.on_error) == (["xxxx", "xxx", "xxx"], error)
    read = request(statement="x" * 10, parameters={"rowLimit": 0, "timezone": "Zulu"})
    assert read.parameters is not None
    assert (read.statement, read.parameters.row_limit) == ("x" * 10, 0)


@pytest.mark.parametrize("name", ["organization", "role", "database", "schema", "store", "computePool"])
def test_a_name_of_the_context_may_have_its_length(name: str) -> None:
    request(statement="x", **of(name, "four"))
    assert refused(lambda: request(statement="x", **of(name, "fives"))) == (
        400,
        f"request.{name} is longer than 4 characters",
    )


def test_a_sessions_id_and_a_time_zone_may_have_their_length() -> None:
    request(statement="x", parameters={"sessionID": "four", "timezone": "Zulu"})
    for name, value in (("sessionID", "fives"), ("timezone", "Japan")):
        told = refused(lambda name=name, value=value: request(statement="x", parameters={name: value}))  # type: ignore[misc]
        assert told[1].startswith(f"request.parameters.{name} is longer than 4 characters"), told


def test_the_least_of_two_limits_bounds_a_text() -> None:
    assert text_limit(Settings(statement_limit=10, bodies_size=8 * 7)) == 7 + OVERHEAD
    assert text_limit(Settings(statement_limit=1, bodies_size=8 * 7)) == STATEMENT_BYTES + OVERHEAD


def test_encodings_and_types() -> None:
    def asked(kind: str, encoding: str = "") -> Request:
        headers = [(b"content-type", kind.encode()), (b"content-encoding", encoding.encode())]
        return Request({"type": "http", "headers": headers})

    assert (
        media_type(asked("Application/JSON; charset=utf-8", " Identity "), ("application/json",)) == "application/json"
    )
    assert refused(lambda: media_type(asked("application/json", "gzip"), ("application/json",))) == (
        415,
        "Content-Encoding: 'gzip' is not supported; send the body uncompressed",
    )
    assert refused(lambda: media_type(asked("text/plain"), ("application/json", "text/x"))) == (
        415,
        "Content-Type: expected application/json or text/x",
    )


@pytest.mark.parametrize(
    ("given", "name"),
    [(b"a", "a"), (b"/x/a", "a"), (b"C:\\x\\a", "a"), (b"a/", ""), (b"a\0b", "ab"), (b"\xff", "\ufffd")],
)
def test_the_base_name_of_a_file(given: bytes, name: str) -> None:
    assert base_name(given) == name


ODD = 'é😀"\\ \n\x01/'


@pytest.mark.parametrize("size", [1, 100, LARGE])
@pytest.mark.parametrize("ascii_", [True, False], ids=["escapes", "characters"])
def test_a_body_in_chunks_is_the_whole(ascii_: bool, size: int) -> None:
    limits = Settings(statement_limit=1 << 20, attachment_limit=0, attachments=0)
    for fields in (
        {"statement": ODD * 40, "database": "d" * 200, "parameters": {"sessionID": "s" * 200, "timezone": "UTC"}},
        {"statements": [ODD * number for number in range(1, 40)], "onError": "continue"},
        {"statement": "x" * (2 * LARGE if size > 1 else 10), "x" * 300: [{"y": ["v" * 300, 1.5, None, True]}, ""]},
    ):
        body = json.dumps(fields, ensure_ascii=ascii_).encode()
        assert read(body, limits=limits, size=size) == msgspec.json.decode(body, type=StatementRequest)


@pytest.mark.parametrize("length", [10, LARGE])
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"statement":"x', 400),
        (b'{"statement":"x\\', 400),
        (b'{"statement":"\\x and more"}', 400),
        (b'{"statement":"\\ud800 and more"}', 400),
        (b'{"statement":"\xff and more"}', 400),
        (b'{"statement":"line\nline"}', 400),
        (b'{"statement":"x"', 400),
        (b'{"statement":1}', 400),
        (b'{"x":[' + b'"",' * STRINGS + b'""]}', 413),
        (b'{"x":[' + b'"\\\\",' * 2 * STRINGS + b'""]}', 413),
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
    ],
)
def test_what_is_no_request_is_refused(body: bytes, status: int, length: int) -> None:
    limits = Settings(statement_limit=1 << 20, attachment_limit=0, attachments=0)
    told = refused(lambda: read(b" " * length + body, limits=limits))
    assert (told[0], told[1].startswith("request: ")) == (status, True), told
