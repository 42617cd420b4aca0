"""An independent client of the interface, for tests of the service."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from typing import Any

import httpx

from tests.conftest import Served
from tests.service.waiting import until

Answer = dict[str, Any]


class Client:
    """Statements over httpx, in a session of their own."""

    def __init__(self, served: Served, token: str = "", session: str = "", url: str = "") -> None:
        self.http = httpx.Client(
            base_url=url or served.url,
            headers={"Authorization": f"Bearer {token or served.token}"},
            timeout=60,
            trust_env=False,
            # The authorities of TLS are read for each client, which takes longer than most tests.
            verify=False,
        )
        self.session = session or str(uuid.uuid4())
        self.name = ""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def submit(self, sql: str, files: Sequence[tuple[str, bytes]] = (), **fields: object) -> Answer:
        request = {"statement": sql, "parameters": {"sessionID": self.session}} | fields
        parts: list[Any] = [("request", (None, json.dumps(request), "application/json"))]
        answer = self.http.post("/v2/statements", files=parts + [("attachments", file) for file in files])
        assert answer.status_code in {200, 202}, answer.text
        return dict(answer.json())

    def wait(self, answer: Answer, **query: Any) -> Answer:
        until, pause = time.monotonic() + 60, 0.005
        while answer["sqlState"] == "03000" and time.monotonic() < until:
            time.sleep(pause)
            # Who asks all the time takes the processor from what it waits for.
            pause = min(pause * 1.3, 0.1)
            answer = self.http.get(f"/v2/statements/{answer['statementID']}", params=query).json()
        return answer

    def wait_until_it_runs(self, answer: Answer) -> None:
        until(lambda: [answer["statementID"], "running"] in [[row[0], row[4]] for row in self.rows("list queries")])

    def run(self, sql: str, files: Sequence[tuple[str, bytes]] = (), **fields: Any) -> Answer:
        """Submit a statement and wait for it; lookups name the time zone of the submission, if it has one."""
        zone = fields.get("parameters", {}).get("timezone")
        return self.wait(self.submit(sql, files, **fields), **({"timezone": zone} if zone else {}))

    def rows(self, sql: str, files: Sequence[tuple[str, bytes]] = (), **fields: Any) -> list[list[str | None]]:
        answer = self.run(sql, files, **fields)
        assert answer["sqlState"] == "00000", answer
        return list(answer["data"])

    def listed(self, sql: str, **fields: Any) -> list[dict[str, str | None]]:
        """The rows as values by the names of their columns."""
        answer = self.run(sql, **fields)
        assert answer["sqlState"] == "00000", answer
        names = [column["name"] for column in answer["metadata"]["columns"]]
        return [dict(zip(names, row, strict=True)) for row in answer["data"]]

    def names(self, sql: str, **fields: Any) -> list[str | None]:
        """The first value of each row."""
        return [row[0] for row in self.rows(sql, **fields)]

    def described(self, sql: str, **fields: Any) -> dict[str | None, str | None]:
        """The properties that a DESCRIBE tells."""
        return {row[0]: row[1] for row in self.rows(sql, **fields)}

    def home(self) -> str:
        """The database in which sessions begin."""
        return next(str(row["Name"]) for row in self.listed("list databases") if row["IsDefault"] == "true")

    def rows_of_nothing(self, sql: str, files: Sequence[tuple[str, bytes]] = ()) -> None:
        """Run a statement that gives no rows."""
        answer = self.run(sql, files)
        assert answer["sqlState"] == "00000", answer

    def state(self, sql: str, files: Sequence[tuple[str, bytes]] = (), **fields: Any) -> str:
        return str(self.run(sql, files, **fields)["sqlState"])
