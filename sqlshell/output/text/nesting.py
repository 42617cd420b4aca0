"""Formats nested values for tables on the screen: with spaces, and over several lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from sqlshell.interface.types import Kind, base
from sqlshell.output.text.cells import cells
from sqlshell.result import Column

LONGEST = 1 << 14
"""Characters of a value that is laid out: a longer one would not be read in a table."""
DEEPEST = 64
TALLEST = 40
"""Lines of a value that are shown in a table."""
_JOINT = re.compile(r'("(?:[^"\\]|\\.)*+"\s*+)(?::(?=\S))?|,(?=\S)')
"""A string with the colon after it, or a comma, without a space behind them."""
_TOKEN = re.compile(r'\s*+("(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++|\Z)')


class _Container(Struct):
    """A list or an object; each item has its name with a colon before it, "" in a list. `flat` is all of it."""

    begin: str
    items: list[tuple[str, _Container | str]]
    flat: str = ""


def is_nested(column: Column) -> bool:
    return column.kind is Kind.NESTED or base(column.exact_type) in {"JSON", "VARIANT"}


def spaced(value: str) -> str:
    """A nested value with spaces after colons and commas, unless it is very long."""
    if not value.startswith(("{", "[")) or len(value) > LONGEST:
        return value
    return _JOINT.sub(lambda match: match[0] if match[0][-1] not in ":," else f"{match[0]} ", value)


def over_lines(value: str, width: int) -> str:
    """JSON, or a value of spaced(), in lines of at most `width` cells, as far as its strings allow; the same object if
    it fits or is neither. Only whitespace between its tokens is changed.
    """
    if not value.startswith(("{", "[")) or len(value) * 2 <= width or len(value) > LONGEST:
        return value
    if all(cells(line) <= width for line in value.split("\n")):
        return value
    try:
        return "\n".join(_lines(_parsed(value), width, width))
    except ValueError:
        return value


def _parsed(value: str) -> _Container | str:
    """The value as a tree whose leaves are texts of the value. Raises ValueError if it is not like JSON."""
    top = _Container("", [])
    open_ = [top]
    name, at = "", 0
    while match := _TOKEN.match(value, at):
        token, at = match[1], match.end()
        inner = open_[-1]
        if token in {"{", "["}:
            container = _Container(token, [])
            inner.items.append((name, container))
            open_.append(container)
            name = ""
            if len(open_) > DEEPEST:
                raise ValueError
        elif token in {"}", "]"}:
            done = open_.pop()
            if done.begin + token not in {"{}", "[]"}:
                raise ValueError
            done.flat = done.begin + ", ".join(each + _flat(item) for each, item in done.items) + token
        elif token == ":":
            before, last = inner.items.pop() if inner.items and not name else (name, "")
            if before or not last or not isinstance(last, str):
                raise ValueError
            name = f"{last}: "
        elif token not in {",", ""}:
            inner.items.append((name, token))
            name = ""
        if at == len(value):
            break
    if len(open_) > 1 or len(top.items) != 1 or at < len(value):
        raise ValueError
    return top.items[0][1]


def _flat(value: _Container | str) -> str:
    return value if isinstance(value, str) else value.flat


def _beside(value: _Container | str, room: int) -> list[str]:
    """The lines of a container of scalars beside its name; none if they have no room there."""
    if isinstance(value, str) or any(isinstance(item, _Container) for _, item in value.items):
        return []
    lines = [*_lines(value, room, room)]
    return lines if max(map(cells, lines)) <= room else []


def _lines(value: _Container | str, width: int, first: int) -> Iterator[str]:
    """The lines of a value; the first one may have `first` cells.

    Short items of a list share a line, and every member of an object begins one.
    """
    if isinstance(value, str) or not value.items or cells(value.flat) <= first:
        yield _flat(value)
        return
    line = value.begin
    for number, (name, item) in enumerate(value.items):
        after = value.flat[-1] if number == len(value.items) - 1 else ","
        room = width - 1 - len(after)
        lines = [*_lines(item, room - 2 if name else room, room - cells(name))]
        if name and (len(lines) > 1 or (not isinstance(item, str) and cells(name) + cells(lines[0]) > room)):
            if beside := _beside(item, room - cells(name)):
                lines = [name + beside[0], *(" " * cells(name) + each for each in beside[1:])]
            else:
                lines = [name.rstrip(), *(f"  {each}" for each in lines)]
        else:
            lines[0] = name + lines[0]
        shares = not name and isinstance(item, str) and cells(line) + 1 + cells(lines[0]) + len(after) <= width
        if number and not shares:
            yield line
            line = " "
        elif number:
            line += " "
        lines = [line + lines[0], *(f" {each}" for each in lines[1:])]
        yield from lines[:-1]
        line = lines[-1] + after
    yield line
