"""Commands that send the query buffer, and commands that show, write or clear it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlshell.errors import UsageError
from sqlshell.origin import EMPTY, service_text
from sqlshell.output.writer import Summary
from sqlshell.result import Result, Rows
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.commands.command import OPTIONS, Args, command
from sqlshell.shell.commands.display import options_in
from sqlshell.shell.results.rows import collect, columns_table
from sqlshell.shell.scripts.reading import write_text
from sqlshell.shell.scripts.variables import check_name, check_received
from sqlshell.sql.script.items import Statement

MOST_STATEMENTS = 100_000
"""Maximum number of statements that \\gexec runs: it reads all of them before it runs the first."""
LONGEST_VALUE = 1 << 20
"""Maximum length of a value that \\gset stores, in characters."""

_WATCHED: Final[Mapping[str, str]] = {"i": "the interval", "c": "the number of runs", "m": "the number of rows"}
_WATCH_EXAMPLE: Final = "example: \\watch i=5 c=10 m=1"


@command("g", f"{OPTIONS} [FILE...]", sends=True)
async def go(shell: CommandShell, args: Args) -> None:
    """Run a statement, as ; does. With FILE, write the result to the file; with |command, send it to the command.

    Options of \\pset in parentheses apply to this result only: \\g (format=csv null=-) FILE

    \\g browse opens the result in the explorer, as \\browse does."""
    if args == ["browse"] and shell.front_end.browse is not None:
        await shell.use_result(args.name, shell.front_end.browse)
    else:
        await _submit(shell, args)


@command("gx", f"{OPTIONS} [FILE...]", aliases=("G",), sends=True)
async def go_expanded(shell: CommandShell, args: Args) -> None:
    """Run a statement and show its rows as records. Otherwise like \\g."""
    await _submit(shell, args, expanded=True)


async def _submit(shell: CommandShell, args: Args, *, expanded: bool = False) -> None:
    """Check options and output, then run the statement."""
    output = args.trusted(0) if args else EMPTY
    options = options_in(shell, args.options)
    with shell.session.options_for(options):
        shell.result_output.check(output)
        await shell.submit(args.name, expanded=expanded, output=output)


@command("bg", sends=True)
async def go_background(shell: CommandShell, args: Args) -> None:
    """Run a statement in the background, as ;& does.

    The shell prints a notice when it finishes, \\jobs lists it, \\fetch shows its result. It runs in its own
    session."""
    await shell.submit(args.name, background=True)


@command("gset", "[PREFIX]", sends=True)
async def go_set(shell: CommandShell, args: Args) -> None:
    """Run a statement and store its only row in variables. Each variable is named PREFIX plus the column name.

    A NULL unsets the variable. The values are data: they cannot name a file, command or setting; see \\trust.
    A column named like a variable of the shell, such as ON_ERROR_STOP, is refused."""
    prefix = args[0] if args else ""
    if prefix:
        # Before the statement runs.
        check_name(prefix)
    received: dict[str, str | None] = {}

    async def take(result: Result) -> Summary:
        from sqlshell.output.changes import with_hex

        summary, rows = await collect(result, 2)
        rows = with_hex(rows, result.columns)
        if len(rows) != 1:
            raise UsageError(f"\\gset requires exactly one row; the result has {'none' if not rows else 'more'}")
        values = {prefix + column.name: value for column, value in zip(result.columns, rows[0], strict=True)}
        for name, value in values.items():
            if value is not None and len(value) > LONGEST_VALUE:
                raise UsageError(
                    f"\\gset: the value of {name} has {len(value):,} characters; the limit is {LONGEST_VALUE:,}"
                )
        check_received(values)
        received.clear()
        received.update(values)
        return summary

    await shell.submit(args.name, take, needs_rows=True)
    if received:
        shell.receive(received)


@command("gexec", sends=True)
async def go_execute(shell: CommandShell, args: Args) -> None:
    """Run each value of a statement's result as a statement. They run row by row; NULLs are skipped.

    Values run only as SQL, never as backslash commands, and cannot name a local file."""
    statements: list[Statement] = []

    async def take(result: Result) -> Summary:
        summary, rows = await collect(result, MOST_STATEMENTS)
        if not summary.complete:
            raise UsageError(f"\\gexec: the result has more than {MOST_STATEMENTS:,} rows")
        texts = (value for row in rows for value in row if value and value.strip())
        statements.extend(
            Statement(text, 0, 0, True, foreign=service_text(text, "a value for \\gexec").foreign) for text in texts
        )
        return summary

    await shell.submit(args.name, take)
    await shell.execute(args.name, statements, verbatim=True)


@command("gdesc", sends=True)
async def go_describe(shell: CommandShell, args: Args) -> None:
    """Show the columns and types of a statement's result. The rows are not shown.

    The local service does not run a SELECT for this. Any other statement is run, and refused if it may write.
    """
    described: list[Result] = []

    async def take(result: Result) -> Summary:
        await result.batches.aclose()
        rows: Rows = [
            [column.name, column.exact_type, None if column.nullable is None else str(column.nullable).lower()]
            for column in result.columns
        ]
        people = shell.result_output.for_people
        described.append(columns_table(("name", "type", "nullable"), rows, for_people=people))
        return Summary(0, True)

    await shell.submit(args.name, take, describes=True)
    if described:
        await shell.show(described[-1])
    else:
        shell.say("the statement returns no result")


@command(
    "watch",
    "[SECONDS] [i=SECONDS] [c=TIMES] [m=ROWS]",
    sends=True,
    data=("SECONDS", "i=SECONDS", "c=TIMES", "m=ROWS"),
)
async def watch(shell: CommandShell, args: Args) -> None:
    """Run a statement every SECONDS. The default is 2; Ctrl-C ends it, as c=TIMES and m=ROWS do.

    c=TIMES stops after TIMES runs, m=ROWS when the result has fewer than ROWS rows. On a terminal each result replaces
    the previous one, and changes are highlighted.
    """
    seconds, limits, seen = 2.0, dict[str, int](), set[str]()
    for number, word in enumerate(args):
        name, given, value = word.partition("=")
        if not given and number == 0:
            name, value = "i", word
        if name[:1] in seen & _WATCHED.keys():
            raise UsageError(f"\\watch: {_WATCHED[name[:1]]} is given twice", _WATCH_EXAMPLE)
        seen.add(name[:1])
        try:
            match name:
                case "i" | "interval":
                    seconds = float(value)
                case "c" | "count":
                    limits["times"] = int(value)
                case "m" | "min_rows":
                    limits["min_rows"] = int(value)
                case _:
                    raise UsageError(
                        f"\\watch: unexpected argument {word!r}",
                        "usage: \\watch [SECONDS] [i=SECONDS] [c=TIMES] [m=ROWS]",
                    )
        except ValueError:
            raise UsageError(f"\\watch: {value!r} is not a number", _WATCH_EXAMPLE) from None
    if not 0 <= seconds < 1e7:
        raise UsageError("\\watch: SECONDS must be at least 0 and less than 10,000,000", "example: \\watch i=5")
    for letter, name in (("c", "times"), ("m", "min_rows")):
        if limits.get(name, 1) < 1:
            raise UsageError(f"\\watch: {letter} must be at least 1, not {limits[name]}", _WATCH_EXAMPLE)
    await shell.repeat(args.name, seconds, limits.get("times", 0), limits.get("min_rows", 0))


@command("p", aliases=("print",))
async def show_buffer(shell: CommandShell, args: Args) -> None:
    """Show the query buffer: the unfinished statement, or the last one."""
    if shell.buffer.text:
        shell.print(f"{shell.buffer.text}\n")
    else:
        shell.say("the query buffer is empty")


@command("r", aliases=("reset",), changes="text")
async def clear_buffer(shell: CommandShell, args: Args) -> None:
    """Clear the query buffer: discard the unfinished statement."""
    shell.buffer.scanner.take()
    shell.diagnostics.report("query buffer cleared", always=shell.session.interactive)


@command("w", "FILE", aliases=("write",))
async def write_buffer(shell: CommandShell, args: Args) -> None:
    """Write the query buffer to a file: the unfinished statement, or the last one."""
    if not shell.buffer.script_text:
        raise UsageError("\\w: the query buffer is empty", "type a statement first")
    shell.buffer.check_origin()
    write_text(args.trusted(0), shell.buffer.script_text)
