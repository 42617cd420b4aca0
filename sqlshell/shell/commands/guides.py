"""Syntax help, sample data, the tour, and the doctor."""

from __future__ import annotations

from collections.abc import Sequence

from sqlshell.errors import StatementError, UsageError
from sqlshell.origin import EMPTY, Trusted
from sqlshell.runtime.streams import in_locale
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.commands.command import Args, command
from sqlshell.shell.metadata.service_queries import engine_of, query_service
from sqlshell.sql.syntax import DOCUMENTED, OF_SERVICE, supported_statements, syntax

TOP = (
    "select p.category, count(*) as items, sum(i.quantity * i.price) as revenue\n  from shop.order_items i"
    " join shop.products p on p.id = i.product_id\n  group by p.category order by revenue desc"
)
TOUR = (
    (
        "The sample data is a shop with 100,000 orders. \\dt shop.* lists its tables, \\d describes one.",
        "\\d shop.orders",
    ),
    (
        "Statements end with ; and may span several lines. Names are completed while you type: try select * from sh.",
        "select * from shop.orders limit 3;",
    ),
    (
        "\\gx shows each row as a record, one line per column, as the shell does if a table is too wide.",
        "select * from shop.customers limit 1 \\gx",
    ),
    ("Tables are joined and grouped as in any SQL database.", f"{TOP};"),
    (
        "\\local queries the last result, named _, on this machine. \\browse opens a result of any size.",
        "\\local select category, revenue from _ where revenue > 3000000",
    ),
    (
        "For other formats and for files, use \\format csv, or end the statement with \\g rows.csv.",
        f"{TOP} \\g (format=csv)",
    ),
    (
        "Ctrl-C asks the service to cancel the running statement. ;& runs a statement in the background.",
        "select status, count(*) as n from shop.orders group by status;&",
    ),
    ("\\wait waits for the background statements.", "\\wait"),
    ("\\jobs lists the statements of this and other shells; \\fetch shows a result again.", "\\jobs 3"),
    ("Error messages mark the position of the error and suggest similar names.", "select staus from shop.orders;"),
)
"""The steps of the tutorial: what each is about, and what it runs. The sample data is made before them."""


def is_local(shell: CommandShell) -> bool:
    """Whether the service is the local one, embedded or under `serve`; known once it has responded."""
    return shell.session.embedded or bool(shell.service.transport.extensions)


@command("h", "[STATEMENT...]", data=("STATEMENT",))
async def syntax_help(shell: CommandShell, args: Args) -> None:
    """List the statements, or show the syntax of one: \\h create stream"""
    if (engine := await engine_of(shell.session)) in DOCUMENTED:
        shell.say(_of_server(engine, " ".join(args).rstrip("; ")))
        return
    local = is_local(shell)
    here = supported_statements(local=local)
    if not args:
        names = here
        width = max(map(len, names)) + 2
        lines = ["".join(name.ljust(width) for name in names[at : at + 3]).rstrip() for at in range(0, len(names), 3)]
        shell.say("\n".join(lines))
        return
    wanted = " ".join(args).rstrip("; ")
    found = syntax(wanted, local=local)
    if not found:
        raise UsageError(f"no statement begins with {wanted!r}", "\\h lists the statements")
    found.sort(key=lambda item: item[0] not in here)
    lines = []
    for name, text in found[:8]:
        note = "" if name in here else "  (not supported by this service)"
        lines.append(f"{name}{note}\n  " + text.replace("\n", "\n  "))
    shell.say(in_locale("\n\n".join(lines)))


def _of_server(engine: str, wanted: str) -> str:
    """The syntax of the service's own statements; that of the engine's is documented elsewhere."""
    product, address = DOCUMENTED[engine]
    documented = f"{product} documents its statements: {address}"
    if not wanted:
        return f"The service itself carries out: {', '.join(OF_SERVICE)}.\n{documented}"
    found = [
        f"{name}\n  " + text.replace("\n", "\n  ")
        for name, text in syntax(wanted, local=True)
        if name in OF_SERVICE and name.startswith(wanted.upper())
    ]
    if wanted.upper() not in OF_SERVICE:
        found.append(documented)
    return in_locale("\n\n".join(found))


