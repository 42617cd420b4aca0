"""`python -m tests.benchmarks [JOB…]` prints our figures, those of the references, and the ratios, all from one run.

`--rows N` changes the size of the results of a job that has this parameter.
"""

from __future__ import annotations

import argparse
import sys

from tests.benchmarks.jobs import JOBS
from tests.benchmarks.measure import HEAD


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"one of {', '.join(JOBS)}")
    parser.add_argument("--rows", type=int, metavar="N")
    given = parser.parse_args()
    chosen = given.jobs or list(JOBS)
    unknown = [name for name in chosen if name not in JOBS]
    if unknown:
        parser.error(f"unknown job {', '.join(unknown)}; jobs: {', '.join(JOBS)}")
    size = {"rows": given.rows} if given.rows is not None else {}
    out = sys.stdout
    out.write(HEAD + "\n")
    for name in chosen:
        for row in JOBS[name](**size):
            out.write(f"{row}\n")
            out.flush()


if __name__ == "__main__":
    main()
