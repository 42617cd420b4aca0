"""Scripts in, files out."""

from __future__ import annotations

from sqlshell.errors import UsageError
from sqlshell.shell.commands.command import Args, command
from sqlshell.shell.port import Edit, Port, Redirect, RunFile, Say, Submit


@command("i", "FILE", aliases=("include",))
async def include(port: Port, args: Args) -> RunFile:
    """Run the statements and commands of a file."""
    return RunFile(args[0])


@command("o", "[FILE...]", aliases=("out",))
async def redirect(port: Port, args: Args) -> Redirect:
    """Send results to a file, or to a command with |; without a name, to the terminal again.

    A file is written beside its place and moved there at the next \\o or at the end."""
    return Redirect(args[0].strip("'\"") if args else "")


@command("g", "[FILE...]", submits=True)
async def go(port: Port, args: Args) -> Submit:
    """End a statement as ; does; with a name, send its result to that file, or to a command with |."""
    return Submit(output=args[0].strip("'\"") if args else "")


@command("gx", "[FILE...]", aliases=("G",), submits=True)
async def go_expanded(port: Port, args: Args) -> Submit:
    """End a statement as ; does, and show its rows as records."""
    return Submit(expanded=True, output=args[0].strip("'\"") if args else "")


@command("bg", submits=True)
async def go_background(port: Port, args: Args) -> Submit:
    """End a statement and leave it running in the background, as ;& does.

    Its end is announced, \\jobs lists it, \\fetch shows its result. It runs in a session of its own."""
    return Submit(background=True)


@command("e", "[FILE]", aliases=("edit",))
async def edit(port: Port, args: Args) -> Edit:
    """Edit the last statement in $EDITOR, and find it at the prompt afterwards; with FILE edit that, and run it."""
    if not port.session.interactive:
        raise UsageError("\\e is for a person at a terminal", "\\i FILE runs a script")
    return Edit(args[0] if args else "")


@command("echo", "[TEXT...]")
async def echo(port: Port, args: Args) -> Say:
    """Print a text on stderr."""
    return Say(args[0] if args else "")


COMMANDS = (include, redirect, go, go_expanded, go_background, edit, echo)
