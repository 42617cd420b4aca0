"""The file of --checkpoint, which records the statements of a run that are done, so that --resume can skip them.

The file has one JSON object per line. The first names the target. Before a statement is sent, its number in the run,
position and digest are written and synchronized to the disk; then its ID, and at the end its outcome, synchronized
again. A line that is incomplete was never written. A statement without an outcome may have run.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from sqlshell.errors import CannotResume, OutputError, UsageError, Where, reason
from sqlshell.origin import Trusted
from sqlshell.output.sinks.sink import write_error
from sqlshell.runtime.files import check_output, expanded, write_all
from sqlshell.shell.scripts.position import source_name
from sqlshell.text import format_count


def digest(text: str) -> str:
    """The first 32 hexadecimal digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


Unknown = Literal["", "skip", "send"]
"""How --resume treats a statement whose outcome is unknown: it asks, or assumes that it ran, or that it did not."""


class Header(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first line."""

    checkpoint: int
    target: str


class Step(msgspec.Struct, omit_defaults=True, rename={"sql_state": "sqlState"}):
    """A statement or command of the run. A line has only what is new since the last one with the same number.

    `state` is "sent", "done" or "failed", or "complete" for the line (number 0) that ends a run. `transaction` says
    that a transaction is open after it (before it while it is sent), `repeatable` that running it twice does no harm,
    `outside` that a rollback does not undo what it does.
    """

    n: int
    script: str = ""
    line: int = 0
    digest: str = ""
    state: str = ""
    id: str = ""
    sql_state: str = ""
    rows: int | None = None
    transaction: bool = False
    repeatable: bool = False
    outside: bool = False
    values: dict[str, str | None] | None = None
    """The variables that \\gset has set."""

    @property
    def place(self) -> str:
        return f"{source_name(self.script)}:{self.line}"

    def where(self, sql_state: str = "", statement_id: str = "") -> Where:
        """Its place for an error about it."""
        return Where(sql_state, statement_id, file=source_name(self.script), line=self.line)


_HEADER = msgspec.json.Decoder(Header)
_STEP = msgspec.json.Decoder(Step)
_BEGINNING = b'{"checkpoint":'
VERSION = 1


class Checkpoint:
    """The steps of a run in their order, with the file in which they are recorded."""

    def __init__(self, path: Trusted, target: str, *, resume: bool, unknown: Unknown = "") -> None:
        """Open the file, and lock it for this run.

        Raises UsageError if another run uses it, if it is no checkpoint or that of another target, and, unless
        `resume` is set, if it is that of a run that is not complete. Raises OutputError if it cannot be opened.
        """
        self.path = path
        self.unknown = unknown
        self._number = self._decided = 0
        self._former: dict[int, Step] = {}
        try:
            place = expanded(path)
            check_output(place, path)
            existed = place.exists()
            self._file = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except (OSError, RuntimeError, ValueError) as error:
            raise write_error(path, error) from None
        try:
            self._lock()
            complete = self._read(target)
            if self._former and not complete and not resume:
                done = sum(step.state == "done" for step in self._former.values())
                raise UsageError(
                    f"{path} is the checkpoint of a run that is not complete ({format_count(done, 'statement')} done)",
                    "continue it with --resume, or remove the file to start again",
                )
            if complete and not resume:
                os.ftruncate(self._file, 0)
                self._former = {}
            if os.fstat(self._file).st_size == 0:
                os.lseek(self._file, 0, os.SEEK_SET)
                self._append(msgspec.json.encode(Header(VERSION, target)), durable=True)
                if not existed:
                    _synchronize(place.parent)
        except BaseException:
            os.close(self._file)
            raise
        self._transaction_began = 0

    @property
    def former(self) -> int:
        """The number of the last step of the earlier run that does not run again; 0 if there is none."""
        return max((n for n, step in self._former.items() if step.state in {"done", "sent"}), default=0)

    @property
    def continues(self) -> bool:
        """Whether steps of the earlier run are still to come."""
        return self._number < self.former

    def next(self, script: str, line: int, digest: str) -> tuple[Step, Step | None]:
        """The next step of this run, and what the earlier run recorded of it, unless it runs again.

        Raises CannotResume if it is not what the earlier run had there.
        """
        self._number += 1
        step = Step(self._number, script, line, digest)
        former = self._former.get(self._number)
        if former is None or former.state not in {"done", "sent"}:
            return step, None
        if former.state == "sent" and former.repeatable and former.digest != digest:
            return step, None
        if former.digest != digest:
            at = f" at {former.place}" if former.place != step.place else ""
            raise CannotResume(
                f"the statement or command differs from the one that the checkpoint recorded{at}",
                f"restore the script, or remove {self.path} to start again",
                step.where(),
            )
        return step, former

    def undecided(self) -> Step | None:
        """The step without an outcome that decides whether the next one is done: itself, or the end of its
        transaction. None if there is none.
        """
        if self._number < self._decided:
            return None
        n = self._number + 1
        while (step := self._former.get(n)) is not None:
            if step.state == "sent" and not step.repeatable:
                return step
            if not step.transaction:
                break
            n += 1
        self._decided = n
        return None

    def decide(self, step: Step, *, done: bool, sql_state: str = "") -> None:
        """Record the outcome of an undecided step: a transaction whose end was not done begins again.

        Raises OutputError.
        """
        transaction = step.transaction and step.outside
        decided = [Step(step.n, state="done" if done else "failed", sql_state=sql_state, transaction=transaction)]
        n = step.n - 1
        while not done and step.transaction and (before := self._former.get(n)) is not None and before.transaction:
            decided.append(Step(n, state="failed"))
            n -= 1
        self._append(b"\n".join(msgspec.json.encode(each) for each in decided), durable=True)
        for each in decided:
            self._merge(each)

    def sent(self, step: Step, *, transaction: bool, repeatable: bool, outside: bool = False) -> None:
        """Record that a step is about to begin. Raises OutputError; then it must not begin."""
        step.state, step.transaction, step.repeatable, step.outside = "sent", transaction, repeatable, outside
        self._append(msgspec.json.encode(step), durable=True)

    def identified(self, step: Step, statement_id: str) -> None:
        """Record the statementID. Raises OutputError."""
        self._append(msgspec.json.encode(Step(step.n, id=statement_id)), durable=False)

    def ended(
        self, step: Step, *, done: bool, sql_state: str, rows: int | None, transaction: bool, rolled_back: bool
    ) -> None:
        """Record an outcome. `transaction` is its state now; with `rolled_back` nothing of it was done.

        Raises OutputError.
        """
        state = "done" if done and not rolled_back else "failed"
        if rolled_back and self._transaction_began:
            for n in range(self._transaction_began, step.n):
                self._append(msgspec.json.encode(Step(n, state="failed")), durable=False)
        if not transaction:
            self._transaction_began = 0
        elif not self._transaction_began:
            self._transaction_began = step.n
        ended = Step(step.n, state=state, sql_state=sql_state, rows=rows, transaction=transaction)
        self._append(msgspec.json.encode(ended), durable=True)

    def received(self, values: Mapping[str, str | None]) -> None:
        """Record the variables that the last step has set. Raises OutputError."""
        self._append(msgspec.json.encode(Step(self._number, values=dict(values))), durable=True)

    def complete(self) -> None:
        """Record that the run is complete. Raises OutputError."""
        self._append(msgspec.json.encode(Step(0, state="complete")), durable=True)

    def check_end(self) -> None:
        """Raises CannotResume if the scripts end before the last step that the earlier run has done."""
        if self.continues:
            missing = self._former[self._number + 1]
            raise CannotResume(
                f"the scripts have changed: they end before {missing.place}, which the checkpoint records as done",
                f"restore the scripts, or remove {self.path} to start again",
            )

    def close(self) -> None:
        os.close(self._file)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{self.path} is in use by another run", "wait until it has ended") from None
        except OSError as error:
            raise OutputError(f"cannot lock {self.path}: {reason(error)}") from None

    def _read(self, target: str) -> bool:
        """Read what an earlier run recorded; returns whether that run was complete."""
        with os.fdopen(os.dup(self._file), "rb") as file:
            data = file.read()
        # The text after the last line break was being written when the run ended.
        whole, _, torn = data.rpartition(b"\n")
        if not data.startswith(_BEGINNING[: len(data)]):
            raise UsageError(f"{self.path} is not a checkpoint", "name another file")
        if not whole:
            os.ftruncate(self._file, 0)
            return False
        head, *lines = whole.split(b"\n")
        complete = False
        try:
            header = _HEADER.decode(head)
            for line in lines:
                step = _STEP.decode(line)
                complete = step.state == "complete"
                if step.n:
                    self._merge(step)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise UsageError(f"{self.path} is not a checkpoint", "name another file") from None
        if header.checkpoint != VERSION:
            raise UsageError(f"{self.path} was written by another version of sqlshell", "remove it to start again")
        if header.target != target:
            raise UsageError(
                f"{self.path} is a checkpoint of {header.target}, not of {target}",
                "use the same target, or another file",
            )
        if torn:
            os.ftruncate(self._file, len(data) - len(torn))
        os.lseek(self._file, 0, os.SEEK_END)
        self._without_open_transaction()
        return complete

    def _merge(self, step: Step) -> None:
        known = self._former.get(step.n)
        if known is not None and step.values is not None:
            known.values = step.values
        elif known is None or step.state == "sent":
            self._former[step.n] = step
        elif step.state:
            known.state, known.sql_state, known.rows = step.state, step.sql_state, step.rows
            known.transaction = step.transaction
        else:
            known.id = step.id

    def _without_open_transaction(self) -> None:
        """Statements of a transaction that the end of the run rolled back are not done.

        What was sent in it does not count either, unless it may have ended it: a COMMIT is not `repeatable`, and is
        decided as any other. What acted outside of the service keeps its outcome.
        """
        for step in (self._former[n] for n in sorted(self._former, reverse=True)):
            if step.outside and step.transaction:
                continue
            if step.state == "sent" and not step.repeatable:
                return
            if step.state == "done" and not step.transaction:
                return
            if step.transaction:
                step.state = "failed"

    def _append(self, line: bytes, *, durable: bool) -> None:
        data = line + b"\n"
        try:
            write_all(partial(os.write, self._file), data)
            if durable:
                os.fsync(self._file)
        except OSError as error:
            raise write_error(self.path, error) from None


def _synchronize(folder: Path) -> None:
    """Make a new file of a directory durable, where the file system can."""
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