@command("demo", "[on|off]")
async def demo(shell: CommandShell, args: Args) -> None:
    """Create or remove sample data: a small shop with 100,000 orders. \\demo off removes it after you confirm.

    It consists of four tables in the schema shop of the current database: customers, products, orders and
    order_items. Only the local service can create them. A schema shop of your own is never changed.
    """
    await _sample_data(shell, remove=args == ["off"])


async def _sample_data(shell: CommandShell, *, remove: bool = False) -> None:
    from sqlshell.shell.commands import sample_data

    schema = sample_data.SCHEMA
    if engine := await engine_of(shell.session):
        product, _ = DOCUMENTED.get(engine, (engine, ""))
        raise UsageError(f"\\demo requires DuckDB; this is {product}", "start DuckDB with: sqlshell")
    if shell.session.state.transaction.state:
        raise UsageError("\\demo cannot run in a transaction", "end it with COMMIT or ROLLBACK")
    try:
        _, existing = await query_service(shell.session, sample_data.EXISTING)
    except StatementError:
        if is_local(shell):
            raise
        existing = []
    if not is_local(shell):
        raise UsageError("\\demo requires the local service", "start one with: sqlshell")
    marked = [name for _, name, comment in existing if name and comment == sample_data.MARK]
    if remove:
        await _remove(shell, marked, [name for _, name, _ in existing if name and name not in marked])
        return
    if marked:
        shell.say(f"the sample data is already in the schema {schema}; \\demo off removes it")
        return
    if (shell.session.context.database or "").lower() == schema:
        raise UsageError(
            f"database and schema would both be named {schema}",
            "use another database",
        )
    if existing:
        raise UsageError(
            f"the schema {schema} already exists, but \\demo did not create it",
            "rename the schema, or use another database",
        )
    await shell.execute_silently(sample_data.creating_statements())
    shell.front_end.refresh_catalog()
    shell.say(
        f"sample data in the schema {schema}: 2,000 customers, 160 products, 100,000 orders, 250,013 items"
        f"\ntry: select * from {schema}.products limit 10;"
        "\n\\tutorial is a tour; \\demo off removes the data"
    )


async def _remove(shell: CommandShell, marked: Sequence[str], others: Sequence[str]) -> None:
    """Remove the tables with sample data, and their schema if nothing else is in it."""
    from sqlshell.shell.commands import sample_data

    schema = sample_data.SCHEMA
    if not marked:
        shell.say("there is no sample data")
        return
    if not shell.session.connection.policy.yes:
        ask = shell.front_end.ask
        if ask is None:
            raise UsageError("\\demo off requires confirmation", "use --yes to confirm")
        answer = await ask(f"Drop {len(marked)} tables of sample data in the schema {schema}? [y/N] ")
        if answer.strip().lower() not in {"y", "yes"}:
            shell.say("not confirmed; nothing was dropped")
            return
    texts = [f"DROP TABLE {schema}.{name}" for name in reversed(sample_data.TABLES) if name in marked]
    texts += [] if others else [f"DROP SCHEMA {schema}"]
    kept = f"; the schema {schema} is kept, because it contains {', '.join(others)}" if others else ""
    await shell.execute_silently(texts)
    shell.front_end.refresh_catalog()
    shell.say(f"the sample data was dropped{kept}")


@command("tutorial")
async def tutorial(shell: CommandShell, args: Args) -> None:
    """Take a five-minute tour that uses the sample data of \\demo, which it creates first.

    At the prompt, each step waits for a key: Enter runs it, s skips it, q or Ctrl-C ends the tour."""
    steps = [
        (f"\n{number}/{len(TOUR)}  {text}\n> {script}".replace("\n  ", "\n>   "), Trusted(f"{script}\n"))
        for number, (text, script) in enumerate(TOUR, 1)
    ]
    end = "\nEnd of the tour. \\demo off removes the data, \\? lists the usual commands, \\h the statements."
    await _sample_data(shell)
    await shell.run_steps([*steps, (end, EMPTY)])


@command("doctor")
async def doctor(shell: CommandShell, args: Args) -> None:
    """Check the installation and the connection. It checks versions, settings, latency, certificate and clock."""
    shell.say(await shell.session.connection.examine())
