"""Templates of prompt, toolbar and title: `{bold}{database}{/}.{schema}> `. Names from a service are made safe to
print.
"""

from __future__ import annotations

from sqlshell.humanize import duration, one_line
from sqlshell.shell.interactive.look.context_line import LONGEST_NAME, short
from sqlshell.shell.options import FIELD, STYLE
from sqlshell.shell.session import Session

MOST_READ = 1 << 16
"""Characters of a statement that are searched for secrets."""
DEFAULT_TITLE = "{statement} - {target}"
NO_TITLE = "off"


def fragments(template: str, session: Session) -> list[tuple[str, str]]:
    """The current template as (style, text) pairs."""
    parts = STYLE.split(template)
    looks = ["", *("" if look == "/" else look for look in parts[1::2])]
    return [(look, filled(text, session)) for look, text in zip(looks, parts[::2], strict=True) if text]


def filled(template: str, session: Session) -> str:
    """The current text of the template without styles; fields that are not set are empty."""
    return FIELD.sub(lambda match: short(_value(match[1], session)), STYLE.sub("", template))


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
