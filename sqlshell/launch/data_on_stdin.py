"""TARGET `-`: stdin is data, and statements come from elsewhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, TextIO

from sqlshell.errors import UsageError
from sqlshell.launch.data_files import STDIN
from sqlshell.runtime.compressed_files import damage
from sqlshell.runtime.scratch import scratch
from sqlshell.shell.loading.spec import compression_of, format_of_data

PIECE: Final = 1 << 20


def copied_stdin(stdin: TextIO, chosen: str) -> Path:
    """A temporary file with the data on stdin, in the format `chosen`, or "" to find it out from the first bytes.

    A query may read the data more than once, which a pipe does not allow. Raises UsageError.
    """
    part = scratch().folder(STDIN) / "part"
    try:
        with open(stdin.fileno(), "rb", buffering=0, closefd=False) as source, part.open("xb") as file:
            while piece := source.read(PIECE):
                file.write(piece)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot copy the data on stdin: {getattr(error, 'strerror', None) or error}") from None
    if not part.stat().st_size:
        raise UsageError("stdin has no data", "TARGET - reads data from stdin: cat a.csv | sqlshell - -c 'from stdin'")
    if wrong := damage(part):
        raise UsageError(f"cannot read stdin: {wrong}")
    return part.rename(part.with_name(f"{STDIN}.{chosen or format_of_data(part)}{compression_of(part)}"))


def terminal_for_stdin(stdin: TextIO) -> None:
    """Read statements from the terminal from now on, because stdin was data. Raises UsageError if there is none."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        raise UsageError(
            "stdin is data, and there is no terminal to read statements from", "give them with -c or -f"
        ) from None
    os.dup2(terminal, stdin.fileno())
    os.close(terminal)
