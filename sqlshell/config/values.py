"""The values of the settings: from flags, the environment and the profiles of config.toml, each as its kind."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from sqlshell.config.settings import BY_KEY, BY_NAME, DEFAULT_PROFILE, OF_ONE_RUN, SETTINGS, Setting
from sqlshell.errors import UsageError
from sqlshell.spelling import did_you_mean

Source = Literal["flag", "environment", "profile", "default"]


class Value(Struct, frozen=True):
    value: Any
    source: Source


class Settings(Struct, frozen=True):
    """Every setting with its value and where it came from; `profile` is the profile's name, "" without one."""

    values: Mapping[str, Value]
    profile: str = ""

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value

    def source(self, name: str) -> Source:
        return self.values[name].source


class Config(Struct, frozen=True):
    """config.toml: profiles by name. `path` may not exist."""

    path: Path
    profiles: Mapping[str, Mapping[str, Any]]

    @property
    def folder(self) -> Path:
        return self.path.parent


def config_folder(environ: Mapping[str, str]) -> Path:
    """Where config.toml, rc.sql and a user's themes are: SQLSHELL_CONFIG_DIR, else the platform's place."""
    if named := environ.get("SQLSHELL_CONFIG_DIR"):
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_config_dir("sqlshell", appauthor=False))


def state_folder(environ: Mapping[str, str]) -> Path:
    """Where the history is: SQLSHELL_STATE_DIR, else the platform's place."""
    if named := environ.get("SQLSHELL_STATE_DIR"):
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_state_dir("sqlshell", appauthor=False))


def read_config(folder: Path) -> Config:
    """Read config.toml; an absent file is an empty one. Raises UsageError naming the file and the key."""
    path = folder / "config.toml"
    try:
        text = path.read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError):
        return Config(path, {})
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}, line {line}: it is not UTF-8", "save it as UTF-8") from None
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}, {_placed(str(error), text)}", "sqlshell config edit opens it") from None
    profiles = tables.pop("profiles", {})
    if tables or not isinstance(profiles, dict):
        unknown = ", ".join(tables) or "profiles"
        raise UsageError(f"{path}: unexpected {unknown}", "settings stand in tables such as [profiles.work]")
    return Config(path, profiles)


def _placed(said: str, text: str) -> str:
    """`line N: what is wrong`, of what the reader of TOML says."""
    found = re.fullmatch(r"(?s)(.*) \(at (?:line (\d+), column \d+|end of document)\)", said)
    if found is None:
        return said
    return f"line {found[2] or text.count(chr(10)) + 1}: {found[1]}"


def _table(config: Config, profile: str) -> Mapping[str, Any]:
    """The settings of a profile by name. Raises UsageError that names the key; other profiles are not looked at."""
    given = config.profiles.get(profile, {})
    place = f"{config.path}: [profiles.{profile}]"
    if not isinstance(given, dict):
        raise UsageError(f"{place} is not a table", f'write [profiles.{profile}], and below it such as url = "…"')
    for key in given:
        if key in OF_ONE_RUN:
            raise UsageError(f"{place}: {key!r} cannot stand in a profile", "it belongs to one run: give it as a flag")
    known = [name for name in BY_KEY if name not in OF_ONE_RUN]
    unknown = [f"{key!r}{_nearest(key, known)}" for key in given if key not in BY_KEY]
    if unknown:
        says = "has an unknown key" if len(unknown) == 1 else "has unknown keys:"
        raise UsageError(f"{place} {says} {', '.join(unknown)}", "sqlshell config settings lists them all")
    return {BY_KEY[key].name: value for key, value in given.items()}


def resolve(flags: Mapping[str, Any], environ: Mapping[str, str], config: Config, profile: str = "") -> Settings:
    """The value of every setting. `flags` has only what was given; `profile` is a TARGET that names one.

    Raises UsageError that names the flag, the variable or the file and key.
    """
    chosen = profile or flags.get("profile") or environ.get(BY_NAME["profile"].variable) or ""
    if chosen and chosen not in config.profiles:
        known = ", ".join(sorted(config.profiles)) or "none"
        raise UsageError(f"there is no profile {chosen!r} in {config.path}", f"profiles there: {known}")
    if not chosen and DEFAULT_PROFILE in config.profiles:
        chosen = DEFAULT_PROFILE
    table = _table(config, chosen)
    # Who names a profile on the command line means its service.
    beside = bool(profile or flags.get("profile")) and "url" in table
    values: dict[str, Value] = {}
    for setting in SETTINGS:
        if setting.name in flags:
            values[setting.name] = Value(_read(setting, flags[setting.name], setting.flags[-1]), "flag")
        elif (variable := _variable(setting, environ)) and not (setting.name == "url" and beside):
            values[setting.name] = Value(_read(setting, environ[variable], variable), "environment")
        elif setting.name in table:
            place = f"{config.path}: [profiles.{chosen}] {setting.name}"
            values[setting.name] = Value(_read(setting, table[setting.name], place), "profile")
        else:
            values[setting.name] = Value(setting.default, "default")
    return Settings(values, chosen)


def _variable(setting: Setting, environ: Mapping[str, str]) -> str:
    """The variable of the environment that gives this setting, "" for none."""
    if not setting.environment:
        return ""
    return next((name for name in setting.variables if environ.get(name)), "")


def _read(setting: Setting, given: object, place: str) -> Any:
    """A given value as the setting's kind: flags arrive typed, environment as text, TOML as either."""
    match setting.kind:
        case "flag":
            if isinstance(given, bool):
                return given
            words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False}
            if str(given).lower() in words | {"off": False}:
                return words.get(str(given).lower(), False)
            raise UsageError(f"{place}: {given!r} is neither on nor off")
        case "count" | "integer":
            try:
                number = int(str(given))
            except ValueError:
                raise UsageError(f"{place}: {given!r} is not a whole number") from None
            if number < 0:
                raise UsageError(f"{place}: {given!r} is too small", "give 0 or more")
            return number
        case "seconds":
            seconds = seconds_of(str(given))
            if seconds is None:
                raise UsageError(f"{place}: {given!r} is not a time", "such as 30, 1.5s, 5m or 1h30m")
            return seconds
        case "many":
            if isinstance(given, dict):
                given = [f"{name}={value}" for name, value in given.items()]
            items = tuple(given) if isinstance(given, list | tuple) else (given,)
            if not all(isinstance(item, str) for item in items):
                raise UsageError(f"{place}: {given!r} is not a list of texts")
            return items
        case "choice":
            if isinstance(given, bool) and "on" in setting.choices:
                return "on" if given else "off"
            if given not in setting.choices:
                raise UsageError(f"{place}: {given!r} is not one of {', '.join(setting.choices)}")
            return given
    if not isinstance(given, str):
        raise UsageError(f"{place}: {given!r} is not text", "put it in quotes")
    return given


_TIME = re.compile(r"(?=.)(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)(?:s|\Z))?(?:(\d+)ms)?", re.ASCII)


def seconds_of(text: str) -> float | None:
    """A time as seconds: a number of them, or `1h30m`, `5m`, `1.5s`, `200ms`; None for anything else."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        return None
    hours, minutes, seconds, thousandths = (float(part or 0) for part in found.groups())
    total = hours * 3600 + minutes * 60 + seconds + thousandths / 1000
    return total if total < 1e9 else None


def _nearest(word: str, known: Sequence[str]) -> str:
    hint = did_you_mean(word, known, shown=repr)
    return f" ({hint})" if hint else ""
