"""The expected outcomes of clients' calls and commands, for the tests and for clients.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Expected(NamedTuple):
    """An expected outcome. `note` is the reason of a refusal, or the bug in the client and its place."""

    word: str
    state: str = "00000"
    value: Any = None
    note: str = ""


class Row(NamedTuple):
    command: str
    expected: Expected


def works(value: Any = None, note: str = "") -> Expected:
    """The call works as the client documents it. `value` is compared by holds()."""
    return Expected("works", "00000", value, note)


def refused(note: str, state: str = "0A000") -> Expected:
    """The service refuses the call; `note` is the reason."""
    return Expected(f"refused, {state}", state, None, note)


def fault(note: str, state: str = "") -> Expected:
    """The call fails because of a bug in the client; `note` begins with the place in its source."""
    return Expected("bug in the client", state, None, note)


def holds(found: Any, wanted: Any) -> bool:
    """Whether a value matches: a mapping must have the wanted keys, a list an item for each wanted one."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(holds(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and all(any(holds(item, one) for item in found) for one in wanted)
    return bool(found == wanted)


def table(rows: Sequence[Row]) -> str:
    """Rows as a Markdown table with a line for each command; equal outcomes are merged."""
    lines: dict[str, list[str]] = {}
    for command, expected in rows:
        message = expected.word + (f": {expected.note}" if expected.note else "")
        known = lines.setdefault(command, [])
        if message not in known:
            known.append(message)
    body = "".join(f"| `{command}` | {'; '.join(message)} |\n" for command, message in lines.items())
    return f"| command | |\n|---|---|\n{body}"
