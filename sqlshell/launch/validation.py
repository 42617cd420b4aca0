"""Checks values that name something: a format, a theme, a time zone, the patterns of a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from sqlshell.config.values import Settings
from sqlshell.errors import UsageError
from sqlshell.launch.assembly import redactor_of
from sqlshell.launch.destination import checked_timezone
from sqlshell.output.writers.formats import format_named
from sqlshell.shell.interactive.look.templates import TEMPLATES, checked, checked_color
from sqlshell.sql.analysis.policy import check_patterns


def wrong_values(settings: Settings, themes: Path) -> Iterator[UsageError]:
    """The errors in the given values; `themes` is the user's own directory of themes."""

    def style() -> None:
        from sqlshell.output.writers.styles import table_style

        table_style(settings["table_style"])

    def theme() -> None:
        from sqlshell.shell.interactive.look.themes import load

        load(settings["theme"], themes)

    checks: dict[str, Callable[[], object]] = {
        "format": lambda: format_named(settings["format"]),
        "table_style": style,
        "theme": theme,
        "timezone": lambda: checked_timezone(settings["timezone"]),
        "prompt_color": lambda: checked_color(settings["prompt_color"]),
        "confirm": lambda: check_patterns(settings["confirm"], "confirm"),
        "secret_names": lambda: redactor_of(settings),
        **{name: partial(lambda name: checked(name, settings[name]), name) for name in TEMPLATES},
    }
    for name, check in checks.items():
        if settings.source(name) != "default":
            try:
                check()
            except UsageError as error:
                yield error
