"""The command line: parses argv into settings and a subcommand; other modules are imported when needed."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from sqlshell.config.settings import SETTINGS
from sqlshell.config.values import config_folder, read_config
from sqlshell.errors import Exit, OutputError, ShellError, UsageError
from sqlshell.launch.click_commands import Command, GroupedCommand, option_of
from sqlshell.launch.subcommands import SUBCOMMANDS
from sqlshell.spelling import did_you_mean
from sqlshell.version import __version__

UNWRITABLE = frozenset({errno.EBADF, errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG})
"""Errors of writing help or version to stdout; any other OSError here is a bug."""

EXAMPLES = """\b
Examples:
  sqlshell                                    the embedded service, in memory
  sqlshell work.duckdb                        the same, on a database file
  sqlshell sales.parquet -c 'from sales limit 5'
  seq 9 | sqlshell - -c 'from stdin'          data on stdin
  sqlshell https://host/v2 --database d       a remote service
  sqlshell -c 'select 42 as answer' --format csv
  sqlshell -f load.sql -c 'from t' -o t.csv   -c and -f run in the order given
  generate | sqlshell --on-error continue     a script on stdin
  sqlshell serve --data DIR                   the local service on a port

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

CONFIG = """Manage the profiles in config.toml.

\b
list            list the profiles
show [PROFILE]  print the value of every setting and its source
settings        list all settings
check           check all profiles
init            create config.toml from a template
edit            open config.toml in $EDITOR
"""

_OF_SCRIPTS = frozenset(
    {
        "on_error",
        "no_commands",
        "single_transaction",
        "dry_run",
        "checkpoint",
        "resume",
        "unknown",
        "no_rc",
    }
)
_OF_READING = frozenset({"max_rows", "stream_for", "allow_gaps"})
_OF_WRITING = frozenset(
    {
        "attach",
        "tuples_only",
        "fieldsep",
        "recordsep",
        "csv_safe",
        "insert_table",
        "theme",
    }
)
_OF_RESULTS = _OF_READING | _OF_WRITING
FOREIGN_OPTIONS: Mapping[str, str] = {
    "--csv": "use --format csv",
    "--html": "use --format html",
    "-H": "use --format html",
    "--json": "use --format json",
    "-P": "use -c '\\pset NAME VALUE'",
    "--pset": "use -c '\\pset NAME VALUE'",
    "--variable": "use --set NAME=VALUE",
    "-V": "use --version",
    "-U": "use a URL: sqlshell postgresql://USER@HOST/DATABASE",
    "--username": "use a URL: sqlshell postgresql://USER@HOST/DATABASE",
    "--dbname": "use a URL: sqlshell postgresql://USER@HOST/DATABASE",
    "-w": "omit it: sqlshell prompts for a password only at a terminal",
    "-z": "use -F '\\0'",
    "-0": "use -R '\\0'",
    "-a": "use --echo",
    "--echo-all": "use --echo",
    "-L": "use -c '\\log FILE'",
}
"""The replacements of options of psql and duckdb."""

UNUSED: Mapping[str, frozenset[str]] = {
    "fetch": _OF_SCRIPTS | {"attach", "set"},
    "import": _OF_SCRIPTS | _OF_RESULTS,
    "export": _OF_SCRIPTS | {"theme"},
    "replay": _OF_SCRIPTS | _OF_WRITING | {"set", "format", "null", "table_style"},
    "download": _OF_SCRIPTS | _OF_RESULTS | {"set"},
    "doctor": _OF_SCRIPTS | _OF_RESULTS | {"set", "echo", "stats"},
    "version": _OF_SCRIPTS | _OF_RESULTS | {"set", "echo", "stats"},
}
"""The settings by subcommand whose flags would do nothing there, or keep it from running."""


