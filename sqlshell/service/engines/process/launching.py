"""Starts processes of the service: this Python, one module, no environment, and only the given descriptors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

MEMORY: Final = {
    "DUCKDB_JE_MALLOC_CONF": "retain:false",
    "MALLOC_ARENA_MAX": "4",
    "MALLOC_MMAP_THRESHOLD_": "1048576",
    "MALLOC_TRIM_THRESHOLD_": "1048576",
}
"""Settings of DuckDB's and the C library's allocators: addresses of freed memory would count against the memory limit,
and glibc keeps them after it has freed a large block, unless its thresholds are set.
"""


def begin(
    module: str,
    *,
    descriptors: Sequence[int] = (),
    arguments: Sequence[str] = (),
    temporary: Path | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start `main()` of a module in a process; its result is the exit code. The process has `descriptors` by their
    numbers, `arguments` in sys.argv, and its temporary files in `temporary`.

    Its imports come from the same directories as here. Raises OSError.
    """
    # Anybody may own the current directory.
    path = [item for item in sys.path if item and Path(item).is_absolute()]
    code = f"import sys; sys.path[:] = {path!r}; from {module} import main; sys.exit(main())"
    environment = {"LC_ALL": "C.UTF-8", **MEMORY}
    if temporary is not None:
        environment["TMPDIR"] = str(temporary)
    return subprocess.Popen(
        [sys.executable, "-I", "-X", "utf8", "-c", code, *arguments],
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd="/",
        pass_fds=tuple(descriptors),
        start_new_session=True,
    )
