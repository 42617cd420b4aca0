"""Help, exit, connection, context, errors and history."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from sqlshell.client.service import LISTS_ENGINES
from sqlshell.context import SessionContext
from sqlshell.errors import ShellError, UsageError, reason
from sqlshell.output.text.cells import printable
from sqlshell.result import Rows
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.commands.command import Args, command, find
from sqlshell.shell.metadata.objects import learn_connection
from sqlshell.shell.metadata.service_queries import query_service

LEAST_WIDTH = 16
"""Texts are not made narrower than this, in characters."""

VARIABLES = (
    "\\set NAME VALUE sets a variable. :NAME is replaced by its value, :'NAME' by a string literal, :\"NAME\" by an"
    " identifier, :{?NAME} by TRUE if it is set and FALSE otherwise.",
    "Options of the shell:",
    "  ON_ERROR_STOP (on, off): stop a script at a failure",
    "  ECHO (none, errors, queries, all): print statements before they run",
    "  QUIET (on, off): suppress messages",
    "  VERBOSITY (default, terse, verbose, sqlstate): detail of error messages",
    "  SINGLELINE (on, off): at the prompt, Enter sends a statement without ;",
    "Set by each statement: ERROR, SQLSTATE, ROW_COUNT, ELAPSED (seconds), LAST_STATEMENT_ID, and after a failure"
    " LAST_ERROR_MESSAGE and LAST_ERROR_SQLSTATE. \\! sets SHELL_ERROR and SHELL_EXIT_CODE.",
    "Set by each connection: DBNAME, the current database, and ENCODING; on PostgreSQL also USER, HOST, PORT,"
    " SERVER_VERSION_NAME and SERVER_VERSION_NUM.",
    "Values that came from a service (\\gset, LAST_ERROR_MESSAGE, LAST_STATEMENT_ID, and values derived from them) are"
    " data: they cannot be a file, command, target, setting or variable name. \\trust NAME REGEX trusts a value that"
    " matches a regular expression.",
)


@command("?", "[COMMAND]", aliases=("help", ".help", "!help"), data=("COMMAND",))
async def show_help(shell: CommandShell, args: Args) -> None:
    """List the usual backslash commands, or explain one. \\? all lists all of them.

    \\? start shows the first steps, \\? variables explains the variables.
    At the prompt, Ctrl-X and a digit put an example of the command that was explained last into the line."""
    from sqlshell.shell.commands.examples import EXAMPLES
    from sqlshell.shell.commands.help_text import explanation, first_screen, first_steps, overview, painted, wrapped

    interactive, screen = shell.session.interactive, shutil.get_terminal_size().columns - 1
    width = max(LEAST_WIDTH, min(screen, 99))
    if args == ["variables"]:
        lines = [line for text in VARIABLES for line in wrapped(text.strip(), width, "  " * text.startswith(" "))]
        text = "\n".join(lines) + "\n"
    elif args == ["all"]:
        commands = list(dict.fromkeys(shell.commands.values()))
        text = overview(commands, max(width, screen), columns=3) if interactive else overview(commands, width)
    elif args == ["start"]:
        text = first_steps(width)
    elif args:
        item = find(shell.commands, args[0].lstrip("\\"))
        text = explanation(item, width, keys=interactive)
        shell.session.examples = EXAMPLES.get(item.name, ())
    else:
        text = first_screen(shell.commands, width)
    paint = shell.front_end.paint if interactive else None
    await shell.page(painted(text, paint) if paint is not None else text)


@command("q", aliases=("quit", "exit", ".quit", ".exit", "!quit", "!exit"), changes="text")
async def quit_shell(shell: CommandShell, args: Args) -> None:
    """Exit the shell. In a script, end only that script; the script that includes it continues."""
    shell.quit(args.name)


@command("conninfo", aliases=("conninfo+",))
async def show_connection(shell: CommandShell, args: Args) -> None:
    """Say in one sentence what the shell is connected to. \\conninfo+ also shows what the engine can do."""
    if args.plus:
        await show_context.body(shell, args)
        return
    connection = await learn_connection(shell.session)
    context = shell.session.context
    parts = {
        "database": context.database,
        "schema": context.schema,
        "store": context.store,
        "user": connection.get("user", ""),
        "role": "" if "user" in connection else context.role,
    }
    named = [
        f'{"as " * (name in {"user", "role"})}{name} "{printable(value)}"' for name, value in parts.items() if value
    ]
    where = f"You are connected to {printable(shell.session.target)}"
    server = f" (server {printable(connection['server'])})" if "server" in connection else ""
    shell.say(f"{where}{server}{': ' if named else ''}{', '.join(named)}.")


_CONNECTION = {"user": "server user", "server": "server", "tls": "TLS", "processid": "server process"}
"""The columns of LIST ENGINE CONNECTIONS that are shown, and what they are called here."""

PARTS = tuple(name for name, _ in SessionContext().parts())


@command("context", "[set|reset] [PART] [VALUE]", changes="shell", data=("VALUE",))
async def show_context(shell: CommandShell, args: Args) -> None:
    """Show the service and the context, or change the context. PART is a part of it, such as database or role.

    Each part is shown with its source. \\context set schema sales sets a part, \\context reset schema restores its
    initial value, and \\context reset restores all parts. The service's responses update the context, for example
    after USE. If a statement fails, parts set with \\context set keep their values.
    """
    session = shell.session
    # The response to LIST ENGINES contains the context of the session.
    engine = [] if args else await _engine(shell)
    if not args.plus:
        engine = [row for row in engine if row[0] not in {"supports", "lacks"}]
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
    if chosen:
        shell.set_context(context, chosen)
    # The embedded service has one organization.
    hidden = {"organization"} if session.embedded and not args.plus else set()
    parts = [part for part in context.parts() if part[0] not in hidden]
    shell.say(_described(session.target, parts, sources | chosen, engine))


async def _engine(shell: CommandShell) -> list[tuple[str, str, str]]:
    """The engine of a service that has announced that it lists engines, and what it can and cannot do."""
    if shell.session.connection.offline is not None:
        return []
    rows: Rows = []
    # The context is known without the service, which may be gone.
    with contextlib.suppress(ShellError):
        if LISTS_ENGINES in await shell.service.extensions():
            _, rows = await query_service(shell.session, "LIST ENGINES")
    values = [printable(value or "") for value in rows[0]] if rows else []
    if len(values) < 5:
        return []
    connection = await learn_connection(shell.session)
    used = [(shown, printable(connection[name]), "") for name, shown in _CONNECTION.items() if name in connection]
    return [("engine", values[1], ""), *used, ("supports", values[3], ""), ("lacks", values[4], "")]


def _described(
    target: str,
    parts: Sequence[tuple[str, str]],
    sources: Mapping[str, str],
    engine: Sequence[tuple[str, str, str]] = (),
) -> str:
    """The target and the parts of a context, a line each, with their sources."""
    rows = [("target", printable(target), ""), *engine] + [
        (name.replace("_", " "), printable(value) or "(not set)", sources.get(name, "") if value else "")
        for name, value in parts
    ]
    width = max(len(name) for name, _, _ in rows)
    values = max(len(value) for name, value, source in rows if source) if any(source for _, _, source in rows) else 0
    return "\n".join(f"  {name.ljust(width)}  {value.ljust(values)}  {source}".rstrip() for name, value, source in rows)


def _part(text: str) -> str:
    name = text.lower().replace(" ", "_").replace("-", "_")
    if name not in PARTS:
        raise UsageError(f"unknown part of the context: {text!r}", f"parts: {', '.join(PARTS)}")
    return name


@command("c", "[TARGET] [USER] [HOST] [PORT]", aliases=("connect", "!connect"), changes="shell")
async def connect(shell: CommandShell, args: Args) -> None:
    """Connect to another target. Without an argument, show the current connection.

    TARGET is a profile, a URL or a file, as on the command line. A profile has its own read_only and confirm; for a URL
    or a file, the current ones stay in effect. --read-only always applies. On PostgreSQL, TARGET may be the name of
    another database of the server, also with another USER, HOST and PORT; - keeps the current value. If the
    connection fails, the prompt keeps the current connection, and a script ends.
    """
    if not args:
        await show_context.body(shell, Args())
        return
    if not args[0]:
        raise UsageError("\\c: TARGET is empty", "\\c alone shows the current connection")
    await shell.connect(args.trusted(0), [args.trusted(number) for number in range(1, len(args))])


@command("refresh")
async def refresh(shell: CommandShell, args: Args) -> None:
    """Reload the names for completion. This happens in the background."""
    shell.front_end.refresh_catalog()
    shell.say("reloading the names for completion")


@command("history", "[LETTERS]", aliases=("s",))
async def history(shell: CommandShell, args: Args) -> None:
    """Show the history with times, filtered by LETTERS. \\history clear deletes the history of this target.

    An entry matches if it contains the letters in order."""
    if args == ["clear"]:
        try:
            shell.front_end.clear_history()
        except OSError as error:
            raise UsageError(f"cannot clear the history: {reason(error)}") from None
        shell.say("history of this target cleared")
        return
    typed = args[0] if args else ""
    lines = []
    for moment, text in shell.front_end.history():
        rest = iter(text.lower())
        if typed.lower() in text.lower() or all(char in rest for char in typed.lower()):
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
            lines.append(f"{when}  " + text.replace("\n", "\n" + " " * 18))
    shell.say("\n".join(lines) or "the history is empty", verbatim=True)


@command("errverbose")
async def error_details(shell: CommandShell, args: Args) -> None:
    """Show the last error again in full.

    As with -v, this includes the line of the statement, the service's own message, the meaning of the SQLSTATE, and the
    ID of the statement.
    """
    shell.print((shell.diagnostics.last_error() or "there is no previous error") + "\n")
