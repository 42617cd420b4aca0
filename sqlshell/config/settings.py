r"""One table of settings: each row is a flag, an environment variable, a key of config.toml and a help text.

A value comes from the first of: flag, environment (`SQLSHELL_` and the name in capitals), the profile in config.toml,
the default. The display options of `\pset` stand here too; where their default is "", the shell has one of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

Kind = Literal["text", "flag", "count", "integer", "seconds", "choice", "many"]

PREFIX = "SQLSHELL_"
DEFAULT_PROFILE = "default"


class Setting(Struct, frozen=True):
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

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of its variable: of the setting, and of its flag."""
        return tuple(PREFIX + key.upper() for key in self.keys)

    @property
    def keys(self) -> tuple[str, ...]:
        """How a profile may write it: its name, and that of its flag where that is another (`for`)."""
        flags = (flag.removeprefix("--").replace("-", "_") for flag in self.flags if flag.startswith("--"))
        return tuple(dict.fromkeys((self.name, *flags)))


CONNECTION, CONTEXT, OUTPUT, SCRIPTS, OTHER = "Connection", "Context", "Output", "Scripts", "Other"
GROUPS = (CONNECTION, CONTEXT, SCRIPTS, OUTPUT, OTHER)

SETTINGS: tuple[Setting, ...] = (
    Setting("url", "the service's base URL, a DSN, or a database or data file", CONNECTION),
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
    Setting("token_keyring", "SERVICE/USER of the token in the system's keyring", CONNECTION),
    Setting("token_command", "command whose output is the token; run again after a 401", CONNECTION),
    Setting(
        "private_data_plane",
        "let a service elsewhere keep results at private addresses",
        CONNECTION,
        "flag",
        default=False,
    ),
    Setting(
        "answer_limit",
        "MiB of one answer at most (64, up to 256 by the rows that are announced)",
        CONNECTION,
        "integer",
        default=0,
    ),
    Setting(
        "upload_limit",
        "the largest file that is sent, in MiB; 0 = any size (1024)",
        CONNECTION,
        "integer",
        flags=("--upload-limit",),
        metavar="MIB",
        default=1024,
    ),
    Setting(
        "download_limit",
        "the largest file that is downloaded, in MiB; 0 = any size (1024)",
        CONNECTION,
        "integer",
        flags=("--download-limit",),
        metavar="MIB",
        default=1024,
    ),
    Setting(
        "offline",
        "send nothing: print each request as a curl command without the token",
        CONNECTION,
        "flag",
        flags=("--offline",),
        default=False,
        environment=False,
    ),
    Setting("organization", "organization, by name or id", CONTEXT, flags=("--organization",), metavar="NAME"),
    Setting("role", "role", CONTEXT, flags=("--role",), metavar="NAME"),
    Setting("database", "database", CONTEXT, flags=("--database",), metavar="NAME"),
    Setting("schema", "schema", CONTEXT, flags=("--schema",), metavar="NAME"),
    Setting("store", "store", CONTEXT, flags=("--store",), metavar="NAME"),
    Setting("compute_pool", "compute pool", CONTEXT, flags=("--compute-pool",), metavar="NAME"),
    Setting("timezone", "IANA time zone (the machine's)", CONTEXT, flags=("--timezone",), metavar="ZONE"),
    Setting("session_id", "session to join (a new one)", CONTEXT, flags=("--session-id",), metavar="ID"),
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
    Setting(
        "set",
        "give a variable its value, as \\set does; repeatable",
        SCRIPTS,
        "many",
        flags=("--set",),
        metavar="NAME=VALUE",
        default=(),
        environment=False,
    ),
    Setting(
        "no_commands",
        "refuse every backslash command, for scripts that others wrote",
        SCRIPTS,
        "flag",
        flags=("--no-commands",),
        default=False,
    ),
    Setting("yes", "do what the policy of the profile asks about", SCRIPTS, "flag", flags=("--yes",), default=False),
    Setting(
        "read_only",
        "refuse statements that write, before they are sent",
        SCRIPTS,
        "flag",
        flags=("--read-only",),
        default=False,
    ),
    Setting(
        "confirm",
        'statements to ask about, such as ["DROP", "DELETE WITHOUT WHERE"], or "type-name" for all that write',
        SCRIPTS,
        "many",
        default=(),
        environment=False,
    ),
    Setting("color", "colour of the prompt of this profile", OUTPUT),
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
    Setting("pager", "pager of tall results, or off (less -SRXF)", OUTPUT, default=""),
    Setting("expanded", "each row as a record: on, off or auto", OUTPUT, "choice", choices=("off", "on", "auto")),
    Setting("wide", "wide tables: scroll or fold", OUTPUT, "choice", choices=("scroll", "fold")),
    Setting("maxwidth", "cells of a value that are shown, 0 for all", OUTPUT, "integer"),
    Setting("numericlocale", "group the digits of numbers", OUTPUT, "flag"),
    Setting("tuples_only", "rows without the names of columns", OUTPUT, "flag"),
    Setting("header", "show the names of columns", OUTPUT, "flag"),
    Setting("timing", "show the time of each statement", OUTPUT, "flag"),
    Setting("rowlimit", "rows of the embedded service at the prompt, 0 for all", OUTPUT, "integer"),
    Setting("completion", "complete while typing", OUTPUT, "flag"),
    Setting("multiline", "Enter begins a new line until a statement ends", OUTPUT, "flag"),
    Setting("vi", "keys of vi in place of those of emacs", OUTPUT, "flag"),
    Setting("prompt", 'prompt, such as "{database}.{schema}> "', OUTPUT),
    Setting("rprompt", 'prompt at the right edge, such as "{elapsed}"', OUTPUT),
    Setting("toolbar", 'line at the bottom, such as "{target} {role} {jobs}"', OUTPUT),
    Setting("title", 'title of the terminal\'s window, such as "{target}"', OUTPUT),
    Setting("notify", "ring when a statement took so long, 0 = never (0)", OUTPUT, "seconds", default=0.0),
    Setting("theme", "theme of the interactive shell", OUTPUT, flags=("--theme",), metavar="NAME", default="default"),
    Setting("no_rc", "do not run rc.sql of the config folder", OTHER, "flag", flags=("--no-rc",), default=False),
    Setting("secret_names", "further patterns of names whose values are kept nowhere", OTHER, "many", default=()),
    Setting("journal", "remember statements for \\jobs and \\fetch (on)", OTHER, "flag", default=True),
    Setting("quiet", "say less on stderr", OTHER, "flag", flags=("-q", "--quiet"), default=False),
    Setting("verbose", "say more on stderr; repeatable", OTHER, "count", flags=("-v", "--verbose"), default=0),
)

BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}
BY_KEY: Mapping[str, Setting] = {key: setting for setting in SETTINGS for key in setting.keys}

OF_ONE_RUN = frozenset({"attach", "command", "file", "output", "profile", "version", "list_themes"})
"""Options of the command line that say what one run does, and that no profile holds."""
