"""Checks whether a name can be shown without being taken for another one."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Final

from sqlshell.service.failure import Failure

_UNSHOWN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories: control and format characters, halves of surrogate pairs, separators of lines."""

_SEARCHED: Final = (range(0x20000), range(0xE0000, 0xE1000))
"""Where these characters are: all other planes have none, and searching them takes a tenth of a second."""


@cache
def name_pattern() -> str:
    """A regular expression for the texts that check_name() accepts, in the syntax of JSON Schema."""
    unshown = [code for part in _SEARCHED for code in part if unicodedata.category(chr(code)) in _UNSHOWN - {"Cs"}]
    begins = [code for code, before in zip(unshown, [-2, *unshown], strict=False) if code != before + 1]
    ends = [code for code, after in zip(unshown, [*unshown[1:], -2], strict=True) if code != after - 1]
    ranges = "".join(f"{chr(begin)}-{chr(end)}" for begin, end in zip(begins, ends, strict=True))
    shown, ending = f"[^{ranges}]", rf"[^\s{ranges}]"
    return f"^(?:{ending}(?:{shown}*{ending})?)?$"


def check_name(name: str) -> None:
    """Raises Failure (42602) for a name that could be shown as another one, such as the operator's."""
    why = ""
    if name != name.strip():
        why = "blanks at its beginning or end are not allowed"
    elif not name.isascii() or not name.isprintable():
        unshown = next((sign for sign in name if unicodedata.category(sign) in _UNSHOWN), "")
        why = f"the invisible character U+{ord(unshown):04X} is not allowed" if unshown else ""
    if why:
        raise Failure("42602", f"{name[:80]!r} is not a valid name: {why}")
