"""The options of a running shell: how results are shown and scripts are run, as `\\pset` and `\\set` change them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from sqlshell.config.peers import DISPLAY_NAMES, RENAMED
from sqlshell.config.settings import BY_NAME, Setting
from sqlshell.errors import UsageError
from sqlshell.output.writers.formats import format_named
from sqlshell.text import did_you_mean

FIELDS: Final = (
    *("organization", "role", "database", "schema", "store", "pool", "timezone", "session", "target", "elapsed"),
    *("jobs", "transaction", "readonly", "statement"),
)
"""Names that are valid in the braces of a template."""

_LOOK: Final = r"(?:(?:bg:)?#[0-9a-fA-F]{6}|bold|italic|underline|reverse)"
STYLE: Final = re.compile(rf"\{{(/|{_LOOK}(?: {_LOOK})*)\}}")
"""A style in the braces of a template, `{#ff8800 bold}`: it applies until the next one; `{/}` ends it."""
FIELD: Final = re.compile(r"\{([^{}]*)\}")


class Options:
    """The options of `\\pset` in its order. Their defaults, values and meanings are in the table of settings.

    `chosen` are the names of those that the user has set.
    """

    format: str
    expanded: str
    wide: str
    maxwidth: int
    numericlocale: bool
    table_style: str
    types: bool
    browse: int
    null: str | None
    header: bool
    footer: bool
    fieldsep: str
    recordsep: str
    csv_safe: bool
    insert_table: str
    timing: bool
    rowlimit: int
    pager: str
    on_error: str
    echo: bool
    quiet: bool
    verbosity: str
    theme: str
    completion: bool
    multiline: bool
    vi: bool
    max_rows: int
    duration: float
    allow_gaps: bool
    prompt_color: str
    prompt: str
    rprompt: str
    toolbar: str
    prompt_lines: int
    title: str
    notify: float

    def __init__(self, *, at_prompt: bool = False, **given: Any) -> None:
        self.chosen: set[str] = set()
        for name, setting in DISPLAY.items():
            prompts = at_prompt and setting.at_prompt is not None
            setattr(self, name, setting.at_prompt if prompts else setting.default)
        vars(self).update(given)

    def choose(self, values: Mapping[str, object]) -> None:
        """Set options as the user wants them."""
        vars(self).update(values)
        self.chosen |= values.keys()


DISPLAY: Final[Mapping[str, Setting]] = {name: BY_NAME[name] for name in Options.__annotations__}
"""The settings of these options."""


def display_option(given: str) -> tuple[Setting, bool]:
    """Return the option of a name, and whether its value is inverted (tuples_only). Raises UsageError."""
    wanted = given.lower().replace("-", "_")
    name = DISPLAY_NAMES.get(wanted, wanted)
    if name == "tuples_only":
        return DISPLAY["header"], True
    if name not in DISPLAY:
        if wanted in RENAMED:
            raise UsageError(f"unknown option {given!r}", f"it is now {RENAMED[wanted]}")
        raise UsageError(f"unknown option {given!r}", did_you_mean(name, DISPLAY, "\\pset lists the options"))
    return DISPLAY[name], False


def checked(name: str, value: Any) -> Any:
    """Return the value of a setting that names something: a format, a style, a color, a template.

    Raises UsageError.
    """
    match name:
        case "format":
            return format_named(value).name
        case "table_style":
            from sqlshell.output.writers.styles import table_style

            table_style(value)
        case "prompt_color" if value:
            _check_color(value)
        case "prompt" | "rprompt" | "toolbar" | "title":
            _check_template(name, value)
    return value


def _check_template(name: str, template: str) -> None:
    for field in FIELD.findall(STYLE.sub("", template)):
        if field not in FIELDS:
            styles = "styles: {bold}, {#ff8800}, {bg:#003355 italic}, and {/} to end a style"
            raise UsageError(f"{name}: unknown field {{{field}}}", f"fields: {', '.join(FIELDS)}; {styles}")


def _check_color(text: str) -> None:
    from prompt_toolkit.styles import Style

    try:
        Style([("prompt", text)])
    except ValueError:
        raise UsageError(
            f"prompt_color: {text!r} is not a valid color", "write it like '#ff5f5f' or '#ff5f5f bold'"
        ) from None
