"""Help, leaving, and the context."""

from __future__ import annotations

import time

from sqlshell.errors import UsageError
from sqlshell.shell.commands.command import Args, command, find
from sqlshell.shell.port import Port, Quit, Say


@command("?", "[COMMAND]", aliases=("help",))
async def show_help(port: Port, args: Args) -> Say:
    """List the backslash commands, or explain one."""
    if args:
        item = find(port.commands, args[0].lstrip("\\"))
        return Say(f"\\{item.name} {item.usage}".rstrip() + f"\n  {item.help}")
    unique = dict.fromkeys(port.commands.values())
    heads = {item: f"\\{item.name} {item.usage}".rstrip() for item in unique}
    width = max(map(len, heads.values()))
    lines = [f"  {head.ljust(width)}  {item.summary}" for item, head in heads.items()]
    return Say("\n".join(["Statements end with ; and may go over several lines.", *lines]))


@command("q", aliases=("quit", "exit"))
async def leave(port: Port, args: Args) -> Quit:
    """Leave the shell."""
    return Quit()


@command("context", aliases=("conninfo",))
async def show_context(port: Port, args: Args) -> Say:
    """Show the service and the eight parts of the context that statements run in."""
    rows = [("target", port.session.target)] + [
        (name.replace("_", " "), value or "(not set)") for name, value in port.session.context.parts()
    ]
    width = max(len(name) for name, _ in rows)
    return Say("\n".join(f"  {name.ljust(width)}  {value}" for name, value in rows))


@command("refresh")
async def refresh(port: Port, args: Args) -> Say:
    """Load anew the names that completion knows, in the background."""
    port.refresh()
    return Say("loading the names that the service has")


@command("history", "[PATTERN]")
async def history(port: Port, args: Args) -> Say:
    """Show what was entered, with its time; PATTERN's letters in order choose. \\history clear forgets it."""
    if args == ["clear"]:
        try:
            port.forget()
        except OSError as error:
            raise UsageError(f"the history cannot be cleared: {error.strerror or error}") from None
        return Say("the history of this target is cleared")
    typed = args[0] if args else ""
    lines = []
    for moment, text in port.history():
        rest = iter(text.lower())
        if typed.lower() in text.lower() or all(char in rest for char in typed.lower()):
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
            lines.append(f"{when}  " + text.replace("\n", "\n" + " " * 18))
    return Say("\n".join(lines) or "nothing is remembered")


COMMANDS = (show_help, leave, show_context, refresh, history)