def shell_command() -> click.Command:
    """The main command, with options from the table of settings."""
    options: list[click.Parameter] = [
        click.Argument(["target"], nargs=-1),
        click.Option(["-c", "--command"], multiple=True, metavar="SQL", help="run SQL and exit; repeatable"),
        click.Option(
            ["-f", "--file"], multiple=True, metavar="FILE", help="run a script and exit (- for stdin); repeatable"
        ),
        click.Option(
            ["-o", "--output"],
            metavar="FILE",
            help="write results to FILE (- for stdout); the extension sets the format",
        ),
        *(option_of(setting) for setting in SETTINGS if setting.flags),
        click.Option(
            ["--input-format"],
            type=click.Choice(["csv", "tsv", "json", "jsonl", "parquet"]),
            help="format of the data on stdin (TARGET -)",
        ),
        click.Option(["-A", "--no-align"], is_flag=True, help="unaligned output, as psql -A (--format unaligned)"),
        click.Option(["-x", "--expanded"], is_flag=True, help="show each row as a record (\\pset expanded on)"),
        click.Option(["-l", "--list"], is_flag=True, help="list the databases and exit"),
        click.Option(["--list-themes"], is_flag=True, help="list the themes with color samples and exit"),
        click.Option(
            ["--spec"], is_flag=True, help="print options, subcommands and backslash commands as JSON and exit"
        ),
        click.Option(["--version"], is_flag=True, help="print the version and exit"),
    ]
    return GroupedCommand(
        "sqlshell",
        params=options,
        callback=_shell,
        epilog=EXAMPLES,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        help="A SQL shell for statement-execution services. TARGET is a base URL (https://host/v2), a profile of "
        "config.toml, a database file, data files (csv, json, parquet; - is data on stdin), or the URL of a PostgreSQL "
        "or Spark Connect server (postgresql://user@host/db, sc://host). Without TARGET, sqlshell uses SQLSHELL_URL, "
        "SQLSHELL_PROFILE or the profile default; without these, its embedded service on DuckDB, in memory, whose data "
        "is lost on exit.",
    )


def subcommand(name: str) -> click.Command:
    """`sqlshell NAME`."""
    if name == "serve":
        from sqlshell.launch.serve import serve_command

        return serve_command()
    if name == "config":
        return Command(
            "sqlshell config",
            params=[
                click.Argument(["action"], metavar="list|show|settings|check|init|edit"),
                click.Argument(["profile"], required=False),
            ],
            callback=_config,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
            help=CONFIG,
        )
    if name == "completion":
        return Command(
            "sqlshell completion",
            params=[click.Argument(["shell"], metavar="bash|zsh|fish")],
            callback=_completion,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
            help="Print a script that completes options, subcommands and profiles. For bash, add this line to "
            '~/.bashrc: eval "$(sqlshell completion bash)". For zsh, add eval "$(sqlshell completion zsh)" to '
            "~/.zshrc, after compinit. For fish, add sqlshell completion fish | source to config.fish.",
        )
    target = click.Argument(["target"], required=False)
    unused = UNUSED.get(name, frozenset())
    shared: list[click.Parameter] = [
        option_of(setting) for setting in SETTINGS if setting.flags and setting.name not in unused
    ]
    output = click.Option(["-o", "--output"], metavar="FILE", help="write to FILE")
    own: list[click.Parameter]
    match name:
        case "fetch":
            own = [click.Argument(["statement_id"], metavar="ID"), target, output]
            text = "Show the result of an earlier statement; if it is still running, wait for it. Without TARGET, "
            text += (
                "the service is looked up in the journal, and SQLSHELL_TOKEN is not sent to it: the token may belong "
            )
            text += "to another service. Give TARGET, or use a profile with the token."
            callback: Callable[..., int] = _fetch
        case "import":
            own = [
                click.Argument(["path"], metavar="FILE"),
                target,
                click.Option(
                    ["--table"],
                    required=True,
                    metavar="TABLE",
                    help="the table to load, or t(a, b) to load only these columns",
                ),
                click.Option(
                    ["--create"], is_flag=True, help="create the table first, with types detected from the file"
                ),
                click.Option(["--dry-run"], is_flag=True, help="only show how the columns are matched"),
                click.Option(["--input-format"], metavar="FORMAT", help="csv, text, json or parquet"),
                click.Option(
                    ["--with"], metavar="OPTIONS", help="options of \\copy, such as \"HEADER, DELIMITER ';'\""
                ),
                click.Option(["--max-errors"], metavar="N", help="skip up to N rows that cannot be converted"),
                click.Option(["--rejects"], metavar="FILE", help="write the rows that cannot be converted to FILE"),
                click.Option(["--resume"], is_flag=True, help="continue an interrupted import of the same file"),
                click.Option(
                    ["--unknown"],
                    type=click.Choice(["skip", "send"]),
                    help="with --resume: skip rows whose outcome is unknown, or send them again",
                ),
            ]
            text = "Load a file (- is stdin) into a table of TARGET: csv, tsv, json, jsonl or parquet, also compressed "
            text += "(.gz, .zst). Columns are matched by name. If rows cannot be converted, they are reported and "
            text += "nothing is sent."
            callback = _import
        case "export":
            own = [
                target,
                click.Option(["--query"], metavar="SQL", help="write the result of this statement"),
                click.Option(["--table"], metavar="TABLE", help="write this table"),
                click.Option(
                    ["-o", "--output"],
                    required=True,
                    metavar="FILE",
                    help="write to FILE; the extension sets the format",
                ),
                click.Option(["--resume"], is_flag=True, help="continue an interrupted export to the same file"),
            ]
            text = "Write the result of a statement of TARGET to a file, which appears when it is complete. "
            text += "Received rows are kept in FILE.parts until then; --resume fetches only what is missing."
            callback = _export
        case "replay":
            own = [click.Argument(["transcript"], metavar="FILE"), target, output]
            text = (
                "Run the statements of a transcript (\\transcript FILE) again, on the embedded service or on TARGET, "
            )
            text += "and print every difference. The exit code is 1 if there is a difference."
            callback = _replay
        case "download":
            own = [click.Argument(["kind"], metavar="TYPE"), click.Argument(["name"], metavar="NAME"), target]
            own += [output, click.Option(["--force"], is_flag=True, help="overwrite an existing file")]
            text = "Download a resource of the service: TYPE is function_source or descriptor_source. An interrupted "
            text += "download is resumed."
            callback = _download
        case "doctor":
            own = [target]
            text = "Check versions, the source of each setting, the connection, its latency, the certificate and the "
            text += "clock."
            callback = _doctor
        case _:
            own = [target, click.Option(["--server"], is_flag=True, help="also print the service's version")]
            text = SUBCOMMANDS[name].capitalize() + "."
            callback = _version
    names = frozenset(option.name or "" for option in own)
    return GroupedCommand(
        f"sqlshell {name}",
        params=[*own, *(option for option in shared if option.name not in names)],
        own=names,
        callback=callback,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        help=text,
    )


