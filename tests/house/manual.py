"""README's table and docs/commands.md, made from the registry: `python -m tests.house.manual` writes them."""

from __future__ import annotations

from pathlib import Path

from sqlshell.shell.commands import GROUPS, Command

ROOT = Path(__file__).parents[2]
README, MANUAL = ROOT / "README.md", ROOT / "docs" / "commands.md"
BEGIN, END = "<!-- commands -->\n", "<!-- /commands -->\n"


def heading(item: Command) -> str:
    return f"\\{item.name} {item.usage}".rstrip()


def table() -> str:
    """A row a group: the commands, and what they are for."""
    rows = ["| commands | for |", "|---|---|"]
    for title, commands in GROUPS:
        names = " ".join("`\\" + item.name + "`" for item in commands)
        rows.append(f"| {names} | {title} |")
    return "\n".join(rows) + "\n"


def readme(text: str) -> str:
    """README with its table as it should be."""
    first, rest = text.split(BEGIN)
    return first + BEGIN + "\n" + table() + "\n" + END + rest.split(END)[1]


def manual() -> str:
    """Every command with all of its help."""
    parts = [
        "# Commands",
        "Every command works at the prompt, in scripts, with `-c` and on stdin. `\\? COMMAND` shows the same text.",
        "`FILE` is required, `[FILE]` may be left out, `on|off` is one of those words, `...` is any number of them. "
        "`FILE...` may be `|command`. `PATTERN` is a name or a pattern as in psql: `*` and `?` stand for any "
        "characters and for one, `schema.name` and `database.schema.name` look elsewhere, and what is in "
        '`"double quotes"` is meant exactly, also where SQL would take the name in another case. '
        "Other arguments are read by psql's rules: 'single quotes' with C's escapes, `` `command` ``, and `:x`, "
        '`:\'x\'`, `:"x"`, `:{?x}` for variables. "Double quotes" hold blanks together; they are part of a `VALUE` '
        "that may stand several times and of the text of `\\prompt`, as in psql, and of no other argument.",
    ]
    for title, commands in GROUPS:
        parts.append(f"## {title}")
        for item in commands:
            also = ", ".join("`" + ("" if name[0] in ".!" else "\\") + name + "`" for name in item.aliases)
            parts.append(f"### `{heading(item)}`")
            parts.append(item.help + (f"\n\nAlso {also}." if also else ""))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    README.write_text(readme(README.read_text(encoding="utf-8")), encoding="utf-8")
    MANUAL.write_text(manual(), encoding="utf-8")


if __name__ == "__main__":
    main()
