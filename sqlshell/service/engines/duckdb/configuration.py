"""Settings of a session: which are not allowed, and which need special handling."""

from __future__ import annotations

import re
import zoneinfo
from typing import Final

import duckdb

from sqlshell.interface import sqlstate
from sqlshell.service.failure import Failure
from sqlshell.sql.identifiers import literal

SESSION_SETTINGS: Final = ("TimeZone", "enable_progress_bar", "enable_progress_bar_print", "search_path", "schema")
"""Settings that a session may change although the instance's configuration is locked."""

_FIRST: Final = frozenset({"set", "reset", "pragma", "call"})
_SCOPES: Final = frozenset({"global", "session", "local"})
_OFF: Final = frozenset({"", "false", "off", "0", "no", "default", "no_output", "null"})
_TOKEN: Final = re.compile(r"""--[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/|'(?:[^']++|'')*+'|"(?:[^"]++|"")*+"|\w++|\S""")
_HEAD: Final = 4000
"""The first characters of a statement, in which a setting's name and value are searched."""

_PRINTS: Final = {
    "enable_progress_bar_print": "the progress bar",
    "enable_print_progress_bar": "the progress bar",
    "enable_profiling": "the profile",
    "enable_profile": "the profile",
    "enable_logging": "the log",
    "logging_storage": "the log",
}
"""Settings, pragmas and functions that make the engine print, and what it prints."""


_INSTEAD: Final = {
    "the profile": "use EXPLAIN ANALYZE, or set profiling_output to a .txt file first",
    "the log": "use storage 'memory' or 'file'",
}


class Setting:
    """The subject of a SET, RESET, PRAGMA or CALL: the setting's `name` in lower case, its `value` in lower case."""

    def __init__(self, sql: str) -> None:
        words = _TOKEN.findall(sql[:_HEAD])
        tokens = [item.strip("'\"").lower() for item in words if not item.startswith(("--", "/*"))]
        self.verb = tokens[0] if tokens and tokens[0] in _FIRST else ""
        rest = tokens[1:] if self.verb else []
        self.is_global = bool(rest) and rest[0] == "global"
        if len(rest) > 1 and rest[0] in _SCOPES:
            rest = rest[1:]
        if rest[:2] == ["time", "zone"]:
            rest = ["timezone", *rest[2:]]
        self.name = rest[0] if rest else ""
        self.rest = rest[1:]
        self.value = next((item for item in self.rest if item not in {"=", "to", "(", ")", ";"}), "")

    @property
    def resets_zone(self) -> bool:
        return self.name == "timezone" and (self.verb == "reset" or self.value == "default")

    @property
    def locks(self) -> bool:
        return self.verb == "set" and self.name == "lock_configuration" and self.value not in _OFF


def check_setting(connection: duckdb.DuckDBPyConnection, setting: Setting) -> None:
    """Raises Failure for a setting that would have no effect, or would write to the program's own output."""
    if setting.is_global and setting.name == "timezone":
        message = "SET GLOBAL TimeZone is not supported: each session has its own time zone; use SET TimeZone"
        raise Failure(sqlstate.UNSUPPORTED, message)
    printed = _PRINTS.get(setting.name)
    if printed is None or setting.verb == "reset" or not _prints(connection, setting):
        return
    cause = f"{setting.name} would write {printed} to the standard output of the service"
    hint = _INSTEAD.get(printed)
    raise Failure(sqlstate.UNSUPPORTED, f"{cause}; {hint}" if hint else cause)


def _prints(connection: duckdb.DuckDBPyConnection, setting: Setting) -> bool:
    match setting.name:
        case "enable_logging" | "logging_storage":
            return "stdout" in setting.rest
        case "enable_profiling" | "enable_profile":
            if (setting.verb == "set" and setting.value in _OFF) or "save_location" in setting.rest:
                return False
            rows = connection.execute("SELECT current_setting('profiling_output')").fetchall()
            return not rows[0][0]
        case "enable_progress_bar_print":
            return setting.value not in _OFF
    return True


def keep_unlocked(connection: duckdb.DuckDBPyConnection) -> None:
    """Exempt session settings before the configuration is locked. Raises duckdb.Error."""
    rows = connection.execute("SELECT current_setting('allowed_configs')").fetchall()
    kept = [*(str(item) for item in rows[0][0] or ()), *SESSION_SETTINGS]
    connection.execute(f"SET allowed_configs = [{', '.join(literal(name) for name in dict.fromkeys(kept))}]")


def is_zone(name: str) -> bool:
    """Whether Python knows a time zone of this name; the engine knows some more."""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
