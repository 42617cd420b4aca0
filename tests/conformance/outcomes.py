"""What a call or command of a client is expected to come to: what the tests check, and docs/clients.md says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Expected(NamedTuple):
    """`note` says why something is refused, or what is wrong in the client and where."""

    word: str
    state: str = "00000"
    value: Any = None
    note: str = ""


class Row(NamedTuple):
    command: str
    expected: Expected


def works(value: Any = None, note: str = "") -> Expected:
    """It does what its maker says. `value` is compared by holds()."""
    return Expected("works", "00000", value, note)


def refused(note: str, state: str = "0A000") -> Expected:
    """The service says that it cannot do this, and why."""
    return Expected(f"refused, {state}", state, None, note)


def fault(note: str, state: str = "") -> Expected:
    """The client is at fault: `note` begins with a place of its source."""
    return Expected("fault of the client", state, None, note)


def holds(found: Any, wanted: Any) -> bool:
    """Whether a value has what is wanted of it: of a mapping the wanted keys, of a list an item for each wanted one."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(holds(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and all(any(holds(item, one) for item in found) for one in wanted)
    return bool(found == wanted)


def table(rows: Sequence[Row]) -> str:
    """Rows as Markdown, a line for each command: several that agree are one."""
    lines: dict[str, list[str]] = {}
    for command, expected in rows:
        said = expected.word + (f": {expected.note}" if expected.note else "")
        known = lines.setdefault(command, [])
        if said not in known:
            known.append(said)
    body = "".join(f"| `{command}` | {'; '.join(said)} |\n" for command, said in lines.items())
    return f"| command | |\n|---|---|\n{body}"