def run(argv: Sequence[str]) -> int:
    """Run the program and return its exit code. Every error is reported here, on stderr."""
    name = f"sqlshell {argv[0]}" if argv and argv[0] in SUBCOMMANDS else "sqlshell"
    try:
        chosen, args = shell_command(), argv
        if argv and argv[0] in SUBCOMMANDS:
            chosen, args = subcommand(argv[0]), argv[1:]
        return int(chosen.main(list(args), prog_name=chosen.name, standalone_mode=False) or 0)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.NoSuchOption as error:
        if argv[0] in UNUSED and any(error.option_name in item.opts for item in shell_command().params):
            return _fail(
                UsageError(f"{error.option_name} does not apply to {name}", f"{name} --help lists the options")
            )
        flags = [flag[2:] for item in chosen.params for flag in item.opts if flag.startswith("--")]
        otherwise = f"{name} --help lists the options"
        hint = did_you_mean(error.option_name.lstrip("-"), flags, otherwise, shown=lambda flag: f"--{flag}")
        elsewhere = FOREIGN_OPTIONS.get(error.option_name, "") if name == "sqlshell" else ""
        return _fail(UsageError(f"unknown option {error.option_name}", elsewhere or hint))
    except click.ClickException as error:
        return _fail(UsageError(_in_own_style(error.format_message()), f"{name} --help lists the options"))
    except ShellError as error:
        return _fail(error)
    except (KeyboardInterrupt, click.Abort):
        return int(Exit.INTERRUPTED)
    except BrokenPipeError:
        # The reader closed stdout; Python's own flush at exit would report the error again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(Exit.DONE)
    except OSError as error:
        if error.errno not in UNWRITABLE:
            return _bug(error)
        reason = "it is closed" if error.errno == errno.EBADF else error.strerror
        return _fail(OutputError(f"cannot write to stdout: {reason}"))
    except Exception as error:
        return _bug(error)


def _in_own_style(message: str) -> str:
    """A message of click as the program's own: without a capital at its beginning and a period at its end."""
    return f"{message[:1].lower()}{message[1:].removesuffix('.')}"


def _bug(error: Exception) -> int:
    from sqlshell.runtime.bugs import bug_of, trace

    bug = bug_of(error)
    trace(bug, sys.stderr)
    return _fail(bug)


