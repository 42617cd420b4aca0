"""The command to suggest for a statement that was left running, if the service will still know it."""

from __future__ import annotations

from sqlshell.shell.session import Session


def fetch_command(session: Session, statement_id: str, *, can_refetch: bool, purpose: str) -> str:
    """The command that fetches a result later, with its `purpose`; "" if no command can.

    `can_refetch` says whether the service keeps results. The embedded service stops when its shell or script ends.
    """
    if not (can_refetch and statement_id) or (session.embedded and not session.interactive):
        return ""
    command = "\\fetch" if session.interactive else "sqlshell fetch"
    return f"{command} {statement_id} {purpose}"
