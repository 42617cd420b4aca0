r"""The table of settings: each row defines a flag, an environment variable, a key of config.toml, an option of \pset, a
variable of \set and a help text.

A value comes from the first of: flag, environment (`SQLSHELL_` and the name in capitals), the profile in config.toml,
the default.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.errors import UsageError
from sqlshell.text import any_of

PREFIX: Final = "SQLSHELL_"
DEFAULT_PROFILE: Final = "default"

_SWITCH: Final = {
    "on": True,
    "true": True,
    "1": True,
    "yes": True,
    "off": False,
    "false": False,
    "0": False,
    "no": False,
}
# Compiled when used: a pattern costs a start as much as several modules.
_TIME: Final = r"(?a)(?=.)(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)(?:s|\Z))?(?:(\d+)ms)?"
_ESCAPES: Final = {"\\\\": "\\", "\\t": "\t", "\\n": "\n", "\\r": "\r", "\\0": "\0"}


ON_OR_OFF: Final = "on or off (true/false, yes/no, 1/0)"
"""What on_or_off() reads, for messages."""


def on_or_off(text: str) -> bool | None:
    """Return whether a text is on or off, in psql's spellings and abbreviations; None for others."""
    word = text.strip().lower()
    known = (value for name, value in _SWITCH.items() if word and name.startswith(word) and word != "o")
    return next(known, None)


def seconds_of(text: str) -> float | None:
    """Return a duration in seconds: a number, or `1h30m`, `5m`, `1.5s`, `200ms`; None for anything else."""
    match = re.fullmatch(_TIME, text.strip())
    if match is None:
        return None
    hours, minutes, seconds, thousandths = (float(part or 0) for part in match.groups())
    total = hours * 3600 + minutes * 60 + seconds + thousandths / 1000
    return total if total < 1e9 else None


def _text(given: object, place: str) -> str:
    if not isinstance(given, str):
        raise UsageError(f"{place}: {given!r} is not a string", "put it in quotes")
    return given


def _shown(value: Any) -> str:
    return "" if value is None else str(value)


class Kind(Struct, frozen=True):
    """What values a setting takes: a text, unless it says otherwise.

    `metavar` names a value in the help of an option, `takes` its type for people; `words` are all values if they are
    few. `zero` says what 0 means. `read` makes a value of what a flag, a variable or TOML contains, and raises
    UsageError that begins with a place; `shown` returns a value as a user writes it.
    """

    metavar: str = ""
    takes: str = "string"
    default: Any = ""
    read: Callable[[object, str], Any] = _text
    shown: Callable[[Any], str] = _shown
    words: tuple[str, ...] = ()
    zero: str = ""


def _switch(given: object, place: str) -> bool:
    value = given if isinstance(given, bool) else on_or_off(str(given))
    if value is None:
        raise UsageError(f"{place}: invalid value {given!r}", f"expected {ON_OR_OFF}")
    return value


def _number(given: object, place: str) -> int:
    text = str(given).strip()
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"{place}: invalid value {given!r}", "expected an integer, 0 or greater")
    return int(text)


def _duration(given: object, place: str) -> float:
    seconds = seconds_of(str(given))
    if seconds is None:
        raise UsageError(f"{place}: {given!r} is not a duration", "write it as 30 (seconds), 1.5s, 5m or 1h30m")
    return seconds


def _texts(given: object, place: str) -> tuple[str, ...]:
    if isinstance(given, dict):
        given = [f"{name}={value}" for name, value in given.items()]
    items = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not all(isinstance(item, str) for item in items):
        raise UsageError(f"{place}: {given!r} is not a list of strings")
    return items


def _separator(given: object, place: str) -> str:
    return re.sub(r"\\[\\tnr0]", lambda match: _ESCAPES[match[0]], _text(given, place))


def _separator_shown(value: Any) -> str:
    return str(value).translate({ord(char): escape for escape, char in _ESCAPES.items()})


def _pager(given: object, place: str) -> str:
    # psql has always too: here too, only what is taller than the screen is paged.
    switch = given if isinstance(given, bool) else on_or_off("on" if given == "always" else str(given))
    return _text(given, place) if switch is None else ("" if switch else NO_PAGER)


def _words(*words: str) -> Kind:
    """A few words; if on and off are among them, their other spellings too."""

    def read(given: object, place: str) -> str:
        word = str(given).lower()
        switch = on_or_off(word) if "on" in words else None
        if word not in words and switch is not None:
            word = SWITCH.shown(switch)
        if word not in words:
            raise UsageError(f"{place}: invalid value {given!r}", f"expected {any_of(words)}")
        return word

    return Kind(takes="|".join(words), read=read, words=words)


