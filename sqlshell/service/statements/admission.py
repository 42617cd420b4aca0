"""Admits submissions: checks the limits of their sender, opens their session and creates the records of statements."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.interface.models import ContextEcho, StatementRequest
from sqlshell.service.catalog import Caller
from sqlshell.service.objects.grammar import ParsedStatement, dialect_of
from sqlshell.service.organizations.organizations import Organizations
from sqlshell.service.organizations.sessions import Session, Sessions
from sqlshell.service.refusals import InvalidToken, TooManyRequests
from sqlshell.service.results.results import Spool
from sqlshell.service.settings import ORGANIZATION_FACTOR, Settings, limit_note
from sqlshell.service.statements.reading_thread import ReadingThread
from sqlshell.service.statements.redaction import RedactedStatement, redacted_statements
from sqlshell.service.statements.statement import Statement
from sqlshell.service.statements.store import StatementLoad, StatementStore

if TYPE_CHECKING:
    from sqlshell.service.results.shared_files import SharedFile

OPENERS = 16
"""Threads that open organizations; each organization has threads of its own for everything else."""

CONTROL_SIZE = 4 << 10
"""A request of up to this many bytes may be about statements, and is accepted when others are refused."""

SentText = tuple[str, str]
"""The text of a statement as it was sent, and the semicolon after it."""


class _Sent(Struct, frozen=True):
    """A statement as it was sent, and the semicolon after it, with the blanks between them."""

    sql: str
    semicolon: str
    redacted: RedactedStatement | None


class Admission:
    """Admits submissions. Used from one event loop."""

    def __init__(
        self,
        organizations: Organizations,
        sessions: Sessions,
        store: StatementStore,
        settings: Settings,
        thread: ReadingThread,
    ) -> None:
        self._organizations = organizations
        self._sessions = sessions
        self._store = store
        self._settings = settings
        self._thread = thread
        self._openers = ThreadPoolExecutor(OPENERS, thread_name_prefix="opening")

    def check_room(self, caller: Caller, size: int) -> None:
        """Raises TooManyRequests if this process would refuse any request with a body of `size` bytes."""
        self._check(caller, 1, 0, 2 if size <= CONTROL_SIZE else 1, {})

    async def check_load(self, caller: Caller, number: int, size: int, times: int) -> None:
        """Raises TooManyRequests if a token or organization has too many unfinished statements.

        `number` statements with `size` characters are to be added; the limits are multiplied by `times`.
        """
        elsewhere = await self._store.loads_elsewhere((caller.token_id, caller.organization))
        self._check(caller, number, size, times, elsewhere)

    def _check(
        self, caller: Caller, number: int, size: int, times: int, elsewhere: Mapping[str, tuple[int, int]]
    ) -> None:
        loads = {}
        for key, own in self._store.loads((caller.token_id, caller.organization)).items():
            loads[key] = StatementLoad()
            further, characters = elsewhere.get(key, (0, 0))
            loads[key].add(own.number + further, own.size + characters)
        both = (caller.token_id, times, "token"), (caller.organization, times * ORGANIZATION_FACTOR, "organization")
        for key, factor, who in both:
            load = loads[key]
            cause = ""
            if load.number + number > self._settings.waiting * factor:
                cause = f"this {who} has {load.number} unfinished statements {limit_note('waiting')}"
            elif load.number and load.size + size > self._settings.waiting_size * factor:
                cause = f"this {who} has unfinished statements with {load.size} characters"
            if cause:
                raise TooManyRequests(f"{cause}; try again later")

    async def admit(
        self, request: StatementRequest, caller: Caller, given: Sequence[SentText], times: int
    ) -> tuple[Session, bool, list[Statement]]:
        """The session of a request, whether it is only for this request, and the records of its statements.

        The limits are multiplied by `times`. Raises Refusal, and Failure if no session can be opened.
        """
        load = len(given), sum(len(text) for text, _ in given)
        await self.check_load(caller, *load, times)
        sent = await self._sent(given)
        session, single_use = await self._session(request, caller, times)
        with self._sessions.admitting(session):
            records = [self._record(item, caller, session, request) for item in sent]
            for before, record in pairwise(records):
                record.previous = before.statement_id
            if caller.token_id in self._organizations.catalog.dropped:
                raise InvalidToken("invalid token")
            # Others may have been admitted meanwhile; nothing is awaited between this and the admission.
            await self.check_load(caller, *load, times)
            await self._store.admit(records)
        return session, single_use, records

    async def without_session(
        self, request: StatementRequest, caller: Caller, given: Sequence[SentText]
    ) -> list[Statement]:
        """The records of statements that cannot run, for example because their organization cannot be opened."""
        records = []
        for item in await self._sent(given):
            context = _named(request, ContextEcho(caller.organization or None, caller.roles[0]))
            spool = Spool(lambda: self._organizations.result_file("", "refused"), self._settings.partition_rows)
            record = Statement(item.sql, caller.organization, caller.token_id, spool, context)
            record.semicolon, record.redacted = item.semicolon, item.redacted
            records.append(record)
        await self._store.admit(records)
        return records

    def close(self) -> None:
        self._openers.shutdown(wait=False, cancel_futures=True)

    async def _sent(self, given: Sequence[SentText]) -> list[_Sent]:
        texts = [sql for sql, _ in given]
        redacted = await self._thread.read(sum(map(len, texts)), partial(redacted_statements, texts))
        return [_Sent(*item, redaction) for item, redaction in zip(given, redacted, strict=True)]

    async def _session(self, request: StatementRequest, caller: Caller, times: int) -> tuple[Session, bool]:
        """The session of a request, and whether it is only for this request; such a session may exceed the limit by the
        factor `times`.
        """
        name = (request.parameters.session_id if request.parameters else None) or ""
        session = self._sessions.find(caller, name)
        if session is None:
            self._sessions.count(caller, name, times)
            try:
                organization = caller.organization
                if not organization:
                    organization = await self._organizations.catalog.run_async(self._organizations.default)
                wanted = self._organizations.find_open(organization)
                if wanted is not None:
                    session = await wanted.run(self._sessions.connect, caller)
                else:
                    loop = asyncio.get_running_loop()
                    session = await loop.run_in_executor(self._openers, self._sessions.connect, caller)
            except BaseException:
                self._sessions.uncount(caller.token_id)
                raise
            # A session that was lost with another process reports that itself.
            session.lost_transaction = bool(name and request.parameters and request.parameters.transaction)
            session = self._sessions.keep(name, session) if name else session
        return session, not name

    def _record(self, sent: _Sent, caller: Caller, session: Session, request: StatementRequest) -> Statement:
        # If the caller may change the organization, the statement's organization is known only when it starts.
        organization = session.organization.id if self._organizations.is_embedded else caller.organization

        # A weak reference avoids a cycle that would keep a large text until garbage collection.
        reference: weakref.ref[Statement]

        def place() -> Path:
            record = reference()
            assert record is not None
            return self._organizations.result_file(record.organization, record.statement_id)

        def shared() -> SharedFile | None:
            record = reference()
            assert record is not None
            return self._organizations.shared_result(record.organization, record.statement_id)

        spool = Spool(place, self._settings.partition_rows, shared)
        # The time zone is set when the statement has run.
        context = _named(request, replace(session.echo(), timezone=None))
        timezone = (request.parameters.timezone if request.parameters else None) or ""
        record = Statement(sent.sql, organization, caller.token_id, spool, context, timezone=timezone)
        record.semicolon, record.redacted = sent.semicolon, sent.redacted
        record.cached_parse = ParsedStatement(sent.sql, dialect_of(self._organizations))
        reference = weakref.ref(record)
        return record


def _named(request: StatementRequest, echo: ContextEcho) -> ContextEcho:
    """The context that a request names, for the response to a statement that fails before its session adopts it.

    Clients continue in the context of the response, which must not differ from the one that they named.
    """
    moves = bool(request.database) and request.database != echo.database_name
    return replace(
        echo,
        # A name is not an ID; clients keep the value of a field that is left out.
        organization_id=_id(request.organization) if request.organization else echo.organization_id,
        role_name=request.role or echo.role_name,
        database_name=request.database or echo.database_name,
        schema_name=request.schema or (None if moves else echo.schema_name),
        store_name=request.store or echo.store_name,
        compute_pool_name=request.compute_pool or echo.compute_pool_name,
    )


def _id(organization: str) -> str | None:
    with contextlib.suppress(ValueError):
        return str(uuid.UUID(organization))
    return None
