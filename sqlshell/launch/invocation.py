"""The modes of the program that run statements: scripts and the interactive shell."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from sqlshell.config.settings import BY_NAME
from sqlshell.config.values import Config, Settings, resolve, state_folder
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import Exit, UsageError
from sqlshell.launch.assembly import SharedParts
from sqlshell.launch.clients import Endpoint, protected
from sqlshell.launch.credentials import permission_problems, tokens_of
from sqlshell.launch.data_files import STDIN, views_of
from sqlshell.launch.destination import Destination, LocalService, RemoteService, context_of, find_destination
from sqlshell.launch.endpoint import open_endpoint, storage_name, unopened_endpoint
from sqlshell.launch.environment import ConnectionInputs, Environment, build_connection
from sqlshell.launch.modes import modes_of
from sqlshell.origin import Own
from sqlshell.output.sinks.sink import Sink, StreamSink
from sqlshell.output.writers.formats import format_for_path, format_named
from sqlshell.runtime.event_loops import allow_slow_imports
from sqlshell.runtime.scratch import sweep
from sqlshell.runtime.shutdown import (
    ExitSignalHandler,
    forward_logs,
    handle_signal,
    install_exit_handlers,
    run_to_completion,
)
from sqlshell.runtime.streams import Streams, choose_colors
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.front_end import NoProgress, Paint, Progress
from sqlshell.shell.interactive.look.templates import TEMPLATES, checked, checked_color
from sqlshell.shell.records.journal import Journal, JournalEntry
from sqlshell.shell.records.redaction import SecretFilter
from sqlshell.shell.results.result_output import ResultOutput
from sqlshell.shell.running.attachments import Attachments
from sqlshell.shell.running.background import find_entry
from sqlshell.shell.scripts.batch import run_batch
from sqlshell.shell.scripts.front_end import ScriptFrontEnd
from sqlshell.shell.scripts.position import Position
from sqlshell.shell.session import PROMPT_MAXWIDTH, Options, Session, SessionState
from sqlshell.shell.shell import Shell

if TYPE_CHECKING:
    from sqlshell.launch.first_prompt import FirstPrompt
    from sqlshell.shell.commands import Command
    from sqlshell.shell.interactive.front_end import PromptFrontEnd

NO_PAGER = "off"
"""The value of the setting `pager` that disables the pager; any other is a command."""


class Invocation(Struct, frozen=True):
    """The parsed command line: `scripts` are ("command", SQL) and ("file", path) in the order given."""

    target: Own
    scripts: Sequence[tuple[str, Own]]
    output: Own
    flags: Mapping[str, Any]
    config: Config
    environ: Mapping[str, str]
    streams: Streams
    statement_id: str = ""
    """The earlier statement to show; without a TARGET the journal says which service ran it."""
    writes: bool = False
    """Whether the run would be in vain on a database in memory."""
    data: Sequence[Own] = ()
    """Data files that are TARGET together; `-` is stdin, in `input_format` if it is not \"\"."""
    input_format: str = ""
    first: FirstPrompt | None = None
    """The greeting and the prompt, if they are on the screen already."""
    words: tuple[Own, ...] | None = None
    """The arguments of the only command in `scripts`, which are not parsed: that of a subcommand."""


def run(invocation: Invocation) -> int:
    """Run scripts, or the interactive shell if there are none and stdin is a terminal. Returns the exit code."""
    sweep()
    exit_handler = install_exit_handlers()
    with _rare_garbage_collection():
        return _run(invocation, exit_handler)


