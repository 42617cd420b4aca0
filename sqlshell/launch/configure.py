"""`sqlshell config`: list, show, check, create and edit profiles."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TextIO

from sqlshell.client.target import Target, without_token
from sqlshell.config.settings import SETTINGS
from sqlshell.config.values import Config, Settings, config_folder, read_config, resolve
from sqlshell.errors import MISSING, UsageError, reason
from sqlshell.launch.credentials import without_secrets
from sqlshell.origin import Trusted
from sqlshell.runtime.files import expanded
from sqlshell.runtime.streams import Streams
from sqlshell.shell.interactive.editor import edit_file
from sqlshell.text import format_count

ACTIONS = ("list", "show", "settings", "check", "init", "edit")

TEMPLATE = """\
# Profiles of sqlshell. `sqlshell NAME` uses the profile NAME; `sqlshell` without a name uses the profile `default`.
# `sqlshell config settings` lists all settings.

# [profiles.work]
# url = "https://host/v2"
# token_file = "~/.secrets/work-token"     # or token_command = "pass show work/token"
# database = "sales"
# timezone = "Europe/Berlin"

# [profiles.production]
# url = "https://host/v2"
# token_command = "pass show production/token"
# read_only = true
# confirm = ["DROP", "TRUNCATE", "DELETE WITHOUT WHERE"]   # or "type-name"
# prompt_color = "#ff5f5f"
"""


def configure(action: str, name: str, environ: Mapping[str, str], streams: Streams) -> int:
    """Run an action on config.toml; `name` is a profile. Returns the exit code. Raises UsageError."""
    if name and action in ACTIONS and action != "show":
        raise UsageError(f"sqlshell config {action} takes no profile")
    folder = config_folder(environ)
    path = folder / "config.toml"
    match action:
        case "list":
            config = read_config(folder)
            for profile, table in sorted(config.profiles.items()):
                url = str(table.get("url", "")) if isinstance(table, Mapping) else ""
                streams.stdout.write(f"{profile}\t{without_token(url)}\n")
        case "show":
            _show(resolve({}, environ, read_config(folder), name), streams.stdout)
        case "settings":
            _list_settings(streams.stdout)
        case "check":
            return _check(read_config(folder), path, streams)
        case "init":
            _init(path, streams.stdout)
        case "edit":
            _edit(path, streams)
        case _:
            raise UsageError(f"unknown action {action!r}", f"actions: {', '.join(ACTIONS)}")
    return 0


def _show(settings: Settings, stdout: TextIO) -> None:
    if settings.profile:
        stdout.write(f"# profile {settings.profile}\n")
    width = max(len(setting.name) for setting in SETTINGS)
    for setting in SETTINGS:
        shown = setting.shown(without_secrets(setting.name, settings[setting.name]))
        stdout.write(f"{setting.name.ljust(width)}  {shown or '-'}  ({settings.source(setting.name)})\n")


def _list_settings(stdout: TextIO) -> None:
    """List each setting that is allowed in a profile, with the kind of its value."""
    for setting in sorted(SETTINGS, key=lambda item: item.name):
        if setting.profile:
            stdout.write(f"{setting.name.ljust(19)} {setting.kind.takes.ljust(18)} {setting.help}\n")


def _check(config: Config, path: Path, streams: Streams) -> int:
    """Check the values of every profile, and that the files they name exist."""

    def line_of(error: UsageError) -> str:
        return "; ".join([error.message, *error.hint.splitlines()])

    wrong = []
    for name in config.profiles:
        try:
            settings = resolve({}, {}, config, name)
        except UsageError as error:
            wrong.append(line_of(error))
            continue
        for key in ("token_file", "ca_file", "client_cert", "client_key"):
            if settings[key] and not expanded(settings[key]).is_file():
                wrong.append(f"{path}: [profiles.{name}] {key}: cannot read {settings[key]}: {MISSING}")
        held = bool(settings["token"])
        if settings["url"]:
            from sqlshell.launch.targets import service_at_url

            try:
                where = service_at_url(settings["url"])
                held = held or (isinstance(where, Target) and bool(where.token))
            except UsageError as error:
                wrong.append(f"{path}: [profiles.{name}] url: {error.message}")
        wrong += [
            f"{path}: [profiles.{name}] {line_of(error)}" for error in wrong_values(settings, path.parent / "themes")
        ]
        if held and path.stat().st_mode & 0o077:
            wrong.append(
                f"other users can read {path}, which contains the token of [profiles.{name}]; run: chmod 600 {path}"
            )
    for line in wrong:
        streams.stderr.write(f"{line}\n")
    if not wrong:
        streams.stdout.write(f"{path}: {format_count(len(config.profiles), 'profile')}, no errors\n")
    return 2 if wrong else 0


def wrong_values(settings: Settings, themes: Path) -> Iterator[UsageError]:
    """The errors in the given values; `themes` is the user's own directory of themes."""
    # Only this function needs formats, themes and policies.
    from sqlshell.launch.connector import redactor_of
    from sqlshell.launch.targets import checked_timezone
    from sqlshell.shell.interactive.look.themes import load
    from sqlshell.shell.options import DISPLAY, checked
    from sqlshell.sql.analysis.policy import check_patterns

    checks: dict[str, Callable[[], object]] = {
        "theme": lambda: load(settings["theme"], themes),
        "timezone": lambda: checked_timezone(settings["timezone"]),
        "confirm": lambda: check_patterns(settings["confirm"], "confirm"),
        "secret_names": lambda: redactor_of(settings),
    }
    for name in DISPLAY.keys() | checks:
        if settings.source(name) != "default":
            try:
                checks[name]() if name in checks else checked(name, settings[name])
            except UsageError as error:
                yield error


def _init(path: Path, stdout: TextIO) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(TEMPLATE)
    except OSError as error:
        if path.exists():
            raise UsageError(f"{path} already exists", "open it with sqlshell config edit") from None
        raise UsageError(f"cannot write to {path}: {reason(error)}") from None
    stdout.write(f"{path}\n")


def _edit(path: Path, streams: Streams) -> None:
    if not path.exists():
        _init(path, streams.stdout)
    edit_file(Trusted(str(path)), streams.stdin)
    read_config(path.parent)
