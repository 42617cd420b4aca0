r"""The texts of `\?`: the list of commands in columns, and the help of one command."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import cast

from sqlshell.output.writer import Role
from sqlshell.runtime.streams import in_locale
from sqlshell.shell.commands.command import Command, as_typed
from sqlshell.shell.commands.examples import EXAMPLES

NARROWEST = 50
"""On a narrower screen, a summary is below its command."""

WIDEST_HEAD = 22
"""Width of the column with a command and its arguments in the list of commands."""

NARROW_HEAD = 16
"""The same where the list has several columns."""

COLUMN = 58
"""The least width of a column of the list, in characters."""

FULL = 85
"""A longer line of a docstring continues in the next one."""

GAP = 3
"""Blanks between two columns."""

OFTEN = (
    *("h", "d", "l", "c", "x", "format", "browse", "chart", "g", "watch", "i", "o", "e", "copy", "set", "jobs"),
    *("cancel", "demo", "q"),
)
r"""The commands that `\?` lists: what most sessions use, as many as 24 lines of 80 characters show."""

START = (
    ("\\demo", "create sample data (for a file: sqlshell FILE)"),
    ("select * from shop.products;", "statements end with ; on one line or several"),
    ("Tab, →, Ctrl-R", "complete, accept a suggestion, search history"),
    ("\\dt shop.*  \\d shop.orders", "list tables, describe one"),
    ("\\errverbose", "show all that is known about the last error"),
    ("F5", "open the last result: search, sort, filter"),
    ("\\x  \\format csv  \\o FILE", "records, another format, results to a file"),
    ("Ctrl-C", "cancel the statement, or clear the line"),
    ("\\i FILE  sqlshell -f FILE", "run a script; the exit code shows whether it failed"),
    ("\\set city Bern  :'city'", "set a variable, and use it as a string"),
    ("sqlshell PROFILE --read-only", "connect to a profile in config.toml, read-only"),
)
"""The first steps: what is typed, and what it does."""

WIDEST_STEP = 32
"""Width of the column with what is typed, and what stands before and behind it."""

_SENTENCE = re.compile(r"(?<=[\w)])[.;:](?:\s|$)")


_PARTS = re.compile(r"(?P<help>(?<![\w\\])\\[?\w][\w+]*)|(?P<dim>\[[^\]\n]*\]+)|^(?P<header>[A-Z][a-z ]+)$", re.M)


def painted(text: str, paint: Callable[[str, Role], str]) -> str:
    """The text with the colors of commands, of what they may be given, and of headings."""
    return _PARTS.sub(lambda match: paint(match[0], cast("Role", match.lastgroup)), text)


def first_screen(commands: Mapping[str, Command], width: int) -> str:
    """The commands that are used often, on lines of at most `width` characters."""
    first = "Statements end with ; and may span several lines."
    last = f"\\? all lists all {len(set(commands.values()))} commands; \\? COMMAND explains one."
    lines = [line for name in OFTEN for line in _entry(commands[name], width, WIDEST_HEAD)]
    return "\n".join([*wrapped(first, width), "", *lines, "", *wrapped(last, width)]) + "\n"


def overview(commands: Collection[Command], width: int, *, columns: int = 1) -> str:
    """All commands by group, in at most `columns` columns on lines of at most `width` characters."""
    first = "Statements end with ; and may span several lines. \\? COMMAND explains a command, \\h a statement."
    columns = max(1, min(columns, (width + GAP) // (COLUMN + GAP)))
    inner = (width + GAP) // columns - GAP
    blocks = [
        [title, *(line for item in group for line in _entry(item, inner, WIDEST_HEAD if columns == 1 else NARROW_HEAD))]
        for title, group in itertools.groupby(commands, lambda item: item.group)
    ]
    filled = _filled(blocks, columns)
    rows = itertools.zip_longest(*filled, fillvalue="")
    lines = [(" " * GAP).join(cell.ljust(inner) for cell in row).rstrip() for row in rows]
    return "\n".join([*wrapped(first, width), "", *lines]) + "\n"


def explanation(item: Command, width: int, *, keys: bool) -> str:
    """The help of a command and its examples; with `keys`, how to run them at the prompt."""
    also = ", ".join(map(as_typed, item.aliases))
    lines = [f"\\{item.name} {item.usage}".rstrip()]
    for text in [*_paragraphs(item.help), *([f"Also {also}"] if also else [])]:
        lines += wrapped(text, width, "  ") or [""]
    examples = EXAMPLES.get(item.name, ())
    if examples:
        how = " (Ctrl-X and the number put one at the prompt, Enter runs it)" if keys else ""
        lines += ["", *wrapped(f"Examples on the data of \\demo{how}:", width)]
        for number, text in enumerate(examples, 1):
            for line, each in enumerate(text.split("\n")):
                lines += wrapped(each, width, "     ", first=f"  {number}  " if not line else "     ")
    return "\n".join(lines) + "\n"


def first_steps(width: int) -> str:
    """What to type first, on lines of at most `width` characters."""
    lines = []
    for typed, does in START:
        head = f"  {in_locale(typed)}".ljust(WIDEST_STEP)
        if width < WIDEST_STEP + NARROWEST // 2:
            lines += [head.rstrip(), *wrapped(does, width, "    ")]
        else:
            lines += wrapped(does, width, " " * WIDEST_STEP, first=head)
    return (
        "\n".join(
            ["First steps:", *lines, *wrapped("\\tutorial is a tour, \\? lists the usual commands, \\q exits.", width)]
        )
        + "\n"
    )


def wrapped(text: str, width: int, indent: str = "", *, first: str | None = None) -> list[str]:
    """Wrap a text to lines of `width` characters without breaking words; `first` is before the first line."""
    return textwrap.wrap(
        in_locale(text),
        width,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _paragraphs(text: str) -> list[str]:
    """The lines of a text, those joined that only the width of the source has broken."""
    lines: list[str] = []
    before = ""
    for line in text.split("\n"):
        if line and len(before) > FULL:
            lines[-1] += f" {line}"
        else:
            lines.append(line)
        before = line
    return lines


def _entry(item: Command, width: int, widest: int) -> list[str]:
    """A command and its summary in two columns; arguments that do not fit are omitted."""
    head, more = f"\\{item.name}", in_locale("…")
    for word in item.usage.split():
        if len(f"{head} {word} {more}") > widest and not f"\\{item.name} {item.usage}".endswith(f"{head} {word}"):
            head += f" {more}"
            break
        head += f" {word}"
    if len(head) > widest + 1:
        # One space before the summary is enough.
        head = f"\\{item.name} {more}"
    summary = _SENTENCE.split(item.summary)[0]
    if width < NARROWEST:
        return [f"  {head}", *wrapped(summary, width, "    ")]
    lines = wrapped(summary, width, " " * (widest + 4))
    return [f"  {head.ljust(widest + 1)} {lines[0].lstrip()}", *lines[1:]]


def _filled(blocks: Sequence[Sequence[str]], columns: int) -> list[list[str]]:
    """The blocks in order in this many columns, of which the tallest is as short as possible."""
    height = max(map(len, blocks))
    while True:
        filled: list[list[str]] = [[]]
        for block in blocks:
            if filled[-1] and len(filled[-1]) + 1 + len(block) > height:
                filled.append([])
            filled[-1] += ["", *block] if filled[-1] else block
        if len(filled) <= columns:
            return filled
        height += 1
