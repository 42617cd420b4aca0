"""The options of a run that concern each of its statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlshell.config.values import Settings
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import UsageError
from sqlshell.origin import Own
from sqlshell.shell.components import ScriptModes

if TYPE_CHECKING:
    from sqlshell.shell.records.checkpoint import Checkpoint


def modes_of(settings: Settings, diagnostics: Diagnostics, target: str, *, scripts: bool) -> ScriptModes:
    """Open the files of the options.

    `target` is "" for one that is lost with the run; `scripts` says that this is not the prompt. Raises UsageError and
    OutputError.
    """
    dry_run = bool(settings["dry_run"])
    if dry_run and not scripts:
        raise UsageError("--dry-run requires a script", "give one with -c, -f or on stdin")
    statistics = None
    if settings["stats"] and not dry_run:
        from sqlshell.shell.records.statistics import Statistics

        statistics = Statistics(Own(settings["stats"]), diagnostics)
    return ScriptModes(statistics, _checkpoint(settings, target, scripts=scripts), dry_run)


def _checkpoint(settings: Settings, target: str, *, scripts: bool) -> Checkpoint | None:
    path = settings["checkpoint"]
    if not path:
        if settings["resume"]:
            raise UsageError("--resume requires --checkpoint FILE", "FILE is the checkpoint of the run to continue")
        if settings["unknown"]:
            raise UsageError("--unknown requires --checkpoint FILE and --resume")
        return None
    for name in ("single_transaction", "dry_run"):
        if settings[name]:
            raise UsageError(
                f"--checkpoint cannot be used with --{name.replace('_', '-')}",
                "such a run cannot be resumed; omit --checkpoint",
            )
    if not scripts:
        raise UsageError("--checkpoint requires a script", "give one with -c, -f or on stdin")
    if settings["session_id"]:
        raise UsageError(
            "--checkpoint cannot be used with --session-id", "a run is resumed in a new session; omit --session-id"
        )
    if settings["unknown"] and not settings["resume"]:
        raise UsageError("--unknown requires --resume")
    if not target:
        raise UsageError(
            "--checkpoint requires a TARGET: a database in memory is lost with the run",
            "name a database file, a URL or a profile",
        )
    from sqlshell.shell.records.checkpoint import Checkpoint

    return Checkpoint(Own(path), target, resume=bool(settings["resume"]), unknown=settings["unknown"])
