"""`sqlshell` and `python -m sqlshell`."""

from __future__ import annotations

import sys


def main() -> None:
    from sqlshell.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
