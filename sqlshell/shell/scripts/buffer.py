"""The query buffer, as in psql: the unfinished statement, and the last statement."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from sqlshell.errors import UsageError
from sqlshell.origin import EMPTY, Text, Trusted, joined, trusted_text
from sqlshell.shell.scripts.conditions import ConditionStack
from sqlshell.shell.scripts.variables import Variables
from sqlshell.sql.analysis.files import named_files, refuse_files
from sqlshell.sql.script.scanner import Scanner, State, Statement
from sqlshell.sql.script.splitting import refuse_more, split
from sqlshell.sql.variables import references


class Buffer:
    """Only `;` and the commands that send take the unfinished statement; everything else leaves it unchanged."""

    def __init__(self, variables: Variables, conditions: ConditionStack) -> None:
        self._variables = variables
        self._conditions = conditions
        self.scanner = Scanner(keeps_data=True)
        """Scans the running script; between texts that the user types it keeps the unfinished statement."""
        self.last = Statement("", 0, 0, True)
        """The last statement, with variables substituted: what \\g repeats."""
        self.sent = self.last
        """The statement that ran last, which errors are about."""
        self.last_was_local = False
        """Whether it was run by \\local."""
        self._edited_text = EMPTY

    @property
    def text(self) -> str:
        """The unfinished statement, otherwise the last statement, "" for none."""
        return self.scanner.pending.rstrip() or self.last.text

    @property
    def substituted_text(self) -> str:
        """The text with the current values of its variables."""
        pending = self.scanner.pending.rstrip()
        return self._variables.substitute(trusted_text(Trusted(pending))).text if pending else self.last.text

    @property
    def script_text(self) -> str:
        """The text as the content of a file: an unfinished statement unchanged, the last statement with its `;`."""
        pending = self.scanner.pending.rstrip()
        return f"{pending}\n" if pending else f"{self.last.text};\n" if self.last.text else ""

    def check_origin(self) -> None:
        """Raise UsageError if the text would do more when it is read again as the user's own text.

        That is the case if a part that came from a service contains commands, variables or further statements, or names
        a file.
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
        # An embedded DuckDB may run the statement, with the user's permissions.
        refuse_files(whole)

    def remember(self, statement: Statement, *, local: bool = False) -> None:
        """Note that `statement` runs now, on the results of this shell if `local`."""
        self.last = self.sent = statement
        self.last_was_local = local

    def repeat(self, statement: Statement, *, local: bool) -> None:
        """\\g repeats `statement`, and not what ran since."""
        self.last, self.last_was_local = statement, local

    def replace_with(self, text: Trusted) -> None:
        """Discard what is being written; `text` runs next as if it was typed, "" for none."""
        self._edited_text = text
        self.scanner.take()

    def take_edited(self) -> Trusted:
        """The text of replace_with(), once; "" for none."""
        text, self._edited_text = self._edited_text, EMPTY
        return text

    @contextlib.contextmanager
    def separate(self) -> Iterator[None]:
        """While inside, a script is read with an empty buffer; then the unfinished statement continues."""
        before, self.scanner = self.scanner, Scanner(keeps_data=True)
        try:
            yield
        finally:
            self.scanner = before

    def clear(self) -> None:
        """Clear the unfinished statement, whatever it is inside of."""
        self.scanner = Scanner(keeps_data=True)

    def recall(self) -> str:
        """Remove the unfinished statement and return it, so that the user can continue it at the prompt.

        Returns "" if there is none, or if it would not be the same when typed again: then it stays here.
        """
        kept = self.scanner.state is State.COPY_DATA or not self.scanner.unfinished.rewritable
        if self._conditions.depth or kept:
            return ""
        text = self.scanner.pending
        self.clear()
        return text

    def send(self, name: str) -> Statement | None:
        """Take the unfinished statement for a command that sends it; None if the command sends the last statement
        again.

        Raises UsageError if there is neither.
        """
        statement = self.scanner.take()
        if statement is None and not self.last.text:
            raise UsageError(f"\\{name}: there is no statement to send", "write a statement before the command")
        return statement

    def substitute_pending(self) -> Sequence[Statement]:
        """Substitute variables in the unfinished statement with their values before a command, as in psql.

        Returns the statements that a value completes.
        """
        text, unfinished = Trusted(self.scanner.pending), self.scanner.unfinished
        substituted = unfinished.substituted
        filled = self._variables.substitute(trusted_text(Trusted(text[substituted:])))
        if filled.text == text[substituted:]:
            return []
        whole = joined([Text(text[:substituted], unfinished.foreign), filled])
        ended, rest_of_text = _split_unfinished(whole.text)
        if whole.foreign:
            before, rest = _split_unfinished(whole.blanked)
            refuse_more(whole, len(ended) + bool(rest_of_text.strip()), len(before) + bool(rest.strip()))
        unfinished.replace_substituted(whole.part(len(whole.text) - len(rest_of_text), len(whole.text)))
        if not rest_of_text.strip():
            self.scanner.take()
        return [replace(item, foreign=whole.part(item.offset, item.offset + len(item.text)).foreign) for item in ended]

    def ends_by_variable(self) -> bool:
        """Whether the value of a variable completes the unfinished statement."""
        text = self.scanner.pending
        if ":" not in text:
            return False
        scanner = Scanner(commands=False)
        sent = [*scanner.items(self._variables.substitute(trusted_text(Trusted(text))).text + "\n")]
        return bool(sent) and scanner.state is State.READY


def _split_unfinished(text: str) -> tuple[list[Statement], str]:
    """The complete statements in a text, and the rest after them."""
    reader = Scanner(commands=False)
    ended = [item for item in reader.items(f"{text}\n") if isinstance(item, Statement)]
    return ended, reader.pending.removesuffix("\n")
