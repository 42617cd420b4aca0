"""Directs Ctrl-C to the line that is being typed, or to the running statement.

While a line is typed, the terminal sends Ctrl-C as a byte; while a statement runs, as a signal. A Ctrl-C that is typed
between the two is for the statement, although the terminal has stored it as a byte.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.keys import Keys


@contextlib.contextmanager
def handling_interrupts(prompt: Application[str], interrupt: Callable[[], bool]) -> Iterator[None]:
    """Inside the block, the prompt handles the signal while it reads, and `interrupt` at all other times.

    No other application may handle the signal meanwhile: when prompt_toolkit stops handling it, it removes this handler
    too.
    """
    loop = asyncio.get_running_loop()

    def pressed() -> None:
        if prompt.is_running:
            with set_app(prompt):
                prompt.key_processor.send_sigint()
        else:
            interrupt()

    before = signal.getsignal(signal.SIGINT)
    try:
        loop.add_signal_handler(signal.SIGINT, pressed)
    except NotImplementedError:
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)


def interrupt_typed_ahead(source: Input, stdin: TextIO) -> bool:
    """Whether Ctrl-C was typed after a line, before the signal could reach the statement.

    As in a terminal, text typed before the Ctrl-C is discarded; text typed after it, or without one, begins the next
    line.
    """
    if not stdin.isatty():
        return False
    keys = get_typeahead(source)
    while more := source.read_keys():
        keys += more
    # The cursor has moved: the next prompt would overwrite text on the screen.
    keys = [press for press in keys if press.key != Keys.CPRResponse]
    last = max((number for number, press in enumerate(keys) if press.key == Keys.ControlC), default=-1)
    store_typeahead(source, keys[last + 1 :])
    return last >= 0
