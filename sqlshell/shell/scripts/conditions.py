"""\\if, \\elif, \\else and \\endif: which branch is active."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from sqlshell.errors import UsageError
from sqlshell.shell.scripts.position import Position
from sqlshell.sql.script.scanner import Scanner
from sqlshell.sql.script.unfinished import UnfinishedStatement

CONDITION_COMMANDS = frozenset({"if", "elif", "else", "endif"})


class _Branch(Struct):
    taking: bool
    """Whether this branch runs."""
    taken: bool
    """Whether one of the branches has run, or none may run."""
    last: bool = False
    """Whether \\else has occurred."""
    line: int = 0
    """The line of the \\if."""
    mark: UnfinishedStatement | None = None
    """The unfinished statement at the point where the skipped branch began."""


class ConditionStack:
    """The open conditions. A condition is evaluated only if its result matters."""

    def __init__(self, position: Position) -> None:
        self._open: list[_Branch] = []
        self._position = position

    @property
    def depth(self) -> int:
        return len(self._open)

    @property
    def active(self) -> bool:
        """Whether the following text runs."""
        return all(branch.taking for branch in self._open)

    def evaluates(self, name: str) -> bool:
        """Whether the condition of \\if or \\elif is evaluated."""
        if name == "elif":
            return bool(self._open) and not self._open[-1].taken
        return name != "if" or self.active

    def before_command(self, name: str, scanner: Scanner) -> None:
        """Before a command: skipped text is not part of an unfinished statement."""
        if self._open and name != "if" and self._open[-1].mark is not None:
            scanner.return_to(self._open[-1].mark)
            self._open[-1].mark = None

    def after_command(self, scanner: Scanner) -> None:
        """After a command: the following text may be skipped."""
        if self._open and not self.active and self._open[-1].mark is None:
            self._open[-1].mark = scanner.unfinished.copy()

    def reject_condition(self, name: str) -> None:
        """Treat an \\if or \\elif whose condition cannot be parsed as false, so that its branch does not run."""
        if name == "if":
            self._begin()
        elif name == "elif" and self._open:
            self._open[-1].taking = False

    def enter(self, word: str, condition: Callable[[], bool]) -> None:
        """Process one of CONDITION_COMMANDS. Raises UsageError where it is not allowed, and errors of the condition,
        which then counts as false.
        """
        if word == "if":
            branch = self._begin()
        elif not self._open:
            raise UsageError(f"\\{word}: no matching \\if")
        elif word == "endif":
            self._open.pop()
            return
        else:
            branch = self._open[-1]
            if branch.last:
                raise UsageError(f"\\{word}: cannot occur after \\else")
        branch.taking, branch.last = False, word == "else"
        if not branch.taken:
            branch.taking = branch.taken = branch.last or condition()
        branch.taken = branch.taken or branch.last

    def _begin(self) -> _Branch:
        branch = _Branch(False, not self.active, line=self._position.line)
        self._open.append(branch)
        return branch

    def close(self, depth: int) -> None:
        """The end of a script that began at that depth. Raises UsageError at the line of an \\if that is still open."""
        left = self._open[depth:]
        del self._open[depth:]
        if left:
            self._position.at(left[-1].line)
            raise UsageError("the script ends inside an \\if block", "add \\endif")
