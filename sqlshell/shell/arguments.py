"""What may stand as an argument of a backslash command."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from sqlshell.client.resources import TYPES
from sqlshell.errors import ShellError
from sqlshell.output.formats import FORMATS
from sqlshell.shell.port import Port
from sqlshell.shell.queries import Queries
from sqlshell.shell.session import Options
from sqlshell.sql.catalog import Names
from sqlshell.sql.suggest import Suggestion

FILES = frozenset(
    {"i", "ir", "o", "once", "tee", "log", "e", "g", "gx", "w", "cd", "attach", "include", "out"}
    | {"include_relative", "edit", "write", "transcript", "replay"}
)
RELATIONS = frozenset(name + plus for name in ("d", "dt", "dv", "dm", "dn", "l") for plus in ("", "+"))
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
    if name in RELATIONS:
        return [(known, "") for known in sorted(set(port.hooks.names()))]
    match name:
        case "?" | "help":
            return [(item.name, item.summary) for item in dict.fromkeys(port.commands.values())]
        case "context":
            return [*((word, "") for word in ("set", "reset")), *port.session.context.parts()]
        case "set" | "unset":
            return sorted(port.variables.items())
        case "n" | "n-" if port.hooks.queries is not None:
            try:
                return [(query, text[:60]) for query, text in Queries(port.hooks.queries).all().items()]
            except ShellError:
                return []
        case "chart":
            return [(kind, "") for kind in ("bar", "line", "scatter", "hist", "heat")]
        case "format" | "clip":
            return [(item.name, item.summary) for item in FORMATS]
        case "theme":
            try:
                return [(theme, "") for theme in port.hooks.themes()]
            except ShellError:
                return []
        case "pset":
            return [(option, str(getattr(port.session.options, option))) for option in Options.__struct_fields__]
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
