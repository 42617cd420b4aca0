"""`sqlshell` and `python -m sqlshell`."""

from __future__ import annotations

import sys


def main() -> None:
    from sqlshell.runtime.descriptors import stand_in_for_closed

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
