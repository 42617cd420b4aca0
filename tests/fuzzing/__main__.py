"""python -m tests.fuzzing [NUMBER]: statements of all roles, and what they changed (default 20,000).

An interrupt ends the run; what was tried until then is printed.
"""

from __future__ import annotations

import sys
from collections import Counter

from tests.fuzzing.processes import fuzz_in_processes


def main() -> int:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    ended: Counter[str] = Counter()
    code, found = 0, "0 differences"
    try:
        for more in fuzz_in_processes(number):
            ended += more
            sys.stderr.write(f"{sum(ended.values()):,} of {number:,}\n")
    except KeyboardInterrupt:
        code, found = 130, "0 differences; interrupted"
    except AssertionError as error:
        code, found = 1, str(error)
    for name, count in sorted(ended.items()):
        sys.stdout.write(f"{count:8,}  {name}\n")
    sys.stdout.write(f"{sum(ended.values()):8,}  statements, {found}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
