"""The function call that the cursor is in."""

from __future__ import annotations

import re

_NAME = re.compile(r"([A-Za-z_]\w*)\s*\Z", re.ASCII)
_PAIRS = {")": 1, "]": 1, "}": 1, "(": -1, "[": -1, "{": -1}
FARTHEST = 2000
"""Characters before the cursor that are looked at."""


def call_at(before: str) -> tuple[str, int] | None:
    """The name of the function whose arguments the text ends in, and the number of the argument, from 0."""
    before = before[-FARTHEST:]
    if before.count("'") % 2:
        before = before[: before.rindex("'")]
    depth = argument = 0
    at = len(before) - 1
    while at >= 0:
        char = before[at]
        if char in "'\"":
            # Doubled quotes are two texts next to each other.
            at = before.rfind(char, 0, at)
            if at < 0:
                return None
        elif char == ";" or (depth == 0 and char in "[{"):
            return None
        elif char == "(" and depth == 0:
            found = _NAME.search(before, max(0, at - 64), at)
            return (found[1], argument) if found else None
        elif char == "," and depth == 0:
            argument += 1
        else:
            depth += _PAIRS.get(char, 0)
        at -= 1
    return None


def parameters(signature: str, argument: int) -> tuple[str, str, str]:
    """A signature such as `(part, timestamp) -> DATE` in three parts, of which the middle one is the parameter."""
    inside, _, after = signature.partition(")")
    names = inside.removeprefix("(").split(", ")
    if not signature.startswith("(") or argument >= len(names):
        return signature, "", ""
    before = "".join(f"{name}, " for name in names[:argument])
    behind = "".join(f", {name}" for name in names[argument + 1 :])
    return f"({before}", names[argument], f"{behind}){after}"
