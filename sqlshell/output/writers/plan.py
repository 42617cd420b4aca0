"""The plan of EXPLAIN as an indented tree, made of the boxes that DuckDB draws."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from sqlshell.output.text.cells import printable
from sqlshell.output.text.lines import wrapped
from sqlshell.output.writer import Look, Writer, WriterOptions, encode
from sqlshell.result import Batch

_BOX: Final = re.compile(r"╭─ ([^╭╮│─┴┸┚]+) [─┴┸┚┖]+╮|╭─+╮")
_FIELD: Final = re.compile(r"[A-Z][A-Za-z ]*:(?: |$)")
_ROWS: Final = re.compile(r"~?[\d,]+ rows?\b")
_PLACE: Final = re.compile(r"#(\d{1,6})\b")
"""A column of the operator below, by its number."""
_PREPARED: Final = re.compile(r"__internal_\w+\(([^()]*)\)")
"""A call with which DuckDB prepares a value for its own operators."""
_UNTOLD: Final = "Type: Sequential Scan"
"""What the name of an operator says too."""
STEP: Final = 4
"""The cells by which an operator is indented below the one that it feeds."""
MOST: Final = 300
"""Operators of a plan that is drawn as a tree."""
LONGEST: Final = 1 << 16
"""Characters of such a plan."""
LONGEST_NAME: Final = 60
"""Characters of an expression that stands for the number of a column: longer ones would repeat in each operator."""


class Operator(Struct):
    """An operator: its name, how many rows it makes, what it does as `Key: value`, and those that feed it.

    `prepares` is whether it only prepares values for another operator.
    """

    title: str
    rows: str
    details: list[str]
    prepares: bool
    below: list[Operator]


class _Box(Struct):
    """A box in a drawing: its lines and columns, which its frame takes."""

    top: int
    left: int
    right: int
    bottom: int
    operator: Operator


class PlanWriter(Writer):
    """Writes the plan of EXPLAIN for a screen: the last column is its text, in one row or in many. Text that is not
    drawn in boxes is written as it is."""

    def __init__(self, options: WriterOptions) -> None:
        self._paint = options.paint or (lambda text, _: text)
        self._width = options.screen.width if options.screen is not None else 0

    @property
    def look(self) -> Look:
        return Look(plan=True)

    def write(self, batch: Batch) -> Iterable[bytes]:
        for row in batch.rows:
            text = printable((row[-1] or "").strip("\n"), "\n")
            trees = operators(text)
            lines = (line for tree in trees for line in self._lines(tree, 0))
            yield encode("".join(f"{line}\n" for line in lines) if trees else f"{text}\n")

    def _lines(self, operator: Operator, depth: int) -> Iterator[str]:
        if not operator.prepares:
            indent = " " * STEP * depth
            tables = [detail.partition(": ")[2] for detail in operator.details if detail.startswith("Table: ")]
            title = " on ".join([operator.title, *tables])
            arrow = f"{indent[:-3]}-> " if depth else ""
            rows = f"  {self._paint(operator.rows, 'dim')}" if operator.rows else ""
            yield f"{arrow}{self._paint(title, 'header')}{rows}"
            told = [detail for detail in operator.details if not detail.startswith(("Table: ", _UNTOLD))]
            for detail in sorted(told, key=lambda each: each.startswith("Projections: ")):
                plain = detail.removeprefix(f"{operator.title}: ")
                for number, line in enumerate(wrapped(plain, max(20, self._width - len(indent) - STEP)).split("\n")):
                    yield f"{indent}{'  ' if number else ''}  {line}"
            depth += 1
        for one in operator.below:
            yield from self._lines(one, depth)


def operators(text: str) -> list[Operator]:
    """The operators of a drawn plan that make the results; empty if the text is no such drawing."""
    number, lines = text.count("╭"), text.split("\n")
    boxes = list(_boxes(lines)) if number <= MOST and len(text) <= LONGEST else []
    if len(boxes) != number:
        return []
    tops: list[Operator] = []
    for box in boxes:
        above = _above(box, boxes, lines)
        (above.operator.below if above is not None else tops).append(box.operator)
    for top in tops:
        _explain(top)
    return tops


def _explain(operator: Operator) -> list[str]:
    """Put the columns of the operator below in place of their numbers; returns the columns of this one, as far as they
    are known."""
    inputs = [_explain(one) for one in operator.below]
    known = dict(enumerate(inputs[0])) if len(inputs) == 1 else {}

    def named(match: re.Match[str]) -> str:
        name = known.get(int(match[1]), "")
        return name if 0 < len(name) <= LONGEST_NAME else match[0]

    operator.details = [_PLACE.sub(named, _PREPARED.sub(r"\1", detail)) for detail in operator.details]
    listed = [detail.partition(": ") for detail in operator.details]
    made = [value for key, _, value in listed if key in {"Groups", "Projections", "Aggregates"}]
    return _expressions(", ".join(made)) if made else [*known.values()]


def _expressions(text: str) -> list[str]:
    """The expressions of a list: commas within brackets separate none."""
    found, depth = [""], 0
    for part in re.split(r"([(),])", text):
        depth += (part == "(") - (part == ")")
        if part == "," and not depth:
            found.append("")
        else:
            found[-1] += part
    return [*map(str.strip, found)]


def _boxes(lines: list[str]) -> Iterator[_Box]:
    for number, line in enumerate(lines):
        for match in _BOX.finditer(line):
            left, right = match.start(), match.end() - 1
            below = (at for at in range(number + 1, len(lines)) if lines[at][left : left + 1] == "╰")
            bottom = next(below, number)
            inside = [line[left + 1 : right].removeprefix(" ").rstrip() for line in lines[number + 1 : bottom]]
            yield _Box(number, left, right, bottom, _operator(match[1] or "", inside))


def _operator(title: str, lines: list[str]) -> Operator:
    """An operator of the words in its box."""
    details: list[str] = []
    rows = ""
    for words in lines:
        if _ROWS.match(words):
            rows = " ".join(words.split())
        elif _FIELD.match(words) or not details:
            details.append(words.strip())
        else:
            details[-1] += f" {words.strip()}"
    prepares = title == "Projection" and any(map(_PREPARED.search, details))
    return Operator(title, rows, details, prepares, [])


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
