"""Commands that run scripts, redirect results and use the operating system's shell."""

from __future__ import annotations

from sqlshell.origin import NOWHERE, Own, mine
from sqlshell.shell.commands.command import Args, command
from sqlshell.shell.effects import Edit, Many, Redirect, RunFile, SetVariable
from sqlshell.shell.port import Port
from sqlshell.shell.scripts.reading import work_in


@command("i", "FILE", aliases=("include", ".read", "!source", "!load"))
async def include(port: Port, args: Args) -> RunFile:
    """Run the statements and commands in a file."""
    return RunFile(args.own(0))


@command("o", "[FILE...]", aliases=("out", ".output"))
async def redirect(port: Port, args: Args) -> Redirect:
    """Send results to a file or |command. Without FILE, send them to the terminal again.

    The file appears under its name at the next \\o or on exit; until then a temporary file next to it is written."""
    return Redirect(args.own(0) if args else NOWHERE)


@command("e", "[FILE]", aliases=("edit", "!edit"))
async def edit(port: Port, args: Args) -> Edit:
    """Edit the query buffer, or FILE, in $EDITOR. If the buffer is empty, edit the last statement.

    The saved text is used as if you typed it: statements that end with ; run, the rest appears at the prompt. If you
    do not change the last statement, it does not run again."""
    return Edit(args.own(0) if args else NOWHERE)


@command("once", "FILE...", aliases=(".once",))
async def once(port: Port, args: Args) -> Redirect:
    """Send only the next result to a file or |command."""
    return Redirect(args.own(0), once=True)


@command("tee", "[FILE...]", aliases=("!spool",))
async def tee(port: Port, args: Args) -> Redirect:
    """Show results and also send them to a file or |command. Without FILE, stop."""
    return Redirect(args.own(0) if args else NOWHERE, too=True)


@command("ir", "FILE", aliases=("include_relative",))
async def include_beside(port: Port, args: Args) -> RunFile:
    """Like \\i, but FILE is relative to the current script."""
    return RunFile(args.own(0), beside=True)


@command("cd", "[FOLDER]", aliases=(".cd",))
async def change_folder(port: Port, args: Args) -> None:
    """Change the working directory; without FOLDER, to the home directory."""
    work_in(args.own(0) if args else Own("~"))


@command("!", "[TEXT...]", aliases=(".shell", ".system", "!system"))
async def run_in_shell(port: Port, args: Args) -> Many:
    """Run a command in your shell, or start the shell."""
    import asyncio
    import os

    command = args.own(0) if args else Own(os.environ.get("SHELL", "/bin/sh"))
    process = await asyncio.create_subprocess_shell(command)
    code = await process.wait()
    return Many(
        [
            SetVariable(Own("SHELL_ERROR"), mine(Own("true" if code else "false"))),
            SetVariable(Own("SHELL_EXIT_CODE"), mine(Own(str(code)))),
        ]
    )


COMMANDS = (include, include_beside, redirect, once, tee, edit, change_folder, run_in_shell)
