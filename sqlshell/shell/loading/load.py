"""COPY … FROM and \\copy … FROM: where the data is, and the steps of a load. The file is looked at, its columns are
matched with those of the table, its rows are converted and sent, and it is reported how many are in the table."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, InvalidStateError
from functools import partial
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

import duckdb
from msgspec import Struct
from msgspec.structs import replace

from sqlshell.client.http.upload import Attachment, attachment
from sqlshell.config.values import state_folder
from sqlshell.errors import Interrupted, OutputError, ShellError, StatementError, UsageError, Where
from sqlshell.humanize import format_count
from sqlshell.interface import sqlstate
from sqlshell.origin import EMPTY, Own, service_text
from sqlshell.runtime.files import check_output, expanded
from sqlshell.runtime.scratch import scratch
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.loading.convert import ConvertedRows, Scan, batch
from sqlshell.shell.loading.inspect import DataFile
from sqlshell.shell.loading.report import (
    Fingerprint,
    LoadProgress,
    ProgressFile,
    Range,
    fingerprint,
    plan,
    rejects_report,
    shown,
    with_range,
    without_range,
    write_rejects,
)
from sqlshell.shell.loading.send import EXTENSION, AttachmentSender, InsertSender, Sender, SentBatch, blocking
from sqlshell.shell.loading.spec import (
    ColumnMatch,
    FileLayout,
    LoadRequest,
    TargetColumn,
    compression_of,
    copy_for_engine,
    format_of_data,
    is_engine_copy,
    match_columns,
    request_of,
    unknown_column,
)
from sqlshell.shell.metadata.service_queries import table_columns
from sqlshell.shell.running.statement import submission_of
from sqlshell.shell.running.submitting import Submitter
from sqlshell.sql.analysis.copy_statements import CopyStatement
from sqlshell.sql.analysis.lexed import Lexed
from sqlshell.sql.engine_types import engine_type
from sqlshell.sql.identifiers import quoted
from sqlshell.sql.script.items import Statement

T = TypeVar("T")

PIECE: Final = 1 << 20
DATA: Final = "stdin"
"""The attachment that is the data of COPY … FROM STDIN."""

LARGEST: Final = 1 << 30
"""Bytes of the attachments that the local service accepts."""

RESUME: Final = "--resume (in \\copy: RESUME)"
OMIT: Final = f"omit {RESUME}"

LOADS_NOTHING: Final = frozenset({"spark"})
"""Engines that take no files: without this a load would end with an empty table."""


class Copier:
    """Carries out what a COPY … FROM says."""

    def __init__(self, components: ShellComponents, submitter: Submitter, loader: Loader) -> None:
        self._loader = loader
        self._session = components.session
        self._position = components.position
        self._stdin = components.streams.stdin
        self._limit = min(components.attachments.limit or LARGEST, LARGEST)
        self._diagnostics = components.diagnostics
        self._submitter = submitter

    async def run(self, copy: CopyStatement, *, statement: bool = False) -> None:
        """Load from a file, a command, or the stdin of this process. With `statement` it is not \\copy but DuckDB's
        COPY, in which bytes are written as `a\\x62`, and `""` is NULL by default. Raises ShellError."""
        by_engine = await is_engine_copy(copy, self._session.connection)
        if not by_engine:
            copy.check()
        await self._loader.check(copy.source)
        if not (copy.stream or copy.program):
            path = expanded(copy.place)
            if by_engine and path.is_file() and path.stat().st_size <= self._limit:
                await self._send_data(copy, Own(copy.place))
                return
            copy.check()
            request = request_of(copy, Own(copy.place), Path(copy.place).name)
            if statement:
                nulls = request.force_null if copy.options.get("allow_quoted_nulls") == "false" else ("*",)
                request = replace(request, binary="escaped", force_null=nulls)
            await self._run(request)
            return
        if copy.stream and copy.place not in {"STDIN", "PSTDIN"}:
            raise UsageError(f"COPY FROM {copy.place}: expected STDIN, PSTDIN or a file")
        if copy.stream and self._position.reads_stdin:
            raise UsageError(
                "COPY FROM PSTDIN: the script itself is on stdin", "use FROM STDIN with the data after it, or -f FILE"
            )
        name = "the command's output" if copy.program else "stdin"
        # Wrong options are reported before a command runs or stdin is read.
        piped = None if by_engine else replace(request_of(copy, EMPTY, name, kept=False), ends=copy.stream)
        folder = scratch().folder("stdin")
        try:
            path = folder / "data"
            if copy.program:
                await self._loader.interruptible(_output_of(Own(copy.place), path))
            else:
                await _kept(path, self._stdin)
            if piped is None:
                await self._send_data(copy, Own(str(path)))
                return
            # They have no name that says how they are compressed.
            path = await asyncio.to_thread(path.rename, path.with_name(f"data{compression_of(path)}"))
            await self._run(replace(piped, path=Own(str(path))))
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def load(self, copy: CopyStatement, data: Path) -> None:
        """Load data that stood in a script and are in a file now. Raises ShellError."""
        if await is_engine_copy(copy, self._session.connection):
            await self._loader.check(copy.source)
            await self._send_data(copy, Own(str(data)))
            return
        copy.check()
        if await asyncio.to_thread(_has_data, data):
            await self._loader.check(copy.source)
            await self._run(request_of(copy, Own(str(data)), "STDIN", kept=False))

    async def _run(self, request: LoadRequest) -> None:
        # A pipe can be read only once, and may never end.
        if expanded(request.path).is_fifo():
            raise UsageError(f"{request.path} is a pipe, not a file", "load stdin: import - (in \\copy: FROM PSTDIN)")
        if request.format == "auto":
            request = replace(request, format=await asyncio.to_thread(format_of_data, Path(request.path)))
        await self._loader.run(request)

    async def _send_data(self, copy: CopyStatement, path: Own) -> None:
        """Send a COPY with its data, which the engine reads itself. Raises ShellError."""
        sql = copy_for_engine(copy)
        data = attachment(path, self._limit)
        data.name = DATA
        await self._submitter.send(submission_of(Lexed(service_text(sql, "the text of COPY")), [data]))
        rows = self._session.rows or 0
        self._diagnostics.report(f"{format_count(rows, 'row')} loaded into {copy.source}")


def _has_data(path: Path) -> bool:
    return path.stat().st_size > 0


async def _output_of(command: Own, path: Path) -> None:
    """Write what a command prints to a file. Raises OutputError if it fails."""
    with path.open("wb") as file:
        process = await asyncio.create_subprocess_shell(command, stdout=file)
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
            raise
    if code:
        raise OutputError(f"the command {command!r} exited with code {code}", "nothing was loaded")


async def _kept(path: Path, stdin: TextIO) -> None:
    """Write stdin to a file. A thread that waits for more keeps the program from nothing."""
    done: Future[None] = Future()

    def work() -> None:
        # A load that was interrupted no longer waits for it.
        with contextlib.suppress(InvalidStateError):
            try:
                with open(stdin.fileno(), "rb", buffering=0, closefd=False) as source, path.open("wb") as file:
                    shutil.copyfileobj(source, file, PIECE)
                done.set_result(None)
            except OSError as error:
                done.set_exception(UsageError(f"cannot read stdin: {error.strerror or error}"))

    threading.Thread(target=work, name="stdin", daemon=True).start()
    await asyncio.wrap_future(done)


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
        self._interruption = components.interruption

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
            with self._interruption.holding():
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
            if engine == "postgresql":
                _check_date_order(request.name, looked, matched)
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
        for line in [*looked.warnings, *warnings, *await read(scan.date_warnings)]:
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
            then = "continue with --resume --unknown skip or send (in \\copy: RESUME, UNKNOWN skip or send)"
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
                self._interruption.show_progress(progress.rows / rows.rows, f"{progress.rows:,} rows")
        return error

    async def _batch(self, prepared: Prepared, rows: Range) -> Path:
        """A file with some of the rows. Raises Interrupted."""
        work = blocking(prepared.source, lambda: batch(prepared.source, prepared.rows, *rows))
        return await self._interruption.interruptible(work, "copy")

    async def _submit(self, sql: str, attachment: Attachment) -> None:
        await self._submitter.send(submission_of(_lexed(sql), [attachment]))

    async def interruptible(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something before the first row is sent. Raises Interrupted."""
        try:
            return await self._interruption.interruptible(work, "copy")
        except Interrupted:
            raise Interrupted("interrupted; no row was sent") from None


def _note(sent: SentBatch, progress: LoadProgress) -> None:
    if not sent.unknown:
        progress.unknown = without_range(progress.unknown, sent.rows)
    if sent.error is None:
        progress.done = with_range(progress.done, sent.rows)


def _check_date_order(file: str, looked: FileLayout, matched: ColumnMatch) -> None:
    """Raises UsageError for dates that are not in ISO format: the server's DateStyle says what 05/06/2024 means."""
    for source, target in matched.pairs:
        if looked.date_format(source) and target.type.startswith(("DATE", "TIMESTAMP")):
            raise UsageError(
                f"{file}, column {source.name}: the dates are not in the form YYYY-MM-DD, so the order of day and "
                "month is ambiguous",
                "nothing was sent; add `csv header` so that the server reads the file: \\copy … from FILE csv header",
            )


def _lexed(sql: str) -> Lexed:
    return Lexed(service_text(sql, "the table's columns"))
