"""The query buffer, as psql calls it: the statement that is being written, and the one that was run last."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from sqlshell.errors import UsageError
from sqlshell.shell.flow import Flow
from sqlshell.shell.variables import Variables
from sqlshell.sql.scanner import Scanner, State, Statement


class Buffer:
    """Only `;` and the commands that send take what is being written; everything else leaves it as it is."""

    def __init__(self, variables: Variables, flow: Flow) -> None:
        self._variables = variables
        self._flow = flow
        self.scanner = Scanner()
        """Reads the script that is being run; between texts that a person types it keeps what is unfinished."""
        self.last = Statement("", 0, 0, True)
        """The statement that was run last, with the values of its variables."""
        self.last_local = False
        """Whether it was run on the results of this shell."""
        self.edited = ""
        """What a person left in an editor, to be run as if it was typed."""

    @property
    def text(self) -> str:
        """The statement that is being written, else the one that was run last, "" for none."""
        return self.scanner.pending.rstrip() or self.last.text

    @property
    def script(self) -> str:
        """The same as the text of a file: what is being written as it stands, the last statement with its `;`."""
        pending = self.scanner.pending.rstrip()
        return f"{pending}\n" if pending else f"{self.last.text};\n" if self.last.text else ""

    def clear(self) -> None:
        """Throw away what is being written, whatever it is inside of."""
        self.scanner = Scanner()

    def recall(self) -> str:
        """What is being written, for a person to go on with at the prompt, which has it from now on.

        "" where there is none, and where it would not be the same if it was typed again: then it stays here.
        """
        if self._flow.depth or not self.scanner.unfinished.rewritable:
            return ""
        text = self.scanner.pending
        self.clear()
        return text

    def send(self, name: str) -> Statement | None:
        """What is being written, for a command that sends it; None where that sends the last statement again.

        Raises UsageError where there is neither.
        """
        statement = self.scanner.take()
        if statement is None and not self.last.text:
            raise UsageError(f"\\{name} sends a statement, and there is none", "write it before the command")
        return statement

    def settle(self) -> Sequence[Statement]:
        """Give the variables in what is being written the values from before a command, as psql does.

        What comes back are the statements that a value ends.
        """
        text, done = self.scanner.pending, self.scanner.unfinished.settled
        filled, own = self._variables.fill(text[done:]) if ":" in text[done:] else (text[done:], True)
        if filled == text[done:]:
            return []
        reader = Scanner(commands=False)
        ended = [item for item in reader.items(f"{text[:done]}{filled}\n") if isinstance(item, Statement)]
        self.scanner.unfinished.settle(reader.pending.removesuffix("\n"), own=own)
        if not reader.pending.strip():
            self.scanner.take()
        return [replace(item, own=own) for item in ended]

    def ended(self) -> bool:
        """Whether the value of a variable holds the end of what is being written."""
        text = self.scanner.pending
        if ":" not in text:
            return False
        scanner = Scanner(commands=False)
        sent = [*scanner.items(self._variables.fill(text)[0] + "\n")]
        return bool(sent) and scanner.state is State.READY
