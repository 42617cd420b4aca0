"""The modes of the program that run text: scripts and the interactive shell."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.config.settings import BY_NAME
from sqlshell.config.values import Config, Settings, state_folder
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import Exit, OutputError, ShellError
from sqlshell.launch.assembly import journal_of, offline_of, policy_of, redactor_of, service_of
from sqlshell.launch.credentials import exposed, tokens_of
from sqlshell.launch.destination import (
    Local,
    Place,
    Remote,
    context_of,
    find_place,
    names_profile,
    own_session,
    sources_of,
)
from sqlshell.launch.reach import kept_name, label, local_results, reached_service
from sqlshell.origin import Own
from sqlshell.output.sinks.sink import OutputClosed, Sink, StreamSink
from sqlshell.output.writers.formats import format_for_path, format_named
from sqlshell.runtime.event_loops import expect_imports
from sqlshell.runtime.scratch import sweep
from sqlshell.runtime.shutdown import Ending, end_by_signals, run_to_end, say_logs
from sqlshell.shell.interactive.look.templates import TEMPLATES, checked, checked_color
from sqlshell.shell.records.journal import Entry, Journal
from sqlshell.shell.results.outlet import Outlet
from sqlshell.shell.running.background import chosen
from sqlshell.shell.scripts.batch import run_batch
from sqlshell.shell.session import PROMPT_MAXWIDTH, Options, Session
from sqlshell.shell.shell import Shell

if TYPE_CHECKING:
    from sqlshell.shell.commands import Command

NO_PAGER = "off"
"""The value of the setting `pager` that has none; any other is a command."""

NOT_CARRIED = frozenset(
    {"profile", "organization", "role", "database", "schema", "store", "compute_pool", "session_id"}
)
"""Flags that belong to the target of the command line alone."""


class Start(Struct, frozen=True):
    """What the command line asked for: `scripts` are ("command", SQL) and ("file", path) in the order given."""

    target: Own
    scripts: Sequence[tuple[str, Own]]
    output: Own
    flags: Mapping[str, Any]
    config: Config
    environ: Mapping[str, str]
    statement_id: str = ""
    """The earlier statement that is asked for: where no TARGET is given, it is looked for where it ran."""


def start(asked: Start) -> int:
    """Run scripts, or the interactive shell where there are none and stdin is a terminal. The exit code."""
    sweep()
    ending = end_by_signals()
    with _seldom_collected():
        return _started(asked, ending)


@contextlib.contextmanager
def _seldom_collected() -> Iterator[None]:
    """Rows are many small lists without cycles: looking for cycles in them would cost half of the time of an export.

    What was frozen is collected at the end: DuckDB's module reports as leaked what it still sees then.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    try:
        yield
    finally:
        gc.unfreeze()


