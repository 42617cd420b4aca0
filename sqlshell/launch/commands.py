"""The command of the shell itself, with its options, and what starts it."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from sqlshell.config.peers import option_remedy, without_effect
from sqlshell.config.settings import GROUPS, OUTPUT, SCRIPTS, SETTINGS
from sqlshell.config.values import config_folder, read_config
from sqlshell.errors import UsageError
from sqlshell.launch.options import SUBCOMMANDS, Choice, Command, Option, argument, lists_all, option_of
from sqlshell.version import __version__

EXAMPLES: Final = """\
Examples:
  sqlshell                                    DuckDB in memory
  sqlshell work.duckdb                        the same, on a database file
  sqlshell sales.parquet -c 'from sales limit 5'
  seq 9 | sqlshell - -c 'from stdin'          data on stdin
  sqlshell https://host/v2 --database d       a remote service
  sqlshell -f load.sql -c 'from t' -o t.csv   -c and -f run in the order given
"""
DETAILS: Final = """
Formats: table, vertical (for the screen); markdown, html, xlsx (documents);
csv, tsv, json, jsonl, insert, unaligned (text for programs); parquet, arrow,
arrows (typed columns).
TIME is 30 (seconds), 1.5s, 5m or 1h30m.
Exit codes: 0 success, 1 statement failed, 2 usage error, 3 service error,
4 timeout, 130 interrupted, 141 stdout closed by its reader.
The token is read from SQLSHELL_TOKEN, --token-file or a profile; at a
terminal, sqlshell prompts for it.
'sqlshell SUBCOMMAND --help' shows the options of a subcommand.
"""
"""What the help adds to its list of all options."""


def of_groups(*groups: str) -> frozenset[str]:
    """Return the settings of these groups that have a flag."""
    return frozenset(setting.name for setting in SETTINGS if setting.flags and setting.group in groups)


DATA_FORMATS: Final = ("csv", "tsv", "json", "jsonl", "parquet")
"""What data on stdin and the file of an import may be."""

COMPLETE: Final = "_SQLSHELL_COMPLETE"
"""The environment variable with which a shell asks for completions."""


class ShellCommand(Command):
    """`sqlshell` without a subcommand, which also notes the order of -c and -f."""

    def look_at(self, ctx: click.Context, words: Sequence[str]) -> None:
        parser = self.make_parser(ctx)
        # Options of a subcommand are unknown here, and must not be reported as the error.
        parser.ignore_unknown_options = True
        given, rest, order = parser.parse_args(list(words))
        ctx.meta["sqlshell.scripts"] = [item.name for item in order if item.name in {"command", "file"}]
        targets = given.get("target")
        others = [*(targets if isinstance(targets, tuple | list) else ()), *rest]
        first = next((word for word in others if word[:1] != "-"), "")
        if first in SUBCOMMANDS and not ctx.resilient_parsing:
            raise UsageError(
                f"the subcommand {first} must come first: sqlshell {first} …",
                f"sqlshell {first} --help lists its options",
            )
        long = {name for item in self.params for name in item.opts}
        for word, following in itertools.pairwise([*words, "-"]):
            if (word == "-h" and following[:1] != "-") or (word[:2] == "-h" and word not in {"-h", *long}):
                raise UsageError("-h prints the help and takes no value", option_remedy("--host"))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        with formatter.section("Subcommands"):
            formatter.write_dl(list(SUBCOMMANDS.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write("\n" + EXAMPLES + (DETAILS if lists_all(ctx) else ""))


def shell_command() -> click.Command:
    """Return the main command, which runs statements of TARGET."""
    takes = of_groups(*GROUPS)
    return ShellCommand(
        "sqlshell",
        [
            argument("target", nargs=-1),
            Option(
                ["-c", "--command"], group=SCRIPTS, multiple=True, metavar="SQL", help="run SQL and exit; repeatable"
            ),
            Option(
                ["-f", "--file"],
                group=SCRIPTS,
                multiple=True,
                metavar="FILE",
                help="run a script and exit (- for stdin); repeatable",
            ),
            Option(
                ["-o", "--output"],
                group=OUTPUT,
                metavar="FILE",
                help="write results to FILE, in the format of its extension",
            ),
            *map(option_of, (setting for setting in SETTINGS if setting.flags)),
            Option(
                ["--input-format"],
                group=SCRIPTS,
                often=False,
                type=Choice(DATA_FORMATS),
                help="format of the data on stdin (TARGET -)",
            ),
            Option(
                ["-A", "--no-align"],
                group=OUTPUT,
                is_flag=True,
                help="unaligned output, like psql -A (--format unaligned)",
            ),
            Option(
                ["-x", "--expanded"],
                group=OUTPUT,
                is_flag=True,
                help="show each row as a record (\\pset expanded on)",
            ),
            Option(["-P", "--pset"], multiple=True, hidden=True),
            Option(["-l", "--list"], is_flag=True, help="list databases and organizations, and exit"),
            Option(["--list-themes"], is_flag=True, often=False, help="list the themes with color samples and exit"),
            Option(
                ["--spec"],
                is_flag=True,
                often=False,
                help="print options, subcommands and backslash commands as JSON and exit",
            ),
            Option(["--version"], is_flag=True, help="print the version and exit"),
        ],
        takes=takes | {"version"},
        callback=_shell,
        epilog=EXAMPLES + DETAILS,
        help="A SQL shell for statement-execution services. TARGET is a base URL (https://host/v2), a profile in "
        "config.toml, a database file, data files (csv, json, parquet; - is stdin), or the URL of a PostgreSQL "
        "or Spark Connect server (postgresql://user@host/db, sc://host). The default is "
        "SQLSHELL_URL, profile SQLSHELL_PROFILE or 'default', or DuckDB in memory.",
    )


def _shell(
    target: tuple[str, ...],
    command: tuple[str, ...],
    file: tuple[str, ...],
    output: str | None,
    version: bool,
    spec: bool,
    list_themes: bool,
    no_align: bool,
    expanded: bool,
    pset: tuple[str, ...],
    list: bool,
    input_format: str | None,
    **given: Any,
) -> int:
    if version:
        click.echo(f"sqlshell {__version__}")
        return 0
    if spec:
        import json

        from sqlshell.launch.spec import spec_of

        click.echo(json.dumps(spec_of(shell_command(), SUBCOMMANDS, click.get_current_context().find_root()), indent=2))
        return 0
    if list_themes:
        return _list_themes(given["color"])
    if no_align:
        given["format"] = "unaligned"
    if expanded:
        given["expanded"] = "on"
    given |= _display_options(pset)
    target = _with_connection_string(target, given)
    data = target if len(target) > 1 or "-" in target else ()
    if input_format and "-" not in data:
        raise UsageError("--input-format requires the TARGET -", "the extension of a file sets its format")
    if target.count("-") > 1:
        raise UsageError("TARGET - may be given only once")
    one = target[0] if target and not data else None
    if list:
        return run_shell(one, [("command", "\\l")], output or "", given, data=data, input_format=input_format)
    texts, files = iter(command), iter(file)
    kinds = click.get_current_context().meta["sqlshell.scripts"]
    scripts = [(kind, next(texts if kind == "command" else files)) for kind in kinds]
    return run_shell(one, scripts, output or "", given, data=data, input_format=input_format)


def _with_connection_string(target: tuple[str, ...], given: dict[str, Any]) -> tuple[str, ...]:
    """The targets with that of -d, which may be a URL or a connection string, as in psql."""
    database = given["database"]
    if not database or not ("://" in database or "=" in database):
        return target
    if target:
        raise UsageError("--database with a URL cannot be used with TARGET", "omit one of them")
    given["database"] = None
    return (database,)


def _display_options(assignments: Sequence[str]) -> dict[str, Any]:
    """The settings of psql's -P NAME=VALUE. Raises UsageError."""
    found = {}
    for text in assignments:
        from sqlshell.diagnostics import Diagnostics
        from sqlshell.shell.options import display_option

        name, equals, value = text.partition("=")
        if warning := without_effect(name):
            Diagnostics(sys.stderr).warn(warning)
            continue
        setting, inverted = display_option(name)
        if not equals:
            raise UsageError(f"-P {name} requires a value", f"write it as -P {name}=VALUE")
        found["tuples_only" if inverted else setting.name] = value
    return found


