"""One table of settings: each row is a flag, an environment variable, a key of config.toml and a help text.

A value comes from the first of: flag, environment (`SQLSHELL_` and the name in capitals), the profile in config.toml,
the default.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sqlshell.errors import UsageError

Kind = Literal["text", "flag", "count", "integer", "seconds", "choice"]
Source = Literal["flag", "environment", "profile", "default"]

PREFIX = "SQLSHELL_"
DEFAULT_PROFILE = "default"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `flags` is empty where there is no flag, `profile` says whether config.toml may hold it."""

    name: str
    help: str
    group: str
    kind: Kind = "text"
    flags: tuple[str, ...] = ()
    metavar: str = ""
    choices: tuple[str, ...] = ()
    default: Any = ""
    environment: bool = True
    profile: bool = True

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


CONNECTION, CONTEXT, OUTPUT, SCRIPTS, OTHER = "Connection", "Context", "Output", "Scripts", "Other"
GROUPS = (CONNECTION, CONTEXT, SCRIPTS, OUTPUT, OTHER)

SETTINGS: tuple[Setting, ...] = (
    Setting("url", "the service's base URL, or a DSN", CONNECTION),
    Setting("token", "the bearer token", CONNECTION),
    Setting("token_file", "file that holds the bearer token", CONNECTION, flags=("--token-file",), metavar="FILE"),
    Setting("profile", "profile of config.toml", CONNECTION, flags=("--profile",), metavar="NAME", profile=False),
    Setting(
        "connect_timeout",
        "seconds to wait for a connection (10)",
        CONNECTION,
        "seconds",
        flags=("--connect-timeout",),
        metavar="SECONDS",
        default=10.0,
    ),
    Setting(
        "wait",
        "seconds to wait for one statement, 0 = without end; past it the exit code is 4",
        CONNECTION,
        "seconds",
        flags=("--wait",),
        metavar="SECONDS",
        default=0.0,
    ),
    Setting("organization", "organization, by name or id", CONTEXT, flags=("--organization",), metavar="NAME"),
    Setting("role", "role", CONTEXT, flags=("--role",), metavar="NAME"),
    Setting("database", "database", CONTEXT, flags=("--database",), metavar="NAME"),
    Setting("schema", "schema", CONTEXT, flags=("--schema",), metavar="NAME"),
    Setting("store", "store", CONTEXT, flags=("--store",), metavar="NAME"),
    Setting("compute_pool", "compute pool", CONTEXT, flags=("--compute-pool",), metavar="NAME"),
    Setting("timezone", "IANA time zone (the machine's)", CONTEXT, flags=("--timezone",), metavar="ZONE"),
    Setting("session_id", "session to join (a new one)", CONTEXT, flags=("--session-id",), metavar="ID", profile=False),
    Setting(
        "on_error",
        "what a script does after a failed statement (stop)",
        SCRIPTS,
        "choice",
        flags=("--on-error",),
        choices=("stop", "continue"),
        default="stop",
    ),
    Setting("echo", "print each statement on stderr before it runs", SCRIPTS, "flag", flags=("-e", "--echo")),
    Setting("format", "format of results (see below)", OUTPUT, flags=("--format",), metavar="NAME", default="table"),
    Setting("null", "text for NULL", OUTPUT, flags=("--null",), metavar="TEXT", default=None),
    Setting(
        "table_style",
        "looks of the table format: psql, simple, rounded_outline, …",
        OUTPUT,
        flags=("--table-style",),
        metavar="NAME",
        default="psql",
    ),
    Setting("pager", "pager of tall results (less -SRXF)", OUTPUT, default=""),
    Setting("theme", "theme of the interactive shell", OUTPUT, flags=("--theme",), metavar="NAME", default="default"),
    Setting("quiet", "say less on stderr", OTHER, "flag", flags=("-q", "--quiet"), default=False),
    Setting("verbose", "say more on stderr; repeatable", OTHER, "count", flags=("-v", "--verbose"), default=0),
)

BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}


@dataclass(frozen=True, slots=True)
class Value:
    value: Any
    source: Source


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its value and where it came from; `profile` is the profile's name, "" without one."""

    values: Mapping[str, Value]
    profile: str = ""

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value

    def source(self, name: str) -> Source:
        return self.values[name].source


@dataclass(frozen=True, slots=True)
class Config:
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
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}") from None
    profiles = tables.pop("profiles", {})
    if tables or not isinstance(profiles, dict) or not all(isinstance(table, dict) for table in profiles.values()):
        unknown = ", ".join(tables) or "profiles"
        raise UsageError(f"{path}: unexpected {unknown}", "settings stand in tables such as [profiles.work]")
    for name, table in profiles.items():
        for key in table:
            if key not in BY_NAME or not BY_NAME[key].profile:
                raise UsageError(f"{path}: [profiles.{name}] has an unknown key {key!r}{_nearest(key, BY_NAME)}")
    return Config(path, profiles)


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
    table = config.profiles.get(chosen, {})
    values: dict[str, Value] = {}
    for setting in SETTINGS:
        if setting.name in flags:
            values[setting.name] = Value(_read(setting, flags[setting.name], setting.flags[-1]), "flag")
        elif setting.environment and environ.get(setting.variable):
            given = environ[setting.variable]
            values[setting.name] = Value(_read(setting, given, setting.variable), "environment")
        elif setting.name in table:
            place = f"{config.path}: [profiles.{chosen}] {setting.name}"
            values[setting.name] = Value(_read(setting, table[setting.name], place), "profile")
        else:
            values[setting.name] = Value(setting.default, "default")
    return Settings(values, chosen)


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
                return int(str(given))
            except ValueError:
                raise UsageError(f"{place}: {given!r} is not a whole number") from None
        case "seconds":
            try:
                seconds = float(str(given))
            except ValueError:
                seconds = -1.0
            if not 0 <= seconds < 1e9:
                raise UsageError(f"{place}: {given!r} is not a number of seconds")
            return seconds
        case "choice":
            if given not in setting.choices:
                raise UsageError(f"{place}: {given!r} is none of {', '.join(setting.choices)}")
            return given
    if not isinstance(given, str):
        raise UsageError(f"{place}: {given!r} is not text", "put it in quotes")
    return given


def _nearest(word: str, known: Mapping[str, object]) -> str:
    import difflib

    near = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""
