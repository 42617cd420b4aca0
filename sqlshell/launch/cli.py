"""The command line: argv becomes settings and one mode; everything else is imported when it is needed."""

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
"""What printing help and versions fails with where stdout is the reason; all else that gets here is a bug."""

SUBCOMMANDS = {
    "serve": "run the local service for others",
    "fetch": "show the result of an earlier statement",
    "replay": "run a transcript again, and tell every difference",
    "download": "save a resource of the service as a file",
    "config": "list, show, check, begin or edit the profiles",
    "doctor": "say what works, what does not, and what to do",
    "version": "print the version, and with --server the service's",
}

EXAMPLES = """\b
Examples:
  sqlshell                                      the local service, nothing kept
  sqlshell work.duckdb                          the local service on a database file
  sqlshell sales.parquet -c 'from sales limit 5'
  sqlshell https://host/v2 --database d         a remote service
  sqlshell -c 'select 42 as answer' --format csv
  sqlshell -f load.sql -c 'from t' -o t.csv     in the order given
  generate | sqlshell --on-error continue       a script on stdin
  sqlshell serve --data DIR                     the local service for others

\b
Formats: table, vertical (for people); csv, tsv, json, jsonl (for programs).
Exit codes: 0 done, 1 a statement failed, 2 usage, 3 service, 4 a wait ran out, 130 interrupted,
141 the reader of stdout left.
A token comes from SQLSHELL_TOKEN, --token-file or a profile; a terminal without one is asked.
"""


class Grouped(click.Command):
    """A command whose help shows its options by group, and which knows the order of its scripts."""

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
            # The options of a subcommand are not known here, and are not what is wrong.
            parser.ignore_unknown_options = True
        found, rest, order = parser.parse_args(list(args))
        if self.name == "sqlshell":
            _refuse_subcommand([word for word in (found.get("target"), *rest) if isinstance(word, str)])
        ctx.meta["scripts"] = [item.name for item in order if item.name in {"command", "file"}]
        return super().parse_args(ctx, args)


def _refuse_subcommand(words: Sequence[str]) -> None:
    """Raises UsageError where the first word that is no option is a subcommand."""
    first = next((word for word in words if word[:1] != "-"), "")
    if first in SUBCOMMANDS:
        raise UsageError(
            f"the subcommand {first} comes first: sqlshell {first} …", f"sqlshell {first} --help shows its options"
        )


def shell_command() -> click.Command:
    """The main command, its options made from the table of settings."""
    options: list[click.Parameter] = [
        click.Argument(["target"], required=False),
        click.Option(["-c", "--command"], multiple=True, metavar="SQL", help="run statements; repeatable"),
        click.Option(["-f", "--file"], multiple=True, metavar="FILE", help="run a script, - is stdin; repeatable"),
        click.Option(["-o", "--output"], metavar="FILE", help="write results to FILE (its ending chooses the format)"),
        *(_option(setting) for setting in SETTINGS if setting.flags),
        click.Option(["--list-themes"], is_flag=True, help="show the themes, each in its colours"),
        click.Option(["--version"], is_flag=True, help="print the version"),
    ]
    return Grouped(
        "sqlshell",
        params=options,
        callback=_shell,
        epilog=EXAMPLES,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        help="The SQL shell for statement-execution services. TARGET is a base URL (https://host/v2), a profile of "
        "config.toml, a database file, or a data file (csv, json, parquet); without it the local service runs inside, "
        "and keeps nothing.",
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
            help="Profiles of config.toml: list them; show the value of every setting and where it comes from; "
            "list what may be set; check them all; "
            "write a file to begin with; open it in $EDITOR.",
        )
    target = click.Argument(["target"], required=False)
    shared: list[click.Parameter] = [_option(setting) for setting in SETTINGS if setting.flags]
    output = click.Option(["-o", "--output"], metavar="FILE", help="write to FILE")
    own: list[click.Parameter]
    match name:
        case "fetch":
            own = [click.Argument(["statement_id"], metavar="ID"), target, output]
            text = "Show the result of an earlier statement, waiting for it where it still runs. Without TARGET "
            text += "it is looked for where the journal says that it ran."
            callback: Callable[..., int] = _fetch
        case "replay":
            own = [click.Argument(["transcript"], metavar="FILE"), target, output]
            text = "Run the statements of a transcript (\\transcript FILE) again, here or on another target, and tell "
            text += "every difference; with one the exit code is 1."
            callback = _replay
        case "download":
            own = [click.Argument(["kind"], metavar="TYPE"), click.Argument(["name"], metavar="NAME"), target]
            own += [output, click.Option(["--force"], is_flag=True, help="write over a file that is there")]
            text = "Save a resource of the service: TYPE is function_source or descriptor_source. An interrupted one "
            text += "is gone on with."
            callback = _download
        case "doctor":
            own = [target]
            text = (
                "Versions, where each setting comes from, what can be reached and how fast, the certificate, the clock."
            )
            callback = _doctor
        case _:
            own = [target, click.Option(["--server"], is_flag=True, help="the version of the service too")]
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
    """Run the program; its exit code. Every error ends here as a line on stderr."""
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
        # Whoever read our output has left; Python's own flush at exit would say so once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(Exit.DONE)
    except OSError as error:
        if error.errno not in UNWRITABLE:
            return _bug(error)
        reason = "it is closed" if error.errno == errno.EBADF else error.strerror
        return _fail(OutputError(f"stdout cannot be written: {reason}"))
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
    """The flags that were given."""
    flags = {name: value for name, value in given.items() if value not in (None, False, ())}
    if not flags.get("verbose"):
        flags.pop("verbose", None)
    return flags


def _version(target: str | None, server: bool, **given: Any) -> int:
    if not server:
        if target:
            raise UsageError("a service's version is printed with --server")
        click.echo(f"sqlshell {__version__}")
        return 0
    return _start(target, [("command", "\\version")], "", given)


def _word(text: str) -> str:
    """A word of a backslash command's line, as it stands. Raises UsageError for what no such line can hold."""
    for quote in "'\"":
        if quote not in text and "\n" not in text:
            return f"{quote}{text}{quote}"
    raise UsageError(f"{text!r} has both kinds of quotes, or a line break")