def _list_themes(when: str | None) -> int:
    from sqlshell.runtime.streams import choose_colors, forces_colors
    from sqlshell.shell.interactive.look.paint import color_depth, previews

    choose_colors(when or os.environ.get("SQLSHELL_COLOR", ""))
    at_terminal = sys.stdout.isatty()
    colors = color_depth() if at_terminal or forces_colors(os.environ) else 0
    width = shutil.get_terminal_size().columns if at_terminal else 0
    for line in previews(config_folder(os.environ) / "themes", colors, width):
        click.echo(line, color=True)
    return 0


def run_shell(
    target: str | None,
    scripts: Sequence[tuple[str, str]],
    output: str,
    given: Mapping[str, Any],
    statement_id: str = "",
    *,
    writes: bool = False,
    data: Sequence[str] = (),
    input_format: str | None = None,
) -> int:
    """Run scripts on a target, or its prompt if there are none. The arguments are those of an Invocation."""
    from sqlshell.origin import Trusted
    from sqlshell.runtime.streams import Streams

    settings, streams, flags = read_config(config_folder(os.environ)), Streams.standard(), flags_of(given)
    own = [(kind, Trusted(text)) for kind, text in scripts]
    first = None
    try:
        if not (scripts or data) and streams.stdin.isatty():
            from sqlshell.launch.first_prompt import first_prompt
            from sqlshell.runtime.shutdown import install_exit_handlers

            # Before the echo of the terminal is turned off.
            install_exit_handlers()
            first = first_prompt(Trusted(target or ""), flags, os.environ, settings, streams)
        # This takes longer than everything before: a person sees the prompt first.
        from sqlshell.launch.invocation import Invocation, run

        invocation = Invocation(
            Trusted(target or ""),
            own,
            Trusted("" if output == "-" else output),
            flags,
            settings,
            os.environ,
            streams,
            statement_id,
            writes,
            [Trusted(text) for text in data],
            input_format or "",
            first,
        )
        return run(invocation)
    finally:
        if first is not None:
            first.close()


def flags_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags given on the command line."""
    flags = {name: value for name, value in given.items() if value not in (None, False, ())}
    if not flags.get("verbose"):
        flags.pop("verbose", None)
    return flags
