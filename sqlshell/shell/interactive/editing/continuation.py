"""The scanner's state at each line of the text that is being edited, kept from one key to the next."""

from __future__ import annotations

import copy

from sqlshell.sql.script.scanner import Scanner, State

STEP = 16
"""Number of lines between two stored scanners."""

Mark = tuple[int, int, Scanner]
"""The number of a line, the characters before it, and the scanner there."""


class Continuations:
    """The scanner's state before each line. After a change, scanning resumes shortly before it, and ends where a
    statement begins at the same place as before.
    """

    def __init__(self) -> None:
        self._text = ""
        self._states: list[State] = [State.READY, State.READY]
        self._marks: list[Mark] = [(0, 0, Scanner())]
        self._since_parenthesis = 0

    def before(self, text: str, line: int) -> State:
        """The state at the start of the line with that number (from 0)."""
        if text != self._text:
            self._scan(text)
        return self._states[min(line, len(self._states) - 1)]

    def parenthesis(self, text: str) -> int | None:
        """The place of the parenthesis in which the text ends; None if it ends in none, or in a string or comment."""
        ends = self.before(text, text.count("\n") + 1)
        return len(text) + 1 - self._since_parenthesis if ends is State.PARENTHESIS else None

    def _scan(self, text: str) -> None:
        former, states, marks = self._text, self._states, self._marks
        same = _same_start(former, text)
        changed = text.count("\n", 0, same)
        rest = _same_end(former, text, min(len(former), len(text)) - same)
        # Lines from this one on are whole in the text that is the same at the end.
        ended = text.count("\n", 0, len(text) - rest) + 1
        further, longer = text.count("\n") - former.count("\n"), len(text) - len(former)
        self._marks = [mark for mark in marks if mark[0] <= changed]
        since, at, kept = self._marks[-1]
        scanner = copy.deepcopy(kept)
        self._states = states[: since + 1]
        for number, line in enumerate(text[at:].split("\n"), since + 1):
            for _ in scanner.items(line + "\n"):
                scanner.discard_text()
            scanner.discard_text()
            state = scanner.state
            self._states.append(state)
            at += len(line) + 1
            if number >= ended and state is State.READY and states[number - further] is State.READY:
                self._states += states[number - further + 1 :]
                self._marks += [
                    (mark[0] + further, mark[1] + longer, mark[2]) for mark in marks if mark[0] + further > number
                ]
                break
            if number % STEP == 0:
                self._marks.append((number, at, copy.deepcopy(scanner)))
        else:
            self._since_parenthesis = scanner.since_parenthesis
        self._text = text


def _same_start(one: str, other: str) -> int:
    """How many characters two texts have in common at their start."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def _same_end(one: str, other: str, most: int) -> int:
    """How many characters two texts have in common at their end, at most so many."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one.endswith(other[len(other) - middle : len(other) - low], 0, len(one) - low):
            low = middle
        else:
            high = middle - 1
    return low
