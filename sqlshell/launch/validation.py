"""Values that are right as text and wrong as what they name: a format, a theme, a time zone, a policy's pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from sqlshell.config.values import Settings
from sqlshell.errors import UsageError
from sqlshell.launch.assembly import redactor_of
from sqlshell.launch.destination import known_zone
from sqlshell.output.writers.formats import format_named
from sqlshell.shell.interactive.look.templates import TEMPLATES, checked, checked_color
from sqlshell.shell.running.policy import check_patterns


def wrong_values(settings: Settings, themes: Path) -> Iterator[UsageError]:
    """What is wrong with the values that were given; `themes` is the person's own folder of themes."""

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
        "timezone": lambda: known_zone(settings["timezone"]),
        "color": lambda: checked_color(settings["color"]),
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
