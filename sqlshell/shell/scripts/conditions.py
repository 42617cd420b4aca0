"""\\if, \\elif, \\else and \\endif: which branch is active."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from sqlshell.errors import UsageError
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
    mark: UnfinishedStatement | None = None
    """The unfinished statement at the point where the skipped branch began."""


class ConditionStack:
    """The open conditions. A condition is evaluated only if its result matters."""

    def __init__(self) -> None:
        self._open: list[_Branch] = []

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
            self.begin_if(lambda: False)
        elif name == "elif" and self._open:
            self._open[-1].taking = False

    def enter(self, word: str, condition: Callable[[], bool]) -> None:
        """Process one of CONDITION_COMMANDS. Raises UsageError where it is not allowed, and errors of the condition."""
        match word:
            case "if":
                self.begin_if(condition)
            case "elif":
                self.begin_elif(condition)
            case "else":
                self.begin_else()
            case "endif":
                self.end_if()

    def begin_if(self, condition: Callable[[], bool]) -> None:
        """\\if. If the condition cannot be evaluated, it counts as false, and its error is raised."""
        active = self.active
        branch = _Branch(False, not active)
        self._open.append(branch)
        if active:
            branch.taking = branch.taken = condition()

    def begin_elif(self, condition: Callable[[], bool]) -> None:
        """\\elif. Raises UsageError if it is not allowed."""
        branch = self._current("elif")
        if branch.last:
            raise UsageError("\\elif: cannot occur after \\else")
        branch.taking = False
        if not branch.taken:
            branch.taking = branch.taken = condition()

    def begin_else(self) -> None:
        """\\else. Raises UsageError if it is not allowed."""
        branch = self._current("else")
        if branch.last:
            raise UsageError("\\else: cannot occur after \\else")
        branch.taking, branch.taken, branch.last = not branch.taken, True, True

    def end_if(self) -> None:
        """\\endif. Raises UsageError if no \\if is open."""
        self._current("endif")
        self._open.pop()

    def close(self, depth: int) -> None:
        """The end of a script that began at that depth. Raises UsageError if an \\if is still open."""
        left = len(self._open) - depth
        del self._open[depth:]
        if left > 0:
            raise UsageError("the script ends inside an \\if block", "add \\endif")

    def _current(self, name: str) -> _Branch:
        if not self._open:
            raise UsageError(f"\\{name}: no matching \\if")
        return self._open[-1]
