"""Hooks for options of a run, such as --dry-run and --stats, that apply to each statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from sqlshell.shell.records.checkpoint import Checkpoint
    from sqlshell.shell.records.statistics import Statistics


class ScriptModes(Struct, frozen=True, eq=False):
    """The defaults are those of a run without these options."""

    statistics: Statistics | None = None
    """Of --stats."""
    checkpoint: Checkpoint | None = None
    """Of --checkpoint."""
    dry_run: bool = False
    """Whether statements are printed instead of sent."""
