"""The modes of the program that run statements: scripts and the interactive shell."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from msgspec import Struct

from sqlshell.config.settings import NO_PAGER
from sqlshell.config.values import Config, Settings, resolve, state_folder
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import Exit, ShellError, UsageError, reason
from sqlshell.launch.connector import Connector, asking
from sqlshell.launch.credentials import permission_problems, tokens_of
from sqlshell.launch.services import Endpoint, open_endpoint, unopened_endpoint
from sqlshell.launch.targets import (
    STDIN,
    Destination,
    LocalService,
    RemoteService,
    context_of,
    find_destination,
    views_of,
)
from sqlshell.origin import Trusted
from sqlshell.output.sinks.sink import Sink, StreamSink
from sqlshell.output.writers.formats import format_for_path
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
from sqlshell.shell.components import ScriptModes
from sqlshell.shell.front_end import FrontEnd, Paint, Progress
from sqlshell.shell.options import DISPLAY, Options, checked
from sqlshell.shell.records.journal import Journal
from sqlshell.shell.records.redaction import SecretFilter
from sqlshell.shell.results.result_output import ResultOutput
from sqlshell.shell.running.attachments import Attachments
from sqlshell.shell.running.background import find_entry
from sqlshell.shell.scripts.batch import run_batch
from sqlshell.shell.scripts.position import Position
from sqlshell.shell.session import Session, SessionState
from sqlshell.shell.shell import Shell

if TYPE_CHECKING:
    from sqlshell.launch.first_prompt import FirstPrompt
    from sqlshell.shell.interactive.front_end import PromptFrontEnd
    from sqlshell.shell.interactive.look.themes import Theme
    from sqlshell.shell.interactive.terminal import Unechoed


MODES: Final = ("dry_run", "stats", "checkpoint", "resume", "if_unknown")
"""The settings of modules that few runs need."""


class Invocation(Struct, frozen=True):
    """The parsed command line: `scripts` are ("command", SQL) and ("file", path) in the order given."""

    target: Trusted
    scripts: Sequence[tuple[str, Trusted]]
    output: Trusted
    flags: Mapping[str, Any]
    config: Config
    environ: Mapping[str, str]
    streams: Streams
    statement_id: str = ""
    """The earlier statement to show; without a TARGET the journal says which service ran it."""
    writes: bool = False
    """Whether the run would be in vain on a database in memory."""
    data: Sequence[Trusted] = ()
    """Data files that are TARGET together; `-` is stdin, in `input_format` if it is not \"\"."""
    input_format: str = ""
    first: FirstPrompt | None = None
    """The greeting and the prompt, if they are on the screen already."""


def run(invocation: Invocation) -> int:
    """Run scripts, or the interactive shell if there are none and stdin is a terminal. Returns the exit code."""
    sweep()
    exit_handler = install_exit_handlers()
    with _rare_garbage_collection():
        return _Start(invocation, exit_handler).run()


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


