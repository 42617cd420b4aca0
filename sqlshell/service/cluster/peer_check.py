"""Checks what the operator sets at each process, as the other processes see it: --peer-url and --token-file."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Collection, Sequence
from typing import Final

import httpx

from sqlshell.service.cluster import PEER_PATH
from sqlshell.service.cluster.cluster import LEASE_SECONDS, Cluster, Peer
from sqlshell.service.storage.storage import StorageError

CHALLENGE: Final = "sqlshell-challenge"
"""The header of a request that asks which process a URL reaches: a random text, and its signature."""

PROOF: Final = "sqlshell-proof"
"""The header of the response: the ID of the process, and the signature of both."""

PAUSE_SECONDS: Final = 3.0
"""The time between two checks of processes that were not reached."""

STARTING_SECONDS: Final = LEASE_SECONDS + 5.0
"""How long another process may be unreachable before that is logged: it is starting, or has ended just now."""

OTHER_PROCESS: Final = "another process of this service responds at this URL"
"""Fault: the URL reaches another process, or one that has just restarted."""

_log = logging.getLogger("sqlshell.service")


class PeerCheck:
    """Checks that the URL of a process reaches it. No token is sent to a URL before. Used from one event loop.

    Raises StorageError.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._key = cluster.key("peers")
        self._client = httpx.AsyncClient(trust_env=False, timeout=5.0)
        self._proven: set[Peer] = set()
        self._failing: dict[Peer, float] = {}
        """Processes whose URLs do not reach them, and since when."""
        self._logged: set[Peer] = set()
        self._lost: set[str] = set()
        """The addresses of processes that were considered dead, or were not reached."""
        self._others: set[str] = set()
        """The processes with another token of the operator, as far as they were logged."""
        self._checking: asyncio.Task[None] | None = None
        self._next = 0.0

    def proof(self, challenge: str) -> str:
        """The proof that a challenge of another process has reached this one; "" if no process made the challenge."""
        nonce, _, signature = challenge.partition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), self._signed("challenge", nonce).encode()):
            return ""
        return f"{self._cluster.id}.{self._signed('proof', nonce, self._cluster.id)}"

    async def fault(self, peer: Peer) -> str:
        """What is wrong with the URL of a process, "" if it reaches the process."""
        if peer in self._proven:
            return ""
        nonce = secrets.token_hex(16)
        headers = {CHALLENGE: f"{nonce}.{self._signed('challenge', nonce)}"}
        try:
            answer = await self._client.get(f"{peer.address}{PEER_PATH}", headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return f"no response ({type(error).__name__})"
        process, _, signature = answer.headers.get(PROOF, "").partition(".")
        if not hmac.compare_digest(
            signature.encode("utf-8", "replace"), self._signed("proof", nonce, process).encode()
        ):
            return f"another server responds at this URL (HTTP {answer.status_code})"
        if process != peer.process:
            return OTHER_PROCESS
        self._proven.add(peer)
        return ""

    def log(self, peer: Peer, fault: str) -> None:
        """Log once what is wrong with the URL of another process."""
        if peer not in self._logged:
            self._logged.add(peer)
            self._lost.add(peer.address)
            _log.warning(
                "cannot reach the process with --peer-url %s: %s; requests about its sessions get 503 from this "
                "process; restart it with a URL that the other processes can reach",
                peer.address,
                fault,
            )

    def note_lost(self, addresses: Collection[str]) -> None:
        """Note that the processes at these addresses were considered dead, to log when one responds again."""
        self._lost.update(addresses)

    def look_around(self) -> None:
        """Begin to check all processes, unless that was done just now."""
        if time.monotonic() >= self._next and (self._checking is None or self._checking.done()):
            self._next = time.monotonic() + PAUSE_SECONDS
            self._checking = asyncio.ensure_future(self._look_around())

    async def close(self) -> None:
        if self._checking is not None:
            self._checking.cancel()
        await self._client.aclose()

    async def _look_around(self) -> None:
        try:
            rows = await self._cluster.run_async(self._cluster.processes)
        except StorageError:
            return
        self._compare_tokens([(str(address), str(token)) for _, address, token in rows])
        peers = {Peer(str(process), str(address)) for process, address, _ in rows}
        self._proven &= peers
        self._logged &= peers
        self._failing = {peer: since for peer, since in self._failing.items() if peer in peers}
        await asyncio.gather(*(self._look_at(peer) for peer in peers - self._proven))

    async def _look_at(self, peer: Peer) -> None:
        fault = await self.fault(peer)
        if not fault:
            if peer.address in self._lost:
                self._lost.discard(peer.address)
                _log.info("the process at %s responds again", peer.address)
            return
        if peer in self._logged:
            return
        since = self._failing.setdefault(peer, time.monotonic())
        if peer.process == self._cluster.id:
            self._logged.add(peer)
            self._lost.add(peer.address)
            _log.warning(
                "--peer-url %s does not reach this process: %s; the other processes cannot forward requests to it; "
                "restart this process with a URL that the others can reach",
                peer.address,
                fault,
            )
        elif time.monotonic() - since > STARTING_SECONDS:
            self.log(peer, fault)

    def _compare_tokens(self, processes: Sequence[tuple[str, str]]) -> None:
        own = self._cluster.token
        others = {address for address, token in processes if own and token and token != own}
        if others - self._others:
            _log.warning(
                "the token in --token-file differs from that of the processes at %s, which reject it with 401; start "
                "all processes with the same token",
                ", ".join(sorted(others)),
            )
        self._others = others

    def _signed(self, *parts: str) -> str:
        text = "\n".join(parts).encode("utf-8", "surrogatepass")
        return hmac.new(self._key, text, hashlib.sha256).hexdigest()
