"""Detects whether the terminal is dark or light: OSC 11 requests its background color."""

from __future__ import annotations

import contextlib
import os
import re
import select
import time
from pathlib import Path

from sqlshell.runtime.streams import Streams

QUERY_SECONDS = 0.1
KEPT_SECONDS = 30 * 86_400.0

_ANSWERED = re.compile(rb"\x1b\[\?[0-9;]*c")
_WHOLE_REPLY = re.compile(rb"\x1b\]11;[^\x07\x1b]{0,64}(?:\x07|\x1b\\)")
_REPLY = re.compile(rb"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")


def background(cache: Path, streams: Streams) -> tuple[str, bytes]:
    """Either "dark" or "light", or "" if the terminal does not respond; the response is cached in the file `cache`.

    The second value is text that the user typed meanwhile.
    """
    name = "-".join(os.environ.get(part, "") for part in ("TERM_PROGRAM", "TERM", "COLORTERM", "COLORFGBG"))
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if time.time() - cache.stat().st_mtime < KEPT_SECONDS:
            known, _, shade = cache.read_text().strip().partition("\t")
            if known == name and shade in {"dark", "light", ""}:
                return shade, b""
    typed = b""
    if not (shade := _from_environment()):
        shade, typed = _query_terminal(streams)
    with contextlib.suppress(OSError):
        cache.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        cache.write_text(f"{name}\t{shade}\n")
    return shade, typed


def _from_environment() -> str:
    """COLORFGBG of rxvt and others: `foreground;background`, 0 to 6 and 8 are dark."""
    last = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    if not last.isdecimal():
        return ""
    return "dark" if int(last) in {0, 1, 2, 3, 4, 5, 6, 8} else "light"


def _query_terminal(streams: Streams) -> tuple[str, bytes]:
    if (
        os.name != "posix"
        or not (streams.stdin.isatty() and streams.stdout.isatty())
        or os.environ.get("TERM") in {"dumb", None}
    ):
        return "", b""
    import termios
    import tty

    descriptor = streams.stdin.fileno()
    saved = termios.tcgetattr(descriptor)
    reply = b""
    try:
        tty.setcbreak(descriptor, termios.TCSANOW)
        # Every terminal responds to the second request: its response means that there will be none to the first.
        os.write(streams.stdout.fileno(), b"\x1b]11;?\x1b\\\x1b[c")
        until = time.monotonic() + QUERY_SECONDS
        while (left := until - time.monotonic()) > 0 and not _ANSWERED.search(reply):
            if select.select([descriptor], [], [], left)[0]:
                reply += os.read(descriptor, 256)
    except (OSError, termios.error):
        return "", reply
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, saved)
    typed = _ANSWERED.sub(b"", _WHOLE_REPLY.sub(b"", reply))
    match = _REPLY.search(reply)
    if match is None:
        return "", typed
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in match.groups())
    return ("light" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5 else "dark"), typed
