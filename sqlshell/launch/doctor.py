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
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from sqlshell import __version__
from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.proxies import proxy_for
from sqlshell.client.http.transport import Transport
from sqlshell.client.target import Target
from sqlshell.config.settings import SETTINGS
from sqlshell.config.values import Config, config_folder, read_config, state_folder
from sqlshell.errors import ShellError, UsageError
from sqlshell.launch.assembly import network_of
from sqlshell.launch.credentials import exposed, run_token_command, without_secrets
from sqlshell.launch.destination import Place, Remote, find_place
from sqlshell.output.text.cells import printable

PACKAGES = ("duckdb", "httpx", "websockets", "prompt_toolkit", "pygments", "msgspec", "sqlglot", "plotext", "keyring")
SLOW_SECONDS = 1.0
CLOCK_SECONDS = 30.0


class Found(Struct, frozen=True):
    """One finding: `good` is False for a problem, and `advice` says how to fix it."""

    what: str
    said: str
    good: bool = True
    advice: str = ""

    def __str__(self) -> str:
        lines = f"{'ok ' if self.good else '!! '} {self.what}: {printable(self.said)}"
        return f"{lines}\n     {printable(self.advice)}" if self.advice else lines


def diagnose(target: str, flags: Mapping[str, Any], environ: Mapping[str, str]) -> int:
    """Run all checks and print one line each to stdout. Returns the exit code: 0 if there is no problem.

    An error in config.toml or in the target is one of the findings; the other checks still run.
    """
    folder = config_folder(environ)
    config, wrong, place = Config(folder / "config.toml", {}), None, None
    try:
        config = read_config(folder)
    except UsageError as error:
        wrong = error
    refused: list[Found] = [_exposed(text) for text in exposed(config)]
    try:
        place = find_place(target, flags, environ, config, lambda text: refused.append(Found("warning", text, False)))
    except UsageError as error:
        refused.append(Found("target", error.message, False, error.hint))
    found = [*asyncio.run(findings(place, environ, config.path, wrong)), *refused]
    sys.stdout.write("".join(f"{item}\n" for item in found))
    return 0 if all(item.good for item in found) else 3


def _exposed(text: str) -> Found:
    what, _, remedy = text.rpartition(": ")
    return Found("config", what, False, remedy)


async def findings(
    place: Place | None, environ: Mapping[str, str], config: Path, wrong: UsageError | None = None
) -> list[Found]:
    """Run all checks and return the findings in display order. `wrong` is the error in config.toml."""
    found = [*_here(environ, config, wrong)]
    if place is None:
        return found
    found += _settings(place)
    if isinstance(place.where, Remote):
        return found + await _remote(place.where, network_of(place.settings))
    return [*found, Found("target", "the local service inside this program")]


def _here(environ: Mapping[str, str], config: Path, wrong: UsageError | None) -> Iterator[Found]:
    yield Found(
        "sqlshell", f"{__version__}, Python {platform.python_version()}, {platform.system()} {platform.release()}"
    )
    versions = []
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions.append(f"{name} {importlib.metadata.version(name)}")
    yield Found("packages", ", ".join(versions))
    term = environ.get("TERM", "")
    yield Found("terminal", f"{term or 'none'}, colors {'off (NO_COLOR)' if environ.get('NO_COLOR') else 'on'}")
    if wrong is not None:
        yield Found("config", wrong.message, False, wrong.hint)
    else:
        yield Found("config", f"{config}{'' if config.exists() else ' (does not exist)'}")
    state = state_folder(environ)
    nearest = next((folder for folder in (state, *state.parents) if folder.exists()), state)
    writable = os.access(nearest, os.W_OK)
    advice = "" if writable else "set SQLSHELL_STATE_DIR to another directory for history and journal"
    yield Found("state", f"{state}{'' if writable else ' is not writable'}", writable, advice)


def _settings(place: Place) -> Iterator[Found]:
    for setting in SETTINGS:
        value = place.settings.values[setting.name]
        if value.source != "default":
            shown = without_secrets(setting.name, value.value)
            yield Found(setting.name, f"{shown} ({value.source})")


async def _remote(where: Remote, network: NetworkOptions) -> list[Found]:
    target = where.target
    found = [Found("target", target.name)]
    proxy = proxy_for(target)
    if proxy:
        found.append(Found("proxy", proxy.rpartition("@")[2]))
    elif not target.uds:
        reached = await _reach(target, network)
        found += reached
        if not reached[-1].good:
            return found
    found += await _answers(where, network)
    return found


