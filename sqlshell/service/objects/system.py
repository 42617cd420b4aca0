"""The system relations `deltastream.sys.…`, refreshed before a statement that names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from sqlshell.service.engines.engine import SYSTEM_DATABASE, LocalEngine
from sqlshell.service.objects.kinds import KINDS
from sqlshell.service.objects.result_rows import Facts, listed
from sqlshell.service.objects.scope import Scope
from sqlshell.service.organizations.sessions import Session

NAME = SYSTEM_DATABASE

_KINDS = {kind.plural: kind for kind in KINDS if kind.relation}

COLUMNS: Mapping[str, Sequence[tuple[str, str]]] = {
    name: [(column.name, column.type) for column in kind.relation] for name, kind in _KINDS.items()
}
"""The columns of all relations: names and interface types."""


def publish(session: Session, sql: str, queries: Callable[[], list[Facts]]) -> None:
    """Refresh the system relations that a statement may read. In a thread. Raises Failure.

    `queries` returns the facts about the latest statements. Every role may read the relations, so that they
    do not contain the texts of statements.
    """
    scope, low = Scope(session.organization, role=session.role), sql.lower()
    # A statement that names none of them may read them through a list of relations or dynamic SQL.
    named = {name for name in _KINDS if name in low} or {name for name, kind in _KINDS.items() if not kind.costly}
    cast(LocalEngine, session.organization.engine).publish(
        {
            name: listed(_KINDS[name].relation, queries() if name == "queries" else _KINDS[name].facts(scope))
            for name in sorted(named)
        }
    )
