"""Help, exit, connection, context and history."""

from __future__ import annotations

import itertools
import re
import shutil
import textwrap
import time
from collections.abc import Mapping

from msgspec.structs import replace

from sqlshell.context import SessionContext
from sqlshell.errors import UsageError
from sqlshell.shell.commands.command import Args, command, find
from sqlshell.shell.effects import Connect, Effect, ForgetHistory, Many, Print, Quit, RefreshCatalog, Say, SetContext
from sqlshell.shell.port import Port

WIDEST_HEAD = 22
"""Width of the column with a command and its arguments in the list of commands."""
_SENTENCE = re.compile(r"(?<=[\w)])[.;:](?:\s|$)")


VARIABLES = (
    "\\set NAME VALUE sets a variable. :NAME is replaced by its value, :'NAME' by a string literal, :\"NAME\" by an"
    " identifier, :{?NAME} by TRUE if it is set and FALSE otherwise.",
    "Options of the shell:",
    "  ON_ERROR_STOP (on, off): stop a script at a failure",
    "  ECHO (none, queries, all): print statements before they run",
    "  QUIET (on, off): suppress messages",
    "Set by each statement: ERROR, SQLSTATE, ROW_COUNT, ELAPSED (seconds), LAST_STATEMENT_ID, and after a failure"
    " LAST_ERROR_MESSAGE. \\! sets SHELL_ERROR and SHELL_EXIT_CODE.",
    "Values that came from a service (\\gset, LAST_ERROR_MESSAGE, LAST_STATEMENT_ID, and values derived from them) are"
    " data: they cannot be a file, command, target, setting or variable name. \\own NAME EXPRESSION accepts a value"
    " that matches a regular expression.",
)


@command("?", "[COMMAND]", aliases=("help", ".help", "!help"), data=("COMMAND",))
async def show_help(port: Port, args: Args) -> Print:
    """List the backslash commands, or explain one. \\? variables explains the variables of the shell."""
    width = max(40, min(shutil.get_terminal_size().columns, 100)) - 1
    if args == ["variables"]:
        lines = [line for text in VARIABLES for line in _wrapped(text.strip(), width, "  " * text.startswith(" "))]
        return Print("\n".join(lines) + "\n", own=True, paged=True)
    if args:
        item = find(port.commands, args[0].lstrip("\\"))
        also = ", ".join(name if name[0] in ".!" else f"\\{name}" for name in item.aliases)
        lines = [f"\\{item.name} {item.usage}".rstrip()]
        for text in [*item.help.split("\n"), *([f"Also {also}"] if also else [])]:
            lines += _wrapped(text, width, "  ") or [""]
        return Print("\n".join(lines) + "\n", own=True, paged=True)
    first = "Statements end with ; and may span several lines. \\? COMMAND explains a command, \\h a statement."
    lines = _wrapped(first, width, "")
    for title, commands in itertools.groupby(dict.fromkeys(port.commands.values()), lambda item: item.group):
        lines += ["", title]
        for item in commands:
            lines += _entry(item.name, item.usage, _SENTENCE.split(item.summary)[0], width)
    return Print("\n".join(lines) + "\n", own=True, paged=True)


def _entry(name: str, usage: str, brief: str, width: int) -> list[str]:
    """A command and its summary in two columns; arguments that do not fit are omitted."""
    head = f"\\{name}"
    for word in usage.split():
        if len(f"{head} {word} …") > WIDEST_HEAD and not f"\\{name} {usage}".endswith(f"{head} {word}"):
            head += " …"
            break
        head += f" {word}"
    lines = _wrapped(brief, width, " " * (WIDEST_HEAD + 4))
    return [f"  {head.ljust(WIDEST_HEAD)}  {lines[0].lstrip()}", *lines[1:]]


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    """Wrap a text to lines of `width` characters without breaking words."""
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


@command("q", aliases=("quit", "exit", ".quit", ".exit", "!quit", "!exit"))
async def leave(port: Port, args: Args) -> Quit:
    """Exit the shell. In a script, end only that script; its caller goes on."""
    return Quit()


PARTS = tuple(name for name, _ in SessionContext().parts())


@command("context", "[set|reset] [PART] [VALUE]", aliases=("conninfo",), data=("VALUE",))
async def show_context(port: Port, args: Args) -> Effect:
    """Show the service and the context, or set a part of it. reset restores the initial value of one part or of all.

    Each part is shown with its source. Examples: \\context set schema sales, \\context reset schema, \\context reset.
    The service's answers change the context, for example after USE. A failed statement does not change a part that
    was set."""
    session = port.session
    context, sources = session.context, session.state.sources
    chosen: dict[str, str] = {}
    if args and args[0] == "set":
        if len(args) < 3:
            raise UsageError("\\context set requires a part and its value", f"parts: {', '.join(PARTS)}")
        context = replace(context, **{_part(args[1]): args[2]})
        chosen = {_part(args[1]): "\\context set"}
    elif args:
        if len(args) > 2:
            raise UsageError("\\context reset accepts at most one part", f"parts: {', '.join(PARTS)}")
        names = [_part(args[1])] if len(args) > 1 else [name for name in PARTS if name != "session_id"]
        began = dict(session.connection.context.parts())
        context = replace(context, **{name: began[name] for name in names})
        chosen = dict.fromkeys(names, "initial value")
    told = Say(_described(session.target, context, sources | chosen))
    return Many([SetContext(context, chosen), told]) if chosen else told


def _described(target: str, context: SessionContext, sources: Mapping[str, str]) -> str:
    """The target and the parts of a context, a line each, with their sources."""
    rows = [("target", target, "")] + [
        (name.replace("_", " "), value or "(not set)", sources.get(name, "") if value else "")
        for name, value in context.parts()
    ]
    width, values = max(len(name) for name, _, _ in rows), max(len(value) for _, value, _ in rows)
    return "\n".join(f"  {name.ljust(width)}  {value.ljust(values)}  {source}".rstrip() for name, value, source in rows)


def _part(text: str) -> str:
    name = text.lower().replace(" ", "_").replace("-", "_")
    if name not in PARTS:
        raise UsageError(f"unknown part of the context: {text!r}", f"parts: {', '.join(PARTS)}")
    return name


@command("c", "[TARGET]", aliases=("connect", "!connect"))
async def connect(port: Port, args: Args) -> Effect | None:
    """Connect to another target. Without an argument, show the current connection.

    TARGET is a profile, a URL or a file, as on the command line. A profile brings its own read_only and confirm; for
    other targets the current ones still apply. --read-only always applies.
    If the new service does not answer, the shell keeps the old connection unchanged."""
    if not args:
        return await show_context.body(port, Args())
    return Connect(args.own(0))


@command("refresh")
async def refresh(port: Port, args: Args) -> Many:
    """Reload the names for completion. This happens in the background."""
    return Many([RefreshCatalog(), Say("reloading the names for completion")])


@command("history", "[LETTERS]", aliases=("s",))
async def history(port: Port, args: Args) -> Effect:
    """Show the history with times, filtered by LETTERS. \\history clear deletes the history of this target.

    An entry matches if it contains the letters in order."""
    if args == ["clear"]:
        return Many([ForgetHistory(), Say("history of this target cleared")])
    typed = args[0] if args else ""
    lines = []
    for moment, text in port.front_end.history():
        rest = iter(text.lower())
        if typed.lower() in text.lower() or all(char in rest for char in typed.lower()):
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
            lines.append(f"{when}  " + text.replace("\n", "\n" + " " * 18))
    return Say("\n".join(lines) or "the history is empty")


COMMANDS = (show_help, leave, show_context, connect, refresh, history)
