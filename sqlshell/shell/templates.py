"""Templates of prompt, toolbar and title: `{database}.{schema}> `. What a service named is made safe to print."""

from __future__ import annotations

import re

from sqlshell.errors import UsageError
from sqlshell.output.cells import printable
from sqlshell.shell.session import Session
from sqlshell.shell.words import duration

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
)
"""What may stand in braces."""

_FIELD = re.compile(r"\{(\w*)\}")


def checked(setting: str, template: str) -> str:
    """The template. Raises UsageError for a name that it does not know."""
    for name in _FIELD.findall(template):
        if name not in NAMES:
            raise UsageError(f"{setting}: there is no {{{name}}}", f"known are {', '.join(NAMES)}")
    return template


def filled(template: str, session: Session) -> str:
    """The template's text now; what is not set is empty."""
    context = session.context
    jobs = session.jobs()
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
    }
    return _FIELD.sub(lambda found: short(values.get(found[1], "")), template)


def short(text: str) -> str:
    """A name on one line, without what could steer a terminal."""
    safe = printable(text)
    return safe if len(safe) <= LONGEST_NAME else safe[: LONGEST_NAME - 1] + "…"
