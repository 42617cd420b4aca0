"""What a run does besides: --dry-run, --stats, and --checkpoint with --resume."""

from __future__ import annotations

from sqlshell.config.values import Settings
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import UsageError
from sqlshell.launch.services import protected
from sqlshell.launch.targets import Destination, context_of
from sqlshell.origin import Trusted
from sqlshell.shell.components import ScriptModes
from sqlshell.shell.records.checkpoint import Checkpoint
from sqlshell.shell.records.run_records import Statistics


def open_modes(destination: Destination, diagnostics: Diagnostics, *, scripts: bool) -> ScriptModes:
    """Open the files of --stats and --checkpoint, but none of the destination's. `scripts` says that this is not the
    prompt. Raises UsageError and OutputError.
    """
    with protected(destination.service):
        return modes_of(destination.settings, diagnostics, _lasting(destination), scripts=scripts)


def modes_of(settings: Settings, diagnostics: Diagnostics, target: str, *, scripts: bool) -> ScriptModes:
    """Return the modes of a run on a `target`, "" for one that is lost with the run. Raises as open_modes()."""
    dry_run = bool(settings["dry_run"])
    if dry_run and not scripts:
        raise UsageError("--dry-run requires a script", "give one with -c, -f or on stdin")
    statistics = None
    if settings["stats"] and not dry_run:
        statistics = Statistics(Trusted(settings["stats"]), diagnostics)
    allowed = not settings["no_commands"]
    return ScriptModes(statistics, _checkpoint(settings, target, scripts=scripts), dry_run, allowed)


def _checkpoint(settings: Settings, target: str, *, scripts: bool) -> Checkpoint | None:
    path = settings["checkpoint"]
    if not path:
        if settings["resume"]:
            raise UsageError("--resume requires --checkpoint FILE", "FILE is the checkpoint of the run to continue")
        if settings["if_unknown"]:
            raise UsageError("--if-unknown requires --checkpoint FILE and --resume")
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
    if settings["if_unknown"] and not settings["resume"]:
        raise UsageError("--if-unknown requires --resume")
    if not target:
        raise UsageError(
            "--checkpoint requires a TARGET: a database in memory is lost with the run",
            "name a database file, a URL or a profile",
        )
    return Checkpoint(Trusted(path), target, resume=bool(settings["resume"]), unknown=settings["if_unknown"])


def _lasting(destination: Destination) -> str:
    """The service and the context in which scripts begin; "" for a service whose data is lost with the run."""
    name = destination.storage_name
    parts = context_of(destination).parts()
    chosen = [f"{part} {value}" for part, value in parts if value and part not in {"timezone", "session_id"}]
    return ", ".join([name, *chosen]) if name else ""
