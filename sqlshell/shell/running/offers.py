"""What a person is offered to do about a statement that was left: only what the service will know."""

from __future__ import annotations

from sqlshell.shell.session import Session


def fetching(session: Session, statement_id: str, *, can_refetch: bool, does: str = "shows its result") -> str:
    """The command that fetches a result later, with what it `does`; "" if no command can.

    `can_refetch` says whether the service keeps results. The embedded service stops when its shell or script ends.
    """
    if not (can_refetch and statement_id) or (session.embedded and not session.interactive):
        return ""
    command = "\\fetch" if session.interactive else "sqlshell fetch"
    return f"{command} {statement_id} {does}"
