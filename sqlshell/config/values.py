"""The values of the settings, read from flags, the environment and the profiles of config.toml."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from sqlshell.config.peers import RENAMED
from sqlshell.config.settings import BY_NAME, DEFAULT_PROFILE, OF_ONE_RUN, PREFIX, SETTINGS
from sqlshell.errors import UsageError, reason
from sqlshell.runtime.files import expanded
from sqlshell.text import did_you_mean

Source = Literal["flag", "environment", "profile", "default"]


class Settings(Struct, frozen=True):
    """The value of every setting, and the source of those that have one; `profile` is the name of the profile, "" if
    there is none."""

    values: Mapping[str, Any]
    sources: Mapping[str, Source]
    profile: str = ""

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def source(self, name: str) -> Source:
        return self.sources.get(name, "default")


class Config(Struct, frozen=True):
    """config.toml: profiles by name. `path` may not exist."""

    path: Path
    profiles: Mapping[str, Mapping[str, Any]]

    @property
    def folder(self) -> Path:
        return self.path.parent


def config_folder(environ: Mapping[str, str]) -> Path:
    """The directory of config.toml, rc.sql and the user's themes: SQLSHELL_CONFIG_DIR, else the platform's default."""
    return _folder(environ, "CONFIG", ".config")


def state_folder(environ: Mapping[str, str]) -> Path:
    """The directory of history and journal: SQLSHELL_STATE_DIR, else the platform's default."""
    return _folder(environ, "STATE", ".local/state")


def _folder(environ: Mapping[str, str], kind: str, usual: str) -> Path:
    if named := environ.get(f"SQLSHELL_{kind}_DIR"):
        return Path(named)
    if base := environ.get(f"XDG_{kind}_HOME"):
        return Path(base, "sqlshell")
    home = environ.get("HOME") or expanded("~")
    return Path(home, "Library/Application Support" if sys.platform == "darwin" else usual, "sqlshell")


def read_config(folder: Path) -> Config:
    """Read config.toml; a missing file has no profiles. Raises UsageError that names the file and the key."""
    path = folder / "config.toml"
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return Config(path, {})
    except OSError as error:
        raise UsageError(f"cannot read {path}: {reason(error)}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}, line {line}: invalid UTF-8", "save the file as UTF-8") from None
    import tomllib

    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"{path}, {_toml_error(str(error), text)}", "open the file with sqlshell config edit"
        ) from None
    profiles = tables.pop("profiles", {})
    if tables or not isinstance(profiles, dict):
        unknown = ", ".join(tables) or "profiles"
        raise UsageError(
            f"{path}: unexpected top-level key {unknown}", "put settings into tables such as [profiles.work]"
        )
    return Config(path, profiles)


def _toml_error(message: str, text: str) -> str:
    """Convert a message of tomllib to `line N: cause`."""
    match = re.fullmatch(r"(?s)(.*) \(at (?:line (\d+), column \d+|end of document)\)", message)
    if match is None:
        return message
    return f"line {match[2] or text.count(chr(10)) + 1}: {match[1]}"


def _table(config: Config, profile: str) -> Mapping[str, Any]:
    """The settings of a profile by name. Raises UsageError that names the key; other profiles are not checked."""
    given = config.profiles.get(profile, {})
    place = f"{config.path}: [profiles.{profile}]"
    if not isinstance(given, dict):
        raise UsageError(f"{place} is not a table", f'write [profiles.{profile}] and below it, for example, url = "…"')
    for key in given:
        if key in OF_ONE_RUN:
            raise UsageError(
                f"{place}: {key!r} is not allowed in a profile", "use it on the command line; it applies to one run"
            )
    known = [name for name in BY_NAME if name not in OF_ONE_RUN]
    unknown = [key for key in given if key not in BY_NAME]
    if unknown:
        says = "unknown key" if len(unknown) == 1 else "unknown keys:"
        hint = "\n".join(filter(None, (_nearest(key, known) for key in unknown)))
        raise UsageError(
            f"{place}: {says} {', '.join(map(repr, unknown))}", hint or "sqlshell config settings lists all keys"
        )
    return given


def resolve(flags: Mapping[str, Any], environ: Mapping[str, str], config: Config, profile: str = "") -> Settings:
    """The value of every setting. `flags` contains only the given flags; `profile` is a TARGET that names a profile.

    Raises UsageError that names the flag, the variable or the file and key.
    """
    chosen = profile or flags.get("profile") or environ.get(BY_NAME["profile"].variable) or ""
    if chosen and chosen not in config.profiles:
        known = ", ".join(sorted(config.profiles)) or "none"
        raise UsageError(f"unknown profile {chosen!r}", f"profiles in {config.path}: {known}")
    if not chosen and DEFAULT_PROFILE in config.profiles:
        chosen = DEFAULT_PROFILE
    for name, now in RENAMED.items():
        if (variable := PREFIX + name.upper()) in environ:
            raise UsageError(f"unknown variable {variable}", f"it is now {BY_NAME[now].variable}")
    table = _table(config, chosen)
    # A profile named on the command line goes to its own url, whatever SQLSHELL_URL says.
    beside = bool(profile or flags.get("profile")) and "url" in table
    values: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for setting in SETTINGS:
        name, read = setting.name, setting.kind.read
        variable = PREFIX + name.upper() if setting.environment else ""
        if name in flags:
            values[name], sources[name] = read(flags[name], setting.flags[-1] if setting.flags else name), "flag"
        elif environ.get(variable) and not (name == "url" and beside):
            values[name], sources[name] = read(environ[variable], variable), "environment"
        elif name in table:
            values[name], sources[name] = read(table[name], f"{config.path}: [profiles.{chosen}] {name}"), "profile"
        else:
            values[name] = setting.default
    return Settings(values, sources, chosen)


def _nearest(word: str, known: Sequence[str]) -> str:
    if word in RENAMED:
        return f"{word} is now {RENAMED[word]}"
    return did_you_mean(word, known)
