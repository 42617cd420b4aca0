"""What `sqlshell doctor` finds on the way to a service: name, connection, certificate, token, clock."""

from __future__ import annotations

import email.utils
import ssl
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import HTTPServer
from pathlib import Path

import pytest

from sqlshell.launch import doctor
from sqlshell.launch.doctor import diagnose
from tests.http_servers import QuietHandler, listening

NEVER = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


@pytest.fixture(autouse=True)
def as_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NEVER:
        monkeypatch.delenv(name, raising=False)
    # A busy machine is no finding.
    monkeypatch.setattr(doctor, "SLOW_SECONDS", 600.0)


@contextmanager
def answering(status: int = 200, ahead: float = 0, authority: Path | None = None) -> Iterator[int]:
    """A port on which every request gets this status; the clock there is so many seconds ahead."""

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = b'{"major":2,"minor":0,"patch":0}'
            self.send_response_only(status)
            self.send_header("Date", email.utils.formatdate(time.time() + ahead, usegmt=True))
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    class Server(HTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that leaves is expected."""

    server = Server(("127.0.0.1", 0), Handler)
    if authority is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority / "server.pem", authority / "server.key")
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with listening(server):
        yield server.server_port


def told(
    capsys: pytest.CaptureFixture[str], home: Path, url: str, flags: Mapping[str, object] = {}, **environ: str
) -> tuple[int, dict[str, tuple[bool, str, str]]]:
    """The exit code, and of each check whether it passed, what it found, and the advice."""
    places = {"HOME": str(home), "SQLSHELL_CONFIG_DIR": str(home), "SQLSHELL_STATE_DIR": str(home)}
    code = diagnose(url, flags, places | {"SQLSHELL_TOKEN": "t0ken"} | environ, sys.stdout)
    found: dict[str, tuple[bool, str, str]] = {}
    for line in capsys.readouterr().out.replace("\n     ", "\t").splitlines():
        check, _, rest = line[4:].partition(": ")
        result, _, advice = rest.partition("\t")
        found[check] = line.startswith("ok  "), result, advice
    return code, found


def failing(found: Mapping[str, tuple[bool, str, str]]) -> dict[str, tuple[str, str]]:
    return {check: (result, advice) for check, (passed, result, advice) in found.items() if not passed}


def test_a_service_that_answers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with answering() as port:
        code, found = told(capsys, tmp_path, f"http://127.0.0.1:{port}/v2")
    assert (code, failing(found)) == (0, {})
    assert found["target"][1] == f"http://127.0.0.1:{port}"
    assert found["name"][1].startswith("127.0.0.1 in ")
    assert found["first response"][1].startswith("200 in ")
    assert found["token"] == (True, "accepted", "")
    assert found["clock"][1].endswith(" s from the service's clock")
    assert found["config"] == (True, f"{tmp_path / 'config.toml'} (does not exist)", "")
    assert "certificate" not in found


@pytest.mark.parametrize(
    ("status", "check", "result", "advice"),
    [
        (401, "token", "rejected", "set a valid one with SQLSHELL_TOKEN, --token-file or a profile"),
        (403, "token", "rejected", "set a valid one with SQLSHELL_TOKEN, --token-file or a profile"),
        (
            404,
            "interface",
            "/v2/version returned 404",
            "check the URL: it must be the base URL, such as https://host/v2; if the service has the legacy interface, "
            "use --api auto",
        ),
    ],
)
def test_a_service_that_refuses(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, status: int, check: str, result: str, advice: str
) -> None:
    with answering(status) as port:
        code, found = told(capsys, tmp_path, f"http://127.0.0.1:{port}/v2")
    assert (code, failing(found)) == (3, {check: (result, advice)})


@pytest.mark.parametrize("ahead", [-500, 500])
def test_a_clock_that_is_wrong(capsys: pytest.CaptureFixture[str], tmp_path: Path, ahead: int) -> None:
    with answering(ahead=ahead) as port:
        code, found = told(capsys, tmp_path, f"http://127.0.0.1:{port}/v2")
    (result, advice) = failing(found)["clock"]
    assert (code, result[0]) == (3, "-" if ahead > 0 else "+")
    assert advice == "set the clock: tokens and certificates may be rejected as expired or not yet valid"


def test_a_certificate_of_an_authority_that_is_not_known(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, authority: Path
) -> None:
    with answering(authority=authority) as port:
        code, found = told(capsys, tmp_path, f"https://127.0.0.1:{port}/v2")
    (result, advice) = failing(found)["certificate"]
    assert (code, advice) == (3, "use --ca-file FILE if it was issued by a private CA")
    assert "certificate" in result or "issuer" in result
    assert "token" not in failing(found)


@pytest.mark.slow("makes certificates")
def test_a_certificate_that_ends_soon(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = {"ca_file": str(authority / "ca.pem")}
    with answering(authority=authority) as port:
        code, found = told(capsys, tmp_path, f"https://127.0.0.1:{port}/v2", flags)
        assert code == 3
        passed, result, advice = found["certificate"]
        assert (passed, advice) == (False, "expires soon; ask the operator of the service to renew it")
        assert ", valid for 2 days, in " in result
        assert found["token"] == (True, "accepted", "")
        code, found = told(capsys, tmp_path, f"https://127.0.0.1:{port}/v2", {"insecure": True})
    assert (code, found["certificate"][0], found["certificate"][2]) == (3, False, "not verified (--insecure)")
    assert found["token"] == (True, "accepted", "")


def test_a_port_that_does_not_speak_tls(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with answering() as port:
        code, found = told(capsys, tmp_path, f"https://127.0.0.1:{port}/v2", {"retries": "0"})
    assert (code, failing(found)["TLS"][1]) == (3, "the service may not use TLS: try http://")
    assert "first response" not in found


def test_what_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, found = told(capsys, tmp_path, "http://127.0.0.1:1/v2")
    advice = "check that the service is running and that the port is correct"
    assert (code, [item[1] for item in failing(found).values()]) == (3, [advice])
    assert "first response" not in found
    code, found = told(capsys, tmp_path, "http://name.invalid/v2")
    assert failing(found)["name"][1] == "check its spelling, DNS and VPN"
    assert (code, "connection" in found) == (3, False)


def test_a_proxy_is_named_without_its_password(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://user:hunter2@127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://user:hunter2@127.0.0.1:1")
    code, found = told(capsys, tmp_path, "http://name.invalid/v2", {"retries": "0"})
    assert (code, found["proxy"]) == (3, (True, "127.0.0.1:1", ""))
    assert "name" not in found
    assert "hunter2" not in repr(found)


def test_an_error_in_the_configuration_is_one_of_the_findings(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    tmp_path.joinpath("config.toml").write_text("nonsense")
    code, found = told(capsys, tmp_path, "")
    assert code == 3
    assert f"{tmp_path / 'config.toml'}" in failing(found)["config"][0]
    assert "packages" in found
