"""Landlock: a Linux process permanently gives up access to files, ports and signals that it does not need.

The constants are those of include/uapi/linux/landlock.h; they are the same on every architecture.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_CREATE: Final = 444
_ADD: Final = 445
_RESTRICT: Final = 446
_ASK_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_UNSUPPORTED: Final = frozenset({errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM})
"""The kernel was built without Landlock, was started without it, or a container's filter forbids it."""

_WRITE_FILE: Final = 1 << 1
_READ_FILE: Final = 1 << 2
_READ_DIR: Final = 1 << 3
_REMOVE_DIR: Final = 1 << 4
_REMOVE_FILE: Final = 1 << 5
_MAKE_DIR: Final = 1 << 7
_MAKE_REG: Final = 1 << 8
_REFER: Final = 1 << 13
_TRUNCATE: Final = 1 << 14

_FILES: Final = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""The file access rights that each version of Landlock adds."""

_NETWORK: Final = 4
_SCOPES: Final = 6
_TCP: Final = 0b11
_SIGNALS_AND_ABSTRACT_SOCKETS: Final = 0b11

READ: Final = _READ_FILE | _READ_DIR
FILL: Final = _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _REFER | _TRUNCATE
"""To create, write and remove files, but not to read them or find their names."""

WRITE: Final = READ | FILL
LIST: Final = _READ_DIR
_FORGOTTEN: Final = ("/proc/", "/sys/")
_OF_A_FILE: Final = _READ_FILE | _WRITE_FILE | _TRUNCATE


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """The kernel's version of Landlock, 0 for none: another system, a kernel without it, or a container that forbids
    it. Raises OSError if it fails in any other way.
    """
    if not sys.platform.startswith("linux"):
        return 0
    answer = int(_libc().syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION)))
    if answer < 0 and ctypes.get_errno() not in _UNSUPPORTED:
        raise _failure("landlock_create_ruleset")
    return max(0, answer)


def network(abi_version: int) -> bool:
    """Whether this version can forbid TCP."""
    return abi_version >= _NETWORK


def signals(abi_version: int) -> bool:
    """Whether this version can forbid signals and abstract Unix sockets."""
    return abi_version >= _SCOPES


def confine(allowed: Iterable[tuple[Path | int, int]], abi_version: int) -> list[int]:
    """Give up access to everything except `allowed`: paths or descriptors, each with READ, FILL, WRITE or LIST;
    directories include their contents, and missing paths are ignored. If `abi_version` supports it, TCP, signals to
    other processes and abstract Unix sockets are given up too.

    Applies to this thread and the threads that it starts later. Returns descriptors that must stay open: a file of
    /proc is a different one once the kernel has dropped it. Raises OSError; then nothing is given up.
    """
    libc = _libc()
    files = _FILES[max(known for known in _FILES if known <= abi_version)]
    rules = _Ruleset(
        files, _TCP if network(abi_version) else 0, _SIGNALS_AND_ABSTRACT_SOCKETS if signals(abi_version) else 0
    )
    # Older versions accept a larger structure if its rest is zero.
    ruleset = int(libc.syscall(_CREATE, ctypes.byref(rules), ctypes.c_size_t(ctypes.sizeof(rules)), ctypes.c_uint32(0)))
    if ruleset < 0:
        raise _failure("landlock_create_ruleset")
    held: list[int] = []
    try:
        for place, rights in allowed:
            try:
                opened = os.dup(place) if isinstance(place, int) else os.open(place, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                if not stat.S_ISDIR(os.fstat(opened).st_mode):
                    rights &= _OF_A_FILE
                beneath = ctypes.byref(_Beneath(rights & files, opened))
                if libc.syscall(_ADD, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), beneath, ctypes.c_uint32(0)):
                    raise _failure("landlock_add_rule")
                if str(place).startswith(_FORGOTTEN):
                    held.append(os.dup(opened))
            finally:
                os.close(opened)
        if libc.syscall(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0)):
            raise _failure("landlock_restrict_self")
    except BaseException:
        for descriptor in held:
            os.close(descriptor)
        raise
    finally:
        os.close(ruleset)
    return held


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _failure(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")
