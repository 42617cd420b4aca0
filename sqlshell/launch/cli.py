"""The command line: parses argv into settings and a subcommand; other modules are imported when needed."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from sqlshell import __version__
from sqlshell.config.settings import GROUPS, OTHER, SCRIPTS, SETTINGS, Setting
from sqlshell.config.values import config_folder, read_config
from sqlshell.errors import Exit, OutputError, ShellError, UsageError

UNWRITABLE = frozenset({errno.EBADF, errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG})
"""The errors of writing help or version to stdout; any other OSError that gets here is a bug."""

SUBCOMMANDS = {
    "serve": "run the local service on a port",
    "fetch": "show the result of an earlier statement",
    "replay": "run a transcript again and print every difference",
    "download": "download a resource of the service to a file",
    "config": "list, show, check, create or edit profiles",
    "doctor": "check the installation and the connection",
    "version": "print the version; with --server also the service's",
}

EXAMPLES = """\b
Examples:
  sqlshell                                      the local service, in memory
  sqlshell work.duckdb                          the local service on a database file
  sqlshell sales.parquet -c 'from sales limit 5'
  sqlshell https://host/v2 --database d         a remote service
  sqlshell -c 'select 42 as answer' --format csv
  sqlshell -f load.sql -c 'from t' -o t.csv     scripts run in the order given
  generate | sqlshell --on-error continue       a script on stdin
  sqlshell serve --data DIR                     the local service on a port