def _started(asked: Start, ending: Ending) -> int:
    scripts = list(asked.scripts)
    if not scripts and not sys.stdin.isatty():
        scripts = [("file", Own("-"))]
    flags = asked.flags
    diagnostics = Diagnostics(sys.stderr, quiet=lambda: bool(flags.get("quiet")), verbose=flags.get("verbose", 0))
    for text in exposed(asked.config):
        diagnostics.warn(text)
    place = find_place(
        _target(asked, diagnostics), asked.flags, asked.environ, asked.config, diagnostics.warn, asked.target
    )
    settings = place.settings
    options = _options(settings, asked.output, prompt=not scripts)
    if settings.source("theme") == "flag":
        from sqlshell.shell.interactive.look.themes import load

        load(settings["theme"], asked.config.folder / "themes")
    diagnostics.quiet, diagnostics.verbose = lambda: options.quiet, settings["verbose"]
    say_logs(lambda text: diagnostics.detail(text, 2))
    if not scripts and isinstance(place.where, Local) and place.where.database is None and not place.where.views:
        diagnostics.note("local service, transient: nothing is kept (sqlshell FILE.duckdb keeps it, --help says more)")
    session = Session(context_of(place), options, label(place), isinstance(place.where, Local), not scripts)
    session.sources, session.began_with = sources_of(place), session.context
    session.keeping.names = settings["secret_names"]
    for value in tokens_of(asked.environ, asked.config):
        session.keeping.note(value)
    with contextlib.ExitStack() as services:
        reached = services.enter_context(reached_service(place, read_only=bool(settings["read_only"])))

        @contextlib.asynccontextmanager
        async def opened() -> AsyncIterator[Shell]:
            screen = StreamSink(sys.stdout.buffer, held=lambda: session.more)
            outlet = Outlet(session, diagnostics, _screen(session, settings, screen))
            diagnostics.settle = lambda: _settled(session, screen)
            shell = Shell(
                service_of(place, reached, session, diagnostics),
                session,
                outlet,
                diagnostics,
                journal_of(place, state_folder(asked.environ), session, session.target, diagnostics),
                _commands,
                lambda: _themes(asked.config),
                settings["attach"],
                offline_of(place, settings) if settings["offline"] else None,
                policy_of(place),
            )
            if settings["secret_names"]:
                redactor_of(settings)
            shell.hooks.redact = lambda sql: session.keeping.without(redactor_of(settings)(sql))
            for text in settings["set"]:
                shell.variables.given(text)
            shell.offer_commands = not settings["no_commands"]
            shell.attachments.limit = settings["upload_limit"] << 20
            shell.hooks.profiles = lambda: sorted(asked.config.profiles)
            shell.own_session = own_session(place, session.context)
            shell.hooks.queries = asked.config.folder / "queries.toml"
            shell.hooks.local = lambda: local_results(shell, place, services)
            shell.hooks.connect = _connector(asked, shell, services)
            shell.hooks.doctor = lambda: _examined(place, asked)
            if sys.stderr.isatty() and (session.interactive or not settings["quiet"]):
                from sqlshell.shell.interactive.look.spinner import Spinner

                shell.foreground.progress = Spinner(session, sys.stderr)
            try:
                if asked.output:
                    outlet.redirect(asked.output)
                yield shell
                # At a prompt, and where errors are passed over, one that failed says nothing of the others' results.
                going = session.interactive or not shell.stops
                if shell.exit == Exit.DONE or (going and shell.exit != Exit.INTERRUPTED):
                    written = outlet.close()
                    if asked.output and written and shell.exit != Exit.DONE and not session.interactive:
                        diagnostics.warn(f"{asked.output} has the results of the statements that did not fail")
            finally:
                outlet.abort()
                await shell.aclose()

        if scripts:
            return int(run_batch(opened, scripts, ending))
        return _interactive(opened, asked, settings, kept_name(place), ending)


async def _examined(place: Place, asked: Start) -> str:
    from sqlshell.launch.doctor import findings

    return "\n".join(map(str, await findings(place, asked.environ, asked.config.path)))


def _connector(asked: Start, shell: Shell, services: contextlib.ExitStack) -> Callable[[Own], Awaitable[None]]:
    """What \\c does: the shell goes on at another target, in the context that this one begins with."""
    flags = {name: value for name, value in asked.flags.items() if name not in NOT_CARRIED}

    async def connect(text: Own) -> None:
        try:
            await move(text)
        except ShellError as error:
            kept = f"the connection to {shell.session.target} is kept"
            error.hint = f"{error.hint}; {kept}" if error.hint else kept
            raise

    async def move(text: Own) -> None:
        session, diagnostics = shell.session, shell.diagnostics
        said: list[str] = []
        place = find_place(text, flags, asked.environ, asked.config, said.append, asked.target)
        where = place.where
        if isinstance(where, Remote) and not (said or where.token or where.token_command):
            said.append(f"no token is known for {where.target.name}: each is sent to the URL beside it alone")
        for warning in said:
            diagnostics.warn(warning)
        policy = policy_of(place)
        if not names_profile(text, asked.config):
            held = shell.policy
            policy = replace(policy, read_only=held.read_only, confirm=held.confirm, read_only_by=held.read_only_by)
        context = context_of(place)
        journal = journal_of(place, state_folder(asked.environ), session, label(place), diagnostics)
        # Nothing of the shell changes before the other service has answered.
        with contextlib.ExitStack() as opened:
            # The prompt asks when the service does: a question here would hold up its event loop, and Ctrl-C with it.
            ask = not session.interactive
            reached = opened.enter_context(reached_service(place, ask=ask, read_only=policy.read_only))
            service = service_of(place, reached, session, diagnostics)
            try:
                if not place.settings["offline"]:
                    await shell.interruptible(service.version(), "c")
            except BaseException:
                journal.close()
                await service.aclose()
                raise
            services.push(opened.pop_all())
        session.context = session.began_with = context
        session.sources, session.target = sources_of(place), label(place)
        session.embedded, session.options.color = isinstance(place.where, Local), place.settings["color"]
        await shell.attach(service, journal, policy, kept_name(place))
        shell.own_session = own_session(place, context)
        shell.hooks.doctor = lambda: _examined(place, asked)

    return connect


def _known(asked: Start, entry: Entry) -> bool:
    return bool(entry.profile) and entry.profile in asked.config.profiles