NO_PAGER: Final = "off"
TEXT, FILE, NAME = Kind(), Kind("FILE"), Kind("NAME")
SEPARATOR: Final = Kind("TEXT", read=_separator, shown=_separator_shown)
r"""A text in which `\t`, `\n`, `\r`, `\0` and `\\` stand for those characters."""
PAGER: Final = Kind(read=_pager, shown=lambda value: value or "on")
"""A command, or off; "" is the default command."""
SWITCH: Final = Kind("", "on|off", False, _switch, lambda value: "on" if value else "off", ("on", "off"))
NUMBER: Final = Kind("N", "integer", 0, _number)
COUNT: Final = Kind("N", "integer", 0, _number)
"""How often a flag is given."""
TEXTS: Final = Kind("", "list of strings", (), _texts, lambda value: ", ".join(map(str, value)))
DURATION: Final = Kind("TIME", "duration", 0.0, _duration, lambda value: f"{value:g}s" if value else "0")
LIMIT, TIME_LIMIT = replace(NUMBER, zero="no limit"), replace(DURATION, zero="no limit")
SIZE_LIMIT: Final = replace(LIMIT, metavar="MIB")
UNLESS_NEVER: Final = replace(DURATION, zero="never")
FILES, ASSIGNMENTS = replace(TEXTS, metavar="FILE"), replace(TEXTS, metavar="NAME=VALUE")


class Setting(Struct, frozen=True):
    """One setting.

    `flags` is empty if it has no flag. A setting that is for `once` has neither a variable nor a key; `environment` and
    `profile` exclude one of these. `at_prompt` is the default there, if it is another. A flag that is used `often` is
    on the first screen of the help.
    """

    name: str
    help: str
    kind: Kind = TEXT
    flags: tuple[str, ...] = ()
    default: Any = ...
    at_prompt: Any = None
    once: bool = False
    often: bool = False
    environment: bool = True
    profile: bool = True
    group: str = ""

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()

    def shown(self, value: Any) -> str:
        """Return a value for people."""
        return self.kind.zero if self.kind.zero and not value else self.kind.shown(value)


def _flag(name: str, help: str, kind: Kind = TEXT, *, short: str = "", long: str = "", **given: Any) -> Setting:
    """A setting with a flag of its name, unless that is `long`, and perhaps a `short` one."""
    flags = (*((short,) if short else ()), long or f"--{name.replace('_', '-')}")
    return Setting(name, help, kind, flags, **given)


CONNECTION, CONTEXT, OUTPUT, SCRIPTS, OTHER = "Connection", "Context", "Output", "Scripts", "Other"
GROUPS: Final = (CONNECTION, CONTEXT, SCRIPTS, OUTPUT, OTHER)

