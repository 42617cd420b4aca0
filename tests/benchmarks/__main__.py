"""`python -m tests.benchmarks [JOB…]` prints our figures, those of the references, and the ratios, all from one run."""

from __future__ import annotations

import sys

from tests.benchmarks.jobs import JOBS
from tests.benchmarks.measure import HEAD


def main() -> None:
    chosen = sys.argv[1:] or list(JOBS)
    unknown = [name for name in chosen if name not in JOBS]
    if unknown:
        raise SystemExit(f"unknown job {', '.join(unknown)}; jobs: {', '.join(JOBS)}")
    out = sys.stdout
    out.write(HEAD + "\n")
    for name in chosen:
        for row in JOBS[name]():
            out.write(f"{row}\n")
            out.flush()


if __name__ == "__main__":
    main()
