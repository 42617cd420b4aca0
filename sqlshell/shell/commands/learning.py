"""Syntax, a tour, and a look at what may be wrong."""

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
    ("A table, made on the spot. Statements end with ; and may go over several lines.", TABLE),
    ("Rows come aligned. Type sel and a part of a name: Tab completes both.", "select * from tour limit 3;"),
    (
        "With many columns a record a line is easier to read: \\gx ends a statement too.",
        "select * from tour limit 1 \\gx",
    ),
    ("Programs like other formats, and files: \\format csv, or \\g rows.csv at the end.", MEANS),
    (
        "Ctrl-C asks the service to end what runs. ;& leaves it running behind the prompt, in a session of its own,"
        " which does not see temporary tables.",
        "select count(*) as n, sum(i) as total from range(1000000) t(i);&",
    ),
    ("\\wait waits for what is in the background.", "\\wait"),
    ("\\jobs lists what ran, here and in other shells; \\fetch shows a result again.", "\\jobs 3"),
    ("A mistake is shown where it is.", "select pricee from tour;"),
)


@command("h", "[STATEMENT...]", data=("STATEMENT",))
async def syntax_help(port: Port, args: Args) -> Say:
    """Show the syntax of a statement. \\h create stream is an example; alone, list the statements."""
    here = supported_statements(local=port.session.embedded or bool(port.service.transport.extensions))
    if not args:
        names = here
        width = max(map(len, names)) + 2
        lines = ["".join(name.ljust(width) for name in names[at : at + 3]).rstrip() for at in range(0, len(names), 3)]
        return Say("\n".join(lines))
    wanted = " ".join(args).rstrip("; ")
    found = syntax(wanted)
    if not found:
        raise UsageError(f"no statement begins with {wanted!r}", "\\h lists them")
    found.sort(key=lambda item: item[0] not in here)
    lines = []
    for name, text in found[:8]:
        note = "" if name in here else "  (not taken by this service)"
        lines.append(f"{name}{note}\n  " + text.replace("\n", "\n  "))
    return Say("\n\n".join(lines))


@command("tutorial")
async def tutorial(port: Port, args: Args) -> Run:
    """A tour of five minutes, with data made on the spot.

    At the prompt each step waits: Enter runs it, s skips it, q or Ctrl-C ends the tour. Its table is temporary."""
    steps = [
        (f"\n{number}/{len(TOUR)}  {text}\n> {script}".replace("\n  ", "\n>   "), Own(f"{script}\n"))
        for number, (text, script) in enumerate(TOUR, 1)
    ]
    return Run(
        [*steps, ("\nThat is it. \\? lists the commands, \\h the statements, and README has the rest.", NOWHERE)]
    )


@command("doctor")
async def doctor(port: Port, args: Args) -> Say:
    """Say what works, what does not, and what to do: versions, settings, connection, certificate, clock, latency."""
    return Say(await port.session.connection.examine())


COMMANDS = (syntax_help, tutorial, doctor)
