"""Paths that are another name for an open descriptor, such as `/dev/stdout` and links to it."""

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
"""Steps, through folders and links, after which a path is given up: it goes in circles."""


class Descriptor(Struct, frozen=True):
    """Descriptor `number`; `own` says that it is one of this process."""

    number: int
    own: bool


def descriptor(path: str) -> Descriptor | None:
    """The descriptor that a path leads to through any number of links, None for every other path.

    Links are followed one by one: behind the link `/proc/self/fd/1` is a file or a pipe like any other.
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
        found = _PATH.fullmatch(at)
        if found and not any(ahead):
            return _found(found)
        try:
            target = os.readlink(at)  # noqa: PTH115
        except (OSError, ValueError):
            continue
        ahead += target.split("/")[::-1]
        at = "/" if target.startswith("/") else os.path.dirname(at)  # noqa: PTH120
    return None


def stand_in_for_closed() -> None:
    """Put something behind standard descriptors that are closed, so that no file that is opened later becomes them.

    What reads stdin and what writes stdout fails as it would on a closed one; what is said on stderr is lost.
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


def _found(found: re.Match[str]) -> Descriptor:
    if found["name"]:
        return Descriptor(_NAMED[found["name"]], True)
    if found["number"]:
        return Descriptor(int(found["number"]), True)
    return Descriptor(int(found["other"]), found["process"] in {"self", "thread-self", str(os.getpid())})
