"""Requests of the service to other servers: where they go, and which part of a response is used."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from sqlshell.interface import sqlstate
from sqlshell.service.failure import Failure
from sqlshell.service.secrets import outgoing

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """The port of a server that answers each connection by hand."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    try:
                        connection.recv(65536)
                        answer(connection)
                    except OSError:
                        continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def trickle(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"H")
        time.sleep(0.02)


def trickled_body(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\n")
    while True:
        connection.sendall(b" ")
        time.sleep(0.02)


def endless(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")


def headers(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X: " + b"x" * 60_000 + b"\r\n")


def asked(port: int, host: str = "127.0.0.1", hosts: tuple[str, ...] = ()) -> tuple[int, bytes]:
    target = outgoing.read_target(f"http://{host}:{port}")
    return outgoing.get(target, {}, hosts, time.monotonic() + outgoing.SECONDS)


@pytest.mark.parametrize(
    "answer", [trickle, trickled_body, headers, lambda one: None, lambda one: one.sendall(b"220 smtp\r\n")]
)
def test_a_server_that_does_not_answer_is_given_up(
    answer: Callable[[socket.socket], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing, "SECONDS", 0.3)
    with answering(answer) as port:
        with pytest.raises(Failure) as caught:
            asked(port)
        assert caught.value.sql_state == sqlstate.REMOTE_UNAVAILABLE
        assert "smtp" not in caught.value.message


def test_no_more_of_an_answer_is_read_than_the_bound() -> None:
    with answering(endless) as port:
        status, body = asked(port)
    assert (status, len(body)) == (200, outgoing.MOST)


def test_an_answer_is_not_inflated() -> None:
    packed = HEAD + b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nabcde"
    with answering(lambda one: one.sendall(packed)) as port:
        assert asked(port) == (200, b"abcde")


def test_a_name_is_looked_up_once_and_its_address_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that stands for another address the next time leads nowhere else."""
    looked: list[str] = []
    real = socket.getaddrinfo

    def rebound(host: Any, port: Any, *more: Any, **named: Any) -> Any:
        if host != "registry.test":
            assert host == "127.0.0.1", host
            return real(host, port, *more, **named)
        looked.append(host)
        return real("127.0.0.1" if len(looked) == 1 else "203.0.113.1", port, type=socket.SOCK_STREAM)

    monkeypatch.setattr(socket, "getaddrinfo", rebound)
    with answering(lambda one: one.sendall(HEAD + b"Content-Length: 2\r\n\r\n[]")) as port:
        with pytest.raises(Failure) as caught:
            asked(port, "registry.test")
        # Nothing is looked up to refuse a host.
        assert (caught.value.sql_state, looked) == (sqlstate.PRIVILEGE, [])
        assert asked(port, "registry.test", ("registry.test",)) == (200, b"[]")
        assert looked == ["registry.test"]
        looked.clear()
        assert asked(port, "registry.test", (f"registry.test:{port}",)) == (200, b"[]")
        with pytest.raises(Failure):
            asked(port, "registry.test", (f"registry.test:{port + 1}",))


LINK_LOCAL = ["169.254.169.254", "fe80::1", "::ffff:169.254.0.1", "64:ff9b::169.254.169.254", "2002:a9fe:a9fe::1"]


@pytest.mark.parametrize("address", [*LINK_LOCAL, "0.0.0.0", "224.0.0.1", "::"])
def test_no_name_leads_to_an_address_of_this_link(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    found = [(family, socket.SOCK_STREAM, 6, "", (address, 1))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    for host in ("registry.test", "localhost"):
        with pytest.raises(Failure) as caught:
            asked(1, host, ("registry.test",))
        assert caught.value.sql_state == sqlstate.PRIVILEGE


def test_why_there_is_no_connection() -> None:
    with answering(lambda one: one.sendall(b"220 smtp\r\n")) as port, closing(socket.create_server(("", 0))) as full:
        free = full.getsockname()[1]
        full.close()
        for url, message in (
            (f"http://127.0.0.1:{free}", "connection refused"),
            (f"https://127.0.0.1:{port}", "the TLS handshake failed"),
            (f"http://127.0.0.1:{port}", "the response is not valid HTTP"),
            ("http://[fe80::1]:80", "cannot connect"),
        ):
            with pytest.raises(Failure) as caught:
                outgoing.get(outgoing.read_target(url), {}, None, time.monotonic() + outgoing.SECONDS)
            assert caught.value.sql_state == sqlstate.REMOTE_UNAVAILABLE
            assert caught.value.message.endswith(f": {message}"), caught.value.message


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with answering(lambda one: one.sendall(HEAD + b"Content-Length: 2\r\n\r\n[]")) as port:
        assert asked(port) == (200, b"[]")


def test_a_resolver_that_hangs_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    monkeypatch.setattr(outgoing, "SECONDS", 0.1)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: released.wait(20) and [])
    with pytest.raises(Failure) as caught:
        asked(1, "registry.test", ("registry.test",))
    assert caught.value.sql_state == sqlstate.REMOTE_UNAVAILABLE
    released.set()
