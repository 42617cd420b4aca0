"""Commands that load files into tables and write results to files."""

from __future__ import annotations

from sqlshell.errors import UsageError
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.commands.command import Args, command
from sqlshell.sql.analysis.copy_statements import read_copy


@command("copy", "TABLE FROM|TO FILE ...", verbatim=True)
async def copy(shell: CommandShell, args: Args) -> None:
    """Copy rows between a table and a file: \\copy t FROM 'file', \\copy t TO 'file'

    FROM loads csv, tsv, json, jsonl and parquet files, also compressed (.gz, .zst): \\copy t [(columns)] FROM 'file'
    [WITH (options)]. Columns are matched by name. FROM STDIN reads the lines after the command, up to a line that
    contains only \\.; with -c it reads stdin. FROM PSTDIN always reads stdin. FROM PROGRAM 'command' reads the output
    of a local command.

    Options of FROM:

    - HEADER, DELIMITER, NULL, QUOTE, ESCAPE, FORCE_NULL, FORCE_NOT_NULL: as in psql
    - FORMAT csv, text, json or parquet
    - SNIFF: detect header and delimiter even if FORMAT is given
    - ENCODING, such as latin1 or utf16
    - CREATE: create the table
    - DRY_RUN: show where the columns go, and check all values
    - MAX_ERRORS n: skip up to n bad rows
    - REJECTS 'file': write the bad rows to a file
    - ROUND: round or shorten values to fit their column
    - RESUME: continue an interrupted load
    - IF_UNKNOWN skip (or send): skip (or resend) rows whose outcome is unknown

    TO writes a table or a query: \\copy (SELECT ...) TO 'file'. TO STDOUT writes to the current output of results, TO
    PSTDOUT always to stdout, and TO PROGRAM 'command' to a local command. The extension or FORMAT sets the format;
    without either it is text. Options: HEADER, DELIMITER, NULL, QUOTE, ESCAPE, FORCE_QUOTE, as in psql."""
    if not args:
        raise UsageError("\\copy requires a table", "usage: \\copy TABLE [(COLUMNS)] FROM|TO 'FILE' [WITH (OPTIONS)]")
    await shell.copy(read_copy(f"copy {args.trusted(0)}", command=True))


@command("export", "FILE", sends=True)
async def export(shell: CommandShell, args: Args) -> None:
    """Write the result of a statement to a file, which appears when it is complete.

    sqlshell export does the same."""
    await shell.export(args.name, args.trusted(0))


@command("restrict", "KEY", changes="text")
async def restrict(shell: CommandShell, args: Args) -> None:
    """Disable backslash commands until \\unrestrict KEY.

    Dumps written by recent versions of pg_dump begin with this command."""
    shell.restrict(args[0])


@command("unrestrict", "KEY", changes="text")
async def unrestrict(shell: CommandShell, args: Args) -> None:
    """Allow backslash commands again after \\restrict KEY."""
    shell.unrestrict(args[0])
