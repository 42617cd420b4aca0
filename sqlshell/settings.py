"""One table of settings: each row is a flag, an environment variable, a key of config.toml and a help text.

A value comes from the first of: flag, environment (`SQLSHELL_` and the name in capitals), the profile in config.toml,
the default.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sqlshell.errors import UsageError

Kind = Literal["text", "flag", "count", "integer", "seconds", "choice", "many"]
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
        "how long to wait for a connection (10)",
        CONNECTION,
        "seconds",
        flags=("--connect-timeout",),
        metavar="TIME",
        default=10.0,
    ),
    Setting(
        "wait",
        "how long to wait for one statement, 0 = without end; past it the exit code is 4",
        CONNECTION,
        "seconds",
        flags=("--wait",),
        metavar="TIME",
        default=0.0,
    ),
    Setting(
        "read_timeout",
        "how long the service may be silent within one request, 0 = without end (120)",
        CONNECTION,
        "seconds",
        flags=("--read-timeout",),
        metavar="TIME",
        default=120.0,
    ),
    Setting(
        "timeout",
        "how long one request is tried again at most (300)",
        CONNECTION,
        "seconds",
        flags=("--timeout",),
        metavar="TIME",
        default=300.0,
    ),
    Setting(
        "retries",
        "how often a request that does no harm twice is made again (5)",
        CONNECTION,
        "integer",
        flags=("--retries",),
        metavar="N",
        default=5,
    ),
    Setting(
        "api",
        "interface of the service: v2, legacy, or auto to find out (v2)",
        CONNECTION,
        "choice",
        flags=("--api",),
        choices=("v2", "legacy", "auto"),
        default="v2",
    ),
    Setting(
        "ca_file",
        "authorities to trust in the place of the machine's, in PEM",
        CONNECTION,
        flags=("--ca-file",),
        metavar="FILE",
    ),
    Setting("client_cert", "client certificate, in PEM", CONNECTION, flags=("--client-cert",), metavar="FILE"),
    Setting(
        "client_key", "its key, where that is in a file of its own", CONNECTION, flags=("--client-key",), metavar="FILE"
    ),
    Setting(
        "insecure", "do not check the service's certificate", CONNECTION, "flag", flags=("--insecure",), default=False
    ),
    Setting("token_command", "command whose output is the token; run again after a 401", CONNECTION),
    Setting(
        "private_data_plane",
        "let a service elsewhere keep results at private addresses",
        CONNECTION,
        "flag",
        default=False,
    ),
    Setting("answer_limit", "MiB of one answer at most (1024)", CONNECTION, "integer", default=1024),
    Setting(
        "offline",
        "send nothing: print each request as a curl command without the token",
        CONNECTION,
        "flag",
        flags=("--offline",),
        default=False,
        environment=False,
        profile=False,
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
    Setting(
        "attach",
        "file to send with the statement that names it; repeatable",
        SCRIPTS,
        "many",
        flags=("--attach",),
        metavar="FILE",
        default=(),
        environment=False,
        profile=False,
    ),
    Setting(
        "max_rows",
        "end an endless result after N rows",
        SCRIPTS,
        "integer",
        flags=("--max-rows",),
        metavar="N",
        default=0,
    ),
    Setting(
        "stream_for",
        "end an endless result after this time (30s, 5m)",
        SCRIPTS,
        "seconds",
        flags=("--for",),
        metavar="TIME",
        default=0.0,
    ),
    Setting(
        "allow_gaps",
        "go on with an endless result after its connection broke",
        SCRIPTS,
        "flag",
        flags=("--allow-gaps",),
        default=False,
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
    Setting("journal", "remember statements for \\jobs and \\fetch (on)", OTHER, "flag", default=True),
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
                number = int(str(given))
            except ValueError:
                number = -1
            if number < 0:
                raise UsageError(f"{place}: {given!r} is not a whole number")
            return number
        case "seconds":
            seconds = seconds_of(str(given))
            if seconds is None:
                raise UsageError(f"{place}: {given!r} is not a time", "such as 30, 1.5s, 5m or 1h30m")
            return seconds
        case "many":
            return tuple(given) if isinstance(given, list | tuple) else (str(given),)
        case "choice":
            if given not in setting.choices:
                raise UsageError(f"{place}: {given!r} is none of {', '.join(setting.choices)}")
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


def _nearest(word: str, known: Mapping[str, object]) -> str:
    import difflib

    near = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""
