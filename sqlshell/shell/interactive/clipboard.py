"""The terminal's clipboard, by OSC 52: it works through ssh, for it is the terminal that copies."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from sqlshell.errors import OutputError

MOST_BYTES = 1 << 20
"""More than this few terminals take."""


def copy_text(data: bytes) -> None:
    """Raises OutputError where there is no terminal, or too much for one."""
    if len(data) > MOST_BYTES:
        raise OutputError(f"{len(data):,} bytes are too many for a clipboard", "\\g FILE writes them to a file")
    text = f"\x1b]52;c;{base64.b64encode(data).decode()}\x07"
    if os.environ.get("TMUX"):
        # tmux lets through what it is told to.
        text = "\x1bPtmux;" + text.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    try:
        with Path("/dev/tty").open("wb", buffering=0) as terminal:
            terminal.write(text.encode())
    except OSError:
        raise OutputError("there is no terminal whose clipboard could be used", "\\g FILE writes to a file") from None