\b
Formats: table, vertical (for people); csv, tsv, json, jsonl (for programs).
Exit codes: 0 success, 1 statement failed, 2 usage error, 3 service error, 4 timeout, 130 interrupted,
141 stdout closed by its reader.
The token is read from SQLSHELL_TOKEN, --token-file or a profile; at a terminal, sqlshell prompts for it.
"""


class Grouped(click.Command):
    """A command whose help lists options by group, and which records the order of -c and -f."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in GROUPS}
        places = {setting.name: setting.group for setting in SETTINGS} | {
            "command": SCRIPTS,
            "file": SCRIPTS,
            "output": "Output",
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                groups[places.get(parameter.name or "", OTHER)].append(record)
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
        if self.name != "sqlshell":
            return
        with formatter.section("Subcommands"):
            formatter.write_dl([(name, f"{text} (sqlshell {name} --help)") for name, text in SUBCOMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        parser = self.make_parser(ctx)
        if self.name == "sqlshell":
            # Options of a subcommand are unknown here, and should not be the reported error.
            parser.ignore_unknown_options = True
        found, rest, order = parser.parse_args(list(args))
        if self.name == "sqlshell":
            _refuse_subcommand([word for word in (found.get("target"), *rest) if isinstance(word, str)])
        ctx.meta["scripts"] = [item.name for item in order if item.name in {"command", "file"}]
        return super().parse_args(ctx, args)


def _refuse_subcommand(words: Sequence[str]) -> None:
    """Raises UsageError if the first word that is not an option is a subcommand."""
    first = next((word for word in words if word[:1] != "-"), "")
    if first in SUBCOMMANDS:
        raise UsageError(
            f"the subcommand {first} must come first: sqlshell {first} …", f"sqlshell {first} --help lists its options"
        )


def shell_command() -> click.Command:
    """The main command, with options from the table of settings."""
    options: list[click.Parameter] = [
        click.Argument(["target"], required=False),
        click.Option(["-c", "--command"], multiple=True, metavar="SQL", help="run statements; repeatable"),
        click.Option(["-f", "--file"], multiple=True, metavar="FILE", help="run a script (- for stdin); repeatable"),
        click.Option(["-o", "--output"], metavar="FILE", help="write results to FILE (the extension sets the format)"),
        *(_option(setting) for setting in SETTINGS if setting.flags),
        click.Option(["--list-themes"], is_flag=True, help="list the themes, each in its colors"),
        click.Option(["--version"], is_flag=True, help="print the version"),
    ]
    return Grouped(
        "sqlshell",
        params=options,
        callback=_shell,
        epilog=EXAMPLES,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        help="An SQL shell for statement-execution services. TARGET is a base URL (https://host/v2), a profile of "
        "config.toml, a database file, or a data file (csv, json, parquet). Without TARGET, sqlshell starts a local "
        "in-memory service; its data is lost on exit.",
    )


def subcommand(name: str) -> click.Command:
    """`sqlshell NAME`."""
    if name == "serve":
        from sqlshell.launch.serve import serve_command

        return serve_command()
    if name == "config":
        return click.Command(
            "sqlshell config",
            params=[
                click.Argument(["action"], metavar="list|show|settings|check|init|edit"),
                click.Argument(["profile"], required=False),
            ],
            callback=_config,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
            help="Manage the profiles in config.toml. list: list the profiles. show: print the value of every setting "
            "and its source. settings: list all settings. check: check all profiles. init: create config.toml from a "
            "template. edit: open config.toml in $EDITOR.",
        )
    target = click.Argument(["target"], required=False)
    shared: list[click.Parameter] = [_option(setting) for setting in SETTINGS if setting.flags]
    output = click.Option(["-o", "--output"], metavar="FILE", help="write to FILE")
    own: list[click.Parameter]
    match name:
        case "fetch":
            own = [click.Argument(["statement_id"], metavar="ID"), target, output]
            text = "Show the result of an earlier statement; if it is still running, wait for it. Without TARGET, "
            text += "the journal gives the service on which it ran."
            callback: Callable[..., int] = _fetch
        case "replay":
            own = [click.Argument(["transcript"], metavar="FILE"), target, output]
            text = "Run the statements of a transcript (\\transcript FILE) again, on the local service or on TARGET, "
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
    return Grouped(
        f"sqlshell {name}",
        params=[*own, *shared],
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
    except click.ClickException as error:
        return _fail(UsageError(error.format_message(), f"{name} --help lists the options"))
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


def _bug(error: Exception) -> int:
    from sqlshell.runtime.bugs import bug_of, trace

    bug = bug_of(error)
    trace(bug)
    return _fail(bug)


def _option(setting: Setting) -> click.Option:
    name = [*setting.flags, setting.name]
    if setting.kind == "flag":
        return click.Option(name, is_flag=True, default=None, help=setting.help)
    if setting.kind == "many":
        return click.Option(name, multiple=True, metavar=setting.metavar, help=setting.help)
    if setting.kind == "count":
        return click.Option(name, count=True, default=None, help=setting.help)
    if setting.kind == "choice":
        return click.Option(name, type=click.Choice(setting.choices), help=setting.help)
    return click.Option(name, metavar=setting.metavar, help=setting.help)


def _fail(error: ShellError) -> int:
    from sqlshell.diagnostics import Diagnostics

    Diagnostics(sys.stderr).error(error)
    return int(error.exit)


def _shell(
    target: str | None,
    command: tuple[str, ...],
    file: tuple[str, ...],
    output: str | None,
    version: bool,
    list_themes: bool,
    **given: Any,
) -> int:
    if version:
        click.echo(f"sqlshell {__version__}")
        return 0
    if list_themes:
        return _list_themes()
    texts, files = iter(command), iter(file)
    kinds = click.get_current_context().meta["scripts"]
    scripts = [(kind, next(texts if kind == "command" else files)) for kind in kinds]
    return _start(target, scripts, output or "", given)


def _list_themes() -> int:
    from sqlshell.shell.interactive.look.paint import here, previews

    for line in previews(config_folder(os.environ) / "themes", here() if sys.stdout.isatty() else 0):
        click.echo(line, color=True)
    return 0


def _start(
    target: str | None,
    scripts: Sequence[tuple[str, str]],
    output: str,
    given: Mapping[str, Any],
    statement_id: str = "",
) -> int:
    from sqlshell.launch.invocation import Start, start
    from sqlshell.origin import Own
    from sqlshell.runtime.streams import Streams

    config = read_config(config_folder(os.environ))
    own = [(kind, Own(text)) for kind, text in scripts]
    asked = Start(
        Own(target or ""), own, Own(output), _flags(given), config, os.environ, Streams.standard(), statement_id
    )
    return start(asked)


def _fetch(statement_id: str, target: str | None, output: str | None, **given: Any) -> int:
    return _start(target, [("command", f"\\fetch {_word(statement_id)}")], output or "", given, statement_id)


def _replay(transcript: str, target: str | None, output: str | None, **given: Any) -> int:
    return _start(target, [("command", f"\\replay {_word(transcript)}")], output or "", given)


def _download(kind: str, name: str, target: str | None, output: str | None, force: bool, **given: Any) -> int:
    words = [kind, name, *([output] if output else []), *(["--force"] if force else [])]
    return _start(target, [("command", f"\\download {' '.join(map(_word, words))}")], "", given)


def _config(action: str, profile: str | None) -> int:
    from sqlshell.launch.configure import configure

    return configure(action, profile or "", os.environ)


def _doctor(target: str | None, **given: Any) -> int:
    from sqlshell.launch.doctor import diagnose

    return diagnose(target or "", _flags(given), os.environ)


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
    return _start(target, [("command", "\\version")], "", given)


def _word(text: str) -> str:
    """Quote an argument for a backslash command. Raises UsageError if it cannot be quoted."""
    for quote in "'\"":
        if quote not in text and "\n" not in text:
            return f"{quote}{text}{quote}"
    raise UsageError(f"{text!r} contains both single and double quotes, or a line break", "use another name")
