"""The plan of EXPLAIN as an indented tree with a line for each operator, made of the boxes that DuckDB draws."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from sqlshell.output.text.cells import printable
from sqlshell.output.text.lines import wrapped
from sqlshell.output.writer import Writer, WriterOptions, encode
from sqlshell.result import Batch

_BOX: Final = re.compile(r"╭─ ([^╭╮│─┴┸┚]+) [─┴┸┚┖]+╮|╭─+╮")
_FIELD: Final = re.compile(r"[A-Z][A-Za-z ]*:(?: |$)")
_ROWS: Final = re.compile(r"~?[\d,]+ rows?\b")
_INTERNAL: Final = "__internal_"
"""In the names of functions with which DuckDB prepares values for its own operators."""
STEP: Final = 2
"""The cells by which an operator is indented below the one that it feeds."""


class Operator(Struct, frozen=True):
    """One operator: its name, what it does, and how many rows it makes; `depth` 0 is the one that makes the result."""

    title: str
    details: list[str]
    rows: str
    depth: int


class _Box(Struct):
    """A box in a drawing: its lines and columns, which its frame takes, and the box that is above it."""

    title: str
    top: int
    left: int
    right: int
    bottom: int = 0
    above: _Box | None = None
    below: list[_Box] = []


class PlanWriter(Writer):
    """Writes the plan of EXPLAIN for a screen: the last column is its text, in one row or in many. Text that is not
    drawn in boxes is written as it is."""

    def __init__(self, options: WriterOptions) -> None:
        self._paint = options.paint or (lambda text, _: text)
        self._width = options.screen.width if options.screen is not None else 0

    def write(self, batch: Batch) -> Iterable[bytes]:
        for row in batch.rows:
            text = printable((row[-1] or "").strip("\n"), "\n")
            tree = operators(text)
            yield encode("".join(map(self._line, tree)) if tree else f"{text}\n")

    def _line(self, operator: Operator) -> str:
        """An operator, how many rows it makes, and what it does, which goes on in further lines."""
        indent, margin = " " * STEP * operator.depth, " " * STEP * (operator.depth + 2)
        head = "  ".join(filter(None, [operator.title, operator.rows]))
        plain = "  ".join(filter(None, [head, " · ".join(operator.details)]))
        first, *rest = wrapped(plain, max(len(head), 20, self._width - len(margin))).split("\n")
        painted = [self._paint(operator.title, "header")]
        if operator.rows:
            painted.append(self._paint(operator.rows, "dim"))
        lines = [indent + "  ".join(painted) + first[len(head) :], *(margin + line for line in rest)]
        return "\n".join(lines) + "\n"


def operators(text: str) -> list[Operator]:
    """The operators of a drawn plan, each before those that feed it; empty if the text is no such drawing."""
    lines = text.split("\n")
    boxes = list(_boxes(lines))
    if len(boxes) != text.count("╭"):
        return []
    for box in boxes:
        box.above = _above(box, boxes, lines)
        if box.above is not None:
            box.above.below.append(box)
    return [operator for box in boxes if box.above is None for operator in _tree(box, lines, 0)]


def _boxes(lines: list[str]) -> Iterator[_Box]:
    for number, line in enumerate(lines):
        for match in _BOX.finditer(line):
            box = _Box(match[1] or "", number, match.start(), match.end() - 1, below=[])
            below = (at for at in range(number + 1, len(lines)) if lines[at][box.left : box.left + 1] == "╰")
            box.bottom = next(below, number)
            yield box


def _above(box: _Box, boxes: list[_Box], lines: list[str]) -> _Box | None:
    """The box that this one feeds: the one whose frame ends just above, or from whose frame a line leads here."""
    line = lines[box.top - 1] if box.top else ""
    if line[box.left : box.left + 1] == "╰":
        return next(
            (one for one in boxes if (one.bottom, one.left) == (box.top - 1, box.left) and _leads_on(one, lines)), None
        )
    column = line.rfind("├", 0, box.right + 1)
    return next((one for one in boxes if one.bottom == box.top - 2 and one.left < column < one.right), None)


def _leads_on(box: _Box, lines: list[str]) -> bool:
    return lines[box.bottom][box.left + 1 : box.right].strip("─") != ""


def _tree(box: _Box, lines: list[str], depth: int) -> Iterator[Operator]:
    details: list[str] = []
    rows = ""
    for line in lines[box.top + 1 : box.bottom]:
        words = line[box.left + 1 : box.right].removeprefix(" ").rstrip()
        if _ROWS.match(words):
            rows = " ".join(words.split())
        elif _FIELD.match(words) or not details:
            details.append(words.strip())
        else:
            details[-1] += f" {words.strip()}"
    if not (box.title == "Projection" and any(_INTERNAL in detail for detail in details)):
        yield Operator(box.title, details, rows, depth)
        depth += 1
    for one in box.below:
        yield from _tree(one, lines, depth)
