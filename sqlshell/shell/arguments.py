"""What may stand as an argument of a backslash command."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

from sqlshell.client.resources import TYPES
from sqlshell.errors import ShellError
from sqlshell.output.formats import FORMATS
from sqlshell.shell.port import Port
from sqlshell.shell.session import Options
from sqlshell.sql.catalog import Names
from sqlshell.sql.suggest import Suggestion

FILES = frozenset({"i", "o", "e", "g", "gx", "attach", "include", "out"})
SHOWN = 200
"""Suggestions of one list: nobody reads more."""

STATEMENTS = frozenset({"fetch", "wait", "cancel"})


def arguments(port: Port, name: str, typed: str) -> list[Suggestion]:
    """Suggestions, the best first."""
    if name in FILES:
        return paths(typed)
    found = list(_known(port, name))
    details = dict(found)
    return [Suggestion(word, name, details[word]) for _, word in Names(details).matching(typed)]


def _known(port: Port, name: str) -> Iterable[tuple[str, str]]:
    if name in STATEMENTS:
        return [(entry.id, f"{entry.state} {entry.sql[:40]}") for entry in port.journal.recent(50)]
    match name:
        case "?" | "help":
            return [(item.name, item.summary) for item in dict.fromkeys(port.commands.values())]
        case "context":
            return [*((word, "") for word in ("set", "reset")), *port.session.context.parts()]
        case "format":
            return [(item.name, item.summary) for item in FORMATS]
        case "theme":
            try:
                return [(theme, "") for theme in port.hooks.themes()]
            except ShellError:
                return []
        case "pset":
            return [(field.name, str(getattr(port.session.options, field.name))) for field in fields(Options)]
        case "download":
            return [(kind, "") for kind in TYPES]
    usage = port.commands[name].usage if name in port.commands else ""
    words = usage.strip("[]").split("|") if "|" in usage and " " not in usage else []
    return [(word, "") for word in words]


def paths(typed: str) -> list[Suggestion]:
    """Files and folders that begin so."""
    folder, _, begun = typed.rpartition("/")
    base = Path(f"{folder}/" if folder or typed.startswith("/") else ".").expanduser()
    found = []
    try:
        with os.scandir(base) as entries:
            for entry in entries:
                if entry.name.startswith(begun) and (begun.startswith(".") or not entry.name.startswith(".")):
                    inside = entry.is_dir()
                    name = f"{entry.name}/" if inside else entry.name
                    lead = f"{folder}/" if folder or typed.startswith("/") else ""
                    found.append(Suggestion(f"{lead}{name}", "folder" if inside else "file"))
                if len(found) >= SHOWN:
                    break
    except OSError:
        return []
    return sorted(found, key=lambda item: item.text)
