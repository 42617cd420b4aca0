"""`python -m tests.benchmarks [JOB…]` prints our figures, those of the references, and the ratios, all from one run.

`--rows N` changes the size of the results of a job that has this parameter. The job gauge, which runs only if it is
named, has ratios with bounds: past one of them the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator

from tests.benchmarks.client_jobs import faults, stream
from tests.benchmarks.cluster_jobs import cluster
from tests.benchmarks.engine_jobs import engines
from tests.benchmarks.gauge import gauge
from tests.benchmarks.hostile.jobs import hostile
from tests.benchmarks.measure import HEAD, Row
from tests.benchmarks.prompt_jobs import prompt_jobs
from tests.benchmarks.service_jobs import kills
from tests.benchmarks.throughput_jobs import throughput

JOBS: dict[str, Callable[..., Iterator[Row]]] = {
    "kills": kills,
    "hostile": hostile,
    "faults": faults,
    "stream": stream,
    "interactive": prompt_jobs,
    "throughput": throughput,
    "cluster": cluster,
    "engines": engines,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"gauge, or one of {', '.join(JOBS)}")
    parser.add_argument("--rows", type=int, metavar="N")
    given = parser.parse_args()
    chosen = given.jobs or list(JOBS)
    jobs = {**JOBS, "gauge": gauge}
    unknown = [name for name in chosen if name not in jobs]
    if unknown:
        parser.error(f"unknown job {', '.join(unknown)}; jobs: {', '.join(jobs)}")
    size = {"rows": given.rows} if given.rows is not None else {}
    out = sys.stdout
    out.write(HEAD + "\n")
    past = []
    for name in chosen:
        for row in jobs[name](**size):
            out.write(f"{row}\n")
            out.flush()
            if row.bound is not None and row.ratio > row.bound:
                past.append(row.job)
    for job in past:
        sys.stderr.write(f"past its bound: {job}\n")
    return 1 if past else 0


if __name__ == "__main__":
    sys.exit(main())
