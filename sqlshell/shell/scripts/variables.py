"""The variables of a shell: what \\set, \\gset and --set made, and what each statement leaves behind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from sqlshell.errors import ShellError, UsageError
from sqlshell.interface.sqlstate import DONE
from sqlshell.origin import Own, Text, mine, theirs
from sqlshell.shell.session import Session

SWITCHES = {"on": True, "true": True, "1": True, "yes": True, "off": False, "false": False, "0": False, "no": False}
KEPT = frozenset({"LAST_STATEMENT_ID", "ROW_COUNT", "SQLSTATE", "ERROR", "ELAPSED", "LAST_ERROR_MESSAGE"})
"""What each statement sets."""
OPTIONS = ("ON_ERROR_STOP", "ECHO", "QUIET")
"""Variables that are options of the shell."""
CONTROL = frozenset({*OPTIONS, *KEPT, "SHELL_ERROR", "SHELL_EXIT_CODE"})
"""Names that a service never sets by a column's name: they are the shell's own, and scripts decide by them."""
_STATE = re.compile(r"[0-9A-Z]{5}")


class Variables(Mapping[str, Text]):
    """Names and texts, with where these came from; those of OPTIONS are the shell's own options, as in psql."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._values: dict[str, Text] = {}

    def __getitem__(self, name: str) -> Text:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def set(self, name: Own, value: Text) -> None:
        """Raises UsageError for a name or a value that is not allowed."""
        _check(name)
        if name in OPTIONS:
            self._choose(name, value.own(f"the value of {name}"))
        self._values[name] = value
        self._session.keeping.note(value.text, name)

    def receive(self, rows: Mapping[str, str | None]) -> None:
        """Variables whose names and values a service gave; None unsets one.

        Raises UsageError for a name that is not allowed or that is the shell's own; then none is set.
        """
        check_received(rows)
        for name, value in rows.items():
            if value is None:
                self._values.pop(name, None)
            else:
                self._values[name] = theirs(value, f":{name}")
                self._session.keeping.note(value, name)

    def unset(self, name: Own) -> None:
        self._values.pop(name, None)
        if name == "ON_ERROR_STOP":
            self._session.options.on_error = "continue"

    def given(self, text: Own) -> None:
        """One `NAME=VALUE` of the command line; `NAME` alone is empty. Raises UsageError."""
        name, _, value = text.partition("=")
        if name.isdecimal():
            raise UsageError(f"--set {text}: {name!r} is not a valid variable name", "example: --set limit=5")
        self.set(Own(name), mine(Own(value)))

    def fill(self, sql: Text) -> Text:
        """The statement with its variables' values."""
        if not self._values:
            return sql
        from sqlshell.sql.variables import substituted

        return substituted(sql, self._values)

    def ended(self, error: ShellError | None) -> None:
        """What the last statement left behind. Numbers and codes are checked; all else is the service's."""
        session = self._session
        failed = error is not None
        statement_id = (error.where.statement_id if error is not None else "") or session.state.last_id
        state = (error.where.sql_state or "XX000") if error is not None else DONE
        self._values |= {
            "LAST_STATEMENT_ID": theirs(statement_id, ":LAST_STATEMENT_ID"),
            "ROW_COUNT": mine(Own(str(0 if failed else session.rows or 0))),
            "SQLSTATE": mine(Own(state)) if _STATE.fullmatch(state) else theirs(state, ":SQLSTATE"),
            "ERROR": mine(Own("true" if failed else "false")),
            "ELAPSED": mine(Own(f"{session.elapsed or 0.0:.3f}")),
        }
        if error is not None:
            message = next(iter(error.message.splitlines()), "")
            self._values["LAST_ERROR_MESSAGE"] = theirs(message, ":LAST_ERROR_MESSAGE")

    def _choose(self, name: str, value: Own) -> None:
        options = self._session.options
        match name:
            case "ON_ERROR_STOP":
                options.on_error = "stop" if switch(value or "on", name) else "continue"
            case "QUIET":
                options.quiet = switch(value or "on", name)
            case "ECHO":
                if value not in {"none", "queries", "all", "errors"}:
                    raise UsageError(f"ECHO: invalid value {value!r}", "expected none, queries or all")
                options.echo = value in {"queries", "all"}


def check_received(names: Iterable[str]) -> None:
    """Raises UsageError where one is not allowed, or is the shell's own."""
    for name in names:
        _check(name)
        if name in CONTROL:
            raise UsageError(
                f"column {name} has the name of a variable of the shell; nothing was set",
                "add a prefix with \\gset PREFIX",
            )


def _check(name: str) -> None:
    if not name or not all(char.isalnum() or char == "_" for char in name):
        raise UsageError(f"{name!r} is not a valid variable name", "a name consists of letters, digits and underscores")


def switch(text: str, name: str) -> bool:
    """on or off, in psql's words and their beginnings. Raises UsageError."""
    word = text.strip().lower()
    for known, value in SWITCHES.items():
        if word == known or (word and known.startswith(word) and word not in {"o"}):
            return value
    raise UsageError(f"{name}: invalid value {text!r}; expected true or false (on, off, 1, 0)")
