"""Paths that are another name for an open descriptor, such as `/dev/stdout` and links to it."""

from __future__ import annotations

import os
import re
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


def _found(found: re.Match[str]) -> Descriptor:
    if found["name"]:
        return Descriptor(_NAMED[found["name"]], True)
    if found["number"]:
        return Descriptor(int(found["number"]), True)
    return Descriptor(int(found["other"]), found["process"] in {"self", "thread-self", str(os.getpid())})