@contextlib.contextmanager
def _rare_garbage_collection() -> Iterator[None]:
    """Run the garbage collector rarely. Rows are many small lists without cycles: searching them for cycles would take
    half of the time of an export.

    Frozen objects are collected at the end: DuckDB's module would report objects that still exist then as leaked.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    try:
        yield
    finally:
        gc.unfreeze()


def _run(invocation: Invocation, exit_handler: ExitSignalHandler) -> int:
    scripts, streams = list(invocation.scripts), invocation.streams
    stdin_is_data = "-" in invocation.data
    if stdin_is_data:
        _check_scripts(invocation)
    elif not scripts and not streams.stdin.isatty():
        scripts = [("file", Own("-"))]
    flags = invocation.flags
    startup = Diagnostics(streams.stderr, quiet=lambda: bool(flags.get("quiet")), verbose=flags.get("verbose", 0))
    for text in permission_problems(invocation.config):
        startup.warn(text)
    destination = _destination(invocation, startup)
    if stdin_is_data and not scripts:
        from sqlshell.launch.data_on_stdin import terminal_for_stdin

        terminal_for_stdin(streams.stdin)
    if invocation.writes and destination.service == LocalService():
        raise UsageError(
            "TARGET is missing; a database in memory would lose the rows",
            "name a database file, a URL or a profile after FILE",
        )
    settings = destination.settings
    choose_colors(settings["color"])
    at_terminal = not scripts or (not invocation.output and streams.stdout.isatty())
    options = initial_options(settings, invocation.output, prompt=not scripts, at_terminal=at_terminal)
    if settings.source("theme") == "flag":
        from sqlshell.shell.interactive.look.themes import load

        load(settings["theme"], invocation.config.folder / "themes")
    progress = _progress(invocation, settings, options, scripts=bool(scripts))
    before = progress.clear if progress.live and streams.stdout.isatty() else None
    position, stdout_sink = Position(), StreamSink(streams.stdout.buffer, before=before)

    def settle() -> None:
        if invocation.first is not None:
            invocation.first.clear()
        stdout_sink.settle()
        progress.clear()

    diagnostics = Diagnostics(
        streams.stderr,
        quiet=lambda: options.quiet,
        verbosity=lambda: options.verbosity,
        verbose=settings["verbose"],
        place=position.__str__,
        settle=settle,
        passing=NoProgress().notice if scripts else progress.notice,
        linked=_file_links(invocation, settings),
    )
    forward_logs(lambda text: diagnostics.detail(text, 2))
    # These files are opened before the database.
    unprotect = protected(destination)
    try:
        modes = modes_of(settings, diagnostics, _lasting(destination), scripts=bool(scripts))
    finally:
        unprotect()
    secret_filter = SecretFilter(settings["secret_names"])
    for value in tokens_of(invocation.environ, invocation.config):
        secret_filter.add(value)
    front_end = _front_end(invocation, destination, options, diagnostics, progress, prompt=not scripts)
    shared = SharedParts(options, secret_filter, front_end, diagnostics, streams, interactive=not scripts)
    inputs = ConnectionInputs(invocation.target, invocation.flags, invocation.config, invocation.environ)
    with contextlib.ExitStack() as services:
        services.callback(progress.close)
        ready = _ready(invocation, services, scripts=bool(scripts))
        dry = modes.dry_run
        endpoint = (
            unopened_endpoint(destination)
            if dry
            else open_endpoint(destination, streams, read_only=bool(settings["read_only"]))
        )
        services.callback(endpoint.release)
        if destination.service != LocalService() and not dry:
            # An in-memory database is opened while the client starts; an error of a file is reported at once.
            _wait_for(endpoint, destination)

        @contextlib.asynccontextmanager
        async def open_shell() -> AsyncIterator[Shell]:
            state = SessionState.on(build_connection(destination, endpoint, shared, inputs), front_end.announce)
            session = Session(state, options, not scripts, secret_filter)
            if progress.live or not scripts:
                from sqlshell.shell.interactive.look.window_title import WindowTitle

                screen_stream = streams.stdout if streams.stdout.isatty() else streams.stderr
                window = WindowTitle(session, screen_stream, invocation.environ)
                services.callback(window.restore)
                progress.on_first = window.update
                if not isinstance(front_end, ScriptFrontEnd):
                    front_end.window = window
            screen = _screen_factory(session, settings, streams, stdout_sink)
            result_output = ResultOutput(session, front_end, diagnostics, screen, streams.stdout, stdout_sink)
            components = ShellComponents.of(
                session,
                result_output,
                Attachments(settings["attach"], diagnostics, settings["upload_limit"] << 20),
                front_end,
                Environment(inputs, settings, shared, services),
                diagnostics,
                position,
                streams,
                modes,
            )
            shell = Shell(components, _commands, commands_allowed=not settings["no_commands"])
            for text in settings["set"]:
                shell.view.variables.set_from_argument(text)
                if warning := shell.view.variables.warning(text.partition("=")[0]):
                    diagnostics.warn(warning)
            try:
                if invocation.output:
                    result_output.redirect(invocation.output)
                yield shell
                # At the prompt, and with --on-error continue, a failed statement does not affect the results of others.
                keeps_results = session.interactive or not shell.failures.stops
                if shell.exit == Exit.DONE or (keeps_results and shell.exit != Exit.INTERRUPTED):
                    written = result_output.close()
                    if invocation.output and written and shell.exit != Exit.DONE and not session.interactive:
                        diagnostics.warn(
                            f"{invocation.output} contains only the results of the statements that succeeded"
                        )
            finally:
                result_output.abort()
                await shell.aclose()

        if isinstance(front_end, ScriptFrontEnd):
            single_transaction = bool(settings["single_transaction"])
            return int(
                run_batch(
                    open_shell,
                    scripts,
                    exit_handler,
                    single_transaction=single_transaction,
                    words=invocation.words,
                )
            )
        if settings["single_transaction"]:
            raise UsageError("--single-transaction requires a script", "give one with -c, -f or on stdin")
        return _interactive(open_shell, front_end, invocation, destination, exit_handler, ready)


def _ready(invocation: Invocation, services: contextlib.ExitStack, *, scripts: bool) -> Callable[[], None]:
    """A function to call just before the prompt that reads keys is drawn."""
    if invocation.first is not None:
        return invocation.first.end
    return (lambda: None) if scripts else _quiet_start(invocation.streams, services)


def _quiet_start(streams: Streams, services: contextlib.ExitStack) -> Callable[[], None]:
    """Suppress the echo of what is typed until the returned function is called, or `services` end."""
    from sqlshell.shell.interactive.terminal import Unechoed

    quiet = Unechoed(streams)
    services.callback(quiet.end)
    return quiet.end


def _wait_for(endpoint: Endpoint, destination: Destination) -> None:
    """Raises the errors of opening a file; that of the data on stdin does not name the copy."""
    try:
        endpoint.ready()
    except UsageError as error:
        service = destination.service
        if isinstance(service, LocalService) and service.stdin:
            error.message = error.message.replace(str(service.views[STDIN]), STDIN)
        raise


def _check_scripts(invocation: Invocation) -> None:
    if any(kind == "file" and text == "-" for kind, text in invocation.scripts):
        raise UsageError("stdin contains data, so it cannot also be a script", "give statements with -c or -f FILE")


def _destination(invocation: Invocation, diagnostics: Diagnostics) -> Destination:
    if not invocation.data:
        return find_destination(
            _target(invocation, diagnostics),
            invocation.flags,
            invocation.environ,
            invocation.config,
            diagnostics.warn,
            invocation.target,
        )
    views = views_of([text for text in invocation.data if text != "-"])
    stdin_is_data = "-" in invocation.data
    if stdin_is_data:
        if other := next((path for name, path in views.items() if name.lower() == STDIN), None):
            raise UsageError(f"{other} and the data on stdin would both become the view {STDIN}", "rename the file")
        from sqlshell.launch.data_on_stdin import copied_stdin

        views[STDIN] = copied_stdin(invocation.streams.stdin, invocation.input_format)
    settings = resolve(invocation.flags, invocation.environ, invocation.config, "")
    return Destination(settings, LocalService(views=views, stdin=stdin_is_data))


def _lasting(destination: Destination) -> str:
    """The service and the context in which scripts begin; "" for a service whose data is lost with the run."""
    name = storage_name(destination)
    parts = context_of(destination).parts()
    chosen = [f"{part} {value}" for part, value in parts if value and part not in {"timezone", "session_id"}]
    return ", ".join([name, *chosen]) if name else ""


def _file_links(invocation: Invocation, settings: Settings) -> Callable[[str, str], str]:
    def linked(text: str, file: str) -> str:
        from sqlshell.shell.interactive.look.terminal_features import draws, shows_links, with_file_link

        environ = invocation.environ
        shown = bool(settings["terminal_integration"]) and draws(invocation.streams.stderr, environ)
        return with_file_link(text, file) if shown and shows_links(environ) else text

    return linked


def _progress(invocation: Invocation, settings: Settings, options: Options, *, scripts: bool) -> Progress:
    streams = invocation.streams
    shown = not (scripts and settings["quiet"])
    if not shown or not streams.stderr.isatty() or invocation.environ.get("TERM", "dumb") == "dumb":
        return NoProgress()
    from sqlshell.shell.interactive.look.progress_line import ProgressLine
    from sqlshell.shell.interactive.look.terminal_features import shows_progress

    def look() -> Callable[[str, str], str]:
        from sqlshell.shell.interactive.look.paint import color_depth, part_painter
        from sqlshell.shell.interactive.look.themes import load

        return part_painter(load(options.theme, invocation.config.folder / "themes"), color_depth())

    reports = bool(settings["terminal_integration"]) and shows_progress(invocation.environ)
    return ProgressLine(streams.stderr, lambda: streams.columns, look, reports=reports)


def _front_end(
    invocation: Invocation,
    destination: Destination,
    options: Options,
    diagnostics: Diagnostics,
    progress: Progress,
    *,
    prompt: bool,
) -> ScriptFrontEnd | PromptFrontEnd:
    if not prompt:

        def paint() -> Paint | None:
            from sqlshell.shell.interactive.look.paint import color_depth, painter
            from sqlshell.shell.interactive.look.themes import load

            return painter(load(options.theme, invocation.config.folder / "themes"), color_depth())

        front_end = ScriptFrontEnd(diagnostics, progress, paint)
        diagnostics.find_paint = lambda: front_end.paint
        return front_end
    from sqlshell.shell.interactive.front_end import PromptFrontEnd

    return PromptFrontEnd(
        options,
        diagnostics,
        progress,
        invocation.streams,
        state=state_folder(invocation.environ),
        themes=invocation.config.folder / "themes",
        target=storage_name(destination),
    )


def _has_profile(invocation: Invocation, entry: JournalEntry) -> bool:
    return bool(entry.profile) and entry.profile in invocation.config.profiles


def _target(invocation: Invocation, diagnostics: Diagnostics) -> str:
    if invocation.target or not invocation.statement_id or invocation.flags.get("profile"):
        return invocation.target
    journal = Journal(state_folder(invocation.environ) / "journal.db", "", "", diagnostics.warn)
    try:
        entry = find_entry(journal, invocation.statement_id.lower())
    finally:
        journal.close()
    if entry is None:
        return ""
    # The profile may have another service by now, which does not have the statement.
    service = (
        find_destination(entry.profile, {}, {}, invocation.config, lambda text: None).service
        if _has_profile(invocation, entry)
        else None
    )
    return entry.profile if isinstance(service, RemoteService) and service.target.name == entry.target else entry.target


def initial_options(settings: Settings, output: str, *, prompt: bool, at_terminal: bool = False) -> Options:
    """The initial display options; `prompt` says that a person sees the results and asks for more, `at_terminal` that
    a person sees them."""
    options = Options()
    options.maxwidth, options.timing = (PROMPT_MAXWIDTH, True) if prompt else (0, False)
    options.timing_chosen = settings.source("timing") != "default"
    options.expanded = "auto" if prompt or at_terminal else "off"
    for name in Options.__struct_fields__:
        if name in BY_NAME and name != "pager" and settings.source(name) != "default":
            setattr(options, name, settings[name])
    if prompt and settings["prompt_color"]:
        checked_color(settings["prompt_color"])
    for name in TEMPLATES:
        setattr(options, name, checked(name, settings[name]))
    if settings.source("tuples_only") != "default":
        options.header = not settings["tuples_only"]
    for name in ("fieldsep", "recordsep"):
        if settings.source(name) != "default":
            from sqlshell.output.writers.unaligned import separator

            setattr(options, name, separator(settings[name]))
    options.pager = settings["pager"] != NO_PAGER
    options.format, options.format_chosen = (
        format_named(settings["format"]).name,
        settings.source("format") != "default",
    )
    if output and settings.source("format") != "flag" and (by_extension := format_for_path(output)) is not None:
        options.format, options.format_chosen = by_extension.name, True
    return options


def _screen_factory(session: Session, settings: Settings, streams: Streams, stream: StreamSink) -> Any:
    def stdout_sink(endless: bool = False, sideways: bool = False) -> Sink:
        return stream

    if not session.interactive or not streams.stdout.isatty():
        return stdout_sink

    def screen(endless: bool = False, sideways: bool = False) -> Sink:
        from sqlshell.output.sinks.pager import ScreenSink

        if endless or not session.options.pager:
            return stdout_sink()
        command = settings["pager"] if settings["pager"] != NO_PAGER else ""
        return ScreenSink(
            streams.stdout.buffer, command or os.environ.get("PAGER", ""), streams.stdin, sideways=sideways
        )

    return screen


def _commands() -> Mapping[str, Command]:
    from sqlshell.shell.commands import BUILTIN, table

    return table(BUILTIN)


def _interactive(
    open_shell: Any,
    front_end: PromptFrontEnd,
    invocation: Invocation,
    destination: Destination,
    exit_handler: ExitSignalHandler,
    ready: Callable[[], None],
) -> int:
    from sqlshell.shell.interactive.look.terminal_background import background
    from sqlshell.shell.interactive.look.themes import LIGHT
    from sqlshell.shell.interactive.loop import interact

    settings = destination.settings

    async def run() -> int:
        allow_slow_imports(asyncio.get_running_loop())
        async with open_shell() as shell:
            typed = invocation.first.typed if invocation.first is not None else b""
            if settings.source("theme") == "default":
                brightness, more = background(state_folder(invocation.environ) / "terminal", invocation.streams)
                typed += more
                if brightness == "light":
                    shell.session.options.theme = LIGHT
            rc = invocation.config.folder / "rc.sql"
            if not settings["no_rc"] and rc.is_file():
                ready()
                # rc.sql is the user's own script, so its commands are always allowed.
                await shell.run_own(Own(str(rc)))
            return int(
                await interact(
                    shell, front_end, _greeting(shell, invocation, destination), typed.decode(errors="replace"), ready
                )
            )

    try:
        return run_to_completion(run())
    finally:
        # While the shell ran, it handled Ctrl-C.
        handle_signal(signal.SIGINT, exit_handler)


def _greeting(shell: Shell, invocation: Invocation, destination: Destination) -> Sequence[str]:
    if shell.session.options.quiet or invocation.first is not None:
        return ()
    from sqlshell.launch.greeting import greeting_of

    return greeting_of(destination, invocation.target, invocation.flags, invocation.environ)
