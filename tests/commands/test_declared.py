"""Every command as it is declared: a change of what it accepts, or of what it changes, is one on purpose."""

from __future__ import annotations

from sqlshell.shell.commands import BUILTIN
from sqlshell.shell.commands.command import Command
from tests.goldens import agree


def declared(item: Command) -> str:
    """What a command accepts, its other names, and what it sends, changes and takes from a service."""
    flags = [
        *(["sends"] if item.sends else []),
        *([f"changes {item.changes}"] if item.changes else []),
        *(["verbatim"] if item.verbatim else []),
        *([f"data {' '.join(sorted(item.data))}"] if item.data else []),
    ]
    names = f" | {' '.join(item.aliases)}" if item.aliases else ""
    return f"  {item.name} {item.usage}".rstrip() + names + (f" ; {', '.join(flags)}" if flags else "")


def test_what_each_command_declares() -> None:
    lines: list[str] = []
    groups: list[str] = []
    for item in BUILTIN:
        if item.group not in groups:
            groups.append(item.group)
            lines.append(item.group)
        lines.append(declared(item))
    agree("declared/commands.txt", "".join(f"{line}\n" for line in lines))


def test_each_command_is_explained() -> None:
    assert [item.name for item in BUILTIN if not item.summary or "\n" in item.summary] == []
