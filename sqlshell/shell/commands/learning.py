"""Syntax help, the tour, and the doctor."""

from __future__ import annotations

from sqlshell.errors import UsageError
from sqlshell.origin import NOWHERE, Own
from sqlshell.shell.commands.command import Args, command
from sqlshell.shell.effects import Run, Say
from sqlshell.shell.port import Port
from sqlshell.sql.syntax import supported_statements, syntax

MEANS = "select sold, count(*) as n, avg(price) as mean from tour group by sold;"
TABLE = (
    "create or replace temp table tour as\n  select i as id, 'item ' || i as name, (i * 37) % 100 as price,"
    " i % 3 = 0 as sold\n  from range(1, 201) t(i);"
)
TOUR = (
    ("Create a table. Statements end with ; and may span several lines.", TABLE),
    (
        "Results are aligned tables. Press Tab to complete keywords and names: try sel, then Tab.",
        "select * from tour limit 3;",
    ),
    (
        "If there are many columns, records are easier to read: end the statement with \\gx.",
        "select * from tour limit 1 \\gx",
    ),
    ("For other formats and for files, use \\format csv, or end the statement with \\g rows.csv.", MEANS),
    (
        "Ctrl-C asks the service to cancel the running statement. ;& runs a statement in the background, in its own"
        " session, which does not see temporary tables.",
        "select count(*) as n, sum(i) as total from range(1000000) t(i);&",
    ),
    ("\\wait waits for the background statements.", "\\wait"),
    ("\\jobs lists the statements of this and other shells; \\fetch shows a result again.", "\\jobs 3"),
    ("An error message marks the position of the error.", "select pricee from tour;"),
)


@command("h", "[STATEMENT...]", data=("STATEMENT",))
async def syntax_help(port: Port, args: Args) -> Say:
    """Show the syntax of a statement, or list them. For example: \\h create stream"""
    here = supported_statements(local=port.session.embedded or bool(port.service.transport.extensions))
    if not args:
        names = here
        width = max(map(len, names)) + 2
        lines = ["".join(name.ljust(width) for name in names[at : at + 3]).rstrip() for at in range(0, len(names), 3)]
        return Say("\n".join(lines))
    wanted = " ".join(args).rstrip("; ")
    found = syntax(wanted)
    if not found:
        raise UsageError(f"no statement begins with {wanted!r}", "\\h lists the statements")
    found.sort(key=lambda item: item[0] not in here)
    lines = []
    for name, text in found[:8]:
        note = "" if name in here else "  (not supported by this service)"
        lines.append(f"{name}{note}\n  " + text.replace("\n", "\n  "))
    return Say("\n\n".join(lines))


@command("tutorial")
async def tutorial(port: Port, args: Args) -> Run:
    """Take a five-minute tour with generated data.

    At the prompt each step waits: Enter runs it, s skips it, q or Ctrl-C ends the tour. Its table is temporary."""
    steps = [
        (f"\n{number}/{len(TOUR)}  {text}\n> {script}".replace("\n  ", "\n>   "), Own(f"{script}\n"))
        for number, (text, script) in enumerate(TOUR, 1)
    ]
    return Run([*steps, ("\nEnd of the tour. \\? lists the commands, \\h the statements; README has more.", NOWHERE)])


@command("doctor")
async def doctor(port: Port, args: Args) -> Say:
    """Check the installation and the connection. It checks versions, settings, latency, certificate and clock."""
    return Say(await port.session.connection.examine())


COMMANDS = (syntax_help, tutorial, doctor)
