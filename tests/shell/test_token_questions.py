"""Only foreground work asks the user for another token."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from sqlshell.client.statements.client import Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import Interrupted, NotAuthenticated
from sqlshell.result import Result
from sqlshell.runtime.streams import Streams
from sqlshell.shell.front_end import Progress
from sqlshell.shell.interactive.front_end import PromptFrontEnd
from sqlshell.shell.metadata.service_queries import fetch_rows
from sqlshell.shell.options import Options
from sqlshell.shell.running.statement import Running, submission_of
from sqlshell.sql.analysis.lexed import lexed
from tests.shell.core.scripted import ScriptedClient
from tests.shell.sessions import session


class Person(PromptFrontEnd):
    """Cancels every question."""

    questions: tuple[str, ...] = ()

    async def ask(self, question: str, *, keys: str = "", hidden: bool = False) -> str:
        self.questions += (question,)
        raise Interrupted("canceled")


class Refusing(ScriptedClient):
    """A client whose token is refused."""

    person: Person

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        self.ran.append((submission.sql, context))
        await asyncio.ensure_future(self.person.token("first"))
        raise NotAuthenticated("first rejected the token")
        yield


def test_only_the_foreground_asks_for_another_token(tmp_path: Path) -> None:
    async def work() -> None:
        message, client = io.StringIO(), Refusing()
        streams = Streams(io.StringIO(), io.StringIO(), message)
        person = client.person = Person(
            Options(), Diagnostics(message), Progress(), streams, state=tmp_path, themes=tmp_path, target=""
        )
        here = session(client=client, interactive=True)
        here.running = Running()
        person.connected(here)
        job = here.state.background.start(submission_of(lexed("select 1")), here.context)
        assert person.loader is not None
        await person.loader.wait_for_echo(60.0)
        await here.state.background.wait_for_all()
        assert len(client.ran) > 2
        assert (person.questions, message.getvalue()) == ((), "")
        assert isinstance(job.error, NotAuthenticated)

        with pytest.raises(Interrupted):
            await fetch_rows(client, "select 2", here.context)
        assert person.questions == ("token for first: ",)
        here.running = None
        assert await person.token("first") == ""
        await person.aclose()
        here.connection.journal.close()
        await here.connection.service.aclose()

    asyncio.run(work())
