"""Sessions of the engine Spark for tests, on Sail, or on the server that SQLSHELL_TEST_SPARK names."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sqlshell.service.engines.engine import Outcome, RunOptions
from sqlshell.service.failure import Failure
from sqlshell.service.results.results import Spool
from tests.service import sail
from tests.service.required import required

GIVEN = os.environ.get("SQLSHELL_TEST_SPARK", "")
"""The URL of a server to test instead of Sail, such as one of Apache Spark."""

needs_spark = pytest.mark.requires(
    ""
    if required("spark") or sail.installed()
    else "needs pyspark-client and pysail; run: pip install '.[spark]' pysail"
)

needs_sail = pytest.mark.requires("tests what Sail does, or needs a server that it may kill" if GIVEN else "")


class Restarted:
    """Sail on a port of its own, which can be killed and started again."""

    def __init__(self) -> None:
        self.port = sail.free_port()
        self.url = f"sc://127.0.0.1:{self.port}"
        self._running = contextlib.ExitStack()
        self.start()

    def start(self) -> None:
        self._running.enter_context(sail.running(self.port))

    def kill(self) -> None:
        self._running.close()


@contextlib.contextmanager
def restarted() -> Iterator[Restarted]:
    server = Restarted()
    try:
        yield server
    finally:
        server.kill()


class Shown(Outcome, frozen=True, kw_only=True):
    """An outcome with its rows, each a list of strings and None, and the form in which they were stored."""

    rows: list[list[str | None]]
    form: str


class Session:
    """A session of an engine, whose statements give their rows."""

    def __init__(self, engine: Any, folder: Path) -> None:
        self.engine = engine
        self.connection = engine.connect()
        self._folder = folder
        self._number = 0

    def spool(self, partition_rows: int = 10_000) -> Spool:
        self._number += 1
        path = self._folder / f"result{id(self)}-{self._number}"
        return Spool(lambda: path, partition_rows)

    def run(self, sql: str, options: RunOptions = RunOptions()) -> Shown:  # noqa: B008
        spool = self.spool(options.partition_rows)
        outcome = self.connection.run(sql, options, spool)
        return self.shown(outcome, spool)

    def shown(self, outcome: Outcome, spool: Spool) -> Shown:
        import msgspec

        spool.finish(outcome.filed)
        layout = spool.layout
        if layout.form == "engine":
            assert spool.path is not None
            bodies = self.engine.read(spool.path, 0, layout.counts)
        else:
            bodies = [spool.partition(number) for number in range(len(layout.ends))]
        rows = [row for body in bodies for row in msgspec.json.decode(b"[" + body + b"]")]
        return Shown(
            **{name: getattr(outcome, name) for name in Outcome.__struct_fields__}, rows=rows, form=layout.form
        )

    def rows(self, sql: str) -> list[list[str | None]]:
        return self.run(sql).rows

    def failure(self, sql: str, options: RunOptions = RunOptions()) -> Failure:  # noqa: B008
        with pytest.raises(Failure) as raised:
            self.run(sql, options)
        return raised.value


def statements(session: Session, sql: Sequence[str]) -> None:
    for statement in sql:
        session.run(statement)
