"""Commands for variables, conditions and output."""

from __future__ import annotations

import os
from pathlib import Path

from sqlshell.errors import UsageError
from sqlshell.origin import Trusted, joined, trusted_text
from sqlshell.output.text.cells import printable
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.commands.command import Args, command, quoted_text
from sqlshell.shell.scripts.variables import switch


@command("set", "[NAME] [VALUE...]", changes="text", data=("VALUE",))
async def set_variable(shell: CommandShell, args: Args) -> None:
    """List the variables, or set one: \\set limit 10, then select … limit :limit;

    Several values are concatenated; double quotes are kept.

    :'name' is the value as a string, :"name" the value as an identifier, and :{?name} is TRUE if it is set."""
    if not args:
        lines = [f"{name} = {quoted_text(shell.variables[name].text)}" for name in sorted(shell.variables)]
        shell.print("".join(f"{line}\n" for line in lines))
        return
    shell.set_variable(args.trusted(0), joined(args.texts[1:]))


@command("unset", "NAME", changes="text")
async def unset_variable(shell: CommandShell, args: Args) -> None:
    """Unset a variable."""
    shell.variables.unset(args.trusted(0))


@command("trust", "NAME REGEX", changes="shell")
async def mark_own(shell: CommandShell, args: Args) -> None:
    """Trust a value from a service if it matches a regular expression. The whole value must match.

    Only then can it name a file, a command or a setting: \\trust file '[a-z0-9_]+[.]csv', then \\o :file"""
    import re

    name, expression = args.trusted(0), args.trusted(1)
    if name not in shell.variables:
        raise UsageError(f"variable {name} is not set", "\\set lists the variables")
    try:
        matches = re.fullmatch(expression, shell.variables[name].text) is not None
    except re.error as error:
        raise UsageError(
            f"{expression!r} is not a valid regular expression: {error}", "example: '[a-z0-9_]+[.]csv'"
        ) from None
    if not matches:
        raise UsageError(f"the value of {name} does not match {expression!r}", f"\\echo :{name} shows it")
    shell.set_variable(name, trusted_text(Trusted(shell.variables[name].text)))


@command("getenv", "NAME VARIABLE", changes="text")
async def get_environment(shell: CommandShell, args: Args) -> None:
    """Set a variable to the value of an environment variable. If VARIABLE is not set, NAME does not change."""
    if args[1] in os.environ:
        shell.set_variable(args.trusted(0), trusted_text(Trusted(os.environ[args[1]])), args[1])


@command("prompt", "[TEXT] NAME", changes="text", data=("TEXT",))
async def prompt_for_value(shell: CommandShell, args: Args) -> None:
    """Ask for the value of a variable. In a script, it is read from the terminal."""
    text, name = args[0] if len(args) == 2 else "", args.trusted(-1)
    if shell.front_end.ask is None:
        value = _from_terminal(text)
    else:
        value = await shell.front_end.ask(text)
    # The typed value is trusted, whatever the question was.
    shell.set_variable(name, trusted_text(Trusted(value)), text)


@command("if", "CONDITION...", changes="text", data=("CONDITION",))
async def if_command(shell: CommandShell, args: Args) -> None:
    """Run the following lines if CONDITION is true (on, 1, yes), up to \\elif, \\else or \\endif: \\if :{?name}"""
    shell.conditions.enter("if", lambda: switch(" ".join(args), "\\if"))


@command("elif", "CONDITION...", changes="text", data=("CONDITION",))
async def elif_command(shell: CommandShell, args: Args) -> None:
    """Like \\if, but only if no earlier branch has run."""
    shell.conditions.enter("elif", lambda: switch(" ".join(args), "\\elif"))


@command("else", changes="text")
async def else_command(shell: CommandShell, args: Args) -> None:
    """Run the following lines if no branch has run yet."""
    shell.conditions.enter("else", bool)


@command("endif", changes="text")
async def endif_command(shell: CommandShell, args: Args) -> None:
    """End an \\if block."""
    shell.conditions.enter("endif", bool)


@command("echo", "[VALUE...]", aliases=(".print", "!print"), data=("VALUE",))
async def echo(shell: CommandShell, args: Args) -> None:
    """Print text and values of variables to stdout. -n omits the line break."""
    shell.print(_line(args))


@command("qecho", "[VALUE...]", data=("VALUE",))
async def echo_to_output(shell: CommandShell, args: Args) -> None:
    """Like \\echo, but print to the file or command of \\o."""
    shell.print(_line(args), with_results=True)


@command("warn", "[VALUE...]", data=("VALUE",))
async def warn(shell: CommandShell, args: Args) -> None:
    """Like \\echo, but print to stderr."""
    shell.say(_line(args).removesuffix("\n"), verbatim=True)


def _line(args: Args) -> str:
    if args[:1] == ["-n"]:
        return " ".join(args[1:])
    return " ".join(args) + "\n"


def _from_terminal(text: str) -> str:
    """Read a line from the terminal, because stdin may be a script."""
    try:
        with Path("/dev/tty").open("r+", encoding="utf-8", buffering=1) as terminal:
            terminal.write(printable(text))
            terminal.flush()
            return terminal.readline().rstrip("\n")
    except OSError:
        raise UsageError("\\prompt requires a terminal", "set the value with --set NAME=VALUE instead") from None
