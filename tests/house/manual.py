"""Generates the reference tables of docs/ from the code: `python -m tests.house.manual` writes them.

commands.md is generated as a whole; engines.md, settings.md and wire.md have tables between markers.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

from sqlshell.config import settings as config
from sqlshell.config.settings import SETTINGS, Setting
from sqlshell.interface import sqlstate
from sqlshell.launch.serve import SERVE
from sqlshell.service.engines import duckdb, postgresql, spark
from sqlshell.service.engines.engine import Capabilities
from sqlshell.shell.commands import BUILTIN, Command

DOCS = Path(__file__).parents[2] / "docs"
MANUAL = DOCS / "commands.md"


RULES = (
    "In the headings, `FILE` is a required argument and `[FILE]` an optional one, `on|off` means one of the two "
    "words, and `...` means that an argument can be repeated. `FILE...` may also be `|command`. "
    'An empty file name is an error; for `\\o`, `\\g` and `\\tee`, `""` means no file.',
    "`PATTERN` is a name or a pattern as in psql: `*` stands for any characters, `?` for one character. "
    "`schema.name` and `database.schema.name` select another schema or database. A pattern ignores case, except "
    'for parts in `"double quotes"`, which match exactly.',
    "Arguments follow psql's rules: 'single quotes' with the escapes of C, `` `command` `` for the output of a "
    'command, and `:x`, `:\'x\'`, `:"x"`, `:{?x}` for variables. "Double quotes" group words. They are kept as a '
    "part of the argument by `\\set`, `\\echo`, `\\qecho`, `\\warn`, `\\prompt` and `\\n+`, and removed by all "
    "other commands.",
)
"""What the headings and arguments of all commands have in common."""


def _filled(text: str) -> str:
    """A paragraph in lines as long as those of the other pages."""
    return textwrap.fill(text, 128, break_long_words=False, break_on_hyphens=False)


def _prose(text: str) -> str:
    """A text in which Markdown keeps the backslashes that stand before punctuation."""
    return re.sub(r"\\(?=[?!.;])", r"\\\\", text)


def heading(item: Command) -> str:
    return f"\\{item.name} {item.usage}".rstrip()


def table() -> str:
    """A row a group: the commands, and what they are for."""
    rows = ["| commands | for |", "|---|---|"]
    for title, commands in groupby(BUILTIN, lambda item: item.group):
        names = " ".join("`\\" + item.name + "`" for item in commands)
        rows.append(f"| {names} | {title} |")
    return "\n".join(rows)


def manual() -> str:
    """Every command with all of its help."""
    parts = [
        "# Commands",
        "For those who look up a command. Each works at the prompt, in scripts, with `-c` and on stdin. "
        "`\\? COMMAND` shows the same text, and examples.",
        table(),
        *map(_filled, RULES),
    ]
    for title, commands in groupby(BUILTIN, lambda item: item.group):
        parts.append(f"## {title}")
        for item in commands:
            also = ", ".join("`" + ("" if name[0] in ".!" else "\\") + name + "`" for name in item.aliases)
            parts.append(f"### `{heading(item)}`")
            parts.append(_prose(item.help) + (f"\n\nAlso {also}." if also else ""))
    return "\n\n".join(parts) + "\n"


def cell(text: str) -> str:
    """A text as a cell of a Markdown table."""
    return re.sub(r"([|<])", r"\\\1", text)


def code(text: str) -> str:
    return f"`{text}`"


def parts_of_help(text: str) -> tuple[str, str]:
    """What a help text says, and the default that it names ("" if it names none)."""
    said, _, default = text.partition("[default: ")
    return said.strip(), default.rstrip("]")


def default_of(setting: Setting) -> str:
    _, named = parts_of_help(setting.help)
    if named:
        return named
    shown = setting.kind.shown
    if setting.at_prompt is not None:
        return f"{shown(setting.at_prompt)} at the prompt, {shown(setting.default)} in scripts"
    return shown(setting.default) if isinstance(setting.default, bool) or setting.default else ""


def _key(setting: Setting) -> str:
    """The key, from which the environment variable follows; the variable where it is alone, or that there is none."""
    if not setting.profile:
        return code(setting.variable) if setting.environment else ""
    return code(setting.name) + ("" if setting.environment else " (no variable)")


def settings_table() -> str:
    """A table for each group of settings: key, flag, default and meaning."""
    parts = []
    for group in config.GROUPS:
        rows = [f"### {group}", "", "| key | flag | default | what it sets |", "|---|---|---|---|"]
        for setting in SETTINGS:
            if setting.group == group:
                said, _ = parts_of_help(setting.help)
                words = setting.kind.words if setting.kind is not config.SWITCH and ":" not in said else ()
                cells = (
                    _key(setting),
                    ", ".join(map(code, setting.flags)),
                    default_of(setting),
                    said + (f" ({', '.join(words)})" if words else ""),
                )
                rows.append("| " + " | ".join(map(cell, cells)) + " |")
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def serve_table() -> str:
    rows = ["| flag | default | what it sets |", "|---|---|---|"]
    for option in SERVE:
        flag, _, given, text = option
        said, named = parts_of_help(text)
        default = named or (("on" if given else "off") if isinstance(given, bool) else given)
        plain = f"{default:g}" if isinstance(default, int | float) else str(default or "")
        rows.append("| " + " | ".join(map(cell, (code(flag), plain, said))) + " |")
    return "\n".join(rows)


def sqlstates_table() -> str:
    rows = ["| class | meaning | codes |", "|---|---|---|"]
    for first, meaning in sqlstate.CLASSES.items():
        codes = "; ".join(f"{code(state)} {said}" for state, said in sqlstate.MEANINGS.items() if state[:2] == first)
        rows.append(f"| {code(first)} | {meaning} | {codes} |")
    return "\n".join(rows)


def capabilities_table() -> str:
    """A row for each capability, with what the class says about it, and which engines declare it."""
    meanings = dict(re.findall(r"`(\w+)`: (.+?)\.(?= `|$)", " ".join((Capabilities.__doc__ or "").split())))
    engines = {"DuckDB": duckdb.CAPABILITIES, "PostgreSQL": postgresql.CAPABILITIES, "Spark": spark.CAPABILITIES}
    rows = [f"| capability | what it means | {' | '.join(engines)} |", "|---" * (2 + len(engines)) + "|"]
    for name in Capabilities.__struct_fields__:
        has = ("yes" if getattr(declared, name) else "no" for declared in engines.values())
        rows.append("| " + " | ".join((code(name.replace("_", " ")), cell(meanings[name]), *has)) + " |")
    return "\n".join(rows)


TABLES: Mapping[str, Mapping[str, str]] = {
    "engines.md": {"capabilities": capabilities_table()},
    "settings.md": {"settings": settings_table(), "serve": serve_table()},
    "wire.md": {"sqlstates": sqlstates_table()},
}
"""The generated parts of each page, by the names of their markers."""


def page(name: str) -> str:
    """A page of docs/ with its tables as they should be."""
    text = (DOCS / name).read_text(encoding="utf-8")
    for marker, made in TABLES[name].items():
        first, rest = text.split(f"<!-- {marker} -->\n")
        text = f"{first}<!-- {marker} -->\n{made}\n<!-- /{marker} -->\n" + rest.split(f"<!-- /{marker} -->\n")[1]
    return text


def main() -> None:
    MANUAL.write_text(manual(), encoding="utf-8")
    for name in TABLES:
        (DOCS / name).write_text(page(name), encoding="utf-8")


if __name__ == "__main__":
    main()
