"""Commands that run scripts, redirect results and use the operating system's shell."""

from __future__ import annotations

from sqlshell.origin import EMPTY, Trusted, trusted_text
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.commands.command import Args, command
from sqlshell.shell.scripts.reading import change_working_folder


@command("i", "FILE", aliases=("include", ".read", "!source", "!load"), changes="text")
async def include(shell: CommandShell, args: Args) -> None:
    """Run the statements and commands in a file."""
    await shell.include(args.trusted(0))


@command("ir", "FILE", aliases=("include_relative",), changes="text")
async def include_relative(shell: CommandShell, args: Args) -> None:
    """Like \\i, but FILE is relative to the current script."""
    await shell.include(args.trusted(0), relative=True)


@command("o", "[FILE...]", aliases=("out", ".output"), changes="shell")
async def redirect(shell: CommandShell, args: Args) -> None:
    """Send results to a file or |command. Without FILE, send them to the terminal again.

    The file appears under its name at the next \\o or on exit; until then a temporary file next to it is written."""
    shell.result_output.redirect(args.trusted(0) if args else EMPTY)


@command("once", "FILE...", aliases=(".once",), changes="shell")
async def once(shell: CommandShell, args: Args) -> None:
    """Send only the next result to a file or |command."""
    shell.result_output.redirect(args.trusted(0), once=True)


@command("tee", "[FILE...]", aliases=("!spool",), changes="shell")
async def tee(shell: CommandShell, args: Args) -> None:
    """Show results and also send them to a file or |command. Without FILE, stop sending them."""
    shell.result_output.redirect(args.trusted(0) if args else EMPTY, as_copy=True)


@command("e", "[FILE]", aliases=("edit", "!edit"))
async def edit(shell: CommandShell, args: Args) -> None:
    """Edit the query buffer, or FILE, in $VISUAL or $EDITOR. If the buffer is empty, edit the last statement.

    The saved text is used as if you had typed it: statements that end with ; run, the rest appears at the prompt. If
    you do not change the last statement, it does not run again."""
    shell.edit(args.trusted(0) if args else EMPTY)


@command("cd", "[DIRECTORY]", aliases=(".cd",), changes="text")
async def change_folder(shell: CommandShell, args: Args) -> None:
    """Change the working directory; without DIRECTORY, to the home directory."""
    change_working_folder(args.trusted(0) if args else Trusted("~"))


@command("!", "[TEXT...]", aliases=(".shell", ".system", "!system"))
async def run_in_shell(shell: CommandShell, args: Args) -> None:
    """Run a command in your shell, or start the shell.

    At the prompt, Ctrl-C interrupts only the command."""
    import asyncio
    import os

    command = args.trusted(0) if args else Trusted(os.environ.get("SHELL", "/bin/sh"))
    with shell.front_end.lending_terminal():
        process = await asyncio.create_subprocess_shell(command)
        code = await process.wait()
    # As in a shell: 128 and the signal that ended it.
    code = code if code >= 0 else 128 - code
    shell.set_variable(Trusted("SHELL_ERROR"), trusted_text(Trusted("true" if code else "false")))
    shell.set_variable(Trusted("SHELL_EXIT_CODE"), trusted_text(Trusted(str(code))))
