"""Names of psql and duckdb that sqlshell does not have, and what to use instead: options, commands and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_URL: Final = "use a URL: sqlshell postgresql://USER@HOST:PORT/DATABASE"
_SEPARATORS: Final = "use -A with -F SEP and -R SEP, which separate the values and records of the unaligned format"
_FRAME: Final = "\\pset table_style selects the frame of tables"
_OBJECTS: Final = "on PostgreSQL, call functions such as lo_get() and lo_put() in SQL"
_PARAMETERS: Final = "bound parameters are not supported; use :'name' to insert the value of a variable as a string"
_PIPELINES: Final = "pipelines are not supported; statements of a script are sent together where that is safe"
_ONE_PROMPT: Final = "\\pset prompt sets the prompt; continuation lines have no prompt of their own"

RENAMED: Final[Mapping[str, str]] = {
    "wait": "timeout",
    "stream_for": "duration",
    "unknown": "if_unknown",
    "explore": "browse",
}
"""What settings of version 0.1.0 are called now."""

OPTIONS: Final[Mapping[str, tuple[str, Any]]] = {
    "-? -help": ("help", True),
    "-V -version": ("version", True),
    "--dbname": ("database", None),
    "--no-psqlrc -no-init --no-init": ("no_rc", True),
    "-a --echo-all --echo-queries -echo": ("echo", True),
    "-z --field-separator-zero": ("fieldsep", "\\0"),
    "-0 --record-separator-zero": ("recordsep", "\\0"),
    "-nullvalue --nullvalue": ("null", None),
    "-readonly --readonly": ("read_only", True),
    "-bail --bail": ("on_error", "stop"),
    "-header --header": ("tuples_only", "off"),
    "-noheader --noheader": ("tuples_only", "on"),
    "-dark-mode --dark-mode": ("theme", "default"),
    "-light-mode --light-mode": ("theme", "light"),
    "--csv -csv": ("format", "csv"),
    "-H --html -html": ("format", "html"),
    "-json --json": ("format", "json"),
    "-jsonlines --jsonlines": ("format", "jsonl"),
    "-line --line": ("format", "vertical"),
    "-list": ("format", "unaligned"),
    "-markdown --markdown": ("format", "markdown"),
    "-table": ("format", "table"),
    "-box --box": ("table_style", "simple_outline"),
    "-column --column": ("table_style", "simple"),
}
"""Options of the peers that are taken, each as a setting and its value; None is the option's own value."""

REFUSED_OPTIONS: Final[Mapping[str, str]] = {
    "--wait": "it is now --timeout; the former --timeout is now --retry-timeout",
    "--for": "it is now --duration",
    "--unknown": "it is now --if-unknown",
    "--host": _URL,
    "-p --port": _URL,
    "-U --username": _URL,
    "-w --no-password": "omit it: sqlshell asks for a password only at a terminal",
    "-W --password": "omit it: at a terminal, sqlshell asks for a password that the server requires",
    "-b --echo-errors": "omit it: an error names the line in the script; -v also shows it",
    "-E --echo-hidden": "use -vv, which prints the requests to the service",
    "-L --log-file": "use -c '\\log FILE' before the other scripts, or \\log FILE at the prompt",
    "-n --no-readline": "omit it: only the prompt edits lines; for a script, use -f FILE or stdin",
    "-s --single-step": "use -c SQL to run SQL; `confirm` in a profile lists statements that require confirmation",
    "-S --single-line": "write \\pset multiline off at the prompt; a statement in a script ends with ;",
    "-T --table-attr": "omit it: HTML tables have no attributes",
    "--help=commands": "use -c '\\?'",
    "--help=variables": "use -c '\\set' for variables, or sqlshell config settings",
    "-ascii --ascii": _SEPARATORS,
    "-batch --batch": "omit it: -c, -f and stdin never ask",
    "-cmd --cmd": "use -c COMMAND before -f FILE (- is stdin); rc.sql runs before the prompt",
    "-init --init": "use -f FILE for a script; rc.sql in the config directory runs before the prompt",
    "-interactive --interactive": "omit it: without -c and -f, sqlshell is interactive at a terminal",
    "-newline --newline": _SEPARATORS,
    "-separator --separator": _SEPARATORS,
    "-no-stdin --no-stdin": "omit it: with -c or -f, stdin is not read as a script",
    "-quote --quote": "use --format insert, which writes values as SQL",
    "-safe --safe": "use --no-commands for untrusted scripts, and --read-only to refuse writes",
    "-storage-version --storage-version": "omit it: a new database has the format of the installed DuckDB",
    "-ui --ui": "write \\browse at the prompt to look through a result",
    "-unredacted --unredacted": "omit it: secrets are never shown",
    "-unsigned --unsigned": "omit it: only signed extensions can be loaded",
}
"""Options of the peers that sqlshell does not have."""

_CATALOGS: Final[Mapping[str, str]] = {
    "dA": "pg_am",
    "db": "pg_tablespace",
    "dc": "pg_conversion",
    "dC": "pg_cast",
    "dconfig": "pg_settings",
    "dd": "pg_description",
    "ddp": "pg_default_acl",
    "dE": "pg_foreign_table",
    "des": "pg_foreign_server",
    "det": "pg_foreign_table",
    "deu": "pg_user_mapping",
    "dew": "pg_foreign_data_wrapper",
    "dF": "pg_ts_config",
    "dFd": "pg_ts_dict",
    "dFp": "pg_ts_parser",
    "dFt": "pg_ts_template",
    "dL": "pg_language",
    "do": "pg_operator",
    "dO": "pg_collation",
    "drds": "pg_db_role_setting",
    "drg": "pg_auth_members",
    "dRp": "pg_publication",
    "dRs": "pg_subscription",
    "dx": "pg_extension",
    "dX": "pg_statistic_ext",
    "dy": "pg_event_trigger",
}
"""The catalog of PostgreSQL that contains what the command lists."""

