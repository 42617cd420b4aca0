"""Event loops, those in threads of their own, and work that goes on beside what the user waits for."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import selectors
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

SLOW_SECONDS = 5.0
AGAIN_SECONDS = 0.05
"""How long an interrupt has to take effect before there is another one."""

Given = TypeVar("Given")


def thread_loop() -> asyncio.AbstractEventLoop:
    """A new event loop for a thread. A process that is forked can discard it without effect on this one.

    Linux shares a set of epoll with forked processes: one that exits would remove the loop's sockets from it, and the
    loop of its parent would wait for them forever. poll() shares nothing.
    """
    loop = asyncio.SelectorEventLoop(selectors.PollSelector())
    allow_slow_imports(loop)
    return loop


def allow_slow_imports(loop: asyncio.AbstractEventLoop) -> None:
    """Raise the time after which asyncio's debug mode (`python -X dev`) reports a slow callback.

    Modules are imported on first use, which can take longer than asyncio's limit of 0.1 s.
    """
    loop.slow_callback_duration = SLOW_SECONDS


def spawn(work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> None:
    """Do work in a task, which is in `tasks` until it ends."""
    task = asyncio.ensure_future(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


async def await_thread(running: asyncio.Future[Given], interrupt: Callable[[], object]) -> Given:
    """Await what runs in another thread; where this is canceled, that is interrupted until it ends."""
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await interrupt_until_done(running, interrupt)
        raise


async def interrupt_until_done(running: asyncio.Future[Any], interrupt: Callable[[], object]) -> None:
    """Interrupt what runs in another thread again and again: an interrupt between two of its steps is lost."""
    done = set[Any]()
    while not done:
        interrupt()
        done, _ = await asyncio.wait({running}, timeout=AGAIN_SECONDS)
    if not running.cancelled():
        # An error that nobody looks at would be reported.
        running.exception()


def end_threads(loop: asyncio.AbstractEventLoop) -> None:
    """Wait for the threads that a loop, which is not running, started for asyncio.to_thread()."""
    with contextlib.suppress(RuntimeError):
        # At the exit of the program Python 3.12 does not start the thread that this waits with.
        loop.run_until_complete(loop.shutdown_default_executor())


class LoopThread:
    """Runs coroutines for any number of threads. It ends with close(), or with the process."""

    def __init__(self, name: str) -> None:
        self._process = os.getpid()
        self._loop = thread_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Given]) -> Given:
        """The result of a coroutine. An exception in this thread, such as KeyboardInterrupt, cancels it first."""
        future = self.start(work)
        try:
            return future.result()
        except BaseException:
            if not future.done():
                future.cancel()
                asyncio.run_coroutine_threadsafe(_others(), self._loop).result()
            raise

    def start(self, work: Coroutine[Any, Any, Given]) -> concurrent.futures.Future[Given]:
        """Start a coroutine, without waiting. Raises RuntimeError if the loop is closed."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            work.close()
            raise

    @property
    def running(self) -> bool:
        """Whether the thread has not ended."""
        return self._thread.is_alive()

    @property
    def inherited(self) -> bool:
        """Whether this process was forked from the one that has the thread; nothing would run the loop here."""
        return os.getpid() != self._process

    @property
    def here(self) -> bool:
        """Whether this is the thread."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """Cancel what still runs, end the thread and wait for it. A second call does nothing."""
        if self.running:
            self._loop.call_soon_threadsafe(self._loop.stop)
            if not self.here:
                self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(_others())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            end_threads(self._loop)
        finally:
            self._loop.close()


async def _others() -> None:
    """Wait for the tasks that are being canceled."""
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task() and task.cancelling()]
    await asyncio.gather(*tasks, return_exceptions=True)


def in_thread(work: Callable[[], None]) -> None:
    """Run `work`, which saves memory, in a thread of the running event loop."""
    # At the end of the process Python starts no more threads, and the memory is returned anyway.
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop().run_in_executor(None, work)


class IdleTimer:
    """Calls `idle` a number of seconds after the last use of something. Used from one event loop."""

    def __init__(self, seconds: float, idle: Callable[[], None]) -> None:
        self._seconds = seconds
        self._idle = idle
        self._timer: asyncio.TimerHandle | None = None

    def restart(self) -> None:
        """Note a use."""
        if self._timer is not None:
            self._timer.cancel()
        # Python closes what is left of a coroutine after the end of its loop.
        with contextlib.suppress(RuntimeError):
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._idle)


T = TypeVar("T")


async def in_thread_or_undone(work: Callable[[], T], undo: Callable[[T], object]) -> T:
    """The result of `work` in a thread. If the task is canceled, `undo` is called with the result, also in a thread.

    Threads cannot be canceled: `work` goes on, and nobody else would release what it opens.
    """
    lock = threading.Lock()
    results: list[T] = []
    canceled = False

    def run() -> T:
        result = work()
        with lock:
            results.append(result)
            unwanted = canceled
        if unwanted:
            undo(result)
        return result

    try:
        return await asyncio.to_thread(run)
    except asyncio.CancelledError:
        with lock:
            canceled = True
            unwanted = [*results]
        for result in unwanted:
            await asyncio.to_thread(undo, result)
        raise


async def in_daemon_thread(work: Callable[[], T], name: str) -> T:
    """The result of `work` in a thread that keeps neither the event loop nor the program from ending: it may wait for
    input that never arrives. Raises the errors of `work`.
    """
    done: concurrent.futures.Future[T] = concurrent.futures.Future()

    def run() -> None:
        # Nobody waits for what was canceled.
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            try:
                done.set_result(work())
            except Exception as error:
                done.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(done)


_in_background: ContextVar[bool] = ContextVar("_in_background", default=False)


def start_in_background(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Start a task that is marked as background work; tasks that it starts are marked too."""

    async def marked() -> None:
        _in_background.set(True)
        await work

    return asyncio.ensure_future(marked())


def in_background() -> bool:
    """Whether the caller is background work."""
    return _in_background.get()
