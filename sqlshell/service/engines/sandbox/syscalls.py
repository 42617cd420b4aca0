"""A seccomp filter of system calls that a process permanently gives up.

Landlock restricts files and TCP. The filter forbids what Landlock does not cover: other programs and processes, sockets
of any kind, owners and modes of files, and parts of the kernel that an engine does not need.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from typing import Final

_SET_SECCOMP: Final = 22
_FILTER: Final = 2

_LOAD: Final = 0x20
_EQUAL: Final = 0x15
_AT_LEAST: Final = 0x35
_ANY_BIT: Final = 0x45
_RETURN: Final = 0x06

_ALLOW: Final = 0x7FFF0000
_FAIL: Final = 0x00050000

_NUMBER_AT: Final = 0
_ARCHITECTURE_AT: Final = 4
_FIRST_ARGUMENT_AT: Final = 16
_X32: Final = 0x40000000
_THREAD: Final = 0x00010000

_CLONE3: Final = 435
_SAME_EVERYWHERE: Final = (
    425, 426, 427,  # io_uring, which can open files and sockets
    428, 429, 430, 431, 432, 442,  # the newer mount calls
    434, 438, 440,  # pidfd_open, pidfd_getfd, process_madvise
    452, 463, 466,  # fchmodat2, setxattrat, removexattrat
)  # fmt: skip

_ARCHITECTURES: Final = {
    "x86_64": (
        0xC000003E,
        56,
        (
            57, 58, 59, 322,  # fork, vfork, execve, execveat
            41,  # socket
            101, 310, 311, 298,  # ptrace, process_vm_readv, process_vm_writev, perf_event_open
            90, 91, 268, 92, 93, 94, 260,  # chmod and chown
            188, 189, 190, 197, 198, 199,  # setxattr and removexattr
            133, 259,  # mknod
            155, 161, 165, 166, 272, 308,  # pivot_root, chroot, mount, umount2, unshare, setns
            303, 304,  # name_to_handle_at, open_by_handle_at: files by handle
            321, 323, 135, 172, 173,  # bpf, userfaultfd, personality, iopl, ioperm
            248, 249, 250,  # keys of the kernel
            167, 168, 169, 175, 313, 246, 320,  # swapon, swapoff, reboot, modules, kexec
        ),
    ),
    "aarch64": (
        0xC00000B7,
        220,
        (
            221, 281, 198,
            117, 270, 271, 241,
            52, 53, 54, 55,
            5, 6, 7, 14, 15, 16,
            33,
            41, 51, 40, 39, 97, 268,
            264, 265,
            280, 282, 92,
            217, 218, 219,
            224, 225, 142, 105, 273, 104, 294,
        ),
    ),
}  # fmt: skip
"""By architecture: its number, the number of clone, and the numbers of the forbidden calls, in the order of CALLS."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def forbid() -> bool:
    """Forbid these calls: from now on they fail with EPERM. Threads can still be started.

    Applies to this thread and the threads that it starts later. Returns False if the system has no such filter or the
    architecture is unknown. The process must have given up gaining privileges before.
    """
    known = _ARCHITECTURES.get(platform.machine()) if sys.platform.startswith("linux") else None
    if known is None or struct.calcsize("P") != 8:
        return False
    program = _program(*known)
    libc = ctypes.CDLL(None, use_errno=True)
    given = _Program(len(program) // 8, program)
    return not libc.prctl(
        _SET_SECCOMP, ctypes.c_ulong(_FILTER), ctypes.byref(given), ctypes.c_ulong(0), ctypes.c_ulong(0)
    )


def _program(architecture: int, clone: int, refused: tuple[int, ...]) -> bytes:
    fail = _step(_RETURN, _FAIL | errno.EPERM)
    steps = [
        _step(_LOAD, _ARCHITECTURE_AT),
        _step(_EQUAL, architecture, yes=1),
        fail,
        _step(_LOAD, _NUMBER_AT),
        # The numbers of the x32 ABI mean other calls.
        _step(_AT_LEAST, _X32, no=1),
        fail,
        # Without clone3, whose flags a filter cannot see, glibc starts threads with clone.
        _step(_EQUAL, _CLONE3, no=1),
        _step(_RETURN, _FAIL | errno.ENOSYS),
    ]
    for number in (*refused, *_SAME_EVERYWHERE):
        steps += [_step(_EQUAL, number, no=1), fail]
    steps += [
        _step(_EQUAL, clone, no=3),
        _step(_LOAD, _FIRST_ARGUMENT_AT),
        _step(_ANY_BIT, _THREAD, yes=1),
        fail,
        _step(_RETURN, _ALLOW),
    ]
    return b"".join(steps)


def _step(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    """One instruction; `yes` and `no` are the numbers of following instructions to skip."""
    return struct.pack("=HBBI", code, yes, no, value)


def no_new_privileges() -> bool:
    """Prevent this process from gaining privileges; returns whether that worked."""
    return _control(38, 1)


def not_dumpable() -> bool:
    """Prevent other processes of this user from inspecting this one, and core files; returns whether that worked."""
    return _control(4, 0)


def end_with_parent(signal: int, parent: int) -> bool:
    """Send this process `signal` when the thread that started it ends; `parent` is the process of that thread. Returns
    whether that worked.

    Raises ProcessLookupError if the parent has exited.
    """
    if not _control(1, signal):
        return False
    if os.getppid() != parent:
        raise ProcessLookupError("the process that began this one has ended")
    return True


def _control(what: int, value: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    return not libc.prctl(ctypes.c_int(what), ctypes.c_ulong(value), zero, zero, zero)
