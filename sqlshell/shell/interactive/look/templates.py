"""Templates of prompt, toolbar and title: `{bold}{database}{/}.{schema}> `. Names from a service are made safe to
print.
"""

from __future__ import annotations

import re

from sqlshell.errors import UsageError
from sqlshell.humanize import duration, one_line
from sqlshell.shell.interactive.look.context_line import LONGEST_NAME, short
from sqlshell.shell.session import Session

MOST_READ = 1 << 16
"""Characters of a statement that are searched for secrets."""
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
    "readonly",
    "statement",
)
"""Names that are valid in braces."""

DEFAULT_TITLE = "{statement} - {target}"
NO_TITLE = "off"

TEMPLATES = ("prompt", "rprompt", "toolbar", "title")
"""The settings that are templates."""

_LOOK = r"(?:(?:bg:)?#[0-9a-fA-F]{6}|bold|italic|underline|reverse)"
_STYLE = re.compile(rf"\{{(/|{_LOOK}(?: {_LOOK})*)\}}")
"""A style in braces, `{#ff8800 bold}`: it applies until the next one; `{/}` ends it."""
_FIELD = re.compile(r"\{([^{}]*)\}")


def checked(setting: str, template: str) -> str:
    """The template. Raises UsageError for an unknown field or an invalid style."""
    for name in _FIELD.findall(_STYLE.sub("", template)):
        if name not in NAMES:
            styles = "styles: {bold}, {#ff8800}, {bg:#003355 italic}, and {/} to end a style"
            raise UsageError(f"{setting}: unknown field {{{name}}}", f"fields: {', '.join(NAMES)}; {styles}")
    return template


def checked_color(text: str) -> str:
    """The color of a prompt. Raises UsageError for an invalid style."""
    from prompt_toolkit.styles import Style

    try:
        Style([("prompt", text)])
    except ValueError:
        raise UsageError(
            f"prompt_color: {text!r} is not a valid color", "write it like '#ff5f5f' or '#ff5f5f bold'"
        ) from None
    return text


def fragments(template: str, session: Session) -> list[tuple[str, str]]:
    """The current template as (style, text) pairs."""
    parts = _STYLE.split(template)
    looks = ["", *("" if look == "/" else look for look in parts[1::2])]
    return [(look, filled(text, session)) for look, text in zip(looks, parts[::2], strict=True) if text]


def filled(template: str, session: Session) -> str:
    """The current text of the template without styles; fields that are not set are empty."""
    return _FIELD.sub(lambda match: short(_value(match[1], session)), _STYLE.sub("", template))


def _value(field: str, session: Session) -> str:
    context = session.context
    match field:
        case "organization" | "role" | "database" | "schema" | "store" | "timezone":
            return str(getattr(context, field))
        case "pool":
            return context.compute_pool
        case "session":
            return context.session_id[:8]
        case "target":
            return session.target
        case "elapsed":
            return duration(session.elapsed) if session.elapsed is not None else ""
        case "jobs":
            jobs = session.state.background.running_count
            return f"{jobs} running" if jobs else ""
        case "transaction":
            return session.transaction.mark
        case "readonly":
            return "read-only" if session.connection.policy.read_only else ""
        case "statement":
            return _statement(session)
    return ""


def _statement(session: Session) -> str:
    """The running statement, shortened and without its secrets; `sqlshell` if none is running."""
    running = session.running
    if running is None or not running.statement:
        return "sqlshell"
    text = str(running.statement)
    return one_line(session.redact(running.statement), LONGEST_NAME) if len(text) <= MOST_READ else f"{text[:8]}…"