_COMMANDS: Final[Mapping[str, str]] = {
    "bind": _PARAMETERS,
    "bind_named": _PARAMETERS,
    "C": "print a title with \\echo",
    "close_prepared": _PARAMETERS,
    "da": "\\df lists aggregates too",
    "dD": "on PostgreSQL, \\dT lists domains too",
    "dl": _OBJECTS,
    "dP": "on PostgreSQL, \\dt and \\di list partitioned relations too",
    "ef": "\\sf NAME shows the definition, and \\e edits the last statement",
    "ev": "\\schema NAME shows the definition, and \\e edits the last statement",
    "H": "use \\format html",
    "html": "use \\format html",
    "own": "it is now \\trust",
    "parse": _PARAMETERS,
    "password": "on PostgreSQL, write ALTER ROLE name PASSWORD '…'; the history does not keep the password",
    "setenv": "\\! runs a shell command; to set an environment variable for it: \\! NAME=VALUE command",
}

_SYSTEM: Final[Mapping[str, str]] = {"dS": "dt", "dtS": "dt", "dvS": "dv", "diS": "di"}
"""Commands that list system relations too, and those that list them by a pattern."""

_VARIABLES: Final[Mapping[str, str]] = {
    "COMP_KEYWORD_CASE": "completion follows the case that you type",
    "ECHO_HIDDEN": "-vv prints the requests to the service",
    "FETCH_COUNT": "results of any size are read in parts",
    "HIDE_TABLEAM": "only \\d+ of one relation shows its access method",
    "HIDE_TOAST_COMPRESSION": "only \\d+ shows the compression of columns",
    "HISTCONTROL": "a line that begins with a space is not kept in the history",
    "HISTFILE": "the environment variable SQLSHELL_STATE_DIR sets the directory of the history",
    "HISTSIZE": "the size of the history cannot be set",
    "IGNOREEOF": "Ctrl-D at an empty prompt exits",
    "PROMPT1": "\\pset prompt sets the prompt, to a template such as {database}>",
    "PROMPT2": _ONE_PROMPT,
    "PROMPT3": _ONE_PROMPT,
    "SHOW_ALL_RESULTS": "the result of each statement is shown",
    "SHOW_CONTEXT": "\\set VERBOSITY verbose and \\errverbose show the context of an error",
    "SINGLELINE": "a statement in a script ends with ;",
    "SINGLESTEP": "`confirm` in a profile lists statements that require confirmation",
    "WATCH_INTERVAL": "write the seconds after \\watch",
}
_HARMLESS: Final[Mapping[str, str]] = {
    "ECHO_HIDDEN": "off",
    "FETCH_COUNT": "0",
    "IGNOREEOF": "0",
    "SHOW_ALL_RESULTS": "on",
    "SINGLELINE": "off",
    "SINGLESTEP": "off",
}
"""The values that ask for nothing else than what is done anyway."""

DISPLAY_NAMES: Final[Mapping[str, str]] = {
    "x": "expanded",
    "t": "tuples_only",
}
"""Other names of display options."""

NO_EFFECT: Final[Mapping[str, str]] = {
    "columns": "a table is as wide as the terminal; \\pset maxwidth cuts long values",
    "border": _FRAME,
    "linestyle": _FRAME,
    "unicode_border_linestyle": _FRAME,
    "unicode_column_linestyle": _FRAME,
    "unicode_header_linestyle": _FRAME,
    "pager_min_lines": "the pager opens for output that is taller than the screen",
    "tableattr": "HTML tables have no attributes",
    "csv_fieldsep": "\\format tsv separates by tabs, \\pset fieldsep sets the separator of the unaligned format",
    "fieldsep_zero": "\\pset fieldsep sets the separator",
    "recordsep_zero": "\\pset recordsep sets the separator",
    "xheader_width": "the header of a record is as wide as its values",
}
"""Display options of psql that have no effect, and what to use instead."""


def option_remedy(word: str) -> str:
    """Return the hint for an option of a peer that sqlshell does not have; "" for other words."""
    return next((remedy for names, remedy in REFUSED_OPTIONS.items() if word in names.split()), "")


def command_remedy(name: str) -> str:
    """Return the hint for a command of psql that the shell does not have; "" for other names."""
    name = name.rstrip("+")
    if name.startswith("lo_"):
        return _OBJECTS
    if name.endswith("pipeline"):
        return _PIPELINES
    if catalog := _CATALOGS.get(name) or _CATALOGS.get(name.removesuffix("S")):
        return f"on PostgreSQL, write: select * from pg_catalog.{catalog}"
    if name in _SYSTEM:
        return f"\\{_SYSTEM[name]} pg_catalog.* lists system relations"
    return _COMMANDS.get(name) or _COMMANDS.get(name.removesuffix("S"), "")


def without_effect(name: str) -> str:
    """Return the warning about a display option of psql that has no effect; "" for other names."""
    name = name.lower()
    return f"psql's {name} has no effect: {NO_EFFECT[name]}" if name in NO_EFFECT else ""


def variable_remedy(name: str, value: str) -> str:
    """Return the replacement of a variable of psql, "" if the value has its effect or the variable is not psql's."""
    return "" if _HARMLESS.get(name) == value.lower() else _VARIABLES.get(name, "")
