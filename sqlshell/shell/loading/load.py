"""The steps of a load: the file is looked at, its columns are matched with those of the table, its rows are converted
and sent, and it is reported which are bad and how many are in the table."""

from __future__ import annotations

import asyncio
import csv
import io
import os
import shutil
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import duckdb
from msgspec import Struct
from msgspec.structs import replace

from sqlshell.client.http.upload import Attachment
from sqlshell.config.values import state_folder
from sqlshell.errors import Interrupted, ShellError, StatementError, UsageError, Where
from sqlshell.interface import sqlstate
from sqlshell.origin import Trusted, service_text
from sqlshell.output.sinks.file import FileSink
from sqlshell.runtime.files import check_output, expanded
from sqlshell.runtime.scratch import scratch
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.loading.convert import ConvertedRows, Reject, Scan, batch
from sqlshell.shell.loading.inspect import ENCODE, DataFile
from sqlshell.shell.loading.send import (
    EXTENSION,
    AttachmentSender,
    Fingerprint,
    InsertSender,
    LoadProgress,
    ProgressFile,
    Range,
    Sender,
    SentBatch,
    blocking,
    fingerprint,
    shown,
    with_range,
    without_range,
)
from sqlshell.shell.loading.spec import (
    ColumnMatch,
    FileLayout,
    LoadRequest,
    TargetColumn,
    match_columns,
    unknown_column,
)
from sqlshell.shell.metadata.service_queries import table_columns
from sqlshell.shell.running.statement import submission_of
from sqlshell.shell.running.submitting import Submitter
from sqlshell.sql.analysis.lexed import Lexed
from sqlshell.sql.engine_types import engine_type
from sqlshell.sql.identifiers import quoted
from sqlshell.sql.script.items import Statement
from sqlshell.text import format_count

T = TypeVar("T")

MAX_LISTED_ROWS: Final = 5
"""Bad rows that are listed in a message."""

RESUME: Final = "--resume (in \\copy: WITH (RESUME))"
OMIT: Final = f"omit {RESUME}"

LOADS_NOTHING: Final = frozenset({"spark"})
"""Engines that take no files: without this a load would end with an empty table."""


class Prepared(Struct, frozen=True):
    """What is sent: the rows, and the columns that they go to."""

    matched: ColumnMatch
    source: DataFile
    rows: ConvertedRows


