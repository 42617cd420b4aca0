"""Whether a request is retried: by its error or status, by what is known of the service, and how often."""

from __future__ import annotations

import pytest

from sqlshell.client.http import retries
from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.retries import Retries
from sqlshell.errors import Busy, ConnectionBroken, ConnectionFailed, NotHttp, ProtocolError, ServiceError, Unreachable


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.001)


@pytest.mark.parametrize(
    ("error", "idempotent", "known", "times"),
    [
        # Not received: another attempt cannot run anything twice.
        (ConnectionFailed("refused"), False, True, 4),
        (ConnectionFailed("refused"), True, True, 4),
        (ConnectionFailed("refused"), False, False, 2),
        (ConnectionFailed("refused"), True, False, 2),
        # Perhaps received.
        (ConnectionBroken("lost"), False, True, 0),
        (ConnectionBroken("lost"), False, False, 0),
        (ConnectionBroken("lost"), True, True, 4),
        (ConnectionBroken("lost"), True, False, 2),
        # Damaged in transit, or always wrong.
        (ProtocolError("not JSON"), True, True, 1),
        (ProtocolError("not JSON"), False, True, 0),
        (NotHttp("not HTTP"), True, False, 0),
        (Unreachable("no such host"), True, True, 0),
        (ServiceError("no"), True, True, 0),
        (Busy("busy", 503, {}), True, True, 4),
        (Busy("failed", 500, {}), True, True, 1),
        (Busy("busy", 503, {"retry-after": "3600"}), True, True, 0),
    ],
)
def test_how_often_an_error_is_retried(error: ServiceError, idempotent: bool, known: bool, times: int) -> None:
    tries = Retries(NetworkOptions(retries=4), idempotent=idempotent, known=known)
    while tries.after_error(error) is not None:
        assert tries.attempts <= times
    assert tries.attempts == times


@pytest.mark.parametrize(
    ("status", "idempotent", "times"),
    [(500, True, 1), (503, True, 4), (429, True, 4), (200, True, 0), (404, True, 0), (503, False, 0), (500, False, 0)],
)
def test_how_often_a_status_is_retried(status: int, idempotent: bool, times: int) -> None:
    tries = Retries(NetworkOptions(retries=4), idempotent=idempotent, known=True)
    while tries.after_status(status, {}) is not None:
        assert tries.attempts <= times
    assert tries.attempts == times


@pytest.mark.parametrize(
    ("headers", "status", "times"),
    [
        ({"sqlshell-not-run": "true", "retry-after": "0"}, 503, 4),
        ({"sqlshell-not-run": "true", "retry-after": "0"}, 400, 0),
        ({"sqlshell-not-run": "true", "retry-after": "3600"}, 503, 0),
        ({"sqlshell-not-run": "true"}, 503, 0),
        ({"retry-after": "0"}, 503, 0),
    ],
)
def test_how_often_what_writes_is_retried_after_a_status(headers: dict[str, str], status: int, times: int) -> None:
    tries = Retries(NetworkOptions(retries=4), idempotent=False, known=True)
    while tries.after_status(status, headers) is not None:
        assert tries.attempts <= times
    assert tries.attempts == times


def test_a_service_that_has_responded_is_known_to_be_restarting() -> None:
    tries = Retries(NetworkOptions(retries=4), idempotent=True, known=False)
    assert tries.after_status(503, {}) is not None
    while tries.after_error(ConnectionFailed("refused")) is not None:
        pass
    assert tries.attempts == 4


@pytest.mark.parametrize(("asked", "timeout", "waits"), [("7", 10.0, True), ("7", 6.0, False), ("0", 6.0, True)])
def test_a_service_says_how_long_to_wait(asked: str, timeout: float, waits: bool) -> None:
    wait = Retries(NetworkOptions(timeout=timeout), idempotent=True, known=True).after_status(
        503, {"retry-after": asked}
    )
    assert (wait is not None) is waits
    if wait is not None:
        # Never less than a quarter of the wait that would have been made.
        assert wait >= max(float(asked), 0.001 * 0.75 / 4)
