"""Decides whether and when a request is retried. Does no I/O: the transport waits.

Idempotent requests (GET, a statement that only reads) are retried after connect errors, lost connections and the
statuses of a busy service; other requests only if the service cannot have received them, or says that it did not run
them and when to send them again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping

from sqlshell.client.http.options import NetworkOptions
from sqlshell.errors import Busy, ConnectionBroken, ConnectionFailed, NotHttp, ProtocolError, ShellError, Unreachable

BUSY = frozenset({408, 429, 502, 503, 504})
FIRST_WAIT = 0.25
LONGEST_WAIT = 8.0
FIRST_CONTACT_RETRIES = 2
"""Maximum retries for a service that has never responded: it is more likely down, or elsewhere, than restarting."""


def is_retried(status: int) -> bool:
    """Whether a request is sent again after this status, at least once."""
    return status == 500 or status in BUSY


def backoff(attempt: int) -> float:
    """Seconds before the next attempt. They double with each attempt, counted from 0, up to a maximum, with random
    variation.
    """
    return min(LONGEST_WAIT, FIRST_WAIT * float(2**attempt)) * random.uniform(0.75, 1.25)


def says_not_run(headers: Mapping[str, str]) -> bool:
    """Whether a response says that the request had no effect."""
    return headers.get("sqlshell-not-run") == "true"


class Retries:
    """The retries of one request. `idempotent` says whether the service may receive it twice, `known` whether the
    service has responded before.
    """

    def __init__(self, network: NetworkOptions, *, idempotent: bool, known: bool) -> None:
        self._network = network
        self._idempotent = idempotent
        self._known = known
        self._began = time.monotonic()
        self._was_500 = False
        self._was_invalid = False
        self.attempts = 0

    def named(self, message: str, wait: float, what: str = "retrying") -> str:
        """The message about a wait before the next attempt."""
        return f"{message}: {what} in {wait:.1f} s (attempt {self.attempts} of {self._network.retries})"

    def after_error(self, error: ShellError) -> float | None:
        """Seconds until the next attempt; None for no retry."""
        if isinstance(error, Busy):
            return self.after_status(error.status, error.headers)
        if isinstance(error, ProtocolError):
            # An invalid response is retried once, because it may have been damaged in transit.
            if self._was_invalid or not self._idempotent:
                return None
            self._was_invalid = True
            return self._wait()
        if not isinstance(error, ConnectionFailed) or isinstance(error, Unreachable):
            return None
        if isinstance(error, NotHttp) and not self._known:
            return None
        if isinstance(error, ConnectionBroken):
            return self._wait() if self._idempotent and (self._known or self.attempts < FIRST_CONTACT_RETRIES) else None
        if not self._known and self.attempts >= FIRST_CONTACT_RETRIES:
            return None
        return self._wait()

    def after_status(self, status: int, headers: Mapping[str, str]) -> float | None:
        """Seconds until the next attempt; None for no retry."""
        self._known = True
        if not self._idempotent and not (says_not_run(headers) and "retry-after" in headers):
            return None
        if status == 500 and not self._was_500:
            self._was_500 = True
            return self._wait()
        if status not in BUSY:
            return None
        return self._wait(retry_after(headers.get("retry-after", "")))

    def _wait(self, asked: float | None = None) -> float | None:
        if self.attempts >= self._network.retries:
            return None
        wait = backoff(self.attempts)
        if asked is not None:
            wait = max(asked, wait / 4)
        if time.monotonic() - self._began + wait > self._network.timeout:
            return None
        self.attempts += 1
        return wait


def retry_after(text: str) -> float | None:
    """Seconds from now of a Retry-After, given in seconds or as a date; None if it is neither."""
    import email.utils

    text = text.strip()
    if text.isascii() and text.isdecimal():
        return float(text[:9])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
