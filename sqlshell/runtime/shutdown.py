"""How the program exits: a signal unwinds it, a second one ends it at once; the interpreter prints no messages."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from types import FrameType
from typing import Any, Final, NoReturn, TextIO, TypeVar

Given = TypeVar("Given")
EXIT_SIGNALS: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name))
SIGNAL_EXIT_CODES: Final = 128
"""Exit codes above this number mean that a signal ended the program."""
MAX_UNWINDINGS: Final = 16
INNER_MODULES: Final = frozenset({"asyncio", "selectors", "importlib", "weakref", "_weakrefset"})
"""Modules of the event loop and of imports. An exception that a signal raises in them may be ignored, as in the
callback of a weak reference, or make the loop forget the task that it was about to resume."""
SETTLE_SECONDS: Final = 0.5
"""Time that other threads get to finish after the main thread."""


class ExitSignalHandler:
    """A signal handler: the first signal unwinds the program, which removes temporary files; a second ends it at once.

    Raises KeyboardInterrupt for SIGINT, SystemExit(128 + number) for others. If the signal interrupts INNER_MODULES, a
    callback of the event loop raises it; where no loop is running yet, there is nothing to unwind.
    """

    def __init__(self) -> None:
        self._received = False

    def __call__(self, number: int, frame: FrameType | None = None) -> None:
        """`frame` is where the signal arrived; None raises at once."""
        if self._received:
            _exit_at_once(128 + number)
        self._received = True
        error = KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
        if frame is None or frame.f_globals.get("__name__", "").partition(".")[0] not in INNER_MODULES:
            raise error
        try:
            # An import statement here could wait for a lock that the interrupted import holds.
            loop = sys.modules["asyncio"].get_running_loop()
        except (KeyError, AttributeError, RuntimeError):
            _exit_at_once(SIGNAL_EXIT_CODES + number)
        loop.call_soon_threadsafe(_raise, error)


def _raise(error: BaseException) -> NoReturn:
    raise error


def handle_signal(number: int, handler: Callable[[int, FrameType | None], None]) -> None:
    """Install a handler; a signal that was ignored at start (nohup, or SIGINT with `&` in a script) stays ignored."""
    if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, handler)


def install_exit_handlers() -> ExitSignalHandler:
    """Install the handler for all ending signals."""
    handler = ExitSignalHandler()
    for number in EXIT_SIGNALS:
        handle_signal(number, handler)
    return handler


def run_to_completion(coroutine: Coroutine[Any, Any, Given]) -> Given:
    """asyncio.run(), except that tasks interrupted by a signal unwind before the loop is closed."""
    import asyncio

    main: list[asyncio.Task[Any]] = []

    async def register_and_run() -> Given:
        main.extend(filter(None, [asyncio.current_task()]))
        return await coroutine

    with asyncio.Runner() as runner:
        try:
            return runner.run(register_and_run())
        except (KeyboardInterrupt, SystemExit):
            for task in main:
                task.cancel()
            # A task that the signal was raised in raises it again when it is done.
            for _ in range(MAX_UNWINDINGS):
                with contextlib.suppress(KeyboardInterrupt, SystemExit):
                    if any(not task.done() for task in main):
                        runner.get_loop().run_until_complete(asyncio.wait(main))
            raise


def exit_process(code: int, outputs: Sequence[TextIO]) -> NoReturn:
    """Flush `outputs` and exit the process, after the atexit handlers.

    The interpreter's own shutdown would free every object first, which takes longer than a small script, and would pull
    its modules away from running threads, which then warn or crash. It only runs in Python's development mode, which
    reports what was not closed: then SystemExit is raised if no signal ended the program and no thread is running.
    """
    with contextlib.suppress(ValueError):
        for number in (signal.SIGINT, *EXIT_SIGNALS):
            signal.signal(number, signal.SIG_IGN)
    for stream in outputs:
        try:
            stream.flush()
        except (OSError, ValueError):
            # The error was reported; the interpreter would flush again and print its own message.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    for thread in others:
        # A signal may have interrupted the start of a thread.
        with contextlib.suppress(RuntimeError):
            thread.join(SETTLE_SECONDS / len(others))
    if sys.flags.dev_mode and code <= SIGNAL_EXIT_CODES and not any(thread.is_alive() for thread in others):
        sys.exit(code)
    _exit_at_once(code)


def _exit_at_once(code: int) -> NoReturn:
    """Exit after running the atexit handlers, which remove temporary files and restore the terminal."""
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
    os._exit(code)


def forward_logs(say: Callable[[str], None], note: Callable[[str], None] | None = None) -> None:
    """Pass log messages of libraries to `say`, one line each; otherwise Python prints them with tracebacks.

    Messages of the service that are no warnings are passed to `note`.
    """
    import logging

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error = record.exc_info[1] if record.exc_info else None
            if error is not None and not isinstance(error, Exception):
                # Canceled or interrupted: the code that requested it reports it.
                return
            line = record.getMessage().partition("\n")[0]
            write = note if note is not None and record.levelno < logging.WARNING else say
            write(f"{record.name}: {line}" + (f": {type(error).__name__}: {error}" if error is not None else ""))

    logging.getLogger().addHandler(Lines(logging.WARNING if note is None else logging.INFO))
    if note is not None:
        logging.getLogger("sqlshell.service").setLevel(logging.INFO)
