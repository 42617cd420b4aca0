"""A bad network: a result is complete, or an error says what was wrong."""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet

from sqlshell.client.http import retries
from tests.conftest import Served
from tests.faults.scenarios import Scenario, expected, scenarios, tried

WHOLE = expected()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.01)


def _cases() -> list[ParameterSet]:
    """Faults of the second exchange are tried always, and those of others with the marker."""
    return [
        pytest.param(item, marks=() if item.first == 1 or not item.reads else pytest.mark.fuzz, id=str(item))
        for item in scenarios([0, 1, 10, 19])
    ]


@pytest.mark.parametrize("scenario", _cases())
def test_whole_or_clearly_failed(served: Served, scenario: Scenario) -> None:
    found = tried(served.url, served.token, scenario, WHOLE)
    assert found.outcome != "wrong"
    assert found.message or found.outcome == "whole"
    if not scenario.reads:
        assert found.posts <= 1


@pytest.mark.parametrize("stage", [1, pytest.param(10, marks=pytest.mark.fuzz)])
@pytest.mark.parametrize(
    "fault",
    [
        "cut before the request is passed on",
        "cut after the request is passed on",
        "cut in mid-body",
        "reset in mid-body",
        "truncate the body and its length",
        "corrupt the head",
        "corrupt the body",
        "answer 408",
        "answer 429 with Retry-After",
        "answer 500",
        "answer 502 with HTML",
        "answer 504",
        "an empty answer",
        "delay",
        "throttle",
    ],
)
def test_one_fault_of_a_look_up_loses_nothing(served: Served, fault: str, stage: int) -> None:
    assert tried(served.url, served.token, Scenario(fault, stage, stage), WHOLE).outcome == "whole"
