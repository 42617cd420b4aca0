"""Ctrl-C on its way to whoever is to have it: the line that is typed, or what runs.

While a line is typed, the terminal hands Ctrl-C over as a byte; while something runs, as a signal. What is typed in the
moment between belongs to what was entered, though the terminal has kept it as a byte.
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
def heard(prompt: Application[str], interrupt: Callable[[], bool]) -> Iterator[None]:
    """While inside, the signal is the prompt's while that reads, and `interrupt`'s at any other moment.

    No other application may handle the signal meanwhile: leaving it, prompt_toolkit removes this handler too.
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


def typed_behind(source: Input, stdin: TextIO) -> bool:
    """Whether Ctrl-C was typed behind a line, before what was entered could have the signal.

    As a terminal does, it drops what was typed before it; what was typed after it, or without it, begins the next line.
    """
    if not stdin.isatty():
        return False
    keys = get_typeahead(source)
    while more := source.read_keys():
        keys += more
    # Where the cursor was is not where it will be: the next prompt would be drawn over what stands there.
    keys = [press for press in keys if press.key != Keys.CPRResponse]
    last = max((number for number, press in enumerate(keys) if press.key == Keys.ControlC), default=-1)
    store_typeahead(source, keys[last + 1 :])
    return last >= 0
