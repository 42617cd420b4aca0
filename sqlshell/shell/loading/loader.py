"""Loads a file into a table: reads it, matches the columns, sends the rows, and reports how many were loaded."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import duckdb

from sqlshell.client.http.upload import Attachment
from sqlshell.config.values import state_folder
from sqlshell.errors import Interrupted, ShellError, StatementError, UsageError, Where
from sqlshell.humanize import format_count
from sqlshell.interface import sqlstate
from sqlshell.origin import service_text
from sqlshell.runtime.paths import check_output, expanded
from sqlshell.runtime.scratch import scratch
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.loading.column_types import TargetColumn
from sqlshell.shell.loading.file_layout import FileLayout
from sqlshell.shell.loading.matching import ColumnMatch, match_columns, new_columns
from sqlshell.shell.loading.progress import (
    Fingerprint,
    LoadProgress,
    ProgressFile,
    Range,
    fingerprint,
    with_range,
    without_range,
)
from sqlshell.shell.loading.rejects import reject_message, write_rejects
from sqlshell.shell.loading.request import LoadRequest
from sqlshell.shell.loading.sending import EXTENSION, AttachmentSender, InsertSender, Sender, SentBatch, blocking
from sqlshell.shell.loading.source import ENCODE, ConvertedRows, DataFile
from sqlshell.shell.loading.text_checks import check_date_order
from sqlshell.shell.metadata.table_columns import table_columns
from sqlshell.shell.running.interruption import Interruption
from sqlshell.shell.running.submission import submission_of
from sqlshell.shell.running.submitting import SubmitRequest, Submitter
from sqlshell.sql.analysis.lexed import Lexed
from sqlshell.sql.engine_types import engine_type
from sqlshell.sql.identifiers import quoted
from sqlshell.sql.script.items import Statement

T = TypeVar("T")

MAX_LISTED_ROWS: Final = 5
"""Bad rows that are listed in a message."""

RESUME: Final = "--resume (in \\copy: RESUME)"
OMIT: Final = f"omit {RESUME}"

LOADS_NOTHING: Final = frozenset({"spark"})
"""Engines that take no files: without this a load would end with an empty table."""


class Loader:
    """Runs one load after another on the connection that the session has."""

    def __init__(self, components: ShellComponents, submitter: Submitter, interruption: Interruption) -> None:
        self._session = components.session
        self._variables = components.variables
        self._attachments = components.attachments
        self._front_end = components.front_end
        self._diagnostics = components.diagnostics
        self._submitter = submitter
        self._interruption = interruption

    async def check(self, table: str) -> None:
        """Raises UsageError if nothing may be loaded into the table. The user may be asked: once for each load, before
        a command runs for its data."""
        connection = self._session.connection
        if connection.offline is not None:
            raise UsageError(
                "cannot load a file with --offline: only the service knows the columns of the table",
                "use --dry-run (in \\copy: DRY_RUN) without --offline to see where the columns go",
            )
        # The statement that is sent is checked like one that the user writes.
        await connection.policy.check(_lexed(f"COPY {table} FROM '@rows'"), self._front_end.ask)

    async def run(self, request: LoadRequest) -> None:
        """Load a file into a table that check() allows. Raises ShellError; its message says how many rows are in the
        table, where there are some."""
        # Before anything is read: a file that was written would be lost.
        if request.rejects:
            place = expanded(request.rejects)
            if place.exists() and place.samefile(expanded(request.path)):
                raise UsageError(f"cannot write rejected rows to {request.rejects}: it is the file to load")
            check_output(place, request.rejects)
        keeper = self._keeper(request)
        if not (request.resume or request.dry_run):
            self._supersede(request, keeper)
        folder = scratch().folder("load")
        source = await asyncio.to_thread(DataFile, request, folder)
        try:
            with self._interruption.holding():
                await self._load(request, source, keeper)
        except duckdb.InterruptException:
            raise Interrupted(f"interrupted; no row of {request.name} was sent") from None
        finally:
            source.close()
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _load(self, request: LoadRequest, source: DataFile, keeper: ProgressFile) -> None:
        looked, columns = await self.interruptible(self._look(request, source))
        # A service with a time zone of its own has reported it with the columns.
        source.use_timezone(self._session.context.timezone)
        matched = match_columns(request, looked, columns)
        engine = await self._session.connection.service.engine()
        if engine in LOADS_NOTHING:
            raise StatementError(
                f"the engine {engine} does not support attachments, so no file can be loaded",
                "write INSERT INTO … SELECT from a file that the engine's server can read",
                Where(sqlstate.UNSUPPORTED),
            )
        if engine == "postgresql":
            check_date_order(request.name, looked, matched.pairs)
        for line in _plan(request, looked, matched, engine):
            (self._diagnostics.say if request.dry_run else self._diagnostics.detail)(line)
        for line in looked.warnings:
            self._diagnostics.warn(line)
        for line in await self.interruptible(blocking(source, lambda: source.date_warnings(looked, matched.pairs))):
            self._diagnostics.warn(line)
        if request.dry_run:
            return
        if not matched.pairs:
            keeper.forget()
            self._session.rows = 0
            self._variables.record_outcome(None)
            self._diagnostics.report(f"{format_count(0, 'row')} loaded into {request.table}")
            return
        try:
            staged = await self.interruptible(
                blocking(source, lambda: source.stage(looked, matched.pairs, request.max_errors))
            )
            self._check_rejects(request, staged)
        except StatementError as error:
            # The error is about the file: no statement was sent.
            error.in_command = True
            raise
        progress = await self._progress(request, matched, keeper)
        # A load that is resumed has its table: it is created before the first rows are recorded.
        if request.create and not request.resume:
            listed = ", ".join(f"{quoted(column.name)} {engine_type(column.type, engine)}" for column in columns)
            made_ = Statement(f"CREATE TABLE {request.table} ({listed})", 0, 0, True)
            await self._submitter.submit(SubmitRequest(made_, verbatim=True))
        await self._send(request, matched, source, staged, keeper, progress)

    async def _look(self, request: LoadRequest, source: DataFile) -> tuple[FileLayout, Sequence[TargetColumn]]:
        """The layout of the file, and the columns of the table."""
        if request.create:
            looked = await blocking(source, lambda: source.look(()))
            return looked, new_columns(looked)
        columns = [TargetColumn(*each) for each in await table_columns(self._session, request.table)]
        return await blocking(source, lambda: source.look([column.name for column in columns])), columns

    def _check_rejects(self, request: LoadRequest, staged: ConvertedRows) -> None:
        """Report bad rows. Raises StatementError if there are more than may be skipped."""
        if not staged.rejects:
            return
        if request.rejects:
            write_rejects(request.rejects, request.name, staged.rejects)
        bad = len(staged.rejects)
        count = f"{'at least ' if staged.has_more_rejects else ''}{format_count(bad, 'row')}"
        # In a pipe the lines become one.
        messages = ";\n".join(reject_message(request, item) for item in staged.rejects[:MAX_LISTED_ROWS])
        more = f";\n… and {bad - MAX_LISTED_ROWS:,} more" if bad > MAX_LISTED_ROWS else ""
        if bad > request.max_errors:
            listed = f"the first {bad:,}" if staged.has_more_rejects else "all"
            where = f"{listed} of them are in {request.rejects}; " if request.rejects else ""
            remedy = f"use --max-errors {bad} to skip {'it' if bad == 1 else 'them'} (in \\copy: MAX_ERRORS {bad})"
            if staged.has_more_rejects:
                remedy = f"use --max-errors with a number above {bad} to skip them (in \\copy: MAX_ERRORS)"
            if all(item.encoded for item in staged.rejects):
                remedy = ENCODE
            elif all(item.quoted for item in staged.rejects):
                remedy = f"use --with 'FORCE_NULL *' (in \\copy: FORCE_NULL *) to load \"\" as NULL, or {remedy}"
            raise StatementError(
                f"{count} of {request.name} cannot be loaded:\n{messages}{more}", f"{where}nothing was sent; {remedy}"
            )
        kept = f", written to {request.rejects}" if request.rejects else ""
        self._diagnostics.warn(f"{count} of {request.name} skipped{kept}:\n{messages}{more}")

    def _keeper(self, request: LoadRequest) -> ProgressFile:
        connection = self._session.connection
        folder = state_folder(os.environ) if request.kept and connection.storage_name else None
        return ProgressFile(folder, connection.storage_name, request.table, request.path)

    def _supersede(self, request: LoadRequest, keeper: ProgressFile) -> None:
        """Mark the progress of an earlier load before anything can stop this one: a later --resume would leave out rows
        that may have been deleted since. Raises UsageError if it cannot be saved."""
        before = keeper.read()
        if before is None:
            return
        before.superseded = True
        keeper.write(before)
        if before.done or before.unknown:
            unknown = ", ".join(_rows(*each) for each in before.unknown)
            arrived = f", and it is unknown whether {unknown} arrived" if unknown else ""
            self._diagnostics.warn(
                f"an earlier load of {request.name} left {format_count(before.rows, 'row')} in {request.table}"
                f"{arrived}; this load starts from the beginning; to continue the earlier one, use {RESUME}"
            )

    async def _progress(self, request: LoadRequest, matched: ColumnMatch, keeper: ProgressFile) -> LoadProgress:
        """The progress to continue from. Raises UsageError if none matches."""
        if not keeper.stores:
            if request.resume:
                raise UsageError(
                    f"cannot resume the load of {request.name}: the progress of loads from stdin, from a command, or "
                    "into a database in memory is not stored",
                    OMIT,
                )
            return LoadProgress(Fingerprint(0, "", "", (), ""))
        print_ = await self.interruptible(
            asyncio.to_thread(
                fingerprint,
                request.path,
                request.table,
                tuple((target.name, target.type) for target in matched.targets),
                repr((request.format, request.header, request.delimiter, request.null, request.quote, request.escape)),
            )
        )
        if not request.resume:
            return LoadProgress(print_)
        before = keeper.read()
        if before is None or (before.superseded and not (before.done or before.unknown)):
            raise UsageError(f"there is no unfinished load of {request.name} into {request.table}", OMIT)
        if before.fingerprint != print_:
            what = "the file" if before.fingerprint.sha256 != print_.sha256 else "the table or an option"
            raise UsageError(
                f"cannot resume the load of {request.name}: {what} has changed since the earlier load", OMIT
            )
        if before.superseded:
            for each in before.done:
                before.unknown = with_range(before.unknown, each)
            before.done = []
        if before.unknown and not request.unknown:
            rows = ", ".join(_rows(*each) for each in before.unknown)
            if before.superseded:
                raise UsageError(
                    f"cannot resume the load of {request.name} into {request.table}: the last load restarted from "
                    "the beginning and stopped before it sent a row",
                    f"{OMIT}; if the table still contains {rows} of the load before it, add --unknown skip "
                    "(in \\copy: UNKNOWN skip)",
                )
            raise UsageError(
                f"{rows} of {request.name}: it is unknown whether they are in {request.table}",
                "check the table: if it contains all of these rows, use --unknown skip (in \\copy: UNKNOWN skip); "
                "otherwise delete those that it contains, and use --unknown send (in \\copy: UNKNOWN send)",
            )
        if request.unknown == "skip":
            for each in before.unknown:
                before.done = with_range(before.done, each)
        before.unknown, before.superseded = [], False
        self._diagnostics.note(f"resuming after {format_count(before.rows, 'row')}")
        return before

    async def _send(
        self,
        request: LoadRequest,
        matched: ColumnMatch,
        source: DataFile,
        staged: ConvertedRows,
        keeper: ProgressFile,
        progress: LoadProgress,
    ) -> None:
        service, earlier = self._session.connection.service, progress.rows
        sender: Sender
        if EXTENSION in service.transport.extensions:
            state = self._session.state
            sender = AttachmentSender(
                request,
                matched,
                partial(self._batch, source, staged),
                self._submit,
                lambda: bool(state.last_statement_id),
                self._attachments.limit,
            )
            work = self._each(sender, staged, keeper, progress)
        else:
            sender = InsertSender(request, matched, source, self._session)
            work = self.interruptible(self._each(sender, staged, keeper, progress))
        error: ShellError | None = None
        try:
            error = await work
        except (Interrupted, duckdb.InterruptException):
            error = Interrupted("interrupted")
        for batch in await sender.settled():
            _note(batch, progress)
        keeper.write(progress)
        self._session.rows = progress.rows - earlier
        if error is None:
            keeper.forget()
            self._variables.record_outcome(None)
            after = f", after {earlier:,} of the earlier load" if earlier else ""
            self._diagnostics.report(
                f"{format_count(progress.rows - earlier, 'row')} loaded into {request.table}{after}"
            )
            return
        error.message = f"{error.message.rstrip('.')};\n{_summary(request, progress)}"
        if progress.unknown:
            advice = "nothing was sent again; check the table"
            then = "continue with --resume --unknown skip or send (in \\copy: RESUME, UNKNOWN skip or send)"
        else:
            advice, then = "", f"continue with {RESUME}" if progress.rows else ""
        if not keeper.stores:
            then = ""
        error.hint = "\n".join(filter(None, [error.hint, advice, then]))
        self._variables.record_outcome(error)
        raise error

    async def _each(
        self, sender: Sender, staged: ConvertedRows, keeper: ProgressFile, progress: LoadProgress
    ) -> ShellError | None:
        """Send all rows, and keep what became of them; the error of the first batch that failed."""
        error: ShellError | None = None

        def begin(rows: Range) -> None:
            # Unless an outcome follows, because the shell is killed, it is unknown whether they arrived.
            progress.unknown = with_range(progress.unknown, rows)
            keeper.write(progress)

        async for batch in sender.send(staged, list(progress.done), begin):
            error = error or batch.error
            _note(batch, progress)
            keeper.write(progress)
            if isinstance(sender, InsertSender):
                self._interruption.show_progress(progress.rows / staged.rows, f"{progress.rows:,} rows")
        return error

    async def _batch(self, source: DataFile, staged: ConvertedRows, rows: Range) -> Path:
        """A file with some of the rows. Raises Interrupted."""
        work = blocking(source, lambda: source.batch(staged, *rows))
        return await self._interruption.interruptible(work, "copy")

    async def _submit(self, sql: str, attachment: Attachment) -> None:
        await self._submitter.send(submission_of(_lexed(sql), [attachment]))

    async def interruptible(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something before the first row is sent. Raises Interrupted."""
        try:
            return await self._interruption.interruptible(work, "copy")
        except Interrupted:
            raise Interrupted("interrupted; no row was sent") from None


