"""The policy for statements: read_only refuses statements that write, confirm asks before some are sent.

It protects a user from mistakes. Only the service can enforce permissions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from sqlshell.errors import UsageError
from sqlshell.text import nearest

if TYPE_CHECKING:
    from sqlshell.sql.analysis.effects import Effects
    from sqlshell.sql.analysis.lexed import Sql

TYPE_NAME = "type-name"
_EXPECTED = (
    "write kinds such as DROP, DROP TABLE, TRUNCATE, DELETE, DELETE WITHOUT WHERE, UPDATE WITHOUT WHERE, WRITE; "
    f'or only "{TYPE_NAME}", to be asked for every statement that writes'
)

SHOWN_LENGTH = 240
"""Maximum characters of a statement in the question."""


class Ask(Protocol):
    """Asks the user a question and returns the answer, "" for none. One of the `keys` answers it without Enter."""

    async def __call__(self, question: str, *, keys: str = "") -> str: ...


def check_patterns(patterns: Sequence[str], place: str) -> None:
    """Raises UsageError for a pattern that matches no statement, and so would protect nothing."""
    if not patterns or TYPE_NAME in patterns:
        return
    from sqlshell.sql.analysis.effects import is_pattern, nearest_pattern

    for pattern in patterns:
        if not is_pattern(pattern):
            near = "".join(nearest(pattern, [TYPE_NAME])) or nearest_pattern(pattern)
            hint = f'did you mean "{near}"?' if near else _EXPECTED
            raise UsageError(f"{place}: {pattern!r} is not a kind of statement", hint)


class Policy(Struct, frozen=True):
    """`name` is typed to confirm with confirm = "type-name": the profile's name, or the target's. `yes` confirms
    everything.

    `read_only_by` is the flag, variable or profile that sets read_only.
    """

    read_only: bool = False
    confirm: Sequence[str] = ()
    name: str = ""
    yes: bool = False
    read_only_by: str = "--read-only"

    async def check(self, sql: Sql, ask: Ask | None) -> None:
        """Raises UsageError if the policy does not allow the statement; `ask` is None in a script."""
        if not self.read_only and (not self.confirm or self.yes):
            return
        from sqlshell.sql.analysis.effects import effects

        listed = effects(sql)
        if self.read_only:
            writing = next((item for item in listed if item.writes), None)
            if writing is not None:
                reason = f"cannot run {writing.name}: {self.read_only_by} allows only statements that read"
                raise UsageError(reason, f"start without {self.read_only_by} to run it")
        if not self.confirm or self.yes:
            return
        met = next((item for item in listed if self._asked(item)), None)
        if met is None:
            return
        if ask is None:
            raise UsageError(f"{met.name} on {self._where} requires confirmation", "use --yes to confirm")
        if TYPE_NAME in self.confirm:
            answer = await ask(f"{met.name} on {self._where}. Type {self.name!r} to continue: ")
            agreed = answer.strip() == self.name
        else:
            import textwrap

            shown = textwrap.shorten(str(sql)[:SHOWN_LENGTH], 60, placeholder="…")
            answer = await ask(f"{met.name} on {self._where}: {shown}  Continue? [y/N] ")
            agreed = answer.strip().lower() in {"y", "yes"}
        if not agreed:
            raise UsageError("not confirmed; the statement was not sent")

    @property
    def _where(self) -> str:
        return self.name or "this service"

    def _asked(self, item: Effects) -> bool:
        if TYPE_NAME in self.confirm:
            return item.writes
        return any(item.matches(pattern) for pattern in self.confirm)
