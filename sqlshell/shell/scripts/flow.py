"""\\if, \\elif, \\else and \\endif: which of the branches that stand open is taken."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from sqlshell.errors import UsageError
from sqlshell.sql.script.scanner import Scanner
from sqlshell.sql.script.unfinished import Unfinished

NAMES = frozenset({"if", "elif", "else", "endif"})


class _Branch(Struct):
    taking: bool
    """Whether this part runs."""
    taken: bool
    """Whether one of the parts has run, or none may."""
    last: bool = False
    """Whether \\else has come."""
    mark: Unfinished | None = None
    """The unfinished statement as it was where this part began to be passed over."""


class Flow:
    """A condition is only asked for where its answer counts."""

    def __init__(self) -> None:
        self._open: list[_Branch] = []

    @property
    def depth(self) -> int:
        return len(self._open)

    @property
    def active(self) -> bool:
        """Whether what comes now runs."""
        return all(branch.taking for branch in self._open)

    def asks(self, name: str) -> bool:
        """Whether the condition of \\if or \\elif counts now; where it does not, nobody looks at it."""
        if name == "elif":
            return not self._open or not self._open[-1].taken
        return name != "if" or self.active

    def leaves(self, name: str, scanner: Scanner) -> None:
        """Before a command: text of a part that was passed over is no part of an unfinished statement."""
        if self._open and name != "if" and self._open[-1].mark is not None:
            scanner.back(self._open[-1].mark)
            self._open[-1].mark = None

    def enters(self, scanner: Scanner) -> None:
        """After a command: from here on text may be passed over."""
        if self._open and not self.active and self._open[-1].mark is None:
            self._open[-1].mark = scanner.unfinished.copied()

    def refuse(self, name: str) -> None:
        """A condition of \\if or \\elif that cannot even be read is false, so that what follows does not run."""
        if name == "if":
            self.begin(lambda: False)
        elif name == "elif" and self._open:
            self._open[-1].taking = False

    def enter(self, word: str, condition: Callable[[], bool]) -> None:
        """What one of NAMES does. Raises UsageError where it is not allowed, and what the condition raises."""
        match word:
            case "if":
                self.begin(condition)
            case "elif":
                self.other(condition)
            case "else":
                self.otherwise()
            case "endif":
                self.end()

    def begin(self, condition: Callable[[], bool]) -> None:
        """\\if. A condition that cannot be told counts as false, and its error is raised."""
        active = self.active
        branch = _Branch(False, not active)
        self._open.append(branch)
        if active:
            branch.taking = branch.taken = condition()

    def other(self, condition: Callable[[], bool]) -> None:
        """\\elif. Raises UsageError where none is allowed."""
        branch = self._current("elif")
        if branch.last:
            raise UsageError("\\elif: cannot occur after \\else")
        branch.taking = False
        if not branch.taken:
            branch.taking = branch.taken = condition()

    def otherwise(self) -> None:
        """\\else. Raises UsageError where none is allowed."""
        branch = self._current("else")
        if branch.last:
            raise UsageError("\\else: cannot occur after \\else")
        branch.taking, branch.taken, branch.last = not branch.taken, True, True

    def end(self) -> None:
        """\\endif. Raises UsageError where none is open."""
        self._current("endif")
        self._open.pop()

    def close(self, depth: int) -> None:
        """The end of a script that began at that depth. Raises UsageError where it left some open."""
        left = len(self._open) - depth
        del self._open[depth:]
        if left > 0:
            raise UsageError("the script ends inside an \\if block", "add \\endif")

    def _current(self, name: str) -> _Branch:
        if not self._open:
            raise UsageError(f"\\{name}: no matching \\if")
        return self._open[-1]