def _note(batch: SentBatch, progress: LoadProgress) -> None:
    if not batch.unknown:
        progress.unknown = without_range(progress.unknown, batch.rows)
    if batch.error is None:
        progress.done = with_range(progress.done, batch.rows)


def _summary(request: LoadRequest, progress: LoadProgress) -> str:
    are = "is" if progress.rows == 1 else "are"
    text = f"{format_count(progress.rows, 'row')} of {request.name} {are} in {request.table}"
    if progress.unknown:
        text += f"; {', '.join(_rows(*each) for each in progress.unknown)}: unknown"
    return text


def _rows(start: int, stop: int) -> str:
    return f"row {stop:,}" if stop - start == 1 else f"rows {start + 1:,} to {stop:,}"


def _plan(request: LoadRequest, looked: FileLayout, matched: ColumnMatch, engine: str) -> list[str]:
    """Where the columns go, for people."""
    made_ = "a new table " if request.create else ""
    lines = [f"{request.name} ({looked.about}) into {made_}{request.table}:"]
    width = max((len(source.name) for source, _ in matched.pairs), default=0)
    for source, target in matched.pairs:
        lines.append(f"  {source.name:<{width}} {source.type} -> {target.name} {engine_type(target.type, engine)}")
    if matched.left:
        lines.append(f"  columns that are not in the file and get their defaults: {', '.join(matched.left)}")
    return lines


def _lexed(sql: str) -> Lexed:
    return Lexed(service_text(sql, "the table's columns"))
