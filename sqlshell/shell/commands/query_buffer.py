"""Commands that send the query buffer, and commands that show, write or clear it."""

from __future__ import annotations

from sqlshell.errors import UsageError
from sqlshell.origin import EMPTY, service_text
from sqlshell.output.writer import Summary
from sqlshell.result import Result, Rows
from sqlshell.shell.commands.command import OPTIONS, Args, command
from sqlshell.shell.commands.display import options_in
from sqlshell.shell.effects import (
    ClearBuffer,
    Effect,
    Execute,
    Print,
    ReceiveVariables,
    Repeat,
    ShowMessage,
    ShowResult,
    Submit,
    UseResult,
)
from sqlshell.shell.results.rows import collect, columns_table
from sqlshell.shell.scripts.reading import write_text
from sqlshell.shell.scripts.variables import check_name, check_received
from sqlshell.shell.shell_view import ShellView
from sqlshell.sql.script.items import Statement

MOST_STATEMENTS = 100_000
"""Maximum number of statements that \\gexec runs: it reads all of them before it runs the first."""
LONGEST_VALUE = 1 << 20
"""Maximum length of a value that \\gset stores, in characters."""


@command("g", f"{OPTIONS} [FILE...]", sends=True)
async def go(shell: ShellView, args: Args) -> Effect:
    """Run a statement, as ; does. With FILE, write the result to the file; with |command, send it to the command.

    Options of \\pset in parentheses apply to this result only: \\g (format=csv null=-) FILE

    \\g browse opens the result in the explorer, as \\browse does."""
    if args == ["browse"] and shell.front_end.browse is not None:
        return UseResult(shell.front_end.browse)
    return _submitted(shell, args)


@command("gx", f"{OPTIONS} [FILE...]", aliases=("G",), sends=True)
async def go_expanded(shell: ShellView, args: Args) -> Submit:
    """Run a statement and show its rows as records. Otherwise like \\g."""
    return _submitted(shell, args, expanded=True)


def _submitted(shell: ShellView, args: Args, *, expanded: bool = False) -> Submit:
    """Check options and output before the statement runs. Raises UsageError and OutputError."""
    output = args.own(0) if args else EMPTY
    options = options_in(shell, args.options)
    with shell.session.options_for(options):
        shell.result_output.check(output)
    return Submit(expanded, output, options=options)


@command("bg", sends=True)
async def go_background(shell: ShellView, args: Args) -> Submit:
    """Run a statement in the background, as ;& does.

    The shell prints a notice when it finishes, \\jobs lists it, \\fetch shows its result. It runs in its own
    session."""
    return Submit(background=True)


@command("gset", "[PREFIX]", sends=True)
async def go_set(shell: ShellView, args: Args) -> Submit:
    """Run a statement and store its only row in variables. Each variable is named PREFIX plus the column name.

    A NULL unsets the variable. The values are data: they cannot name a file, command or setting; see \\own.
    A column named like a variable of the shell, such as ON_ERROR_STOP, is refused."""
    prefix = args[0] if args else ""
    if prefix:
        # Before the statement runs.
        check_name(prefix)
    received: list[Effect] = []

    async def take(result: Result) -> Summary:
        from sqlshell.output.text.binary import binary_columns, with_hex

        summary, rows = await collect(result, 2)
        rows = with_hex(rows, binary_columns(result.columns))
        if len(rows) != 1:
            raise UsageError(f"\\gset requires exactly one row; the result has {'none' if not rows else 'more'}")
        values = {prefix + column.name: value for column, value in zip(result.columns, rows[0], strict=True)}
        for name, value in values.items():
            if value is not None and len(value) > LONGEST_VALUE:
                raise UsageError(
                    f"\\gset: the value of {name} has {len(value):,} characters; the limit is {LONGEST_VALUE:,}"
                )
        check_received(values)
        received.append(ReceiveVariables(values))
        return summary

    return Submit(consumer=take, then=lambda: received[-1] if received else None, needs_rows=True)


@command("gexec", sends=True)
async def go_execute(shell: ShellView, args: Args) -> Submit:
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

    return Submit(consumer=take, then=lambda: Execute(statements, verbatim=True))


@command("gdesc", sends=True)
async def go_describe(shell: ShellView, args: Args) -> Submit:
    """Show the columns and types of a statement's result. The rows are not shown.

    The local service does not run a SELECT for this. Other statements must run, so those that may write are refused.
    """
    described: list[Effect] = []

    async def take(result: Result) -> Summary:
        await result.batches.aclose()
        rows: Rows = [
            [column.name, column.exact_type, None if column.nullable is None else str(column.nullable).lower()]
            for column in result.columns
        ]
        described.append(
            ShowResult(columns_table(("name", "type", "nullable"), rows, for_people=shell.result_output.for_people))
        )
        return Summary(0, True)

    def then() -> Effect:
        return described[-1] if described else ShowMessage("the statement returns no result")

    return Submit(consumer=take, then=then, describes=True)


@command(
    "watch",
    "[SECONDS] [i=SECONDS] [c=TIMES] [m=ROWS]",
    sends=True,
    data=("SECONDS", "i=SECONDS", "c=TIMES", "m=ROWS"),
)
async def watch(shell: ShellView, args: Args) -> Repeat:
    """Run a statement every SECONDS (default 2) until Ctrl-C. c=TIMES and m=ROWS stop it earlier.

    c=TIMES stops after TIMES runs, m=ROWS when the result has fewer than ROWS rows. On a terminal each result replaces
    the previous one, and changes are highlighted.
    """
    seconds, limits = 2.0, dict[str, int]()
    for number, word in enumerate(args):
        name, given, value = word.partition("=")
        if not given and number == 0:
            name, value = "i", word
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
            raise UsageError(f"\\watch: {value!r} is not a number", "example: \\watch i=5 c=10 m=1") from None
    if not 0 <= seconds < 1e7 or min(limits.values(), default=1) < 1:
        raise UsageError(
            "\\watch: a number is out of range",
            "SECONDS must not be negative, and TIMES and ROWS must be at least 1; example: \\watch i=5 c=10 m=1",
        )
    return Repeat(seconds, limits.get("times", 0), limits.get("min_rows", 0))


@command("p", aliases=("print",))
async def show_buffer(shell: ShellView, args: Args) -> Effect:
    """Show the query buffer: the unfinished statement, or the last one."""
    return Print(f"{shell.buffer.text}\n") if shell.buffer.text else ShowMessage("the query buffer is empty")


@command("r", aliases=("reset",), changes="text")
async def clear_buffer(shell: ShellView, args: Args) -> ClearBuffer:
    """Clear the query buffer: discard the unfinished statement."""
    return ClearBuffer()


@command("w", "FILE", aliases=("write",))
async def write_buffer(shell: ShellView, args: Args) -> None:
    """Write the query buffer to a file: the unfinished statement, or the last one."""
    if not shell.buffer.script_text:
        raise UsageError("there is no statement to write")
    shell.buffer.check_origin()
    write_text(args.own(0), shell.buffer.script_text)


COMMANDS = (
    go,
    go_expanded,
    go_background,
    go_set,
    go_execute,
    go_describe,
    watch,
    show_buffer,
    clear_buffer,
    write_buffer,
)
