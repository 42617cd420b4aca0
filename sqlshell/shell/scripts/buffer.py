"""The query buffer, as psql calls it: the statement that is being written, and the one that was run last."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from sqlshell.errors import UsageError
from sqlshell.origin import NOWHERE, Own, Text, joined, mine
from sqlshell.shell.scripts.flow import Flow
from sqlshell.shell.scripts.variables import Variables
from sqlshell.sql.analysis.files import named_files, refuse_files
from sqlshell.sql.script.scanner import Scanner, State, Statement
from sqlshell.sql.script.splitting import refuse_more, split
from sqlshell.sql.variables import references


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
        self.edited = NOWHERE
        """What a person left in an editor, to be run as if it was typed."""

    @property
    def text(self) -> str:
        """The statement that is being written, else the one that was run last, "" for none."""
        return self.scanner.pending.rstrip() or self.last.text

    @property
    def filled(self) -> str:
        """The text with the values that its variables have now."""
        pending = self.scanner.pending.rstrip()
        return self._variables.fill(mine(Own(pending))).text if pending else self.last.text

    @property
    def script(self) -> str:
        """The same as the text of a file: what is being written as it stands, the last statement with its `;`."""
        pending = self.scanner.pending.rstrip()
        return f"{pending}\n" if pending else f"{self.last.text};\n" if self.last.text else ""

    def check_written(self) -> None:
        """Raise UsageError where the text, read again as the person's own, would do more than it does now.

        So would what came from a service and holds commands, variables or further statements, or names a file.
        """
        pending = self.scanner.pending.rstrip()
        whole = self.last.whole
        if pending:
            whole = Text(pending, self.scanner.unfinished.foreign).part(0, len(pending))
        if not whole.foreign:
            return
        items = split(whole.text)
        alone = len(items) == 1 and isinstance(items[0], Statement) and items[0].text == whole.text.strip()
        if not alone or any(whole.part(start, end).foreign for start, end in references(whole.text)):
            raise UsageError(
                f"{whole.source} came from the service and contains text that would run as a command or expand as a "
                "variable",
                "check the statement with \\p, then type it yourself",
            )
        named_files(whole, again=True)
        # It may be read where this program's own DuckDB works with the person's rights.
        refuse_files(whole)

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
            raise UsageError(f"\\{name}: there is no statement to send", "write a statement before the command")
        return statement

    def settle(self) -> Sequence[Statement]:
        """Give the variables in what is being written the values from before a command, as psql does.

        What comes back are the statements that a value ends.
        """
        text, unfinished = Own(self.scanner.pending), self.scanner.unfinished
        done = unfinished.settled
        filled = self._variables.fill(mine(Own(text[done:])))
        if filled.text == text[done:]:
            return []
        whole = joined([Text(text[:done], unfinished.foreign), filled])
        ended, left = _read(whole.text)
        if whole.foreign:
            before, rest = _read(whole.blanked)
            refuse_more(whole, len(ended) + bool(left.strip()), len(before) + bool(rest.strip()))
        unfinished.settle(whole.part(len(whole.text) - len(left), len(whole.text)))
        if not left.strip():
            self.scanner.take()
        return [replace(item, foreign=whole.part(item.offset, item.offset + len(item.text)).foreign) for item in ended]

    def ended(self) -> bool:
        """Whether the value of a variable holds the end of what is being written."""
        text = self.scanner.pending
        if ":" not in text:
            return False
        scanner = Scanner(commands=False)
        sent = [*scanner.items(self._variables.fill(mine(Own(text))).text + "\n")]
        return bool(sent) and scanner.state is State.READY


def _read(text: str) -> tuple[list[Statement], str]:
    """The statements that end in a text, and what is left behind them."""
    reader = Scanner(commands=False)
    ended = [item for item in reader.items(f"{text}\n") if isinstance(item, Statement)]
    return ended, reader.pending.removesuffix("\n")
