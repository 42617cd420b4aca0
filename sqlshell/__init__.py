"""sqlshell: the SQL shell for statement-execution services. For programs: `connect()` and `aconnect()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlshell.version import __version__ as __version__

if TYPE_CHECKING:
    from sqlshell.dbapi import aconnect as aconnect
    from sqlshell.dbapi import connect as connect


def __getattr__(name: str) -> Any:
    """Import what programs use when it is used: the shell starts without it."""
    if name in {"connect", "aconnect"}:
        from sqlshell import dbapi

        return getattr(dbapi, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
