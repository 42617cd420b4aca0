"""The curl examples of docs/service.md, run as they stand there."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import serve, stop

ROOT = Path(__file__).parents[2]
EXAMPLE = re.compile(r"<!-- curl: (.*?) -->\n```bash\n(.*?)\n```", re.S)


@pytest.mark.slow("starts a service")
def test_every_endpoint_as_in_the_page(tmp_path: Path) -> None:
    examples = dict(EXAMPLE.findall(ROOT.joinpath("docs", "service.md").read_text()))
    (tmp_path / "f.jar").write_bytes(b"bytes of f")
    running = serve(tmp_path, "--legacy", "--data-plane", "always")
    known = {"TOKEN": running.token, "BASE": running.url, "PATH": "/usr/bin:/bin:/usr/local/bin"}

    def curl(start: str) -> bytes:
        command = next(text for name, text in examples.items() if name.startswith(start))
        done = subprocess.run(
            ["bash", "-c", command], env=known, cwd=tmp_path, capture_output=True, check=True, timeout=30
        )
        return done.stdout

    def answer(start: str) -> Any:
        return json.loads(curl(start))

    def finished(start: str) -> Any:
        response = answer(start)
        known["ID"] = response["statementID"]
        while response["sqlState"] == "03000":
            response = answer("look up")
        assert response["sqlState"] == "00000"
        return response

    try:
        finished("attach")
        submitted = finished("submit")
        known |= {
            "ORG": submitted["metadata"]["context"]["organizationID"],
            "URI": submitted["metadata"]["dataplaneRequest"]["uri"],
            "DATA_TOKEN": submitted["metadata"]["dataplaneRequest"]["token"],
        }
        assert answer("look up")["statementID"] == submitted["statementID"]
        assert set(answer("version")) == set(answer("legacy version")) == {"major", "minor", "patch"}
        assert curl("download") == curl("legacy copy") == b"bytes of f"
        assert answer("document")["openapi"] == "3.1.0"
        assert answer("data plane")["data"] == [["42"]]
        assert answer("legacy run")[0]["data"] == [{"answer": "42"}]
        assert len(examples) == 10
    finally:
        stop(running)
