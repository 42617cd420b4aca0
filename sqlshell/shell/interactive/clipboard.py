"""The terminal's clipboard, through OSC 52: it works over ssh, because the terminal copies."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from sqlshell.errors import OutputError
from sqlshell.runtime.files import write_all

MOST_BYTES = 1 << 20
"""The largest text that most terminals accept, in bytes."""


def copy_text(data: bytes) -> None:
    """Copy to the clipboard by OSC 52. Raises OutputError if there is no terminal or the data is too large."""
    if len(data) > MOST_BYTES:
        raise OutputError(
            f"too large for the clipboard: {len(data):,} bytes; the limit is {MOST_BYTES:,}", "use \\g FILE instead"
        )
    text = f"\x1b]52;c;{base64.b64encode(data).decode()}\x07"
    if os.environ.get("TMUX"):
        # tmux passes the sequence to the terminal only in this envelope.
        text = "\x1bPtmux;" + text.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    try:
        with Path("/dev/tty").open("wb", buffering=0) as terminal:
            write_all(terminal.write, text.encode())
    except OSError:
        raise OutputError("cannot copy: no terminal", "use \\g FILE instead") from None