class _Start:
    """Starts a shell on the target of a command line, and runs its scripts or the prompt."""

    def __init__(self, invocation: Invocation, exit_handler: ExitSignalHandler) -> None:
        self._invocation = invocation
        self._exit_handler = exit_handler
        self._streams, self._environ, self._config = invocation.streams, invocation.environ, invocation.config
        self._themes = invocation.config.folder / "themes"
        self._first = invocation.first
        self._scripts = _scripts_of(invocation)
        self._interactive = not self._scripts
        self._destination = _destination_of(invocation)
        if "-" in invocation.data and self._interactive:
            _terminal_for_stdin(self._streams.stdin)
        self._settings = settings = self._destination.settings
        choose_colors(settings["color"])
        at_terminal = self._interactive or (not invocation.output and self._streams.stdout.isatty())
        self._options = initial_options(settings, invocation.output, prompt=self._interactive, at_terminal=at_terminal)
        if settings.source("theme") == "flag":
            self._theme()
        self._progress = progress = self._make_progress()
        before = progress.clear if progress.live and self._streams.stdout.isatty() else None
        self._stdout_sink = StreamSink(self._streams.stdout.buffer, before=before)
        self._position = Position()
        self._diagnostics = self._make_diagnostics()
        forward_logs(lambda text: self._diagnostics.detail(text, 2))
        # Before the database is opened: a time zone may be wrong.
        self._context = context_of(self._destination)
        self._modes = ScriptModes(commands_allowed=not settings["no_commands"])
        if any(settings[name] for name in MODES):
            from sqlshell.launch.modes import open_modes

            self._modes = open_modes(self._destination, self._diagnostics, scripts=not self._interactive)
        self._secret_filter = SecretFilter(settings["secret_names"])
        for value in tokens_of(self._environ, self._config):
            self._secret_filter.add(value)
        self._prompt = self._make_prompt() if self._interactive else None
        self._front_end = self._prompt or self._make_front_end()
        self._closing = contextlib.ExitStack()
        self._connector = Connector(
            invocation.target,
            invocation.flags,
            self._config,
            self._environ,
            settings,
            self._options,
            self._secret_filter,
            self._front_end,
            self._diagnostics,
            self._streams,
            self._closing,
            self._interactive,
        )

    def _make_diagnostics(self) -> Diagnostics:
        options = self._options
        return Diagnostics(
            self._streams.stderr,
            quiet=lambda: options.quiet,
            verbosity=lambda: options.verbosity,
            verbose=self._settings["verbose"],
            place=self._position.__str__,
            settle=self._settle,
            passing=self._progress.notice if self._interactive else Progress().notice,
            linked=self._with_link,
        )

    def run(self) -> int:
        """Run everything, and return the exit code."""
        with self._closing as closing:
            closing.callback(self._progress.close)
            quiet = self._quiet_terminal()
            if quiet is not None and self._destination.service != LocalService():
                quiet.allow_interrupt()
            endpoint = self._open_endpoint()
            if self._prompt is None:
                return int(
                    run_batch(
                        lambda: self._open_shell(endpoint),
                        self._scripts,
                        self._exit_handler,
                        single_transaction=bool(self._settings["single_transaction"]),
                    )
                )
            if self._settings["single_transaction"]:
                raise UsageError("--single-transaction requires a script", "give one with -c, -f or on stdin")
            assert quiet is not None
            return self._run_prompt(endpoint, self._prompt, self._first.end if self._first is not None else quiet.end)

    def _open_endpoint(self) -> Endpoint:
        """The service of the destination. Raises ShellError; an in-memory database opens while the client starts."""
        destination = self._destination
        if self._modes.dry_run:
            return unopened_endpoint(destination)
        read_only = bool(self._settings["read_only"])
        endpoint = open_endpoint(destination, read_only=read_only, ask=asking(self._streams))
        self._closing.callback(endpoint.release)
        service = destination.service
        if service != LocalService():
            try:
                endpoint.ready()
            except UsageError as error:
                if isinstance(service, LocalService) and service.stdin:
                    # The user does not know the copy.
                    error.message = error.message.replace(str(service.views[STDIN]), STDIN)
                raise
        return endpoint

    @contextlib.asynccontextmanager
    async def _open_shell(self, endpoint: Endpoint) -> AsyncIterator[Shell]:
        front_end, settings, streams = self._front_end, self._settings, self._streams
        diagnostics, output = self._diagnostics, self._invocation.output
        connection = self._connector.connection(self._destination, self._context, endpoint)
        if connection.offline is None:
            # At the prompt, statements report why the service cannot be reached.
            with contextlib.suppress(*([ShellError] if self._interactive else [])):
                await connection.service.choose()
        state = SessionState.on(connection, front_end.announce)
        session = Session(
            state, options=self._options, interactive=self._interactive, secret_filter=self._secret_filter
        )
        if self._progress.live or self._interactive:
            from sqlshell.shell.interactive.look.prompt_line import WindowTitle

            screen_stream = streams.stdout if streams.stdout.isatty() else streams.stderr
            window = WindowTitle(session, screen_stream, self._environ)
            self._closing.callback(window.restore)
            self._progress.on_first = window.update
            if self._prompt is not None:
                self._prompt.window = window
        result_output = ResultOutput(session, front_end, diagnostics, self._screen(), streams.stdout, self._stdout_sink)
        shell = Shell(
            session,
            result_output,
            Attachments(settings["attach"], diagnostics, settings["upload_limit"] << 20),
            front_end,
            self._connector,
            diagnostics,
            self._position,
            streams,
            self._modes,
        )
        for text in settings["set"]:
            shell.variables.set_from_argument(text)
            if warning := shell.variables.warning(text.partition("=")[0]):
                diagnostics.warn(warning)
        try:
            if output:
                result_output.redirect(output)
            yield shell
            # At the prompt, and with --on-error continue, a failed statement does not affect the results of others.
            keeps_results = self._interactive or not shell.failures.stops
            if shell.exit == Exit.DONE or (keeps_results and shell.exit != Exit.INTERRUPTED):
                written = result_output.close()
                if output and written and shell.exit != Exit.DONE and not self._interactive:
                    diagnostics.warn(f"{output} contains only the results of the statements that succeeded")
        finally:
            result_output.abort()
            await shell.aclose()

    def _run_prompt(self, endpoint: Endpoint, front_end: PromptFrontEnd, ready: Callable[[], None]) -> int:
        from sqlshell.launch.first_prompt import greeting_of
        from sqlshell.shell.interactive.look.themes import LIGHT
        from sqlshell.shell.interactive.loop import interact
        from sqlshell.shell.interactive.terminal import background

        invocation, first = self._invocation, self._first

        async def run() -> int:
            allow_slow_imports(asyncio.get_running_loop())
            async with self._open_shell(endpoint) as shell:
                typed = first.typed if first is not None else b""
                if self._settings.source("theme") == "default":
                    brightness, more = background(state_folder(self._environ) / "terminal", self._streams)
                    typed += more
                    if brightness == "light":
                        shell.session.options.theme = LIGHT
                rc = self._config.folder / "rc.sql"
                if not self._settings["no_rc"] and rc.is_file():
                    ready()
                    # rc.sql is the user's own script, so its commands are always allowed.
                    await shell.run_own(Trusted(str(rc)))
                greets = first is None and not shell.session.options.quiet
                lines = (
                    greeting_of(self._destination, invocation.target, invocation.flags, self._environ) if greets else ()
                )
                return int(await interact(shell, front_end, lines, typed.decode(errors="replace"), ready))

        try:
            return run_to_completion(run())
        finally:
            # While the shell ran, it handled Ctrl-C.
            handle_signal(signal.SIGINT, self._exit_handler)

    def _quiet_terminal(self) -> Unechoed | None:
        """What keeps typed text off the screen until the prompt that reads keys is drawn; None for a script."""
        if self._first is not None:
            return self._first.quiet
        if not self._interactive:
            return None
        from sqlshell.shell.interactive.terminal import Unechoed

        quiet = Unechoed(self._streams, keeps_interrupts=True)
        self._closing.callback(quiet.end)
        return quiet

    def _settle(self) -> None:
        """Make way for a message."""
        if self._first is not None:
            self._first.clear()
        self._progress.clear()

    def _with_link(self, text: str, file: str) -> str:
        from sqlshell.shell.interactive.terminal import draws, shows_links, with_file_link

        shown = bool(self._settings["terminal_integration"]) and draws(self._streams.stderr, self._environ)
        return with_file_link(text, file) if shown and shows_links(self._environ) else text

    def _theme(self) -> Theme:
        """The theme in use. Raises UsageError."""
        from sqlshell.shell.interactive.look.themes import load

        return load(self._options.theme, self._themes)

    def _make_progress(self) -> Progress:
        streams, settings = self._streams, self._settings
        shown = self._interactive or not settings["quiet"]
        if not shown or not streams.stderr.isatty() or self._environ.get("TERM", "dumb") == "dumb":
            return Progress()
        from sqlshell.shell.interactive.look.progress_line import ProgressLine
        from sqlshell.shell.interactive.terminal import shows_progress

        def look() -> Callable[[str, str], str]:
            from sqlshell.shell.interactive.look.paint import color_depth, part_painter

            return part_painter(self._theme(), color_depth())

        reports = bool(settings["terminal_integration"]) and shows_progress(self._environ)
        return ProgressLine(streams.stderr, lambda: streams.columns, look, reports=reports)

    def _make_front_end(self) -> FrontEnd:
        def paint() -> Paint | None:
            from sqlshell.shell.interactive.look.paint import color_depth, painter

            return painter(self._theme(), color_depth())

        front_end = FrontEnd(self._diagnostics, self._progress, paint)
        self._diagnostics.find_paint = lambda: front_end.paint
        return front_end

    def _make_prompt(self) -> PromptFrontEnd:
        from sqlshell.shell.interactive.front_end import PromptFrontEnd

        return PromptFrontEnd(
            self._options,
            self._diagnostics,
            self._progress,
            self._streams,
            state=state_folder(self._environ),
            themes=self._themes,
            target=self._destination.storage_name,
        )

    def _screen(self) -> Callable[[bool, bool], Sink]:
        """What opens the screen for a result: the pager at the prompt, stdout elsewhere."""
        streams, stream, options = self._streams, self._stdout_sink, self._options
        pages = self._interactive and streams.stdout.isatty()

        def screen(endless: bool = False, sideways: bool = False) -> Sink:
            if not pages or endless or options.pager == NO_PAGER:
                return stream
            from sqlshell.output.sinks.pager import ScreenSink

            command = options.pager or self._environ.get("PAGER", "")
            return ScreenSink(streams.stdout.buffer, command, streams.stdin, sideways=sideways)

        return screen


