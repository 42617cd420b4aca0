"""The modes of the program that run text: scripts and the interactive shell."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from sqlshell.config.settings import BY_NAME
from sqlshell.config.values import Config, Settings, state_folder
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import Exit, OutputError
from sqlshell.launch.assembly import Sharing
from sqlshell.launch.credentials import exposed, tokens_of
from sqlshell.launch.destination import Local, Place, Remote, find_place
from sqlshell.launch.environment import Environment, Given, connection_of
from sqlshell.launch.reach import kept_name, reach
from sqlshell.origin import Own
from sqlshell.output.sinks.sink import OutputClosed, Sink, StreamSink
from sqlshell.output.writers.formats import format_for_path, format_named
from sqlshell.runtime.event_loops import expect_imports
from sqlshell.runtime.scratch import sweep
from sqlshell.runtime.shutdown import Ending, end_by_signals, run_to_end, say_logs
from sqlshell.runtime.streams import Streams
from sqlshell.shell.front_end import Progress, Silent
from sqlshell.shell.interactive.look.templates import TEMPLATES, checked, checked_color
from sqlshell.shell.records.journal import Entry, Journal
from sqlshell.shell.records.redaction import Keeping
from sqlshell.shell.results.outlet import Outlet
from sqlshell.shell.running.attachments import Attachments
from sqlshell.shell.running.background import chosen
from sqlshell.shell.scripts.batch import run_batch
from sqlshell.shell.scripts.front_end import ScriptFrontEnd
from sqlshell.shell.session import PROMPT_MAXWIDTH, Options, Session, SessionState
from sqlshell.shell.shell import Shell

if TYPE_CHECKING:
    from sqlshell.shell.commands import Command
    from sqlshell.shell.interactive.front_end import PromptFrontEnd

NO_PAGER = "off"
"""The value of the setting `pager` that has none; any other is a command."""


class Start(Struct, frozen=True):
    """What the command line asked for: `scripts` are ("command", SQL) and ("file", path) in the order given."""

    target: Own
    scripts: Sequence[tuple[str, Own]]
    output: Own
    flags: Mapping[str, Any]
    config: Config
    environ: Mapping[str, str]
    streams: Streams
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
    scripts, streams = list(asked.scripts), asked.streams
    if not scripts and not streams.stdin.isatty():
        scripts = [("file", Own("-"))]
    flags = asked.flags
    diagnostics = Diagnostics(streams.stderr, quiet=lambda: bool(flags.get("quiet")), verbose=flags.get("verbose", 0))
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
        diagnostics.note("using an in-memory database; its data is lost on exit (to keep it: sqlshell FILE.duckdb)")
    keeping = Keeping(settings["secret_names"])
    for value in tokens_of(asked.environ, asked.config):
        keeping.note(value)
    progress = _progress(streams, shown=not (scripts and settings["quiet"]))
    front_end = _front_end(asked, place, options, diagnostics, progress, prompt=not scripts)
    sharing = Sharing(options, keeping, front_end, diagnostics, streams, interactive=not scripts)
    given = Given(asked.target, asked.flags, asked.config, asked.environ)
    with contextlib.ExitStack() as services:
        reached = reach(place, streams, read_only=bool(settings["read_only"]))
        services.callback(reached.release)
        if place.where != Local():
            # A transient database opens while the client gets ready; what is wrong with a file is told at once.
            reached.ready()

        @contextlib.asynccontextmanager
        async def opened() -> AsyncIterator[Shell]:
            state = SessionState.on(connection_of(place, reached, sharing, given), front_end.announce)
            session = Session(state, options, not scripts, keeping)
            screen = StreamSink(streams.stdout.buffer, held=lambda: session.more)
            outlet = Outlet(
                session, front_end, diagnostics, _screen(session, settings, streams, screen), streams.stdout
            )
            diagnostics.settle = lambda: _settled(session, screen)
            shell = Shell(
                session,
                outlet,
                front_end,
                Environment(given, settings, sharing, services),
                diagnostics,
                _commands,
                Attachments(settings["attach"], diagnostics, settings["upload_limit"] << 20),
                allowed=not settings["no_commands"],
            )
            for text in settings["set"]:
                shell.port.variables.given(text)
            try:
                if asked.output:
                    outlet.redirect(asked.output)
                yield shell
                # At a prompt, and where errors are passed over, one that failed says nothing of the others' results.
                going = session.interactive or not shell.failures.stops
                if shell.exit == Exit.DONE or (going and shell.exit != Exit.INTERRUPTED):
                    written = outlet.close()
                    if asked.output and written and shell.exit != Exit.DONE and not session.interactive:
                        diagnostics.warn(f"{asked.output} contains only the results of the statements that succeeded")
            finally:
                outlet.abort()
                await shell.aclose()

        if isinstance(front_end, ScriptFrontEnd):
            return int(run_batch(opened, scripts, ending))
        return _interactive(opened, front_end, asked, settings, ending)


def _progress(streams: Streams, *, shown: bool) -> Progress:
    if not (shown and streams.stderr.isatty()):
        return Silent()
    from sqlshell.shell.interactive.look.spinner import Spinner

    return Spinner(streams.stderr)


def _front_end(
    asked: Start, place: Place, options: Options, diagnostics: Diagnostics, progress: Progress, *, prompt: bool
) -> ScriptFrontEnd | PromptFrontEnd:
    if not prompt:
        return ScriptFrontEnd(diagnostics, progress)
    from sqlshell.shell.interactive.front_end import PromptFrontEnd

    return PromptFrontEnd(
        options,
        diagnostics,
        progress,
        asked.streams,
        state=state_folder(asked.environ),
        themes=asked.config.folder / "themes",
        target=kept_name(place),
    )


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


def _screen(session: Session, settings: Settings, streams: Streams, stream: StreamSink) -> Any:
    def plain(endless: bool = False, sideways: bool = False) -> Sink:
        return stream

    if not session.interactive or not streams.stdout.isatty():
        return plain

    def screen(endless: bool = False, sideways: bool = False) -> Sink:
        from sqlshell.output.sinks.pager import ScreenSink

        if endless or not session.options.pager:
            return plain()
        command = settings["pager"] if settings["pager"] != NO_PAGER else ""
        return ScreenSink(streams.stdout.buffer, command or os.environ.get("PAGER", ""), sideways=sideways)

    return screen


def _commands() -> Mapping[str, Command]:
    from sqlshell.shell.commands import BUILTIN, table

    return table(BUILTIN)


def _interactive(opened: Any, front_end: PromptFrontEnd, asked: Start, settings: Settings, ending: Ending) -> int:
    from sqlshell.shell.interactive.look.terminal_background import background
    from sqlshell.shell.interactive.look.themes import LIGHT
    from sqlshell.shell.interactive.loop import interact

    async def run() -> int:
        expect_imports(asyncio.get_running_loop())
        async with opened() as shell:
            typed = b""
            if settings.source("theme") == "default":
                brightness, typed = background(state_folder(asked.environ) / "terminal", asked.streams)
                if brightness == "light":
                    shell.session.options.theme = LIGHT
            rc = asked.config.folder / "rc.sql"
            if not settings["no_rc"] and rc.is_file():
                # It is the person's own, whatever is forbidden to others.
                await shell.run_own(Own(str(rc)))
            return int(await interact(shell, front_end, _greeting(shell), typed.decode(errors="replace")))

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
        "End statements with ;   Type \\? for help, \\q to quit.",
    )
