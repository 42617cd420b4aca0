"""Checks whether a name can be shown without being taken for another one."""

from __future__ import annotations

import unicodedata
from typing import Final

from sqlshell.service.failure import Failure

_UNSHOWN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories: control and format characters, halves of surrogate pairs, separators of lines."""


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