def _scripts_of(invocation: Invocation) -> Sequence[tuple[str, Trusted]]:
    """The scripts to run, stdin among them if it is one; none for the prompt. Raises UsageError."""
    if "-" in invocation.data:
        if ("file", "-") in invocation.scripts:
            raise UsageError("stdin contains data, so it cannot also be a script", "give statements with -c or -f FILE")
        return invocation.scripts
    return invocation.scripts or ([] if invocation.streams.stdin.isatty() else [("file", Trusted("-"))])


def _destination_of(invocation: Invocation) -> Destination:
    """The destination of the command line. Raises UsageError; warnings are reported at once."""
    flags, config = invocation.flags, invocation.config
    diagnostics = Diagnostics(
        invocation.streams.stderr, quiet=lambda: bool(flags.get("quiet")), verbose=flags.get("verbose", 0)
    )
    for text in permission_problems(config):
        diagnostics.warn(text)
    try:
        if invocation.data:
            destination = _data_destination(invocation)
        else:
            target = _target(invocation, diagnostics.warn)
            destination = find_destination(
                target, flags, invocation.environ, config, diagnostics.warn, invocation.target
            )
    except UsageError as error:
        if invocation.target not in config.profiles:
            error.hint = _command_hint([invocation.target, *invocation.data]) or error.hint
        raise
    if invocation.writes and destination.service == LocalService():
        raise UsageError(
            "TARGET must be a file or a service: data in memory is lost",
            "name a database file, a URL or a profile after FILE",
        )
    return destination


