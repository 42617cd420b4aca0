"""\\export: the result of a statement in a file, which can be continued after an interruption."""

from __future__ import annotations

from msgspec.structs import replace

from sqlshell.errors import OutputError, ShellError, UnknownStatement, UsageError
from sqlshell.humanize import format_count
from sqlshell.origin import Own
from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.runtime.descriptors import descriptor
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.results.kept_file import RESUME, START_AGAIN
from sqlshell.shell.results.kept_partitions import ExportedResult, KeptBatches, PartitionStore, digest, exported
from sqlshell.shell.running.foreground import Foreground
from sqlshell.shell.running.submitting import SubmitRequest, Submitter
from sqlshell.sql.script.items import Statement


class Exporter:
    """Writes the result of one statement to a file."""

    def __init__(self, components: ShellComponents, submitter: Submitter, foreground: Foreground, path: Own) -> None:
        self._components = components
        self._submitter = submitter
        self._foreground = foreground
        self._path = path
        self._store = PartitionStore(path)
        self._count = 0
        self._rows: int | None = None

    async def run(self, statement: Statement, *, resume: bool) -> None:
        """Run the statement, or with `resume` continue with the result that it had. Raises ShellError."""
        components, text = self._components, statement.text
        if self._path.startswith("|") or descriptor(self._path) is not None:
            raise UsageError(f"\\export writes to a file, not to {self._path}", "use \\g for other outputs")
        components.result_output.check(self._path)
        state = components.session.state
        earlier = self._store.read() if resume else None
        if resume:
            self._check(earlier, text)
        else:
            self._store.supersede()
        try:
            if earlier is not None:

                async def continue_(result: Result) -> Summary:
                    if exported(result, earlier.target, text) != earlier:
                        raise UsageError(
                            "the result on the service has changed since this export began",
                            START_AGAIN,
                        )
                    return await self._write(result)

                self._count = len(earlier.counts)
                components.diagnostics.note(f"{self._held} have already been fetched")
                await self._foreground.fetch(earlier.statement_id, state.context, continue_)
            else:

                async def begin(result: Result) -> Summary:
                    known = exported(result, self._target, text)
                    if known is not None and self._target:
                        self._store.begin(known)
                        return await self._write(result)
                    return await self._written(result)

                await self._submitter.submit(SubmitRequest(statement, begin, verbatim=True, rows_for="export"))
        except UnknownStatement as error:
            error.message = f"the result of statement {error.where.statement_id} has expired on the service"
            error.hint = f"{START_AGAIN}, which runs the statement again"
            raise
        except ShellError as error:
            if self._count:
                kept = f"{self._held} are kept in {self._store.name}"
                error.hint = "\n".join(filter(None, [error.hint, f"{kept}; continue with {RESUME}"]))
            raise
        if self._rows is None:
            if components.session.connection.offline is None:
                raise UsageError("\\export: the statement ran, but did not return a result set")
            return
        text = f"{format_count(self._rows, 'row')} written to {self._path}"
        components.diagnostics.report(text, file=str(self._path))

    @property
    def _held(self) -> str:
        """The amount of the result that is kept."""
        if self._store.kept_file is not None:
            return f"{self._store.kept_file.bytes / (1 << 20):,.1f} MiB"
        return f"{len(self._store.kept):,} of {self._count:,} partitions"

    @property
    def _target(self) -> str:
        """The service that has the result, "" for one that ends with this process."""
        connection = self._components.session.connection
        return "" if connection.embedded else connection.storage_name

    def _check(self, earlier: ExportedResult | None, text: str) -> None:
        """Raises UsageError if the kept partitions are not those of the statement."""
        if earlier is None:
            if not self._target:
                raise UsageError("the embedded service does not keep results after it exits", f"omit {RESUME}")
            raise UsageError(f"there is no interrupted export to {self._path}", f"omit {RESUME}")
        if earlier.statement != digest(text):
            raise UsageError(f"{self._store.name} contains the result of another statement", START_AGAIN)
        if earlier.target != self._target:
            raise UsageError(f"{self._store.name} contains the result of another service", START_AGAIN)

    async def _write(self, result: Result) -> Summary:
        """Write a result of several partitions, and keep them, or the result's file, until the file is complete."""
        running, progress = self._components.session.running, self._components.front_end.progress
        self._count = count = len(result.row_counts or ())

        def report(number: int) -> None:
            if running is not None:
                running.share, running.message = number / count, f"partition {number:,} of {count:,}"

        if running is not None:
            progress.show(running)
        if not await self._fetched_whole(result):
            result = replace(result, batches=KeptBatches(result, self._store, report), whole=None)
        summary = await self._written(result)
        self._count = 0
        try:
            self._store.discard()
        except OutputError as error:
            self._components.diagnostics.warn(error.message)
        return summary

    async def _fetched_whole(self, result: Result) -> bool:
        """Whether the rows can be read from the result's file, which is kept."""
        running = self._components.session.running
        if result.whole is None or self._store.kept or not self._components.result_output.reads_files(self._path):
            return False

        def report(size: int) -> None:
            if running is not None:
                running.message = f"{size >> 20:,} MiB received"

        try:
            return await result.whole.keep(lambda: self._store.file(report))
        except OSError as error:
            raise OutputError(f"cannot store the result in {self._store.name}: {error.strerror or error}") from error

    async def _written(self, result: Result) -> Summary:
        summary = await self._components.result_output.show(result, output=self._path)
        self._rows = summary.rows
        return summary
