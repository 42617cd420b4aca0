"""The variables of a shell: what \\set, \\gset and --set made, and what each statement leaves behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlshell.errors import ShellError, UsageError
from sqlshell.interface.sqlstate import DONE
from sqlshell.shell.session import Session

SWITCHES = {"on": True, "true": True, "1": True, "yes": True, "off": False, "false": False, "0": False, "no": False}
KEPT = frozenset({"LAST_STATEMENT_ID", "ROW_COUNT", "SQLSTATE", "ERROR", "ELAPSED", "LAST_ERROR_MESSAGE"})
"""What each statement sets."""


class Variables(Mapping[str, str]):
    """Names and texts. `ON_ERROR_STOP`, `ECHO` and `QUIET` are the shell's own options, as in psql."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._values: dict[str, str] = {}
        self._foreign: set[str] = set()

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def set(self, name: str, value: str, *, foreign: bool = False) -> None:
        """`foreign` is what came from a service. Raises UsageError for a name or a value that is not allowed."""
        if not name or not all(char.isalnum() or char == "_" for char in name):
            raise UsageError(
                f"{name!r} is not a valid variable name", "a name consists of letters, digits and underscores"
            )
        options = self._session.options
        match name:
            case "ON_ERROR_STOP":
                options.on_error = "stop" if switch(value or "on", name) else "continue"
            case "QUIET":
                options.quiet = switch(value or "on", name)
            case "ECHO":
                if value not in {"none", "queries", "all", "errors"}:
                    raise UsageError(f"ECHO is none, queries or all, not {value!r}")
                options.echo = value in {"queries", "all"}
        self._values[name] = value
        (self._foreign.add if foreign else self._foreign.discard)(name)

    def unset(self, name: str) -> None:
        self._values.pop(name, None)
        if name == "ON_ERROR_STOP":
            self._session.options.on_error = "continue"

    def given(self, text: str) -> None:
        """One `NAME=VALUE` of the command line; `NAME` alone is empty. Raises UsageError."""
        name, _, value = text.partition("=")
        if name.isdecimal():
            raise UsageError(f"--set {text}: {name!r} is not a name", "write it like --set limit=5")
        self.set(name, value)

    def fill(self, sql: str) -> tuple[str, bool]:
        """The statement with its variables' values, and whether all of its text is the person's own."""
        if not self._values:
            return sql, True
        from sqlshell.sql.variables import substituted

        text, used = substituted(sql, self._values)
        return text, not used & self._foreign

    def ended(self, error: ShellError | None) -> None:
        """What the last statement left behind."""
        session = self._session
        failed = error is not None
        told = {
            "LAST_STATEMENT_ID": (error.where.statement_id if error is not None else "") or session.last_id,
            "ROW_COUNT": str(0 if failed else session.rows or 0),
            "SQLSTATE": (error.where.sql_state or "XX000") if error is not None else DONE,
            "ERROR": "true" if failed else "false",
            "ELAPSED": f"{session.elapsed or 0.0:.3f}",
        }
        if error is not None:
            told["LAST_ERROR_MESSAGE"] = next(iter(error.message.splitlines()), "")
        self._values.update(told)
        self._foreign.update(told)


def switch(text: str, name: str) -> bool:
    """on or off, in psql's words and their beginnings. Raises UsageError."""
    word = text.strip().lower()
    for known, value in SWITCHES.items():
        if word == known or (word and known.startswith(word) and word not in {"o"}):
            return value
    raise UsageError(f"{name} takes true or false (on, off, 1, 0), not {text!r}")