def _data_destination(invocation: Invocation) -> Destination:
    """The embedded service with a view for each data file, and for the data on stdin."""
    views = views_of([text for text in invocation.data if text != "-"])
    from_stdin = "-" in invocation.data
    if from_stdin:
        if other := next((path for name, path in views.items() if name.lower() == STDIN), None):
            raise UsageError(f"{other} and the data on stdin would both become the view {STDIN}", "rename the file")
        views[STDIN] = _copied_stdin(invocation.streams.stdin, invocation.input_format)
    settings = resolve(invocation.flags, invocation.environ, invocation.config, "")
    return Destination(settings, LocalService(views=views, stdin=from_stdin))


def _target(invocation: Invocation, warn: Callable[[str], None]) -> str:
    """The TARGET, or the service that ran the statement to fetch, according to the journal."""
    if invocation.target or not invocation.statement_id or invocation.flags.get("profile"):
        return invocation.target
    journal = Journal(state_folder(invocation.environ) / "journal.db", "", "", warn)
    try:
        entry = find_entry(journal, invocation.statement_id.lower())
    finally:
        journal.close()
    if entry is None:
        return ""
    if entry.profile in invocation.config.profiles:
        # The profile may have another service by now, which does not have the statement.
        service = find_destination(entry.profile, {}, {}, invocation.config, lambda text: None).service
        if isinstance(service, RemoteService) and service.target.name == entry.target:
            return entry.profile
    return entry.target


