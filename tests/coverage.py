"""The coverage of the package by its tests: `python -m tests.coverage [--missing] [PYTEST ARGUMENTS]`.

Every Python process that may write a file when it ends counts: the tests, the program in terminals and pipes and its
forked runs, and services. Many of them get an environment without anything of the caller's, so that no variable could
ask them to measure. While this runs, a .pth file of this virtual environment does: it must be the one in which this
directory is installed. What runs there of another directory, such as a copy of tests.mutants, is not counted. Under
`serve` an engine's process gives up the right to write elsewhere, so that what only it runs, such as
engines/process/child.py, counts as missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from pathlib import Path

import coverage

WORKERS = ("-n", "auto", "--dist", "worksteal")
PACKAGE = Path(__file__).parents[1] / "sqlshell"

CONFIGURATION = """
[run]
source = {package}
data_file = {folder}/data
parallel = true
patch =
    _exit
    fork
disable_warnings =
    no-data-collected
    module-not-imported
    module-not-measured

[report]
exclude_also =
    if TYPE_CHECKING:
    ^ *\\.\\.\\.$
    : \\.\\.\\.$
"""

HOOK = (
    "import os; os.environ['COVERAGE_PROCESS_START'] = {configuration!r}; import coverage; "
    "coverage.process_startup(); del os.environ['COVERAGE_PROCESS_START']\n"
)


def measured(folder: Path, arguments: list[str]) -> int:
    """Run pytest, with the data of each process in `folder`; its exit code."""
    configuration = folder / "configuration"
    configuration.write_text(CONFIGURATION.format(folder=folder, package=PACKAGE))
    hook = Path(sysconfig.get_path("purelib"), "sqlshell_coverage.pth")
    hook.write_text(HOOK.format(configuration=str(configuration)))
    try:
        return subprocess.run([sys.executable, "-m", "pytest", *WORKERS, *arguments], check=False).returncode
    finally:
        hook.unlink()


def table(report: Path) -> str:
    """A row a package: its name, statements, those that were not reached, and the share of those that were."""
    statements: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for name, found in json.loads(report.read_text())["files"].items():
        parts = Path(name).resolve().relative_to(PACKAGE).parts
        for package in (parts[0] if len(parts) > 1 else "sqlshell", "in all"):
            statements[package] += found["summary"]["num_statements"]
            missed[package] += found["summary"]["missing_lines"]
    order = [*sorted(statements.keys() - {"in all"}), "in all"]
    return "\n".join(
        f"{name:<10} {statements[name]:>7,} {missed[name]:>6,} {100 - 100 * missed[name] / statements[name]:>6.1f} %"
        for name in order
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.coverage", description=__doc__.partition("\n")[0])
    parser.add_argument("--missing", action="store_true", help="print the lines of each file that were not reached")
    asked, arguments = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="sqlshell-coverage-") as name:
        folder = Path(name)
        code = measured(folder, arguments)
        whole = coverage.Coverage(config_file=str(folder / "configuration"))
        whole.combine([str(folder)])
        if asked.missing:
            whole.report(show_missing=True, skip_covered=True)
        whole.json_report(outfile=str(folder / "report.json"))
        sys.stdout.write(table(folder / "report.json") + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