def _fail(error: ShellError) -> int:
    from sqlshell.diagnostics import Diagnostics

    Diagnostics(sys.stderr).error(error)
    return int(error.exit)


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
    list: bool,
    input_format: str | None,
    **given: Any,
) -> int:
    if version:
        click.echo(f"sqlshell {__version__}")
        return 0
    if spec:
        import json

        click.echo(json.dumps(_spec(), indent=2))
        return 0
    if list_themes:
        return _list_themes(given["color"])
    if no_align:
        given["format"] = "unaligned"
    if expanded:
        given["expanded"] = "on"
    data = target if len(target) > 1 or "-" in target else ()
    if input_format and "-" not in data:
        raise UsageError("--input-format requires the TARGET -", "the extension of a file sets its format")
    if target.count("-") > 1:
        raise UsageError("TARGET - may be given only once")
    one = target[0] if target and not data else None
    if list:
        return _run(one, [("command", "\\l")], output or "", given, data=data, input_format=input_format)
    texts, files = iter(command), iter(file)
    kinds = click.get_current_context().meta["scripts"]
    scripts = [(kind, next(texts if kind == "command" else files)) for kind in kinds]
    return _run(one, scripts, output or "", given, data=data, input_format=input_format)


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

    config, streams, flags = read_config(config_folder(os.environ)), Streams.standard(), _flags(given)
    own = [(kind, Own(text)) for kind, text in scripts]
    first = None
    try:
        if not (scripts or data) and streams.stdin.isatty():
            from sqlshell.launch.first_prompt import first_prompt
            from sqlshell.runtime.shutdown import install_exit_handlers

            # Before the echo of the terminal is turned off.
            install_exit_handlers()
            first = first_prompt(Own(target or ""), flags, os.environ, config, streams)
        # This takes longer than everything before: a person sees the prompt first.
        from sqlshell.launch.invocation import Invocation, run

        invocation = Invocation(
            Own(target or ""),
            own,
            Own("" if output == "-" else output),
            flags,
            config,
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


def _fetch(statement_id: str, target: str | None, output: str | None, **given: Any) -> int:
    return _run(target, [("command", "\\fetch")], output or "", given, statement_id, words=[statement_id])


def _import(
    path: str,
    target: str | None,
    table: str,
    create: bool,
    dry_run: bool,
    input_format: str | None,
    max_errors: str | None,
    rejects: str | None,
    resume: bool,
    unknown: str | None,
    **given: Any,
) -> int:
    from sqlshell.launch.transfer import import_command

    texts = {"FORMAT": input_format, "MAX_ERRORS": max_errors, "REJECTS": rejects, "UNKNOWN": unknown}
    flags = {"CREATE": create, "DRY_RUN": dry_run, "RESUME": resume, "SNIFF": bool(input_format)}
    command = import_command(path, table, given.pop("with", None), flags, texts)
    return _run(target, [("command", command)], "", given, writes=not dry_run)


def _export(target: str | None, query: str | None, table: str | None, output: str, resume: bool, **given: Any) -> int:
    from sqlshell.launch.transfer import export_script

    words = [output, "resume"] if resume else [output]
    return _run(target, [("command", export_script(query, table))], "", given, words=words)


def _replay(transcript: str, target: str | None, output: str | None, **given: Any) -> int:
    return _run(target, [("command", "\\replay")], output or "", given, words=[transcript])


def _download(kind: str, name: str, target: str | None, output: str | None, force: bool, **given: Any) -> int:
    words = [kind, name, *([output] if output else []), *(["--force"] if force else [])]
    return _run(target, [("command", "\\download")], "", given, words=words)


def _config(action: str, profile: str | None) -> int:
    from sqlshell.launch.configure import configure
    from sqlshell.runtime.streams import Streams

    return configure(action, profile or "", os.environ, Streams.standard())


def _spec() -> dict[str, Any]:
    from sqlshell.launch.reference.spec import spec

    return spec(shell_command(), [(name, summary, subcommand(name)) for name, summary in SUBCOMMANDS.items()])


def _completion(shell: str) -> int:
    from sqlshell.launch.reference.completion import SHELLS

    if shell not in SHELLS:
        raise UsageError(f"no completion for {shell}", f"shells: {', '.join(SHELLS)}")
    click.echo(SHELLS[shell](_spec()), nl=False)
    return 0


def _doctor(target: str | None, **given: Any) -> int:
    from sqlshell.launch.doctor import diagnose

    return diagnose(target or "", _flags(given), os.environ, sys.stdout)


def _flags(given: Mapping[str, Any]) -> dict[str, Any]:
    """The flags given on the command line."""
    flags = {name: value for name, value in given.items() if value not in (None, False, ())}
    if not flags.get("verbose"):
        flags.pop("verbose", None)
    return flags


def _version(target: str | None, server: bool, **given: Any) -> int:
    if not server:
        if target:
            raise UsageError(
                "TARGET requires --server", "sqlshell version --server TARGET prints the version of the service"
            )
        click.echo(f"sqlshell {__version__}")
        return 0
    return _run(target, [("command", "\\version")], "", given)
