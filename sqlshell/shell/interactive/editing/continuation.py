"""The scanner's state at each line of the text that is being edited, kept from one key to the next."""

from __future__ import annotations

import copy

from sqlshell.sql.script.scanner import Scanner, State

STEP = 16
"""Number of lines between two stored scanners."""


class Continuations:
    """The scanner's state before each line; after a change, scanning resumes shortly before it."""

    def __init__(self) -> None:
        self._text = ""
        self._lines: list[str] = [""]
        self._states: list[State] = [State.READY]
        self._marks: list[tuple[int, Scanner]] = [(0, Scanner())]

    def before(self, text: str, line: int) -> State:
        """The state at the start of the line with that number (from 0)."""
        if text != self._text:
            self._scan(text)
        return self._states[min(line, len(self._states) - 1)]

    def _scan(self, text: str) -> None:
        lines = text.split("\n")
        same = 0
        for old, new in zip(self._lines, lines, strict=False):
            if old != new:
                break
            same += 1
        self._marks = [mark for mark in self._marks if mark[0] <= same] or [(0, Scanner())]
        since, kept = self._marks[-1]
        scanner = copy.deepcopy(kept)
        states = self._states[: since + 1]
        for number, line in enumerate(lines[since:], since + 1):
            for _ in scanner.items(line + "\n"):
                scanner.forget()
            scanner.forget()
            states.append(scanner.state)
            if number % STEP == 0:
                self._marks.append((number, copy.deepcopy(scanner)))
        self._text, self._lines, self._states = text, lines, states
