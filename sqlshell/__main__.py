"""`sqlshell` and `python -m sqlshell`."""

from __future__ import annotations

import gc
import sys

STARTING_THRESHOLD = 200_000
"""Objects that may be created until the garbage collector runs while the program starts: nearly all of them stay."""


def main() -> None:
    gc.set_threshold(STARTING_THRESHOLD)
    from sqlshell.runtime.files import stand_in_for_closed

    stand_in_for_closed()
    from sqlshell.launch.cli import run
    from sqlshell.runtime.shutdown import exit_process

    try:
        code = run(sys.argv[1:])
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    exit_process(code, (sys.stdout, sys.stderr))


if __name__ == "__main__":
    main()
