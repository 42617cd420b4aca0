"""What is removed from a response that contains a secret: all of it, and nothing around it."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest

from sqlshell.client.secret_values import Secrets

SECRET = "a-secret/token-of-this-test"


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("form", [SECRET, quote(SECRET, safe="")])
def test_what_stands_around_a_secret_is_kept(form: str, times: int) -> None:
    secrets = Secrets()
    secrets.add(SECRET)
    parts = [f"<{number}>" for number in range(times + 1)]
    text = form.join(parts)
    assert bytes(secrets.body(text.encode())).decode() == "***".join(parts)
    assert secrets.text("***".join(parts)) == "***".join(parts)


@pytest.mark.parametrize("before", ["", "x", ":", "user:"])
def test_a_secret_is_removed_from_base64_whatever_precedes_it(before: str) -> None:
    secrets = Secrets()
    secrets.add(SECRET)
    shown = secrets.text(f"<{base64.b64encode(f'{before}{SECRET}!'.encode()).decode()}>")
    assert "***" in shown
    assert len(shown) < 16


@pytest.mark.parametrize("secret", [SECRET, SECRET + "x", SECRET + "xy"])
@pytest.mark.parametrize("padded", [True, False])
def test_nothing_is_left_of_the_base64_of_a_secret_alone(secret: str, padded: bool) -> None:
    secrets = Secrets()
    secrets.add(secret)
    encoded = base64.b64encode(secret.encode()).decode()
    assert secrets.text(f"<{encoded if padded else encoded.rstrip('=')}>") == "<***>"
