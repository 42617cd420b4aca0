"""The function call that the cursor is in."""

from __future__ import annotations

import re

from sqlshell.sql.completion.signatures import MORE

_NAME = re.compile(r"([A-Za-z_]\w*)\s*\Z", re.ASCII)
_PAIRS = {")": 1, "]": 1, "}": 1, "(": -1, "[": -1, "{": -1}
_NAMED = re.compile(r"\[?(.*?(?:\[\])*+)\]*\[?")
"""A parameter without the brackets of the optional ones, which are beside it."""
MAX_CHARACTERS_BACK = 2000
"""Characters before the cursor that are looked at."""


def call_at(before: str) -> tuple[str, int] | None:
    """The name of the function whose arguments the text ends in, and the number of the argument, from 0."""
    before = before[-MAX_CHARACTERS_BACK:]
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
            match = _NAME.search(before, max(0, at - 64), at)
            return (match[1], argument) if match else None
        elif char == "," and depth == 0:
            argument += 1
        else:
            depth += _PAIRS.get(char, 0)
        at -= 1
    return None


def parameters(signature: str, argument: int) -> tuple[str, str, str]:
    """A signature such as `(string, start[, length]) -> VARCHAR` in three parts, of which the middle one is the
    parameter of that argument; the last one of `(value, ...)` stands for all further arguments.
    """
    if not signature.startswith("("):
        return signature, "", ""
    begun, places, depth = 1, list[tuple[int, int]](), 0
    for at, char in enumerate(signature):
        depth += (char == "(") - (char == ")")
        if not depth or (depth == 1 and signature.startswith(", ", at)):
            places.append((begun, at))
            begun = at + 2
            if not depth:
                break
    if places and signature[slice(*places[-1])] == MORE:
        argument = min(argument, len(places) - 1)
    if argument >= len(places):
        return signature, "", ""
    start, end = places[argument]
    match = _NAMED.fullmatch(signature, start, end)
    start, end = match.span(1) if match is not None else (start, end)
    return signature[:start], signature[start:end], signature[end:]