class Loader:
    """Runs one load after another on the connection that the session has."""

    def __init__(self, components: ShellComponents, submitter: Submitter) -> None:
        self._session = components.session
        self._variables = components.variables
        self._attachments = components.attachments
        self._front_end = components.front_end
        self._diagnostics = components.diagnostics
        self._submitter = submitter
        self._statement_runner = components.statement_runner

    async def check(self, table: str) -> None:
        """Raises UsageError if nothing may be loaded into the table. The user may be asked: once for each load, before
        a command runs for its data."""
        connection = self._session.connection
        if connection.offline is not None:
            raise UsageError(
                "cannot load a file with --offline: only the service knows the columns of the table",
                "use --dry-run (in \\copy: WITH (DRY_RUN)) without --offline to see where the columns go",
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
        connection = self._session.connection
        kept = request.kept and connection.storage_name
        progress_file = ProgressFile(
            state_folder(os.environ) if kept else None, connection.storage_name, request.table, request.path
        )
        if not (request.resume or request.dry_run):
            self._supersede(request, progress_file)
        folder = scratch().folder("load")
        source = await asyncio.to_thread(DataFile, request, folder)
        try:
            with self._statement_runner.holding():
                await self._load(request, source, progress_file)
        except duckdb.InterruptException:
            raise Interrupted(f"interrupted; no row of {request.name} was sent") from None
        finally:
            source.close()
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _load(self, request: LoadRequest, source: DataFile, progress_file: ProgressFile) -> None:
        columns: Sequence[TargetColumn] = ()
        if not request.create:
            described = await self.interruptible(table_columns(self._session, request.table))
            columns = [TargetColumn(*each) for each in described]
        # A service with a time zone of its own has reported it with the columns.
        source.use_timezone(self._session.context.timezone)
        engine = await self._session.connection.service.engine()
        if engine in LOADS_NOTHING:
            raise StatementError(
                f"the engine {engine} does not support attachments, so no file can be loaded",
                "write INSERT INTO … SELECT from a file that the engine's server can read",
                Where(sqlstate.UNSUPPORTED),
            )
        try:
            prepared = await self._prepare(request, source, columns, engine)
        except StatementError as error:
            # The error is about the file: no statement was sent.
            error.in_command = True
            raise
        if request.dry_run:
            return
        if prepared is None:
            progress_file.forget()
            self._session.rows = 0
            self._variables.record_outcome(None)
            self._diagnostics.report(f"{format_count(0, 'row')} loaded into {request.table}")
            return
        progress = await self._progress(request, prepared.matched, progress_file)
        # A load that is resumed has its table: it is created before the first rows are recorded.
        if request.create and not request.resume:
            targets = prepared.matched.targets
            listed = ", ".join(f"{quoted(column.name)} {engine_type(column.type, engine)}" for column in targets)
            create = Statement(f"CREATE TABLE {request.table} ({listed})", 0, 0, True)
            await self._submitter.submit(create, verbatim=True)
        await self._send(request, prepared, progress_file, progress)

    async def _prepare(
        self, request: LoadRequest, source: DataFile, table: Sequence[TargetColumn], engine: str
    ) -> Prepared | None:
        """Look at the file, convert its rows and say what is to be said; None if no column is loaded. Raises
        UsageError, and StatementError for bad rows."""

        async def read(work: Callable[[], T]) -> T:
            return await self.interruptible(blocking(source, work))

        looked = await read(lambda: source.look([column.name for column in table]))
        while True:
            columns = [TargetColumn(each.name, each.table_type) for each in looked.columns] if request.create else table
            matched = match_columns(request, looked, columns)
            if not matched.pairs:
                self._show_plan(request, looked, matched, engine)
                return None
            scan = Scan(source, looked, matched.pairs)
            await read(scan.run)
            if not (key := await read(scan.unseen_key)):
                break
            if looked.complete:
                raise unknown_column(request, key, columns)
            looked = await read(partial(source.look_again, looked))
        types, warnings = await read(scan.new_types)
        targets = [TargetColumn(target.name, type_) for target, type_ in zip(matched.targets, types, strict=True)]
        matched = replace(matched, pairs=tuple(zip([column for column, _ in matched.pairs], targets, strict=True)))
        self._show_plan(request, looked, matched, engine)
        ambiguous = await read(scan.date_warnings)
        if ambiguous and engine == "postgresql":
            raise UsageError(
                ambiguous[0],
                "nothing was sent; to let the server read the dates by its DateStyle, use --with 'FORMAT csv, HEADER' "
                "(in \\copy: WITH (FORMAT csv, HEADER))",
            )
        for line in [*looked.warnings, *warnings, *ambiguous]:
            self._diagnostics.warn(line)
        rejects, more = await read(scan.rejects)
        if rejects:
            if request.rejects:
                write_rejects(request.rejects, request.name, rejects)
            self._diagnostics.warn(rejects_report(request, rejects, more=more))
        return Prepared(matched, source, await read(lambda: scan.rows(types)))

    def _show_plan(self, request: LoadRequest, looked: FileLayout, matched: ColumnMatch, engine: str) -> None:
        for line in plan(request, looked, matched, engine):
            (self._diagnostics.say if request.dry_run else self._diagnostics.detail)(line)

    def _supersede(self, request: LoadRequest, progress_file: ProgressFile) -> None:
        """Mark the progress of an earlier load before anything can stop this one: a later --resume would leave out rows
        that may have been deleted since. Raises UsageError if it cannot be saved."""
        before = progress_file.read()
        if before is None:
            return
        before.superseded = True
        progress_file.write(before)
        if before.done or before.unknown:
            unknown = ", ".join(shown(*each) for each in before.unknown)
            arrived = f", and it is unknown whether {unknown} arrived" if unknown else ""
            self._diagnostics.warn(
                f"an earlier load of {request.name} left {format_count(before.rows, 'row')} in {request.table}"
                f"{arrived}; this load starts from the beginning; to continue the earlier one, use {RESUME}"
            )

    async def _progress(self, request: LoadRequest, matched: ColumnMatch, progress_file: ProgressFile) -> LoadProgress:
        """The progress to continue from. Raises UsageError if none matches."""
        if not progress_file.stores:
            if request.resume:
                raise UsageError(
                    f"cannot resume the load of {request.name}: the progress of loads from stdin, from a command, or "
                    "into a database in memory is not stored",
                    OMIT,
                )
            return LoadProgress(Fingerprint(0, "", "", (), ""))
        options = request.format, request.header, request.delimiter, request.null, request.quote, request.escape
        print_ = await self.interruptible(
            asyncio.to_thread(
                fingerprint,
                request.path,
                request.table,
                tuple((target.name, target.type) for target in matched.targets),
                repr((*options, "round") if request.round else options),
            )
        )
        if not request.resume:
            return LoadProgress(print_)
        before = progress_file.read()
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
            rows = ", ".join(shown(*each) for each in before.unknown)
            if before.superseded:
                raise UsageError(
                    f"cannot resume the load of {request.name} into {request.table}: the last load restarted from "
                    "the beginning and stopped before it sent a row",
                    f"{OMIT}; if the table still contains {rows} of the load before it, add --if-unknown skip "
                    "(in \\copy: WITH (IF_UNKNOWN skip))",
                )
            raise UsageError(
                f"{rows} of {request.name}: it is unknown whether they are in {request.table}",
                "check the table: if it contains all of these rows, use --if-unknown skip (in \\copy: WITH "
                "(IF_UNKNOWN skip)); otherwise delete those that it contains, and use --if-unknown send (in \\copy: "
                "WITH (IF_UNKNOWN send))",
            )
        if request.unknown == "skip":
            for each in before.unknown:
                before.done = with_range(before.done, each)
        before.unknown, before.superseded = [], False
        self._diagnostics.note(f"resuming after {format_count(before.rows, 'row')}")
        return before

    async def _send(
        self, request: LoadRequest, prepared: Prepared, progress_file: ProgressFile, progress: LoadProgress
    ) -> None:
        earlier, sender = progress.rows, self._sender(request, prepared)
        work = self._each(sender, prepared.rows, progress_file, progress)
        error: ShellError | None = None
        try:
            # The rows of an attachment are waited for; a second Ctrl-C leaves them.
            error = await (self.interruptible(work) if isinstance(sender, InsertSender) else work)
        except (Interrupted, duckdb.InterruptException):
            error = Interrupted("interrupted")
        for sent in await sender.settled():
            _note(sent, progress)
        progress_file.write(progress)
        self._session.rows = progress.rows - earlier
        if error is None:
            progress_file.forget()
            self._variables.record_outcome(None)
            after = f", after {earlier:,} of the earlier load" if earlier else ""
            self._diagnostics.report(
                f"{format_count(progress.rows - earlier, 'row')} loaded into {request.table}{after}"
            )
            return
        are = "is" if progress.rows == 1 else "are"
        there = f"{format_count(progress.rows, 'row')} of {request.name} {are} in {request.table}"
        advice, then = "", f"continue with {RESUME}" if progress.rows else ""
        if progress.unknown:
            there += f"; {', '.join(shown(*each) for each in progress.unknown)}: unknown"
            advice = "nothing was sent again; check the table"
            then = (
                "continue with --resume --if-unknown skip or send (in \\copy: WITH (RESUME, IF_UNKNOWN skip or send))"
            )
        error.message = f"{error.message.rstrip('.')};\n{there}"
        error.hint = "\n".join(filter(None, [error.hint, advice, then if progress_file.stores else ""]))
        self._variables.record_outcome(error)
        raise error

    def _sender(self, request: LoadRequest, prepared: Prepared) -> Sender:
        if EXTENSION not in self._session.connection.service.transport.extensions:
            return InsertSender(request, prepared.matched, prepared.source, self._session)
        state = self._session.state
        return AttachmentSender(
            request,
            prepared.matched,
            partial(self._batch, prepared),
            self._submit,
            lambda: bool(state.last_statement_id),
            self._attachments.limit,
        )

    async def _each(
        self, sender: Sender, rows: ConvertedRows, progress_file: ProgressFile, progress: LoadProgress
    ) -> ShellError | None:
        """Send all rows, and keep what became of them; the error of the first batch that failed."""
        error: ShellError | None = None

        def begin(sent: Range) -> None:
            # Unless an outcome follows, because the shell is killed, it is unknown whether they arrived.
            progress.unknown = with_range(progress.unknown, sent)
            progress_file.write(progress)

        async for sent in sender.send(rows, list(progress.done), begin):
            error = error or sent.error
            _note(sent, progress)
            progress_file.write(progress)
            if isinstance(sender, InsertSender):
                self._statement_runner.show_progress(progress.rows / rows.rows, format_count(progress.rows, "row"))
        return error

    async def _batch(self, prepared: Prepared, rows: Range) -> Path:
        """A file with some of the rows. Raises Interrupted."""
        work = blocking(prepared.source, lambda: batch(prepared.source, prepared.rows, *rows))
        return await self._statement_runner.interruptible(work, "copy")

    async def _submit(self, sql: str, attachment: Attachment) -> None:
        await self._submitter.send(submission_of(_lexed(sql), [attachment]))

    async def interruptible(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something before the first row is sent. Raises Interrupted."""
        try:
            return await self._statement_runner.interruptible(work, "copy")
        except Interrupted:
            raise Interrupted("interrupted; no row was sent") from None


def _note(sent: SentBatch, progress: LoadProgress) -> None:
    if not sent.unknown:
        progress.unknown = without_range(progress.unknown, sent.rows)
    if sent.error is None:
        progress.done = with_range(progress.done, sent.rows)


def _lexed(sql: str) -> Lexed:
    return Lexed(service_text(sql, "the table's columns"))


def plan(request: LoadRequest, looked: FileLayout, matched: ColumnMatch, engine: str) -> list[str]:
    """Where the columns go, for people."""
    new = "a new table " if request.create else ""
    lines = [f"{request.name} ({looked.about}) into {new}{request.table}:"]
    width = max((len(source.name) for source, _ in matched.pairs), default=0)
    for source, target in matched.pairs:
        lines.append(f"  {source.name:<{width}} {source.type} -> {target.name} {engine_type(target.type, engine)}")
    if matched.left:
        lines.append(f"  columns that are not in the file and get their defaults: {', '.join(matched.left)}")
    return lines


def rejects_report(request: LoadRequest, rejects: Sequence[Reject], *, more: bool) -> str:
    """The warning about bad rows that are skipped. Raises StatementError if there are more than may be."""
    bad = len(rejects)
    count = f"{'at least ' if more else ''}{format_count(bad, 'row')}"
    # In a pipe the lines become one.
    messages = ";\n".join(reject_message(request, item) for item in rejects[:MAX_LISTED_ROWS])
    rest = f";\n… and {bad - MAX_LISTED_ROWS:,} more" if bad > MAX_LISTED_ROWS else ""
    if bad <= request.max_errors:
        kept = f", written to {request.rejects}" if request.rejects else ""
        return f"{count} of {request.name} skipped{kept}:\n{messages}{rest}"
    listed = f"the first {bad:,} of them are" if more else "it is" if bad == 1 else "all of them are"
    where = f"{listed} in {request.rejects}; " if request.rejects else ""
    remedy = f"use --max-errors {bad} to skip {'it' if bad == 1 else 'them'} (in \\copy: WITH (MAX_ERRORS {bad}))"
    if more:
        remedy = f"use --max-errors with a number above {bad} to skip them (in \\copy: WITH (MAX_ERRORS N))"
    if all(item.encoded for item in rejects):
        remedy = ENCODE
    elif all(item.quoted for item in rejects):
        remedy = f"use --with 'FORCE_NULL *' (in \\copy: WITH (FORCE_NULL *)) to load \"\" as NULL, or {remedy}"
    elif all(item.rounded for item in rejects):
        remedy = f"use --round (in \\copy: WITH (ROUND)) to round or shorten them, or {remedy}"
    raise StatementError(
        f"{count} of {request.name} cannot be loaded:\n{messages}{rest}", f"{where}nothing was sent; {remedy}"
    )


def reject_message(request: LoadRequest, item: Reject) -> str:
    """The place of a bad row and what is wrong with it, indented."""
    column = f', column "{item.column}"' if item.column else ""
    line = f", {request.one} {item.line:,}" if item.line else ""
    return f"  {request.name}{line}{column}: {item.error}"


def write_rejects(path: Trusted, name: str, rejects: Sequence[Reject]) -> None:
    """Write bad rows to a CSV file. Raises OutputError."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("file", "line", "column", "error", "row"))
    sink = FileSink(path)
    try:
        for item in rejects:
            writer.writerow((name, item.line, item.column, item.error, item.row))
            sink.write(text.getvalue().encode("utf-8", "replace"))
            text.seek(0)
            text.truncate()
        sink.close()
    except BaseException:
        sink.abort()
        raise
