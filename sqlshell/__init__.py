"""sqlshell: the SQL shell for statement-execution services.

For programs this is a module of DB-API 2.0 (PEP 249): `connect()`, the exceptions, types and constants of
`sqlshell.dbapi`, and `aconnect()` for asyncio.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from sqlshell.version import __version__ as __version__

if TYPE_CHECKING:
    from sqlshell.dbapi import *  # noqa: F403
else:

    def __getattr__(name: str) -> object:
        """Import the DB-API when a program uses it: the shell starts without it."""
        if name == "__all__" or not name.startswith("_"):
            dbapi = import_module("sqlshell.dbapi")
            if name == "__all__" or name in dbapi.__all__:
                return getattr(dbapi, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
