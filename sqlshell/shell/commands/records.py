"""Commands for named queries, transcripts and logs."""

from __future__ import annotations

from sqlshell.errors import UsageError
from sqlshell.origin import EMPTY
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.commands.command import Args, command
from sqlshell.shell.records.saved_queries import SavedQueries, with_arguments
from sqlshell.sql.script.splitting import statements
from sqlshell.text import one_line


def _queries(shell: CommandShell) -> SavedQueries:
    if shell.environment.queries is None:
        raise UsageError("no config directory for named queries", "set SQLSHELL_CONFIG_DIR, XDG_CONFIG_HOME or HOME")
    return SavedQueries(shell.environment.queries, shell.session.redact)


@command("n", "[NAME] [WORD...]", changes="text", data=("WORD",))
async def run_query(shell: CommandShell, args: Args) -> None:
    """List the named queries, or run one. The arguments replace $1, $2 …; \\n+ saves a query."""
    queries = _queries(shell)
    if not args:
        known = queries.all()
        width = max(map(len, known), default=0)
        lines = [f"  {name.ljust(width)}  {one_line(text, 100)}" for name, text in known.items()]
        shell.say("\n".join(lines) or "no named queries; \\n+ NAME saves the last statement")
        return
    await shell.execute(args.name, statements(with_arguments(queries.text(args.trusted(0)), args.texts[1:])))


@command("n+", "NAME [SQL...]")
async def save_query(shell: CommandShell, args: Args) -> None:
    """Save a statement as a named query: the SQL after the name, the query buffer, or the last statement.

    The SQL is saved verbatim; if all of it is in single quotes, these are removed: \\n+ top 'select $1'. An empty text
    deletes the query: \\n+ top ''"""
    if len(args) == 2 and not args[1]:
        _queries(shell).delete(args[0])
        shell.say(f"deleted {args[0]}")
        return
    text = " ".join(args[1:])
    if len(args) == 1:
        if not shell.buffer.text:
            raise UsageError("there is no statement to save", "usage: \\n+ NAME SQL")
        shell.buffer.check_origin()
        text = shell.buffer.text
    _queries(shell).save(args[0], text)
    shell.say(f"saved as {args[0]}")


@command("transcript", "[FILE]", changes="shell")
async def transcript(shell: CommandShell, args: Args) -> None:
    """Record statements and their outcomes in a file. Each is a line of JSON. Without FILE, stop recording.

    sqlshell replay FILE and \\replay FILE run the statements again and print the differences."""
    shell.submitter.record(args.trusted(0) if args else EMPTY)


@command("replay", "FILE")
async def replay(shell: CommandShell, args: Args) -> None:
    """Run a transcript again and print the differences. It compares SQLSTATE, columns, rows and values."""
    await shell.replay(args.trusted(0))


@command("log", "[FILE]", aliases=(".log",), changes="shell")
async def log(shell: CommandShell, args: Args) -> None:
    """Append statements and their results to a file. Without FILE, stop logging."""
    shell.result_output.log(args.trusted(0) if args else EMPTY)
