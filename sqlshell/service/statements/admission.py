"""Admits submissions: splits their text, checks the limits of their sender, opens their session, and creates the
statements."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import TypeVar

from msgspec.structs import replace

from sqlshell.interface.models import ContextEcho, StatementRequest
from sqlshell.service.catalog import Caller
from sqlshell.service.failure import InvalidRequest, InvalidToken, RequestTooLarge, TooManyRequests
from sqlshell.service.objects.grammar import ParsedStatement, dialect_of
from sqlshell.service.organizations.organizations import Organizations
from sqlshell.service.organizations.sessions import Session, Sessions
from sqlshell.service.settings import ORGANIZATION_FACTOR, Settings, limit_note
from sqlshell.service.statements.secrets import redacted_statements
from sqlshell.service.statements.statement import Statement, new_id
from sqlshell.service.statements.store import StatementStore
from sqlshell.sql.script import items as script
from sqlshell.sql.script.scanner import Scanner

T = TypeVar("T")

OPENERS = 16
"""Threads that open organizations; each organization has threads of its own for everything else."""

CONTROL_SIZE = 4 << 10
"""A request of up to this many bytes may be about statements, and is accepted when others are refused."""

LONG = 4 << 10
"""Texts of more characters are read in a thread: reading a text of this size takes up to 20 ms."""

PIECE = 16 << 10
"""Characters that are split before the number of statements is checked."""

SentText = tuple[str, str]
"""The text of a statement as it was sent, and the semicolon after it, with the blanks between them."""


_reader = ThreadPoolExecutor(1, thread_name_prefix="reading")


async def read_text(size: int, work: Callable[[], T]) -> T:
    """Run a function that reads a text of `size` characters. For long texts there is one thread, so that the event loop
    goes on meanwhile."""
    return work() if size <= LONG else await asyncio.get_running_loop().run_in_executor(_reader, work)


class Admission:
    """Admits submissions. Used from one event loop."""

    def __init__(
        self,
        organizations: Organizations,
        sessions: Sessions,
        store: StatementStore,
        settings: Settings,
    ) -> None:
        self._organizations = organizations
        self._sessions = sessions
        self._store = store
        self._settings = settings
        self._openers = ThreadPoolExecutor(OPENERS, thread_name_prefix="opening")

    async def split(self, text: str) -> tuple[list[SentText], str]:
        """The statements of a text, and the name of its first backslash command. Raises Refusal."""
        items = await read_text(len(text), partial(split, text, self._settings.statements))
        if not items:
            raise InvalidRequest("request.statement contains no statement")
        commands = (item.name for item in items if isinstance(item, script.BackslashCommand))
        given = [(item.text, item.ending) for item in items if isinstance(item, script.Statement)]
        # A backslash command is not SQL: the statement fails, but the request is valid.
        return given or [(text, "")], next(commands, "")

    def check_room(self, caller: Caller, size: int) -> None:
        """Raises TooManyRequests if this process would refuse any request with a body of `size` bytes."""
        self._check(caller, 1, 0, 2 if size <= CONTROL_SIZE else 1, {})

    def _check(
        self, caller: Caller, number: int, size: int, times: int, elsewhere: Mapping[str, tuple[int, int]]
    ) -> None:
        """Raises TooManyRequests if a token or organization has too many unfinished statements.

        `number` statements with `size` characters are to be added; the limits are multiplied by `times`.
        """
        loads = self._store.loads((caller.token_id, caller.organization))
        both = (caller.token_id, times, "token"), (caller.organization, times * ORGANIZATION_FACTOR, "organization")
        for key, factor, who in both:
            further, characters = elsewhere.get(key, (0, 0))
            has, long = loads[key].number + further, loads[key].size + characters
            cause = ""
            if has + number > self._settings.waiting * factor:
                cause = f"this {who} has {has} unfinished statements {limit_note('waiting')}"
            elif has and long + size > self._settings.waiting_size * factor:
                cause = f"this {who} has unfinished statements with {long} characters"
            if cause:
                raise TooManyRequests(f"{cause}; try again later")

    async def _check_all(self, caller: Caller, given: Sequence[SentText], times: int) -> None:
        elsewhere = await self._store.loads_elsewhere((caller.token_id, caller.organization))
        self._check(caller, len(given), sum(len(sql) for sql, _ in given), times, elsewhere)

    async def admit(
        self, request: StatementRequest, caller: Caller, given: Sequence[SentText], times: int
    ) -> tuple[Session, list[Statement]]:
        """The session of a request, and its statements. A session without a name is only for this request.

        The limits are multiplied by `times`. Raises Refusal, and Failure if no session can be opened.
        """
        await self._check_all(caller, given, times)
        session = await self._session(request, caller, times)
        # Whoever runs the statements releases the session.
        session.waiting += 1
        try:
            statements = await self._statements(request, caller, given, session)
            for before, statement in pairwise(statements):
                statement.previous = before.statement_id
            if caller.token_id in self._organizations.catalog.dropped:
                raise InvalidToken("invalid token")
            # Others may have been admitted meanwhile; nothing is awaited between this and the admission.
            await self._check_all(caller, given, times)
            await self._store.admit(statements)
        except BaseException:
            self._sessions.release(session)
            raise
        return session, statements

    async def without_session(
        self, request: StatementRequest, caller: Caller, given: Sequence[SentText]
    ) -> list[Statement]:
        """Statements that cannot run, for example because their organization cannot be opened."""
        statements = await self._statements(request, caller, given, None)
        await self._store.admit(statements)
        return statements

    def close(self) -> None:
        self._openers.shutdown(wait=False, cancel_futures=True)

    async def _session(self, request: StatementRequest, caller: Caller, times: int) -> Session:
        """The session of a request. One without a name may exceed the limit by the factor `times`."""
        name = (request.parameters.session_id if request.parameters else None) or ""
        session = self._sessions.find(caller.token_id, name) if name else None
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
        return session

    async def _statements(
        self, request: StatementRequest, caller: Caller, given: Sequence[SentText], session: Session | None
    ) -> list[Statement]:
        """The statements of a request, to be run in a session if it has one."""
        texts = [sql for sql, _ in given]
        redacted = await read_text(sum(map(len, texts)), partial(redacted_statements, texts))
        # If the caller may change the organization, a statement's organization is known only when it starts.
        organization = caller.organization
        if session is not None and self._organizations.is_embedded:
            organization = session.organization.id
        # The time zone is set when the statement has run.
        echo = replace(session.echo(), timezone=None) if session else ContextEcho(organization or None, caller.roles[0])
        context = _named(request, echo)
        timezone = (request.parameters.timezone if request.parameters else None) or ""
        dialect = dialect_of(self._organizations)
        statements = []
        for (sql, semicolon), redaction in zip(given, redacted, strict=True):
            number = new_id()
            statement = Statement(
                sql, organization, caller.token_id, self._store.place(organization, number), context, number,
                timezone=timezone, semicolon=semicolon, redacted=redaction, cached_parse=ParsedStatement(sql, dialect),
            )  # fmt: skip
            statements.append(statement)
        return statements


def split(text: str, most: int) -> list[script.Item]:
    """The statements and commands of a text. Raises RequestTooLarge if there are more than `most` statements."""
    scanner = Scanner()
    items: list[script.Item] = []
    for start in (*range(0, len(text), PIECE), None):
        items += scanner.items(text[start : start + PIECE] if start is not None else None)
        if len(items) > most and sum(isinstance(item, script.Statement) for item in items) > most:
            cause = f"request.statement has more than {most} statements"
            raise RequestTooLarge(f"{cause}; split it into several requests")
    return items


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
