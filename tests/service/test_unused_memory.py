"""Memory that the service returns to the operating system."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

THREAD = """
import threading

from sqlshell.runtime.unused_memory import Growth, return_unused_memory, limit_unused_memory

limit_unused_memory()

def work():
    for _ in range(3):
        bytearray(b"x") * (30 << 20)
    texts = [bytearray(b"x") * 100_000 for _ in range(300)]

growth = Growth()
thread = threading.Thread(target=work)
thread.start()
thread.join()
return_unused_memory()
print(growth.large)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library has no mallopt()")
def test_a_thread_returns_the_memory_that_it_freed() -> None:
    """glibc keeps twice the largest size that a program freed, in each thread; malloc_trim() does not return it."""
    done = subprocess.run([sys.executable, "-c", THREAD], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