_TABLE: Final[Mapping[str, tuple[Setting, ...]]] = {
    CONNECTION: (
        Setting("url", "base URL of a service, URL of a database server, or a database or data file"),
        Setting("token", "the bearer token"),
        _flag("token_file", "file that contains the bearer token", FILE, often=True),
        _flag("profile", "profile in config.toml", NAME, profile=False, often=True),
        _flag("connect_timeout", "maximum time to establish a connection [default: 10s]", DURATION, default=10.0),
        _flag(
            "timeout",
            "maximum time of one statement, such as 30s or 5m; then exit code 4",
            TIME_LIMIT,
            often=True,
        ),
        _flag(
            "read_timeout",
            "maximum time to wait for data within one request, 0 = no limit [default: 120s]",
            TIME_LIMIT,
            default=120.0,
        ),
        _flag(
            "retry_timeout",
            "maximum time of a request and its retries, plus 1 s for each 16 KiB of data [default: 300s]",
            TIME_LIMIT,
            default=300.0,
        ),
        _flag("retries", "maximum retries of a request that is safe to repeat [default: 5]", NUMBER, default=5),
        _flag(
            "api",
            "API version; auto detects it [default: v2]",
            _words("v2", "legacy", "auto"),
            default="v2",
        ),
        _flag("ca_file", "CA certificates to trust instead of the system's, in PEM format", FILE),
        _flag("client_cert", "client certificate, in PEM format", FILE),
        _flag("client_key", "key of the client certificate, if in a separate file", FILE),
        _flag("insecure", "do not verify the service's TLS certificate", SWITCH),
        Setting("token_keyring", "SERVICE/USER of the token in the system keyring"),
        Setting("token_command", "command that prints the token; runs again after a 401"),
        Setting("private_data_plane", "let a public service redirect results to private addresses", SWITCH),
        Setting(
            "answer_limit",
            "maximum size of one response in MiB [default: 64; up to 256 for a partition announced with many rows]",
            replace(NUMBER, zero="64"),
        ),
        _flag(
            "upload_limit",
            "maximum size of an uploaded file in MiB, 0 = no limit [default: 1024]",
            SIZE_LIMIT,
            default=1024,
        ),
        _flag(
            "download_limit",
            "maximum size of a downloaded file in MiB, 0 = no limit [default: 1024]",
            SIZE_LIMIT,
            default=1024,
        ),
        _flag(
            "offline", "send nothing; print each request as a curl command without the token", SWITCH, environment=False
        ),
    ),
    CONTEXT: (
        _flag("organization", "organization to use, by name or ID", NAME, often=True),
        _flag("role", "role to use", NAME, often=True),
        _flag("database", "database to use", NAME, short="-d", often=True),
        _flag("schema", "schema to use", NAME, often=True),
        _flag("store", "store to use", NAME, often=True),
        _flag("compute_pool", "compute pool to use", NAME, often=True),
        _flag("timezone", "IANA time zone [default: the system's; with a PostgreSQL URL the server's]", Kind("ZONE")),
        _flag("session_id", "use an existing session [default: a new session]", Kind("ID")),
    ),
    SCRIPTS: (
        _flag(
            "on_error",
            "what to do after a failure [default: stop]",
            _words("stop", "continue"),
            default="stop",
            often=True,
        ),
        _flag(
            "attach",
            "upload FILE with the first statement that names it; repeatable",
            FILES,
            once=True,
        ),
        _flag("max_rows", "stop a continuous query after N rows", LIMIT),
        _flag("duration", "stop a continuous query after this time", TIME_LIMIT),
        _flag("allow_gaps", "reconnect to a continuous query after a connection failure; rows may be missing", SWITCH),
        _flag(
            "set",
            "set a variable, like \\set; repeatable",
            ASSIGNMENTS,
            environment=False,
            often=True,
        ),
        _flag("no_commands", "refuse backslash commands; for untrusted scripts", SWITCH),
        _flag("yes", "answer yes to confirmations, such as those that the profile requires", SWITCH),
        _flag("read_only", "refuse statements that write", SWITCH, often=True),
        _flag(
            "single_transaction",
            "run all scripts in one transaction: all or none",
            SWITCH,
            once=True,
            short="-1",
            often=True,
        ),
        _flag(
            "dry_run",
            "print the statements of scripts as they would be sent, with variables substituted; connect to nothing",
            SWITCH,
            once=True,
        ),
        _flag("stats", "append a JSON line with the outcome and times of each statement to FILE", FILE, once=True),
        _flag("checkpoint", "record in FILE which statements of the scripts are done, for --resume", FILE, once=True),
        _flag("resume", "with --checkpoint: skip the statements that an earlier run completed", SWITCH, once=True),
        _flag(
            "if_unknown",
            "with --resume: skip a statement whose outcome is unknown, or send it again",
            _words("skip", "send"),
            once=True,
        ),
        Setting(
            "confirm",
            'statements that require confirmation, such as ["DROP", "DELETE WITHOUT WHERE"]; "type-name" for all that '
            "write, which are confirmed by typing the name of the profile",
            TEXTS,
            environment=False,
        ),
        _flag("echo", "print each statement to stderr before it runs", SWITCH, short="-e"),
    ),
    OUTPUT: (
        Setting("prompt_color", "color of the prompt in this profile"),
        _flag(
            "format",
            "output format: table, vertical, csv, tsv, json, jsonl, unaligned, markdown, html, insert, xlsx, "
            "parquet, arrow or arrows",
            NAME,
            default="table",
            often=True,
        ),
        _flag("null", "text that represents NULL", Kind("TEXT"), default=None),
        _flag("table_style", "style of the table format: auto, psql, simple, rounded_outline, …", NAME, default="auto"),
        Setting("types", "show the types of columns under their names at a terminal", SWITCH, default=True),
        Setting(
            "browse",
            "at the prompt, open results with at least this many columns in the explorer, 0 = never",
            replace(NUMBER, zero="never"),
            default=100,
        ),
        _flag(
            "color",
            "when to use colors: auto (at a terminal), always (also in pipes and files) or never "
            "[default: auto, unless NO_COLOR is set]",
            _words("auto", "always", "never"),
            default="auto",
        ),
        Setting("pager", "pager for large results, or off [default: less -SRXF]", PAGER),
        Setting(
            "expanded",
            "show each row as a record: on, off or auto",
            _words("off", "on", "auto"),
            default="off",
            at_prompt="auto",
        ),
        Setting("wide", "how to show wide tables: scroll or fold", _words("scroll", "fold"), default="scroll"),
        Setting("maxwidth", "maximum width of a value in characters, 0 = no limit", LIMIT, at_prompt=1000),
        Setting("numericlocale", "group the digits of numbers", SWITCH),
        _flag("tuples_only", "show rows only, without column names", SWITCH, short="-t", often=True),
        Setting("header", "show column names", SWITCH, default=True),
        Setting("footer", "show the number of rows after each result of the unaligned format", SWITCH, default=True),
        _flag(
            "fieldsep",
            "field separator of the unaligned format; \\t is a tab, \\0 a zero byte [default: |]",
            SEPARATOR,
            default="|",
            short="-F",
            long="--field-separator",
        ),
        _flag(
            "recordsep",
            "record separator of the unaligned format [default: line break]",
            SEPARATOR,
            default="\n",
            short="-R",
            long="--record-separator",
        ),
        _flag("csv_safe", "in csv and tsv, write ' before values that a spreadsheet would run as formulas", SWITCH),
        _flag("insert_table", "table name in the INSERT statements of the insert format", NAME),
        Setting("timing", "show the time that each statement took", SWITCH, at_prompt=True),
        Setting(
            "rowlimit",
            "maximum rows of a SELECT at the prompt, except on a remote service; 0 = no limit",
            LIMIT,
            default=10000,
        ),
        Setting("completion", "complete while typing", SWITCH, default=True),
        Setting("multiline", "Enter inserts a new line until the statement ends", SWITCH, default=True),
        Setting("vi", "use vi keys instead of emacs keys", SWITCH),
        Setting("prompt", 'prompt template, such as "{database}.{schema}> "'),
        Setting("rprompt", 'template at the right edge of the prompt line, such as "{elapsed}"'),
        Setting("toolbar", 'template of the bottom line, such as "{target} {role} {jobs}"'),
        Setting(
            "prompt_lines", "lines of the prompt: 1, or 2 to show the context above the statement", NUMBER, default=1
        ),
        Setting("title", 'template of the window title, such as "{target}", or off'),
        Setting(
            "terminal_integration",
            "show progress and links in terminals that support them [default: on]",
            SWITCH,
            default=True,
        ),
        Setting(
            "notify",
            "ring the bell after a statement that took at least this long [default: never]",
            UNLESS_NEVER,
        ),
        _flag("theme", "theme of the interactive shell", NAME, default="default"),
    ),
    OTHER: (
        _flag("no_rc", "do not run rc.sql from the config directory", SWITCH, short="-X", often=True),
        Setting("secret_names", "additional regular expressions for names whose values are never recorded", TEXTS),
        Setting("journal", "record statements for \\jobs and \\fetch [default: on]", SWITCH, default=True),
        Setting(
            "verbosity",
            "detail of error messages: default, terse, verbose or sqlstate",
            _words("default", "terse", "verbose", "sqlstate"),
            default="default",
        ),
        _flag("quiet", "print fewer messages to stderr", SWITCH, short="-q", often=True),
        _flag("verbose", "print more messages to stderr; repeatable", COUNT, short="-v"),
    ),
}


def _completed(row: Setting, group: str) -> Setting:
    default = row.kind.default if row.default is ... else row.default
    kept = not row.once
    return replace(
        row, group=group, default=default, environment=row.environment and kept, profile=row.profile and kept
    )


SETTINGS: Final = tuple(_completed(row, group) for group, rows in _TABLE.items() for row in rows)
BY_NAME: Final[Mapping[str, Setting]] = {setting.name: setting for setting in SETTINGS}

VARIABLES: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "ON_ERROR_STOP": ("on_error", {"on": "stop", "off": "continue"}),
    "ECHO": ("echo", {"none": False, "queries": True, "all": True, "errors": False}),
    "QUIET": ("quiet", {"on": True, "off": False}),
    "VERBOSITY": ("verbosity", {word: word for word in BY_NAME["verbosity"].kind.words}),
    "SINGLELINE": ("multiline", {"on": False, "off": True}),
}
"""The variables of psql that are settings, with their words and what these mean."""

OF_ONE_RUN: Final = frozenset(setting.name for setting in SETTINGS if setting.once or not setting.profile) | {
    *("command", "file", "output", "version", "list_themes", "spec", "no_align", "list", "input_format"),
}
"""Command-line options that apply to a single run and are not allowed in a profile."""
