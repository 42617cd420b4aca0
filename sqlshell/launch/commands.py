"""The commands of the command line: the shell itself and its subcommands, each with its options and what it starts."""

from __future__ import annotations

import inspect
import itertools
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

from sqlshell.config.peers import NO_EFFECT, option_remedy
from sqlshell.config.settings import CONNECTION, CONTEXT, GROUPS, OUTPUT, SCRIPTS, SETTINGS
from sqlshell.config.values import config_folder, read_config
from sqlshell.errors import UsageError
from sqlshell.launch.options import SUBCOMMANDS, Argument, Command, Option, lists_all, option_of
from sqlshell.version import __version__

EXAMPLES: Final = """\b
Examples:
  sqlshell                                    the embedded service, in memory
  sqlshell work.duckdb                        the same, on a database file
  sqlshell sales.parquet -c 'from sales limit 5'
  seq 9 | sqlshell - -c 'from stdin'          data on stdin
  sqlshell https://host/v2 --database d       a remote service
  sqlshell -f load.sql -c 'from t' -o t.csv   -c and -f run in the order given
"""
DETAILS: Final = """
\b
Formats: table, vertical (for the screen); markdown, html, xlsx (documents);
csv, tsv, json, jsonl, insert, unaligned (text for programs); parquet, arrow,
arrows (typed columns).
TIME is 30, 1.5s, 5m or 1h30m.
Exit codes: 0 success, 1 statement failed, 2 usage error, 3 service error,
4 timeout, 130 interrupted, 141 stdout closed by its reader.
The token is read from SQLSHELL_TOKEN, --token-file or a profile; at a
terminal, sqlshell prompts for it.
'sqlshell SUBCOMMAND --help' shows the options of a subcommand.
"""
"""What the help adds to its list of all options."""


def _of_groups(*groups: str) -> frozenset[str]:
    return frozenset(setting.name for setting in SETTINGS if setting.flags and setting.group in groups)


_CLIENT: Final = _of_groups(CONNECTION) - {"timeout", "upload_limit", "download_limit", "offline"}
_CLIENT_AND_MESSAGES: Final = _CLIENT | {"color", "quiet", "verbose"}
_POLICY: Final = frozenset({"timeout", "yes", "read_only"})
_READING: Final = frozenset({"max_rows", "duration", "allow_gaps"})
_WRITING: Final = _of_groups(OUTPUT) - {"color", "theme"}
_STATEMENTS: Final = _CLIENT_AND_MESSAGES | _of_groups(CONTEXT) | _POLICY
TAKES: Final[Mapping[str, frozenset[str]]] = {
    "fetch": (_STATEMENTS - {"yes", "read_only"}) | _READING | _WRITING | {"theme"},
    "import": _STATEMENTS,
    "export": _STATEMENTS | _READING | _WRITING | {"attach", "upload_limit", "set", "echo", "stats"},
    "replay": _STATEMENTS | _READING | {"echo", "stats"},
    "download": _CLIENT_AND_MESSAGES | {"organization", "download_limit"},
    "doctor": _CLIENT,
    "version": _CLIENT_AND_MESSAGES,
}
"""The settings that are options of a subcommand: those that have an effect there."""

DATA_FORMATS: Final = ("csv", "tsv", "json", "jsonl", "parquet")
"""What data on stdin and the file of an import may be."""

_DECLARED: Final[dict[str, tuple[Callable[..., int], Sequence[click.Parameter]]]] = {}
"""The callback and the parameters of each subcommand."""

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
        self.epilog = EXAMPLES + DETAILS if lists_all(ctx) else EXAMPLES
        super().format_epilog(ctx, formatter)


