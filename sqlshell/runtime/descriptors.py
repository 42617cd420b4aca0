"""Paths that refer to an open file descriptor, such as `/dev/stdout` and links to it."""

from __future__ import annotations

import os
import re
import sys
from typing import Final

from msgspec import Struct

_NAMED: Final = {"stdin": 0, "stdout": 1, "stderr": 2}
_PATH: Final = re.compile(
    r"/dev/(?P<name>stdin|stdout|stderr)|/dev/fd/(?P<number>\d+)"
    r"|/proc/(?P<process>self|thread-self|\d+)(?:/task/\d+)?/fd/(?P<other>\d+)"
)
LONGEST_WAY: Final = 256
"""Maximum number of directories and links to follow; a longer path is taken for a loop."""


class Descriptor(Struct, frozen=True):
    """File descriptor `number`; `own` says whether it belongs to this process."""

    number: int
    own: bool


def descriptor(path: str) -> Descriptor | None:
    """The descriptor that a path refers to, directly or through links; None for every other path.

    Links are followed one by one, because `/proc/self/fd/1` is itself a link to an ordinary file or pipe.
    """
    at = "/" if path.startswith("/") else os.getcwd()  # noqa: PTH109
    ahead = path.split("/")[::-1]
    for _ in range(LONGEST_WAY):
        if not ahead:
            return None
        part = ahead.pop()
        if part in ("", "."):
            continue
        if part == "..":
            at = os.path.dirname(at)  # noqa: PTH120
            continue
        at = f"{at.rstrip('/')}/{part}"
        match = _PATH.fullmatch(at)
        if match and not any(ahead):
            return _from_match(match)
        try:
            target = os.readlink(at)  # noqa: PTH115
        except (OSError, ValueError):
            continue
        ahead += target.split("/")[::-1]
        at = "/" if target.startswith("/") else os.path.dirname(at)  # noqa: PTH120
    return None


def stand_in_for_closed() -> None:
    """Open closed standard descriptors on /dev/null, so that no file opened later gets their numbers.

    Reading stdin and writing stdout still fail as on a closed descriptor; messages to stderr are lost.
    """
    for name, number, flags in (("stdin", 0, os.O_WRONLY), ("stdout", 1, os.O_RDONLY), ("stderr", 2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, flags)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115


def _from_match(match: re.Match[str]) -> Descriptor:
    if match["name"]:
        return Descriptor(_NAMED[match["name"]], True)
    if match["number"]:
        return Descriptor(int(match["number"]), True)
    return Descriptor(int(match["other"]), match["process"] in {"self", "thread-self", str(os.getpid())})
