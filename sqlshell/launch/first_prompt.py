"""Draws the greeting and the prompt before the modules that run statements are imported, so that the user can type.

The prompt that reads keys is drawn in the same place later. Until then what is typed is kept, without an echo.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from sqlshell.config.settings import BY_NAME
from sqlshell.config.values import Config, state_folder
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import UsageError
from sqlshell.launch.credentials import permission_problems
from sqlshell.launch.targets import Destination, LocalService, RemoteService, chosen_parts, find_destination
from sqlshell.origin import Trusted
from sqlshell.runtime.streams import Streams, choose_colors
from sqlshell.shell.interactive.look.context_line import QUIET, Fragments, Shown, context_line
from sqlshell.shell.interactive.look.paint import RESET, color_depth, painter, sgr
from sqlshell.shell.interactive.look.themes import DEFAULT, LIGHT, load
from sqlshell.shell.interactive.terminal import Unechoed, background, draws
from sqlshell.version import __version__

STOPPING = (
    "offline",
    "prompt",
    "prompt_lines",
    "insecure",
    "verbose",
    "dry_run",
    "single_transaction",
    "stats",
    "checkpoint",
    "resume",
    "if_unknown",
)
"""Settings with which something is printed or refused before the prompt, or which the simple prompt does not know."""

IN_MEMORY = {"database": "memory", "schema": "main"}
"""The context in which a DuckDB database in memory begins."""


class FirstPrompt:
    """A prompt on the screen. end() hands it over to the prompt that reads keys, clear() removes it for other output.

    `typed` is what was read from the terminal before it was drawn.
    """

    def __init__(self, streams: Streams, quiet: Unechoed, text: str, typed: bytes) -> None:
        self.typed = typed
        self._stdout = streams.stdout
        self.quiet = quiet
        self._drawn = True
        self._write(text)

    def end(self) -> None:
        # The other prompt clears what is below the cursor, and draws over this one.
        self._leave("\r")
        self.quiet.end()

    def clear(self) -> None:
        self._leave("\r\x1b[K")

    def close(self) -> None:
        """Restore the terminal when the program exits, for whatever reason."""
        self.clear()
        self.quiet.end()

    def _leave(self, text: str) -> None:
        if self._drawn:
            self._drawn = False
            self._write(text)

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stdout.write(text)
            self._stdout.flush()


def first_prompt(
    target: Trusted, flags: Mapping[str, Any], environ: Mapping[str, str], config: Config, streams: Streams
) -> FirstPrompt | None:
    """The prompt of an interactive shell; None if a message or a question may have to precede it."""
    if os.name != "posix" or not (streams.asks and draws(streams.stdout, environ)):
        return None
    problems, themes = list(permission_problems(config)), config.folder / "themes"
    try:
        destination = find_destination(target, flags, environ, config, problems.append, target)
        chosen = destination.settings.source("theme") != "default"
        theme = load(destination.settings["theme"], themes) if chosen else None
    except UsageError:
        # Building the shell raises the same error, which is then reported.
        return None
    settings, service = destination.settings, destination.service
    asks = isinstance(service, RemoteService) and not (service.token or service.token_command)
    # The errors of a file come before the prompt.
    opens = isinstance(service, LocalService) and service != LocalService()
    speaks = not settings["no_rc"] and (config.folder / "rc.sql").is_file()
    if problems or asks or opens or speaks or any(settings[name] != BY_NAME[name].default for name in STOPPING):
        return None
    parts = IN_MEMORY if isinstance(service, LocalService) else {}
    known = parts | {name: value for name, (value, _) in chosen_parts(destination).items()}
    shown = Shown(destination.short_name, *(known.get(name, "") for name in ("role", "database", "schema", "store")))
    read_only: Fragments = [(QUIET, "[ro]")] if settings["read_only"] else []
    fragments = [*context_line(shown, streams.columns // 2), *read_only, ("", "> ")]
    quiet = Unechoed(streams, keeps_interrupts=True)
    choose_colors(settings["color"])
    try:
        typed = b""
        if theme is None:
            brightness, typed = background(state_folder(environ) / "terminal", streams)
            theme = load(LIGHT if brightness == "light" else DEFAULT, themes)
        diagnostics = Diagnostics(streams.stderr, quiet=lambda: bool(settings["quiet"]))
        diagnostics.paint = painter(theme, color_depth()) if diagnostics.at_terminal else None
        *lines, hint = greeting_of(destination, target, flags, environ)
        for line in lines:
            diagnostics.report(line)
        diagnostics.hint(hint)
        base = " ".join(filter(None, (theme.ui.get("prompt", ""), settings["prompt_color"])))
        text = "".join(_painted(text, base, look, theme.ui) for look, text in fragments)
        return FirstPrompt(streams, quiet, text, typed)
    except BaseException:
        quiet.end()
        raise


def _painted(text: str, base: str, look: str, theme: Mapping[str, str]) -> str:
    _, class_, part = look.rpartition("class:")
    codes = sgr(f"{base} {theme.get(part, '') if class_ else look}", color_depth())
    return f"{codes}{text}{RESET}" if codes else text


HINTS = (
    "\\h select shows the syntax of SELECT.",
    "Ctrl-R searches the history.",
    "→ accepts the suggestion.",
    "\\watch 5 repeats a statement.",
    "\\theme previews the themes.",
    "\\d NAME describes a table.",
    "F4 switches to vi keys.",
    "End with ;& to run in the background.",
    "End with \\gx to see records.",
    "End with \\g rows.csv to write a file.",
)
"""One of them is shown at each start, when there is no result yet. With what is before it, it fits into 80 cells."""


def greeting(destination: Destination, given: str, number: int) -> Sequence[str]:
    """`given` names what selected the target, such as SQLSHELL_URL; "" if nothing did. `number` selects the hint."""
    hint = HINTS[number % len(HINTS)]
    if destination.service == LocalService():
        profile = destination.settings.profile
        remedy = f"profile {profile!r} has no url" if profile else "to keep data: sqlshell FILE.duckdb"
        return (
            f"sqlshell {__version__}: in memory, lost on exit ({remedy})",
            f"Try \\demo (sample data), \\? start or \\?. {hint}",
        )
    return (
        f"sqlshell {__version__}: {destination.label}" + (f" ({given})" if given else ""),
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
