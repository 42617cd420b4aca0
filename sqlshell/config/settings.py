r"""The table of settings: each row defines a flag, an environment variable, a key of config.toml and a help text.

A value comes from the first of: flag, environment (`SQLSHELL_` and the name in capitals), the profile in config.toml,
the default. The table includes the display options of `\pset`; a default of "" means that the shell has its own
default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

Kind = Literal["text", "flag", "count", "integer", "seconds", "choice", "many"]

PREFIX = "SQLSHELL_"
DEFAULT_PROFILE = "default"


class Setting(Struct, frozen=True):
    """One setting. `flags` is empty if it has no flag; `profile` says whether config.toml may contain it."""

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
    Setting("url", "the service's base URL, a DSN, or a database or data file", CONNECTION),
    Setting("token", "the bearer token", CONNECTION),
    Setting("token_file", "file that contains the bearer token", CONNECTION, flags=("--token-file",), metavar="FILE"),
    Setting("profile", "profile of config.toml", CONNECTION, flags=("--profile",), metavar="NAME", profile=False),
    Setting(
        "connect_timeout",
        "maximum time to establish a connection [default: 10s]",
        CONNECTION,
        "seconds",
        flags=("--connect-timeout",),
        metavar="TIME",
        default=10.0,
    ),
    Setting(
        "wait",
        "maximum time to wait for one statement; exit code 4 if exceeded [default: no limit]",
        CONNECTION,
        "seconds",
        flags=("--wait",),
        metavar="TIME",
        default=0.0,
    ),
    Setting(
        "read_timeout",
        "maximum time to wait for data within one request, 0 = no limit [default: 120s]",
        CONNECTION,
        "seconds",
        flags=("--read-timeout",),
        metavar="TIME",
        default=120.0,
    ),
    Setting(
        "timeout",
        "maximum time of a request and its retries, 1 s more for each 16 KiB of data [default: 300s]",
        CONNECTION,
        "seconds",
        flags=("--timeout",),
        metavar="TIME",
        default=300.0,
    ),
    Setting(
        "retries",
        "maximum retries of a request that is safe to repeat [default: 5]",
        CONNECTION,
        "integer",
        flags=("--retries",),
        metavar="N",
        default=5,
    ),
    Setting(
        "api",
        "interface of the service; auto detects it [default: v2]",
        CONNECTION,
        "choice",
        flags=("--api",),
        choices=("v2", "legacy", "auto"),
        default="v2",
    ),
    Setting(
        "ca_file",
        "CA certificates to trust instead of the system's, in PEM format",
        CONNECTION,
        flags=("--ca-file",),
        metavar="FILE",
    ),
    Setting("client_cert", "client certificate, in PEM format", CONNECTION, flags=("--client-cert",), metavar="FILE"),
    Setting(
        "client_key",
        "key of the client certificate, if in a separate file",
        CONNECTION,
        flags=("--client-key",),
        metavar="FILE",
    ),
    Setting(
        "insecure",
        "do not verify the service's TLS certificate",
        CONNECTION,
        "flag",
        flags=("--insecure",),
        default=False,
    ),
    Setting("token_keyring", "SERVICE/USER of the token in the system keyring", CONNECTION),
    Setting("token_command", "command that prints the token; runs again after a 401", CONNECTION),
    Setting(
        "private_data_plane",
        "allow a public service to serve results from private addresses",
        CONNECTION,
        "flag",
        default=False,
    ),
    Setting(
        "answer_limit",
        "maximum size of one response in MiB [default: 64; up to 256 for a partition announced with many rows]",
        CONNECTION,
        "integer",
        default=0,
    ),
    Setting(
        "upload_limit",
        "maximum size of an uploaded file in MiB, 0 = no limit [default: 1024]",
        CONNECTION,
        "integer",
        flags=("--upload-limit",),
        metavar="MIB",
        default=1024,
    ),
    Setting(
        "download_limit",
        "maximum size of a downloaded file in MiB, 0 = no limit [default: 1024]",
        CONNECTION,
        "integer",
        flags=("--download-limit",),
        metavar="MIB",
        default=1024,
    ),
    Setting(
        "offline",
        "send nothing; print each request as a curl command without the token",
        CONNECTION,
        "flag",
        flags=("--offline",),
        default=False,
        environment=False,
    ),
    Setting("organization", "organization to use, by name or ID", CONTEXT, flags=("--organization",), metavar="NAME"),
    Setting("role", "role to use", CONTEXT, flags=("--role",), metavar="NAME"),
    Setting("database", "database to use", CONTEXT, flags=("-d", "--database"), metavar="NAME"),
    Setting("schema", "schema to use", CONTEXT, flags=("--schema",), metavar="NAME"),
    Setting("store", "store to use", CONTEXT, flags=("--store",), metavar="NAME"),
    Setting("compute_pool", "compute pool to use", CONTEXT, flags=("--compute-pool",), metavar="NAME"),
    Setting(
        "timezone",
        "IANA time zone [default: the system's; with a PostgreSQL URL the server's]",
        CONTEXT,
        flags=("--timezone",),
        metavar="ZONE",
    ),
    Setting("session_id", "session to join [default: a new session]", CONTEXT, flags=("--session-id",), metavar="ID"),
    Setting(
        "on_error",
        "what to do after a failure in a script [default: stop]",
        SCRIPTS,
        "choice",
        flags=("--on-error",),
        choices=("stop", "continue"),
        default="stop",
    ),
    Setting(
        "attach",
        "file to upload with the statement that names it; repeatable",
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
        "stop an unbounded result after N rows",
        SCRIPTS,
        "integer",
        flags=("--max-rows",),
        metavar="N",
        default=0,
    ),
    Setting(
        "stream_for",
        "stop an unbounded result after this time",
        SCRIPTS,
        "seconds",
        flags=("--for",),
        metavar="TIME",
        default=0.0,
    ),
    Setting(
        "allow_gaps",
        "reconnect to an unbounded result after a connection failure; rows may be missing",
        SCRIPTS,
        "flag",
        flags=("--allow-gaps",),
        default=False,
    ),
    Setting(
        "set",
        "set a variable, like \\set; repeatable",
        SCRIPTS,
        "many",
        flags=("--set",),
        metavar="NAME=VALUE",
        default=(),
        environment=False,
    ),
    Setting(
        "no_commands",
        "refuse backslash commands; for untrusted scripts",
        SCRIPTS,
        "flag",
        flags=("--no-commands",),
        default=False,
    ),
    Setting(
        "yes",
        "answer yes to the confirmations that the profile requires",
        SCRIPTS,
        "flag",
        flags=("--yes",),
        default=False,
    ),
    Setting(
        "read_only",
        "refuse statements that write, before sending them",
        SCRIPTS,
        "flag",
        flags=("--read-only",),
        default=False,
    ),
    Setting(
        "single_transaction",
        "run all scripts in one transaction, rolled back if a statement fails",
        SCRIPTS,
        "flag",
        flags=("-1", "--single-transaction"),
        default=False,
        environment=False,
        profile=False,
    ),
    Setting(
        "dry_run",
        "print the statements of scripts as they would be sent, with variables substituted; connect to nothing",
        SCRIPTS,
        "flag",
        flags=("--dry-run",),
        default=False,
        environment=False,
        profile=False,
    ),
    Setting(
        "stats",
        "append a JSON line with the outcome and times of each statement to FILE",
        SCRIPTS,
        flags=("--stats",),
        metavar="FILE",
        environment=False,
        profile=False,
    ),
    Setting(
        "checkpoint",
        "record in FILE which statements of the scripts are done, for --resume",
        SCRIPTS,
        flags=("--checkpoint",),
        metavar="FILE",
        environment=False,
        profile=False,
    ),
    Setting(
        "resume",
        "with --checkpoint: skip the statements that an earlier run completed",
        SCRIPTS,
        "flag",
        flags=("--resume",),
        default=False,
        environment=False,
        profile=False,
    ),
    Setting(
        "unknown",
        "with --resume: skip a statement whose outcome is unknown, or send it again",
        SCRIPTS,
        "choice",
        flags=("--unknown",),
        choices=("skip", "send"),
        environment=False,
        profile=False,
    ),
    Setting(
        "confirm",
        'statements that require confirmation: ["DROP", "DELETE WITHOUT WHERE"], or "type-name" for all that write',
        SCRIPTS,
        "many",
        default=(),
        environment=False,
    ),
    Setting("prompt_color", "color of the prompt in this profile", OUTPUT),
    Setting("echo", "print each statement to stderr before it runs", SCRIPTS, "flag", flags=("-e", "--echo")),
    Setting(
        "format",
        "output format: table, vertical, csv, tsv, json, jsonl, unaligned, markdown, html, insert, xlsx, "
        "parquet, arrow or arrows",
        OUTPUT,
        flags=("--format",),
        metavar="NAME",
        default="table",
    ),
    Setting("null", "text that represents NULL", OUTPUT, flags=("--null",), metavar="TEXT", default=None),
    Setting(
        "table_style",
        "style of the table format: auto, psql, simple, rounded_outline, …",
        OUTPUT,
        flags=("--table-style",),
        metavar="NAME",
        default="auto",
    ),
    Setting("types", "show the types of columns under their names at a terminal", OUTPUT, "flag"),
    Setting(
        "explore",
        "minimum number of columns with which a result opens in the explorer at the prompt, 0 = never",
        OUTPUT,
        "integer",
    ),
    Setting(
        "color",
        "when to use colors: auto (at a terminal), always (also in pipes and files) or never "
        "[default: auto, unless NO_COLOR is set]",
        OUTPUT,
        "choice",
        flags=("--color",),
        metavar="WHEN",
        choices=("auto", "always", "never"),
        default="auto",
    ),
    Setting("pager", "pager for large results, or off [default: less -SRXF]", OUTPUT, default=""),
    Setting("expanded", "show each row as a record: on, off or auto", OUTPUT, "choice", choices=("off", "on", "auto")),
    Setting("wide", "how to show wide tables: scroll or fold", OUTPUT, "choice", choices=("scroll", "fold")),
    Setting("maxwidth", "maximum width of a value in characters, 0 = no limit", OUTPUT, "integer"),
    Setting("numericlocale", "group the digits of numbers", OUTPUT, "flag"),
    Setting(
        "tuples_only",
        "show rows only, without column names",
        OUTPUT,
        "flag",
        flags=("-t", "--tuples-only"),
        default=False,
    ),
    Setting("header", "show column names", OUTPUT, "flag"),
    Setting("footer", "show the number of rows after each result of the unaligned format", OUTPUT, "flag"),
    Setting(
        "fieldsep",
        "field separator of the unaligned format; \\t is a tab, \\0 a zero byte [default: |]",
        OUTPUT,
        flags=("-F", "--field-separator"),
        metavar="TEXT",
        default="|",
    ),
    Setting(
        "recordsep",
        "record separator of the unaligned format [default: line break]",
        OUTPUT,
        flags=("-R", "--record-separator"),
        metavar="TEXT",
        default="\\n",
    ),
    Setting(
        "csv_safe",
        "in csv and tsv, write ' before values that a spreadsheet would run as formulas",
        OUTPUT,
        "flag",
        flags=("--csv-safe",),
        default=False,
    ),
    Setting(
        "insert_table",
        "table name in the INSERT statements of the insert format",
        OUTPUT,
        flags=("--insert-table",),
        metavar="NAME",
        default="",
    ),
    Setting("timing", "show the time that each statement took", OUTPUT, "flag"),
    Setting(
        "rowlimit",
        "maximum rows of a SELECT at the prompt, except on a remote service; 0 = no limit",
        OUTPUT,
        "integer",
    ),
    Setting("completion", "complete while typing", OUTPUT, "flag"),
    Setting("multiline", "Enter inserts a new line until the statement ends", OUTPUT, "flag"),
    Setting("vi", "use vi keys instead of emacs keys", OUTPUT, "flag"),
    Setting("prompt", 'prompt template, such as "{database}.{schema}> "', OUTPUT),
    Setting("rprompt", 'template at the right edge of the prompt line, such as "{elapsed}"', OUTPUT),
    Setting("toolbar", 'template of the bottom line, such as "{target} {role} {jobs}"', OUTPUT),
    Setting("prompt_lines", "lines of the prompt: 1, or 2 to show the context above the statement", OUTPUT, "integer"),
    Setting("title", 'template of the window title, such as "{target}", or off', OUTPUT),
    Setting(
        "terminal_integration",
        "show progress and links in terminals that support them [default: on]",
        OUTPUT,
        "flag",
        default=True,
    ),
    Setting(
        "notify",
        "ring the bell after a statement that took at least this long [default: never]",
        OUTPUT,
        "seconds",
        default=0.0,
    ),
    Setting("theme", "theme of the interactive shell", OUTPUT, flags=("--theme",), metavar="NAME", default="default"),
    Setting(
        "no_rc", "do not run rc.sql from the config directory", OTHER, "flag", flags=("-X", "--no-rc"), default=False
    ),
    Setting(
        "secret_names",
        "additional regular expressions for names whose values are never recorded",
        OTHER,
        "many",
        default=(),
    ),
    Setting("journal", "record statements for \\jobs and \\fetch [default: on]", OTHER, "flag", default=True),
    Setting(
        "verbosity",
        "detail of error messages: default, terse, verbose or sqlstate",
        OTHER,
        "choice",
        choices=("default", "terse", "verbose", "sqlstate"),
        default="default",
    ),
    Setting("quiet", "print fewer messages on stderr", OTHER, "flag", flags=("-q", "--quiet"), default=False),
    Setting(
        "verbose", "print more messages on stderr; repeatable", OTHER, "count", flags=("-v", "--verbose"), default=0
    ),
)

BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}

OF_ONE_RUN = frozenset(
    {
        "attach",
        "command",
        "file",
        "output",
        "profile",
        "version",
        "list_themes",
        "spec",
        "no_align",
        "list",
        "input_format",
    }
)
"""Command-line options that apply to a single run and are not allowed in a profile."""