def _copied_stdin(stdin: TextIO, chosen: str) -> Path:
    """A temporary file with the data on stdin, in the format `chosen`, or "" to find it out from the first bytes.

    A query may read the data more than once, which a pipe does not allow. Raises UsageError.
    """
    from sqlshell.runtime.compressed_files import damage
    from sqlshell.runtime.scratch import scratch
    from sqlshell.shell.loading.spec import compression_of, format_of_data

    part = scratch().folder(STDIN) / "part"
    try:
        with open(stdin.fileno(), "rb", buffering=0, closefd=False) as source, part.open("xb") as file:
            shutil.copyfileobj(source, file, 1 << 20)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot copy the data on stdin: {reason(error)}") from None
    if not part.stat().st_size:
        raise UsageError("stdin has no data", "TARGET - reads data from stdin: cat a.csv | sqlshell - -c 'from stdin'")
    if wrong := damage(part):
        raise UsageError(f"cannot read stdin: {wrong}")
    return part.rename(part.with_name(f"{STDIN}.{chosen or format_of_data(part)}{compression_of(part)}"))


def _terminal_for_stdin(stdin: TextIO) -> None:
    """Read statements from the terminal from now on, because stdin was data. Raises UsageError if there is none."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        raise UsageError(
            "stdin is data, and there is no terminal to read statements from", "give them with -c or -f"
        ) from None
    os.dup2(terminal, stdin.fileno())
    os.close(terminal)


def _command_hint(words: Sequence[str]) -> str:
    """The hint for a backslash command in the place of a TARGET that does not exist; "" if there is none."""
    from sqlshell.shell.commands import BUILTIN

    names = {item.name for item in BUILTIN}
    command = next((word for word in words if word in names and not Path(word).exists()), "")
    return f"write a backslash command as -c '\\{command}'" if command else ""


def initial_options(settings: Settings, output: str, *, prompt: bool, at_terminal: bool = False) -> Options:
    """The initial display options; `prompt` says that a person sees the results and asks for more, `at_terminal` that
    a person sees them."""
    options = Options(at_prompt=prompt)
    if at_terminal:
        options.expanded = "auto"
    given = {name: settings[name] for name in DISPLAY if settings.source(name) != "default"}
    # A script does without the module that knows colors.
    unchecked = set() if prompt else {"prompt_color"}
    options.choose({name: value if name in unchecked else checked(name, value) for name, value in given.items()})
    if settings.source("tuples_only") != "default":
        options.header = not settings["tuples_only"]
    if output and settings.source("format") != "flag" and (by_extension := format_for_path(output)) is not None:
        options.choose({"format": by_extension.name})
    return options