def shell_command() -> click.Command:
    """Return the main command, which runs statements of TARGET."""
    takes = _of_groups(*GROUPS)
    return ShellCommand(
        "sqlshell",
        [
            Argument(["target"], nargs=-1),
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
                type=click.Choice(DATA_FORMATS),
                help="format of the data on stdin (TARGET -)",
            ),
            Option(
                ["-A", "--no-align"],
                group=OUTPUT,
                is_flag=True,
                help="unaligned output, as psql -A (--format unaligned)",
            ),
            Option(
                ["-x", "--expanded"],
                group=OUTPUT,
                is_flag=True,
                help="show each row as a record (\\pset expanded on)",
            ),
            Option(["-P", "--pset"], multiple=True, hidden=True),
            Option(["-l", "--list"], is_flag=True, help="list the databases and exit"),
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
        help="A SQL shell for statement-execution services. TARGET is a base URL (https://host/v2), a profile of "
        "config.toml, a database file, data files (csv, json, parquet; - is data on stdin), or the URL of a PostgreSQL "
        "or Spark Connect server (postgresql://user@host/db, sc://host). Without TARGET, it is SQLSHELL_URL, "
        "SQLSHELL_PROFILE, the profile default, or the embedded service on DuckDB, in memory.",
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

        click.echo(json.dumps(spec_of(shell_command(), SUBCOMMANDS, subcommand), indent=2))
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
        return _run(one, [("command", "\\l")], output or "", given, data=data, input_format=input_format)
    texts, files = iter(command), iter(file)
    kinds = click.get_current_context().meta["sqlshell.scripts"]
    scripts = [(kind, next(texts if kind == "command" else files)) for kind in kinds]
    return _run(one, scripts, output or "", given, data=data, input_format=input_format)


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
        if without_effect := NO_EFFECT.get(name.lower()):
            Diagnostics(sys.stderr).say(f"psql's {name.lower()} has no effect: {without_effect}.")
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


def _target() -> Argument:
    return Argument(["target"], required=False)


def _output() -> Option:
    return Option(["-o", "--output"], metavar="FILE", help="write to FILE")


def subcommand(name: str) -> click.Command:
    """Return `sqlshell NAME`."""
    if name == "serve":
        from sqlshell.launch.serve import serve_command

        return serve_command()
    callback, parameters = _DECLARED[name]
    for parameter in parameters:
        if isinstance(parameter, Option):
            parameter.group = name.capitalize()
    help_text = inspect.cleandoc(callback.__doc__ or "")
    return Command(
        f"sqlshell {name}", parameters, takes=TAKES.get(name, frozenset()), callback=callback, help=help_text
    )


def _declared(*parameters: click.Parameter) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A decorator of the callback of a subcommand, whose docstring is the help."""

    def declare(callback: Callable[..., int]) -> Callable[..., int]:
        _DECLARED[callback.__name__.rstrip("_")] = callback, parameters
        return callback

    return declare


@_declared(Argument(["statement_id"], metavar="ID"), _target(), _output())
def fetch(statement_id: str, target: str | None, output: str | None, **given: Any) -> int:
    """Show the result of an earlier statement; if it is still running, wait for it. Without TARGET, the service is
    looked up in the journal, and SQLSHELL_TOKEN is not sent to it: the token may belong to another service. Give
    TARGET, or use a profile with the token."""
    return _run(target, [("command", "\\fetch")], output or "", given, statement_id, words=[statement_id])


@_declared(
    Argument(["path"], metavar="FILE"),
    _target(),
    Option(
        ["--table"], required=True, metavar="TABLE", help="the table to load, or t(a, b) to load only these columns"
    ),
    Option(["--create"], is_flag=True, help="create the table first, with types detected from the file"),
    Option(["--dry-run"], is_flag=True, help="show how the columns are matched, and check all values"),
    Option(
        ["--input-format"], type=click.Choice(DATA_FORMATS), help="format of FILE, if its extension does not say it"
    ),
    Option(["--with"], metavar="OPTIONS", help="options of \\copy, such as \"HEADER, DELIMITER ';'\""),
    Option(["--max-errors"], metavar="N", help="skip up to N rows that cannot be converted"),
    Option(["--rejects"], metavar="FILE", help="write the rows that cannot be converted to FILE"),
    Option(["--round"], is_flag=True, help="leave out what a column does not keep of a value"),
    Option(["--resume"], is_flag=True, help="continue an interrupted import of the same file"),
    Option(
        ["--if-unknown"],
        type=click.Choice(["skip", "send"]),
        help="with --resume: skip rows whose outcome is unknown, or send them again",
    ),
)
def import_(
    path: str,
    target: str | None,
    table: str,
    create: bool,
    dry_run: bool,
    input_format: str | None,
    max_errors: str | None,
    rejects: str | None,
    round: bool,
    resume: bool,
    if_unknown: str | None,
    **given: Any,
) -> int:
    """Load a file (- is stdin) into a table of TARGET: csv, tsv, json, jsonl or parquet, also compressed (.gz, .zst).
    Columns are matched by name. If rows cannot be converted, they are reported and nothing is sent."""
    from sqlshell.launch.transfer import import_command

    texts = {"FORMAT": input_format, "MAX_ERRORS": max_errors, "REJECTS": rejects, "IF_UNKNOWN": if_unknown}
    flags = {"CREATE": create, "DRY_RUN": dry_run, "ROUND": round, "RESUME": resume, "SNIFF": bool(input_format)}
    command = import_command(path, table, given.pop("with", None), flags, texts)
    return _run(target, [("command", command)], "", given, writes=not dry_run)


@_declared(
    _target(),
    Option(["--query"], metavar="SQL", help="write the result of this statement"),
    Option(["--table"], metavar="TABLE", help="write this table"),
    Option(["-o", "--output"], required=True, metavar="FILE", help="write to FILE; the extension sets the format"),
)
def export(target: str | None, query: str | None, table: str | None, output: str, **given: Any) -> int:
    """Write the result of a statement of TARGET to a file, which appears when it is complete."""
    from sqlshell.launch.transfer import export_script

    return _run(target, [("command", export_script(query, table))], "", given, words=[output])


@_declared(Argument(["transcript"], metavar="FILE"), _target(), _output())
def replay(transcript: str, target: str | None, output: str | None, **given: Any) -> int:
    """Run the statements of a transcript (\\transcript FILE) again, on the embedded service or on TARGET, and print
    every difference. The exit code is 1 if there is a difference."""
    return _run(target, [("command", "\\replay")], output or "", given, words=[transcript])


@_declared(
    Argument(["kind"], metavar="TYPE"),
    Argument(["name"], metavar="NAME"),
    _target(),
    _output(),
    Option(["--force"], is_flag=True, help="overwrite an existing file"),
)
def download(kind: str, name: str, target: str | None, output: str | None, force: bool, **given: Any) -> int:
    """Download a resource of the service: TYPE is function_source or descriptor_source. An interrupted download is
    resumed."""
    words = [kind, name, *([output] if output else []), *(["--force"] if force else [])]
    return _run(target, [("command", "\\download")], "", given, words=words)


@_declared(
    Argument(["action"], metavar="list|show|settings|check|init|edit"),
    Argument(["profile"], required=False),
)
def config(action: str, profile: str | None) -> int:
    """Manage the profiles in config.toml.

    \b
    list            list the profiles
    show [PROFILE]  print the value of every setting and its source
    settings        list all settings
    check           check all profiles
    init            create config.toml from a template
    edit            open config.toml in $EDITOR
    """
    from sqlshell.launch.configure import configure
    from sqlshell.runtime.streams import Streams

    return configure(action, profile or "", os.environ, Streams.standard())


@_declared(_target())
def doctor(target: str | None, **given: Any) -> int:
    """Check versions, the source of each setting, the connection, its latency, the certificate and the clock."""
    from sqlshell.launch.doctor import diagnose

    return diagnose(target or "", _flags(given), os.environ, sys.stdout)


@_declared(Argument(["shell"], metavar="bash|zsh|fish"))
def completion(shell: str) -> int:
    """Print a script that completes options, subcommands and profiles. For bash, add this line to ~/.bashrc: eval
    "$(sqlshell completion bash)". For zsh, add eval "$(sqlshell completion zsh)" to ~/.zshrc, after compinit. For
    fish, add sqlshell completion fish | source to config.fish."""
    from click.shell_completion import get_completion_class

    complete = get_completion_class(shell)
    if complete is None:
        raise UsageError(f"no completion for {shell}", "shells: bash, zsh, fish")
    program = click.get_current_context().find_root().command
    click.echo(complete(program, {}, "sqlshell", COMPLETE).source())
    return 0


@_declared(_target(), Option(["--server"], is_flag=True, help="also print the service's version"))
def version(target: str | None, server: bool, **given: Any) -> int:
    """Print the version; with --server also the service's."""
    if server:
        return _run(target, [("command", "\\version")], "", given)
    if target:
        raise UsageError(
            "TARGET requires --server", "sqlshell version --server TARGET prints the version of the service"
        )
    if flags := _flags(given):
        raise UsageError(f"--{next(iter(flags)).replace('_', '-')} requires --server")
    click.echo(f"sqlshell {__version__}")
    return 0


def _run(
    target: str | None,
    scripts: Sequence[tuple[str, str]],
    output: str,
    given: Mapping[str, Any],
    statement_id: str = "",
    *,
    writes: bool = False,
    data: Sequence[str] = (),
    input_format: str | None = None,
    words: Sequence[str] | None = None,
) -> int:
    from sqlshell.origin import Own
    from sqlshell.runtime.streams import Streams

    settings, streams, flags = read_config(config_folder(os.environ)), Streams.standard(), _flags(given)
    own = [(kind, Own(text)) for kind, text in scripts]
    first = None
    try:
        if not (scripts or data) and streams.stdin.isatty():
            from sqlshell.launch.first_prompt import first_prompt
            from sqlshell.runtime.shutdown import install_exit_handlers

            # Before the echo of the terminal is turned off.
            install_exit_handlers()
            first = first_prompt(Own(target or ""), flags, os.environ, settings, streams)
        # This takes longer than everything before: a person sees the prompt first.
        from sqlshell.launch.invocation import Invocation, run

        invocation = Invocation(
            Own(target or ""),
            own,
            Own("" if output == "-" else output),
            flags,
            settings,
            os.environ,
            streams,
            statement_id,
            writes,
            [Own(text) for text in data],
            input_format or "",
            first,
            None if words is None else tuple(map(Own, words)),
        )
        return run(invocation)
    finally:
        if first is not None:
            first.close()


def _flags(given: Mapping[str, Any]) -> dict[str, Any]:
    """The flags given on the command line."""
    flags = {name: value for name, value in given.items() if value not in (None, False, ())}
    if not flags.get("verbose"):
        flags.pop("verbose", None)
    return flags
