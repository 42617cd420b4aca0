"""COPY in scripts: its data follow in the script, are on stdin, or are in a file that the shell loads."""

from __future__ import annotations

import contextlib
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from sqlshell.errors import UsageError, reason
from sqlshell.origin import Trusted
from sqlshell.runtime.scratch import scratch
from sqlshell.shell.command_shell import CommandShell
from sqlshell.sql.analysis.copy_statements import CopyStatement, read_copy
from sqlshell.sql.script.scanner import BackslashCommand, CopyLines, Statement, copies_from_stdin

_END: Final = re.compile(rb"\\\.\r?\n?\Z")


class InlineCopy:
    """The COPY statements and `\\copy` commands of the running script. `shell` loads the data."""

    def __init__(self, shell: CommandShell) -> None:
        """Create it for a shell."""
        self._shell = shell
        self._input = CopyInput()
        self._command_text: Trusted | None = None
        """The text of the `-c` that is running."""

    @contextlib.contextmanager
    def of_script(self, command_text: Trusted | None) -> Iterator[None]:
        """Inside the block, data belong to another script; `command_text` is its text if it is a `-c`."""
        before = self._input, self._command_text
        self._input, self._command_text = CopyInput(), command_text
        try:
            yield
        finally:
            self._input.close()
            self._input, self._command_text = before

    async def run_statement(self, item: Statement) -> bool:
        """Carry out a COPY; False if the service runs it. Raises ShellError."""
        active = self._shell.conditions.active and not item.has_failed_command
        if not item.copies:
            if not active or not self._shell.commands_allowed or self._shell.restricted or item.background:
                return False
            return await self._shell.copying.copy_file(item)
        if not active:
            self._discard_data_of(item)
            return False
        if any(token.text == ";" for token in item.lexed.tokens):
            self._discard_data_of(item)
            raise UsageError("COPY … FROM STDIN cannot be sent together with others (\\;)", "end each statement with ;")
        text = self._shell.variables.substitute(item.whole)
        if text.foreign and "rejects" in text.text.lower():
            text.trusted("an option of COPY")
        self._shell.buffer.remember(item)
        await self._run(item, text.text, data_follow=item.terminated)
        return True

    def _discard_data_of(self, item: Statement) -> None:
        for _ in range(item.copies if item.terminated else 0):
            self._input.expect(None)

    async def run_command(self, item: BackslashCommand) -> bool:
        """Carry out a `\\copy … FROM STDIN`; False for other commands, and if it may not run. Raises ShellError."""
        if item.name != "copy" or not copies_from_stdin(f"copy {item.args}"):
            return False
        if not (self._shell.commands_allowed and self._shell.conditions.active):
            self._input.expect(None)
            return False
        await self._run(item, f"copy {item.args}", data_follow=True)
        return True

    async def take(self, lines: CopyLines) -> None:
        """Take lines of data, and load them after the last one. Raises ShellError."""
        try:
            complete = self._input.add(lines)
        except OSError as error:
            raise UsageError(f"cannot write the data of COPY to a temporary file: {reason(error)}") from None
        if complete is None:
            return
        copy, path = complete
        try:
            await self._shell.copying.load(copy, path)
        finally:
            path.unlink(missing_ok=True)

    def discard(self) -> None:
        """Discard the data that have arrived."""
        self._input.close()

    async def _run(self, item: Statement | BackslashCommand, text: str, *, data_follow: bool) -> None:
        copy = None
        try:
            copy = read_copy(text, command=isinstance(item, BackslashCommand))
        finally:
            from_stdin = copy is not None and (copy.place == "PSTDIN" or self._is_last_line(item))
            if data_follow:
                self._input.expect(None if from_stdin else copy)
        if from_stdin:
            await self._shell.copying.run(copy)
        elif not data_follow:
            raise UsageError("COPY … FROM STDIN is not followed by data", "end the statement with ;")

    def _is_last_line(self, item: Statement | BackslashCommand) -> bool:
        """Whether nothing follows the line of a statement in the text of `-c`."""
        text = self._command_text
        return text is not None and "\n" not in text[item.offset :].strip()


class CopyInput:
    """The COPY statements of one script whose data is still to come."""

    def __init__(self) -> None:
        self._expected: deque[CopyStatement | None] = deque()
        self._file: BinaryIO | None = None
        self._path = Path()

    def expect(self, copy: CopyStatement | None) -> None:
        """The next data is for this statement; None discards it."""
        self._expected.append(copy)

    def add(self, lines: CopyLines) -> tuple[CopyStatement, Path] | None:
        """Take a part of the data; with the last part, the statement and the file with its data, which the caller
        removes. Raises OSError.
        """
        copy = self._expected[0] if self._expected else None
        if copy is None:
            if lines.last and self._expected:
                self._expected.popleft()
            return None
        if self._file is None:
            self._path = scratch().folder("copy") / "data"
            self._file = self._path.open("w+b")
        self._file.write(lines.text.encode("utf-8", "surrogateescape"))
        if not lines.last:
            return None
        file, self._file = self._file, None
        with file:
            _truncate(file, cut=lines.cut)
        self._expected.popleft()
        return copy, self._path

    def close(self) -> None:
        """Discard what has arrived."""
        self._expected.clear()
        if self._file is not None:
            self._file.close()
            self._path.unlink(missing_ok=True)
            self._file = None


def _truncate(file: BinaryIO, *, cut: bool) -> None:
    """Remove the end of the data: the line `\\.`, or the line end that the end of a script adds."""
    size = file.tell()
    file.seek(max(0, size - 4))
    tail = file.read()
    if cut:
        extra = 1 if tail.endswith(b"\n") else 0
    else:
        match = _END.search(tail)
        extra = len(match[0]) if match is not None else 0
    file.truncate(size - extra)
