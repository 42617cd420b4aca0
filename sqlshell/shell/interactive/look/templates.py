"""Templates of prompt, toolbar and title: `{bold}{database}{/}.{schema}> `. What a service named is made safe."""

from __future__ import annotations

import re

from sqlshell.errors import UsageError
from sqlshell.output.text.cells import printable
from sqlshell.shell.results.humanize import duration
from sqlshell.shell.session import Session

LONGEST_NAME = 40
NAMES = (
    "organization",
    "role",
    "database",
    "schema",
    "store",
    "pool",
    "timezone",
    "session",
    "target",
    "elapsed",
    "jobs",
    "transaction",
)
"""What may stand in braces."""

TEMPLATES = ("prompt", "rprompt", "toolbar", "title")
"""The settings that are templates."""

_LOOK = r"(?:(?:bg:)?#[0-9a-fA-F]{6}|bold|italic|underline|reverse)"
_STYLE = re.compile(rf"\{{(/|{_LOOK}(?: {_LOOK})*)\}}")
"""A style in braces, `{#ff8800 bold}`: it holds until the next one, `{/}` ends it."""
_FIELD = re.compile(r"\{([^{}]*)\}")


def checked(setting: str, template: str) -> str:
    """The template. Raises UsageError for a name or a style that it does not know."""
    for name in _FIELD.findall(_STYLE.sub("", template)):
        if name not in NAMES:
            styles = "styles: {bold}, {#ff8800}, {bg:#003355 italic}, and {/} to end a style"
            raise UsageError(f"{setting}: unknown field {{{name}}}", f"fields: {', '.join(NAMES)}; {styles}")
    return template


def checked_color(text: str) -> str:
    """The color of a prompt. Raises UsageError for what is no style."""
    from prompt_toolkit.styles import Style

    try:
        Style([("prompt", text)])
    except ValueError:
        raise UsageError(f"color: {text!r} is not a valid color", "write it like '#ff5f5f' or '#ff5f5f bold'") from None
    return text


def fragments(template: str, session: Session) -> list[tuple[str, str]]:
    """The template now, as (style, text) pairs."""
    parts = _STYLE.split(template)
    looks = ["", *("" if look == "/" else look for look in parts[1::2])]
    return [(look, filled(text, session)) for look, text in zip(looks, parts[::2], strict=True) if text]


def filled(template: str, session: Session) -> str:
    """The template's text now, without its styles; what is not set is empty."""
    template = _STYLE.sub("", template)
    context = session.context
    jobs = session.state.background.running
    values = {
        "organization": context.organization,
        "role": context.role,
        "database": context.database,
        "schema": context.schema,
        "store": context.store,
        "pool": context.compute_pool,
        "timezone": context.timezone,
        "session": context.session_id[:8],
        "target": session.target,
        "elapsed": duration(session.elapsed) if session.elapsed is not None else "",
        "jobs": f"{jobs} running" if jobs else "",
        "transaction": session.transaction.mark,
    }
    return _FIELD.sub(lambda found: short(values.get(found[1], "")), template)


def short(text: str) -> str:
    """A name on one line, without what could steer a terminal."""
    safe = printable(text)
    return safe if len(safe) <= LONGEST_NAME else safe[: LONGEST_NAME - 1] + "…"
