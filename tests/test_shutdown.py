"""A signal ends the program wherever it arrives, and what runs meanwhile is unwound."""

from __future__ import annotations

import asyncio
import io
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from sqlshell.runtime import shutdown
from sqlshell.runtime.shutdown import ExitSignalHandler, exit_process, run_to_completion


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    numbers = (signal.SIGINT, *shutdown.EXIT_SIGNALS)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def raising_in(module: str, number: int) -> Callable[..., None]:
    """A function that belongs to a module, in which the signal arrives."""
    names = {"__name__": module, "raise_signal": signal.raise_signal}
    exec(f"def arrives(*_): raise_signal({int(number)})", names)
    function = names["arrives"]
    assert callable(function)
    return function


@pytest.mark.parametrize(("number", "error"), ((signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)))
@pytest.mark.parametrize("module", ("_weakrefset", "asyncio.events", "weakref", "selectors"))
def test_a_signal_in_the_code_of_the_event_loop_is_raised_by_a_callback(
    number: int, error: type[BaseException], module: str
) -> None:
    signal.signal(number, ExitSignalHandler())
    unwound: list[str] = []

    async def work() -> None:
        try:
            # Python ignores an exception that is raised in the callback of a weak reference.
            kept = set[int]()
            reference = weakref.ref(kept, raising_in(module, number))
            del kept
            assert reference() is None
            unwound.append("not raised there")
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            unwound.append("unwound")

    with pytest.raises(error) as raised:
        run_to_completion(work())
    assert unwound == ["not raised there", "unwound"]
    assert getattr(raised.value, "code", None) == (None if number == signal.SIGINT else 128 + number)


@pytest.mark.parametrize("module", ("sqlshell.shell", "asyncio_like"))
def test_a_signal_elsewhere_is_raised_at_once(module: str) -> None:
    signal.signal(signal.SIGINT, ExitSignalHandler())

    async def work() -> None:
        with pytest.raises(KeyboardInterrupt):
            raising_in(module, signal.SIGINT)()

    run_to_completion(work())


@pytest.mark.parametrize("module", ("asyncio.runners", "importlib._bootstrap"))
def test_without_a_loop_a_signal_there_exits_at_once(module: str) -> None:
    code = f"""
import atexit, signal, weakref
from sqlshell.runtime.shutdown import ExitSignalHandler
signal.signal(signal.SIGTERM, ExitSignalHandler())
atexit.register(print, "terminal restored", flush=True)
names = {{"__name__": {module!r}, "raise_signal": signal.raise_signal, "number": signal.SIGTERM}}
exec("def arrives(*_): raise_signal(number)", names)
kept = set()
reference = weakref.ref(kept, names["arrives"])
del kept
print("ignored", flush=True)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (128 + signal.SIGTERM, "terminal restored\n")


def test_a_second_signal_exits_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    monkeypatch.setattr(shutdown, "_exit_at_once", codes.append)
    handler = ExitSignalHandler()
    for number in (signal.SIGINT, signal.SIGTERM):
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            handler(number)
    assert codes == [128 + signal.SIGTERM]


def test_ignored_signals_stay_ignored() -> None:
    # A shell starts what runs in the background with SIGINT and SIGQUIT ignored.
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    handler = shutdown.install_exit_handlers()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is handler
    assert signal.getsignal(signal.SIGQUIT) is handler


def test_a_task_that_raises_while_it_is_unwound_is_waited_for() -> None:
    steps: list[int] = []

    async def work() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            for number in range(3):
                await asyncio.sleep(0)
                steps.append(number)

    with pytest.raises(KeyboardInterrupt):
        run_to_completion(work())
    assert steps == [0, 1, 2]
    assert run_to_completion(asyncio.sleep(0, "done")) == "done"


class Exited(Exception):
    pass


@pytest.fixture(autouse=True)
def _own_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that other tests of this process have left running do not count."""
    every = threading.enumerate
    left = set(every()) - {threading.main_thread()}
    monkeypatch.setattr(threading, "enumerate", lambda: [thread for thread in every() if thread not in left])


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What ran at the end: the atexit handlers, and the exit code that the process would have had."""
    ran: list[object] = []

    def leave(code: int) -> None:
        ran.append(code)
        raise Exited

    monkeypatch.setattr("os._exit", leave)
    monkeypatch.setattr("atexit._run_exitfuncs", lambda: ran.append("atexit"))
    return ran


def develop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "flags", SimpleNamespace(dev_mode=True))


@pytest.mark.parametrize("code", (0, 4, 128))
def test_the_end_flushes_and_exits(tmp_path: Path, ran: list[object], code: int) -> None:
    with (tmp_path / "out").open("w") as output:
        output.write("text")
        with pytest.raises(Exited):
            exit_process(code, (output, io.StringIO()))
        assert (tmp_path / "out").read_text() == "text"
    # The interpreter's own shutdown would take longer than a small script.
    assert ran == ["atexit", code]
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


@pytest.mark.parametrize("code", (0, 4, 128))
def test_in_development_mode_the_interpreter_shuts_down(
    monkeypatch: pytest.MonkeyPatch, ran: list[object], code: int
) -> None:
    develop(monkeypatch)
    with pytest.raises(SystemExit) as ended:
        exit_process(code, ())
    assert ended.value.code == code
    assert ran == []


def test_an_output_that_cannot_be_flushed_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    develop(monkeypatch)
    with Path("/dev/full").open("w") as full:
        full.write("text")
        with pytest.raises(SystemExit) as ended:
            exit_process(1, (full,))
        # It is the null device now: the interpreter does not fail again.
        full.flush()
    assert ended.value.code == 1


@pytest.mark.parametrize(("code", "blocked"), ((129, False), (130, False), (0, True), (1, True)))
def test_signals_and_threads_end_the_process_without_the_interpreter(
    monkeypatch: pytest.MonkeyPatch, ran: list[object], code: int, blocked: bool
) -> None:
    develop(monkeypatch)
    monkeypatch.setattr(shutdown, "SETTLE_SECONDS", 0.0)
    end = threading.Event()
    thread = threading.Thread(target=end.wait, daemon=True)
    if blocked:
        thread.start()
    try:
        with pytest.raises(Exited):
            exit_process(code, ())
    finally:
        end.set()
        if blocked:
            thread.join()
    assert ran == ["atexit", code]


def test_a_thread_that_was_not_started_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, ran: list[object]) -> None:
    monkeypatch.setattr("threading.enumerate", lambda: [threading.main_thread(), threading.Thread()])
    with pytest.raises(Exited):
        exit_process(0, ())