def _target(asked: Start, diagnostics: Diagnostics) -> str:
    if asked.target or not asked.statement_id or asked.flags.get("profile"):
        return asked.target
    journal = Journal(state_folder(asked.environ) / "journal.db", "", "", diagnostics.warn)
    try:
        entry = chosen(journal, asked.statement_id.lower())
    finally:
        journal.close()
    if entry is None:
        return ""
    # A profile that goes elsewhere by now does not have it.
    where = find_place(entry.profile, {}, {}, asked.config, lambda text: None).where if _known(asked, entry) else None
    return entry.profile if isinstance(where, Remote) and where.target.name == entry.target else entry.target


def _options(settings: Settings, output: str, *, prompt: bool) -> Options:
    """The display options to begin with; `prompt` says that a person is shown the results."""
    options = Options()
    options.maxwidth, options.timing = (PROMPT_MAXWIDTH, True) if prompt else (0, False)
    options.expanded = "auto" if prompt else "off"
    for name in Options.__struct_fields__:
        if name in BY_NAME and name != "pager" and settings.source(name) != "default":
            setattr(options, name, settings[name])
    if prompt and settings["color"]:
        checked_color(settings["color"])
    for name in TEMPLATES:
        setattr(options, name, checked(name, settings[name]))
    if settings.source("tuples_only") != "default":
        options.header = not settings["tuples_only"]
    options.pager = settings["pager"] != NO_PAGER
    options.format, options.format_chosen = (
        format_named(settings["format"]).name,
        settings.source("format") != "default",
    )
    if output and settings.source("format") != "flag" and (by_ending := format_for_path(output)) is not None:
        options.format, options.format_chosen = by_ending.name, True
    return options


def _settled(session: Session, screen: StreamSink) -> None:
    """Show what waits for more; who does not read it any more is told of by the next result."""
    if session.more:
        session.more = False
        with contextlib.suppress(OutputClosed, OutputError):
            screen.settle()


def _screen(session: Session, settings: Settings, stream: StreamSink) -> Any:
    def plain(endless: bool = False, sideways: bool = False) -> Sink:
        return stream

    if not session.interactive or not sys.stdout.isatty():
        return plain

    def screen(endless: bool = False, sideways: bool = False) -> Sink:
        from sqlshell.output.sinks.pager import ScreenSink

        if endless or not session.options.pager:
            return plain()
        command = settings["pager"] if settings["pager"] != NO_PAGER else ""
        return ScreenSink(sys.stdout.buffer, command or os.environ.get("PAGER", ""), sideways=sideways)

    return screen


def _commands() -> Mapping[str, Command]:
    from sqlshell.shell.commands import BUILTIN, table

    return table(BUILTIN)


def _themes(config: Config) -> Sequence[str]:
    from sqlshell.shell.interactive.look.themes import names

    return names(config.folder / "themes")


def _interactive(opened: Any, asked: Start, settings: Settings, target: str, ending: Ending) -> int:
    from sqlshell.shell.interactive.look.terminal_background import background
    from sqlshell.shell.interactive.look.themes import LIGHT
    from sqlshell.shell.interactive.loop import interact

    async def run() -> int:
        expect_imports(asyncio.get_running_loop())
        async with opened() as shell:
            typed = b""
            if settings.source("theme") == "default":
                brightness, typed = background(state_folder(asked.environ) / "terminal")
                if brightness == "light":
                    shell.session.options.theme = LIGHT
            rc = asked.config.folder / "rc.sql"
            if not settings["no_rc"] and rc.is_file():
                from sqlshell.shell.scripts.reading import read_script

                # It is the person's own, whatever is forbidden to others.
                offered, shell.offer_commands = shell.offer_commands, True
                await shell.run_script(read_script(Own(str(rc))), str(rc), stop=False)
                shell.exit, shell.offer_commands = Exit.DONE, offered
            return int(
                await interact(
                    shell,
                    state=state_folder(asked.environ),
                    target=target,
                    themes=asked.config.folder / "themes",
                    greeting=_greeting(shell),
                    typed=typed.decode(errors="replace"),
                )
            )

    try:
        return run_to_end(run())
    finally:
        # While the shell ran, Ctrl-C was its own.
        signal.signal(signal.SIGINT, ending)


def _greeting(shell: Shell) -> Sequence[str]:
    if shell.session.options.quiet:
        return ()
    from sqlshell import __version__

    return (
        f"sqlshell {__version__} on {shell.session.target}",
        "Statements end with ;   \\? lists commands, \\q leaves.",
    )
