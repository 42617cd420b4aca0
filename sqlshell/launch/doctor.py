"""`sqlshell doctor`: checks versions, settings, the connection and its latency, and gives advice."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import importlib.metadata
import os
import platform
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from msgspec import Struct

from sqlshell.client.http.failures import connection_failed
from sqlshell.client.http.options import NetworkOptions, proxy_for
from sqlshell.client.http.transport import Transport
from sqlshell.client.target import Target
from sqlshell.config.settings import SETTINGS
from sqlshell.config.values import Config, config_folder, read_config, state_folder
from sqlshell.errors import ShellError, UsageError
from sqlshell.launch.credentials import permission_problems, without_secrets
from sqlshell.launch.services import network_of, token_renewal
from sqlshell.launch.targets import Destination, EngineUrl, RemoteService, find_destination
from sqlshell.output.text.cells import printable
from sqlshell.text import format_count
from sqlshell.unreachable import Cause, why_failed
from sqlshell.version import __version__

PACKAGES = ("duckdb", "httpx", "websockets", "prompt_toolkit", "pygments", "msgspec", "sqlglot", "plotext", "keyring")
SLOW_SECONDS = 1.0
CLOCK_SECONDS = 30.0


class Finding(Struct, frozen=True):
    """One finding: `passed` is False for a problem, and `advice` says how to fix it."""

    check: str
    result: str
    passed: bool = True
    advice: str = ""

    def __str__(self) -> str:
        lines = f"{'ok ' if self.passed else '!! '} {self.check}: {printable(self.result)}"
        return f"{lines}\n     {printable(self.advice)}" if self.advice else lines


def diagnose(target: str, flags: Mapping[str, Any], environ: Mapping[str, str], stdout: TextIO) -> int:
    """Run all checks and print one line each to `stdout`. Returns the exit code: 0 if there is no problem.

    An error in config.toml or in the target is one of the findings; the other checks still run.
    """
    folder = config_folder(environ)
    config, config_error, destination = Config(folder / "config.toml", {}), None, None
    try:
        config = read_config(folder)
    except UsageError as error:
        config_error = error
    problems: list[Finding] = [_permission_finding(text) for text in permission_problems(config)]
    try:
        destination = find_destination(
            target, flags, environ, config, lambda text: problems.append(Finding("warning", text, False))
        )
    except UsageError as error:
        problems.append(Finding("target", error.message, False, error.hint))
    report = [*asyncio.run(findings(destination, environ, config.path, config_error)), *problems]
    stdout.write("".join(f"{item}\n" for item in report))
    return 0 if all(item.passed for item in report) else 3


def _server_finding(server: EngineUrl) -> Finding:
    from sqlshell.service.engines.servers import open_server

    try:
        engine = open_server(server.engine, server.url)
    except ShellError as error:
        return Finding("target", f"{server.shown}: {error.message}", False, error.hint)
    version = engine.version
    engine.close()
    return Finding("target", f"{server.shown} ({version}), by the embedded service")


def _permission_finding(text: str) -> Finding:
    what, _, remedy = text.rpartition(": ")
    return Finding("config", what, False, remedy)


async def findings(
    destination: Destination | None, environ: Mapping[str, str], config: Path, config_error: UsageError | None = None
) -> list[Finding]:
    """Run all checks and return the findings in display order. `config_error` is the error in config.toml."""
    report = [*_local_findings(environ, config, config_error)]
    if destination is None:
        return report
    report += _settings_findings(destination)
    if isinstance(destination.service, RemoteService):
        return report + await _remote_findings(destination.service, network_of(destination.settings))
    server = destination.service.server
    if server is None:
        return [*report, Finding("target", "the embedded service, in this process")]
    return [*report, await asyncio.to_thread(_server_finding, server)]


def _local_findings(environ: Mapping[str, str], config: Path, config_error: UsageError | None) -> Iterator[Finding]:
    yield Finding(
        "sqlshell", f"{__version__}, Python {platform.python_version()}, {platform.system()} {platform.release()}"
    )
    versions = []
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions.append(f"{name} {importlib.metadata.version(name)}")
    yield Finding("packages", ", ".join(versions))
    term = environ.get("TERM", "")
    yield Finding("terminal", f"{term or 'none'}, colors {'off (NO_COLOR)' if environ.get('NO_COLOR') else 'on'}")
    if config_error is not None:
        yield Finding("config", config_error.message, False, config_error.hint)
    else:
        yield Finding("config", f"{config}{'' if config.exists() else ' (does not exist)'}")
    state = state_folder(environ)
    nearest = next((folder for folder in (state, *state.parents) if folder.exists()), state)
    writable = os.access(nearest, os.W_OK)
    advice = "" if writable else "set SQLSHELL_STATE_DIR to another directory for history and journal"
    yield Finding("state", f"{state}{'' if writable else ' is not writable'}", writable, advice)


def _settings_findings(destination: Destination) -> Iterator[Finding]:
    for setting in SETTINGS:
        if source := destination.settings.sources.get(setting.name):
            shown = setting.shown(without_secrets(setting.name, destination.settings[setting.name]))
            yield Finding(setting.name, f"{shown} ({source})")


async def _remote_findings(service: RemoteService, network: NetworkOptions) -> list[Finding]:
    target = service.target
    report = [Finding("target", target.name)]
    proxy = proxy_for(target)
    if proxy:
        report.append(Finding("proxy", proxy.rpartition("@")[2]))
    elif not target.uds:
        reached, usable = await _reach(target, network)
        report += reached
        if not usable:
            return report
    report += await _answers(service, network)
    return report


async def _reach(target: Target, network: NetworkOptions) -> tuple[list[Finding], bool]:
    """Check name resolution, connection and TLS, and measure the time of each; whether to send a request."""
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    try:
        addresses = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except OSError as error:
        failed = connection_failed(target.name, error)
        return [Finding("name", failed.message, False, failed.hint)], False
    names = ", ".join(dict.fromkeys(str(item[4][0]) for item in addresses))
    report = [Finding("name", f"{names} in {_ms(began)}")]
    began = time.perf_counter()
    try:
        async with asyncio.timeout(network.connect_timeout or 10):
            _, writer = await asyncio.open_connection(target.host, target.port)
    except TimeoutError:
        return [*report, Finding("connection", "timed out", False, "check that no firewall blocks the port")], False
    except OSError as error:
        failed = connection_failed(target.name, error)
        return [*report, Finding("connection", failed.message, False, failed.hint)], False
    report.append(Finding("connection", _ms(began)))
    writer.close()
    if target.scheme == "https":
        certificate, usable = await _certificate(target, network)
        return [*report, certificate], usable
    if not target.loopback:
        return [*report, Finding("TLS", "none: the token is sent unencrypted", False, "use https")], False
    return report, True


async def _certificate(target: Target, network: NetworkOptions) -> tuple[Finding, bool]:
    """Check TLS and the certificate; whether a request can be sent, which is possible with one that ends soon."""
    began = time.perf_counter()
    try:
        context = network.tls()
        _, writer = await asyncio.open_connection(target.host, target.port, ssl=context)
    except UsageError as error:
        return Finding("certificate", error.message, False, error.hint), False
    except OSError as error:
        failed = connection_failed(target.name, error)
        what = "certificate" if why_failed(error).cause is Cause.CERTIFICATE else "TLS"
        return Finding(what, failed.message, False, failed.hint), False
    certificate = writer.get_extra_info("peercert") or {}
    version = writer.get_extra_info("ssl_object").version()
    writer.close()
    ends = certificate.get("notAfter", "")
    left = (ssl.cert_time_to_seconds(ends) - time.time()) / 86_400 if ends else None
    good = not network.insecure and (left is None or left > 14)
    days = f", valid for {format_count(round(left), 'day')}" if left is not None else ""
    advice = (
        "not verified (--insecure)"
        if network.insecure
        else ""
        if good
        else "expires soon; ask the operator of the service to renew it"
    )
    return Finding("certificate", f"{version}{days}, in {_ms(began)}", good, advice), True


async def _answers(service: RemoteService, network: NetworkOptions) -> list[Finding]:
    """Check the service: its version twice (on a new and on the kept connection), the token and the clock."""
    report: list[Finding] = []
    transport = Transport(service.target, service.token, network=network, renew=token_renewal(service.token_command))
    try:
        for what in ("first response", "second response"):
            began = time.perf_counter()
            answer = await transport.get("/v2/version")
            spent = time.perf_counter() - began
            slow = "" if spent < SLOW_SECONDS else "the network or the service is slow"
            report.append(Finding(what, f"{answer.status} in {spent * 1000:.0f} ms", not slow, slow))
        if answer.status in {401, 403}:
            report.append(
                Finding("token", "rejected", False, "set a valid one with SQLSHELL_TOKEN, --token-file or a profile")
            )
        elif answer.status != 200:
            advice = (
                "check the URL: it must be the base URL, such as https://host/v2; if the service has the legacy "
                "interface, use --api auto"
            )
            report.append(Finding("interface", f"/v2/version returned {answer.status}", False, advice))
        else:
            report.append(Finding("token", "accepted"))
        if clock := _clock(answer.headers.get("date", "")):
            report.append(clock)
    except ShellError as error:
        report.append(Finding("service", error.message, False, error.hint))
    finally:
        await transport.aclose()
    return report


def _clock(date: str) -> Finding | None:
    with contextlib.suppress(ValueError, TypeError):
        apart = time.time() - email.utils.parsedate_to_datetime(date).timestamp()
        good = abs(apart) < CLOCK_SECONDS
        advice = "" if good else "set the clock: tokens and certificates may be rejected as expired or not yet valid"
        return Finding("clock", f"{apart:+.0f} s from the service's clock", good, advice)
    return None


def _ms(began: float) -> str:
    return f"{(time.perf_counter() - began) * 1000:.0f} ms"
