"""What is removed from a response that contains a secret: all of it, and nothing around it."""

from __future__ import annotations

import base64

import pytest

from sqlshell.client.secret_values import Secrets

SECRET = "a-secret-token-of-this-test"


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("form", [SECRET, base64.b64encode(f"x{SECRET}y".encode()).decode(), SECRET.encode().hex()])
def test_what_stands_around_a_secret_is_kept(form: str, times: int) -> None:
    secrets = Secrets()
    secrets.add(SECRET)
    parts = [f"<{number}>" for number in range(times + 1)]
    text = form.join(parts)
    with secrets.redacting():
        found = bytes(secrets.body(text.encode())).decode()
    stars = found.removeprefix(parts[0]).partition("<")[0]
    assert set(stars) == {"*"}
    assert found == stars.join(parts)
    assert secrets.text(found) == found
