"""The subcommands of the command line, each with its options and what it does."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

from sqlshell.config.settings import CONNECTION, CONTEXT, OUTPUT
from sqlshell.errors import UsageError
from sqlshell.launch.commands import COMPLETE, DATA_FORMATS, flags_of, of_groups, run_shell
from sqlshell.launch.options import Choice, Command, Option, argument
from sqlshell.version import __version__

_CLIENT: Final = of_groups(CONNECTION) - {"timeout", "upload_limit", "download_limit", "offline"}
_CLIENT_AND_MESSAGES: Final = _CLIENT | {"color", "quiet", "verbose"}
_POLICY: Final = frozenset({"timeout", "yes", "read_only"})
_READING: Final = frozenset({"max_rows", "duration", "allow_gaps"})
_WRITING: Final = of_groups(OUTPUT) - {"color", "theme"}
_STATEMENTS: Final = _CLIENT_AND_MESSAGES | of_groups(CONTEXT) | _POLICY
TAKES: Final[Mapping[str, frozenset[str]]] = {
    "fetch": (_STATEMENTS - {"yes", "read_only"}) | _READING | _WRITING | {"theme"},
    "import": _STATEMENTS - {"read_only"},
    "export": _STATEMENTS | _READING | _WRITING | {"attach", "upload_limit", "set", "echo", "stats"},
    "replay": _STATEMENTS | _READING | {"echo", "stats"},
    "download": _CLIENT_AND_MESSAGES | {"organization", "download_limit"},
    "doctor": _CLIENT,
    "version": _CLIENT_AND_MESSAGES,
}
"""The settings that are options of a subcommand: those that have an effect there."""

_DECLARED: Final[dict[str, tuple[Callable[..., int], Sequence[click.Parameter]]]] = {}
"""The callback and the parameters of each subcommand."""


def _target() -> click.Argument:
    return argument("target", required=False)


def _output() -> Option:
    return Option(["-o", "--output"], metavar="FILE", help="write to FILE")


def _command(name: str, *words: str) -> str:
    """A backslash command with exactly these arguments."""
    from sqlshell.shell.commands.command import quoted_text

    return " ".join([f"\\{name}", *map(quoted_text, words)])


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


@_declared(argument("statement_id", metavar="ID"), _target(), _output())
def fetch(statement_id: str, target: str | None, output: str | None, **given: Any) -> int:
    """Show the result of an earlier statement; if it is still running, wait for it. Without TARGET, the service is
    looked up in the journal, and SQLSHELL_TOKEN is not sent to it: the token may belong to another service. Give
    TARGET, or use a profile with the token."""
    return run_shell(target, [("command", _command("fetch", statement_id))], output or "", given, statement_id)


@_declared(
    argument("path", metavar="FILE"),
    _target(),
    Option(
        ["--table"], required=True, metavar="TABLE", help="the table to load, or t(a, b) to load only these columns"
    ),
    Option(["--create"], is_flag=True, help="create the table first, with types detected from the file"),
    Option(["--dry-run"], is_flag=True, help="show how the columns are matched, and check all values"),
    Option(["--input-format"], type=Choice(DATA_FORMATS), help="format of FILE, if its extension does not say it"),
    Option(["--with"], metavar="OPTIONS", help="options of \\copy, such as \"HEADER, DELIMITER ';'\""),
    Option(["--max-errors"], metavar="N", help="skip up to N rows that cannot be converted"),
    Option(["--rejects"], metavar="FILE", help="write to FILE the rows that cannot be converted"),
    Option(["--round"], is_flag=True, help="round or shorten values to fit their column"),
    Option(["--resume"], is_flag=True, help="continue an interrupted import of the same file"),
    Option(
        ["--if-unknown"],
        type=Choice(["skip", "send"]),
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
    """Load FILE into a table of TARGET. FILE is csv, tsv, json, jsonl or parquet, also compressed (.gz, .zst), or - for
    stdin. Columns are matched by name. If rows cannot be converted, they are reported and nothing is sent."""
    from sqlshell.launch.transfer import import_command

    texts = {"FORMAT": input_format, "MAX_ERRORS": max_errors, "REJECTS": rejects, "IF_UNKNOWN": if_unknown}
    flags = {"CREATE": create, "DRY_RUN": dry_run, "ROUND": round, "RESUME": resume, "SNIFF": bool(input_format)}
    command = import_command(path, table, given.pop("with", None), flags, texts)
    return run_shell(target, [("command", command)], "", given, writes=not dry_run)


@_declared(
    _target(),
    Option(["--query"], metavar="SQL", help="write the result of this statement"),
    Option(["--table"], metavar="TABLE", help="write this table"),
    Option(["-o", "--output"], required=True, metavar="FILE", help="write to FILE; the extension sets the format"),
)
def export(target: str | None, query: str | None, table: str | None, output: str, **given: Any) -> int:
    """Write the result of a statement of TARGET to a file, which appears when it is complete."""
    from sqlshell.launch.transfer import export_query

    # On a line of its own: the statement may end in a comment.
    script = f"{export_query(query, table)}\n{_command('export', output)}"
    return run_shell(target, [("command", script)], "", given)


@_declared(argument("transcript", metavar="FILE"), _target(), _output())
def replay(transcript: str, target: str | None, output: str | None, **given: Any) -> int:
    """Run the statements of a transcript (\\transcript FILE) again, on the embedded service or on TARGET, and print
    every difference. The exit code is 1 if there is a difference."""
    return run_shell(target, [("command", _command("replay", transcript))], output or "", given)


@_declared(
    argument("kind", metavar="TYPE"),
    argument("name", metavar="NAME"),
    _target(),
    _output(),
    Option(["--force"], is_flag=True, help="overwrite an existing file"),
)
def download(kind: str, name: str, target: str | None, output: str | None, force: bool, **given: Any) -> int:
    """Download a resource of the service: TYPE is function_source or descriptor_source. An interrupted download is
    resumed."""
    words = [kind, name, *([output] if output else []), *(["--force"] if force else [])]
    return run_shell(target, [("command", _command("download", *words))], "", given)


@_declared(
    argument("action", metavar="list|show|settings|check|init|edit"),
    argument("profile", required=False),
)
def config(action: str, profile: str | None) -> int:
    """Manage the profiles in config.toml.

    \b
    list            list the profiles
    show [PROFILE]  print the value of every setting and its source
    settings        list all settings
    check           check all profiles
    init            create config.toml from a template
    edit            open config.toml in $VISUAL or $EDITOR
    """
    from sqlshell.launch.configure import configure
    from sqlshell.runtime.streams import Streams

    return configure(action, profile or "", os.environ, Streams.standard())


@_declared(_target())
def doctor(target: str | None, **given: Any) -> int:
    """Check versions, the source of each setting, the connection, its latency, the certificate and the clock."""
    from sqlshell.launch.doctor import diagnose

    return diagnose(target or "", flags_of(given), os.environ, sys.stdout)


@_declared(argument("shell", metavar="bash|zsh|fish"))
def completion(shell: str) -> int:
    """Print a script that completes options, subcommands and profiles. For bash, add this line to ~/.bashrc: eval
    "$(sqlshell completion bash)". For zsh, add eval "$(sqlshell completion zsh)" to ~/.zshrc, after compinit. For
    fish, add sqlshell completion fish | source to config.fish."""
    from click.shell_completion import get_completion_class

    complete = get_completion_class(shell)
    if complete is None:
        raise UsageError(f"unknown shell {shell!r}", "expected bash, zsh or fish")
    program = click.get_current_context().find_root().command
    click.echo(complete(program, {}, "sqlshell", COMPLETE).source())
    return 0


@_declared(_target(), Option(["--server"], is_flag=True, help="also print the service's version"))
def version(target: str | None, server: bool, **given: Any) -> int:
    """Print the version; with --server also the service's."""
    if server:
        return run_shell(target, [("command", "\\version")], "", given)
    if target:
        raise UsageError(
            "TARGET requires --server", "sqlshell version --server TARGET prints the version of the service"
        )
    if flags := flags_of(given):
        raise UsageError(f"--{next(iter(flags)).replace('_', '-')} requires --server")
    click.echo(f"sqlshell {__version__}")
    return 0
