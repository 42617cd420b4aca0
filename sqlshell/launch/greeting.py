"""The three lines with which the prompt starts: version, target and how it was found, a hint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlshell.config.values import state_folder
from sqlshell.launch.destination import Destination, LocalService
from sqlshell.version import __version__

HINTS = (
    "\\h select shows the syntax of SELECT.",
    "Ctrl-R searches the history.",
    "→ accepts the suggestion.",
    "\\browse opens the last result.",
    "\\local queries the last result.",
    "\\watch 5 repeats a statement.",
    "\\theme previews the themes.",
    "\\d NAME describes a table.",
    "F4 switches to vi keys.",
    "End with ;& to run in the background.",
    "End with \\gx to see records.",
    "End with \\g rows.csv to write a file.",
)
"""One of them is shown at each start. With what stands before it, it fits on a line of 80 characters."""


def greeting(destination: Destination, given: str, number: int) -> Sequence[str]:
    """`given` names what selected the target, such as SQLSHELL_URL; "" if nothing did. `number` selects the hint."""
    hint = HINTS[number % len(HINTS)]
    if destination.service == LocalService():
        profile = destination.settings.profile
        remedy = f"profile {profile} has no url" if profile else "to keep data: sqlshell FILE.duckdb"
        return (
            f"sqlshell {__version__}",
            f"target: DuckDB in memory, lost on exit ({remedy})",
            f"Try \\demo (sample data), \\tutorial or \\?. {hint}",
        )
    return (
        f"sqlshell {__version__}",
        f"target: {destination.label}" + (f" ({given})" if given else ""),
        f"Type \\? for help, \\q to quit. {hint}",
    )


def greeting_of(
    destination: Destination, target: str, flags: Mapping[str, Any], environ: Mapping[str, str]
) -> Sequence[str]:
    """The greeting of a shell that was started with this command line."""
    history = state_folder(environ) / "history"
    # The hint changes as the shell is used.
    written = history.stat().st_size if history.is_file() else 0
    return greeting(destination, selected_by(destination, target, flags, environ), written)


def selected_by(destination: Destination, target: str, flags: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """The setting that selected the target, for the greeting; "" if none did, or if the name of the target shows it."""
    settings = destination.settings
    if target:
        return ""
    if settings.source("url") == "environment":
        return "SQLSHELL_URL"
    if not settings.profile:
        return ""
    if flags.get("profile"):
        return "--profile"
    return "SQLSHELL_PROFILE" if environ.get("SQLSHELL_PROFILE") else f"profile {settings.profile}"
