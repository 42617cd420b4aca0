"""Who sees the retries of a client's requests."""

from __future__ import annotations

import asyncio
import contextlib
import io
from pathlib import Path

import pytest

from sqlshell.config.values import Config
from sqlshell.diagnostics import Diagnostics
from sqlshell.launch.connector import Connector
from sqlshell.launch.services import open_endpoint
from sqlshell.launch.targets import find_destination
from sqlshell.origin import Trusted
from sqlshell.runtime.event_loops import start_in_background
from sqlshell.runtime.streams import Streams
from sqlshell.shell.front_end import FrontEnd, Progress
from sqlshell.shell.options import Options
from sqlshell.shell.records.redaction import SecretFilter


@pytest.mark.parametrize(
    ("interactive", "verbose", "background", "said"),
    [
        (True, 0, True, ""),
        (True, 1, True, "retrying\n"),
        (True, 0, False, "retrying\n"),
        (False, 0, True, "retrying\n"),
    ],
)
def test_retries_of_background_work_are_not_reported_at_the_prompt(
    tmp_path: Path, interactive: bool, verbose: int, background: bool, said: str
) -> None:
    async def work() -> None:
        stream = io.StringIO()
        diagnostics = Diagnostics(stream, verbose=verbose)
        streams = Streams(io.StringIO(), io.StringIO(), stream)
        prompt = FrontEnd(diagnostics, Progress())
        config = Config(tmp_path / "config.toml", {})
        place = find_destination("http://127.0.0.1:9", {}, {}, config, diagnostics.warn)
        connector = Connector(
            Trusted(""),
            {},
            config,
            {},
            place.settings,
            Options(),
            SecretFilter(),
            prompt,
            diagnostics,
            streams,
            contextlib.ExitStack(),
            interactive,
        )
        service = connector.service(open_endpoint(place), str)

        async def request() -> None:
            service.transport.say("retrying")

        await (start_in_background(request()) if background else request())
        assert stream.getvalue() == said
        await service.aclose()

    asyncio.run(work())
