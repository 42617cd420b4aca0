"""The command line: runs the shell or a subcommand, and reports every error."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Sequence
from typing import Final

import click

from sqlshell.config.peers import option_remedy
from sqlshell.errors import Exit, OutputError, ShellError, UsageError, reason
from sqlshell.launch.commands import COMPLETE, shell_command
from sqlshell.launch.options import SUBCOMMANDS
from sqlshell.text import did_you_mean

UNWRITABLE: Final = frozenset({errno.EBADF, errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG})
"""Errors of writing help or version to stdout; any other OSError here is a bug."""

_SHELL: Final = ""


class Program(click.Group):
    """`sqlshell`: a subcommand if the first word is one, otherwise the shell."""

    def __init__(self) -> None:
        super().__init__("sqlshell", add_help_option=False)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return shell_command() if cmd_name == _SHELL else _subcommand(cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # No option is the group's own.
        return super().parse_args(ctx, ["--", *([] if _names_subcommand(args) else [_SHELL]), *args])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        _, command, rest = super().resolve_command(ctx, args)
        return command.name if command is not None else None, command, rest


def _subcommand(name: str) -> click.Command:
    # Most runs are of the shell.
    from sqlshell.launch.subcommands import subcommand

    return subcommand(name)


def _names_subcommand(args: Sequence[str]) -> bool:
    return bool(args) and args[0] in SUBCOMMANDS


def run(argv: Sequence[str]) -> int:
    """Run the program and return its exit code. Every error is reported here, on stderr."""
    try:
        return int(Program().main(list(argv), prog_name="", complete_var=COMPLETE, standalone_mode=False) or 0)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as error:
        return _fail(_in_own_style(error, argv))
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
        return _fail(OutputError(f"cannot write to stdout: {reason(error)}"))
    except Exception as error:
        return _bug(error)


def _in_own_style(error: click.ClickException, argv: Sequence[str]) -> UsageError:
    """An error of click as the program's own: without a capital at its beginning and a period at its end."""
    name = f"sqlshell {argv[0]}" if _names_subcommand(argv) else "sqlshell"
    command = _subcommand(argv[0]) if _names_subcommand(argv) else shell_command()
    options = [item for item in command.params if not getattr(item, "hidden", False)]
    known = {flag for item in options for flag in item.opts}
    listed = {flag for item in options if getattr(item, "often", True) for flag in item.opts}
    rare = listed != known and getattr(error, "option_name", "") not in {"", *listed}
    otherwise = f"{name} --help{' all' * rare} lists the options"
    if not isinstance(error, click.NoSuchOption):
        message = error.format_message()
        remedy = next(filter(None, (option_remedy(word) for word in argv if word not in known)), otherwise)
        # Names of options and arguments have no quotes, as in sqlshell's own messages.
        message = re.sub(r"'(-{1,2}[\w-]+|[A-Z]+|\w+(?:\|\w+)+)'", r"\1", message)
        return UsageError(f"{message[:1].lower()}{message[1:].removesuffix('.')}", remedy)
    shared = _names_subcommand(argv) and bool(getattr(command, "takes", ()))
    if shared and any(error.option_name in item.opts for item in shell_command().params):
        return UsageError(f"{error.option_name} does not apply to {name}", otherwise)
    flags = [flag[2:] for flag in sorted(known) if flag.startswith("--")]
    hint = did_you_mean(error.option_name.lstrip("-"), flags, otherwise, shown=lambda flag: f"--{flag}")
    return UsageError(f"unknown option {error.option_name}", hint)


def _bug(error: Exception) -> int:
    from sqlshell.runtime.bugs import bug_of, trace

    bug = bug_of(error)
    trace(bug, sys.stderr)
    return _fail(bug)


def _fail(error: ShellError) -> int:
    from sqlshell.diagnostics import Diagnostics

    Diagnostics(sys.stderr).error(error)
    return int(error.exit)