async def _reach(target: Target, network: NetworkOptions) -> list[Found]:
    """Check name resolution, connection and TLS, and measure the time of each."""
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    try:
        addresses = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except OSError as error:
        return [Found("name", f"cannot resolve {target.host}: {error}", False, "check the host name, DNS and VPN")]
    names = ", ".join(dict.fromkeys(str(item[4][0]) for item in addresses))
    found = [Found("name", f"{names} in {_ms(began)}")]
    began = time.perf_counter()
    try:
        async with asyncio.timeout(network.connect_timeout or 10):
            _, writer = await asyncio.open_connection(target.host, target.port)
    except (OSError, TimeoutError) as error:
        advice = "check that the service is running, that the port is correct, and that no firewall blocks it"
        return [*found, Found("connection", str(error) or "timed out", False, advice)]
    found.append(Found("connection", _ms(began)))
    writer.close()
    if target.scheme == "https":
        found.append(await _certificate(target, network))
    elif not target.loopback:
        found.append(Found("TLS", "none: the token is sent unencrypted", False, "use https"))
    return found


async def _certificate(target: Target, network: NetworkOptions) -> Found:
    began = time.perf_counter()
    try:
        context = network.tls()
        _, writer = await asyncio.open_connection(target.host, target.port, ssl=context)
    except ssl.SSLCertVerificationError as error:
        return Found(
            "certificate", error.verify_message, False, "use --ca-file FILE for the CA certificate of the service"
        )
    except (OSError, ShellError) as error:
        return Found("TLS", str(error), False, "check that the service uses TLS on that port")
    certificate = writer.get_extra_info("peercert") or {}
    version = writer.get_extra_info("ssl_object").version()
    writer.close()
    ends = certificate.get("notAfter", "")
    left = (ssl.cert_time_to_seconds(ends) - time.time()) / 86_400 if ends else None
    good = not network.insecure and (left is None or left > 14)
    days = f", valid for {left:.0f} days" if left is not None else ""
    advice = (
        "not verified (--insecure)"
        if network.insecure
        else ""
        if good
        else "expires soon; ask the operator of the service to renew it"
    )
    return Found("certificate", f"{version}{days}, in {_ms(began)}", good, advice)


async def _answers(where: Remote, network: NetworkOptions) -> list[Found]:
    """Check the service: its version twice (on a new and on the kept connection), the token and the clock."""
    found: list[Found] = []

    async def renew() -> str:
        return await asyncio.to_thread(run_token_command, where.token_command)

    transport = Transport(where.target, where.token, network=network, renew=renew if where.token_command else None)
    try:
        for what in ("first response", "second response"):
            began = time.perf_counter()
            answer = await transport.request("GET", "/v2/version")
            spent = time.perf_counter() - began
            slow = "" if spent < SLOW_SECONDS else "the network or the service is slow"
            found.append(Found(what, f"{answer.status} in {spent * 1000:.0f} ms", not slow, slow))
        if answer.status in {401, 403}:
            found.append(
                Found("token", "rejected", False, "set a valid one with SQLSHELL_TOKEN, --token-file or a profile")
            )
        elif answer.status != 200:
            advice = (
                "check the URL: expected the base URL, such as https://host/v2; --api auto detects the legacy interface"
            )
            found.append(Found("interface", f"/v2/version returned {answer.status}", False, advice))
        else:
            found.append(Found("token", "accepted"))
        if clock := _clock(answer.headers.get("date", "")):
            found.append(clock)
    except ShellError as error:
        found.append(Found("service", error.message, False, error.hint))
    finally:
        await transport.aclose()
    return found


def _clock(date: str) -> Found | None:
    with contextlib.suppress(ValueError, TypeError):
        apart = time.time() - email.utils.parsedate_to_datetime(date).timestamp()
        good = abs(apart) < CLOCK_SECONDS
        advice = "" if good else "set the clock: tokens and certificates may be rejected as expired or not yet valid"
        return Found("clock", f"{apart:+.0f} s from the service's clock", good, advice)
    return None


def _ms(began: float) -> str:
    return f"{(time.perf_counter() - began) * 1000:.0f} ms"
