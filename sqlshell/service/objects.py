"""The context objects that this service has: one organization, one role, one compute pool, no stores."""

from __future__ import annotations

from dataclasses import dataclass

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ContextEcho, StatementRequest
from sqlshell.service.engines.engine import Failure

ORGANIZATION_ID = "00000000-0000-4000-8000-00000000c0de"
ORGANIZATION = "local"
ROLE = "owner"
COMPUTE_POOL = "default"


@dataclass(slots=True)
class Parts:
    """The parts of a session's context that are not the engine's."""

    organization: str = ORGANIZATION_ID
    role: str = ROLE
    store: str = ""
    compute_pool: str = COMPUTE_POOL

    def use(self, kind: str, name: str) -> None:
        """Go to an object; `kind` is organization, role, store or compute_pool. Raises Failure for one unknown."""
        known = {
            "organization": ((ORGANIZATION_ID, ORGANIZATION), sqlstate.NO_ORGANIZATION),
            "role": ((ROLE,), sqlstate.NO_ROLE),
            "store": ((), sqlstate.NO_STORE),
            "compute_pool": ((COMPUTE_POOL,), sqlstate.NO_COMPUTE_POOL),
        }
        names, code = known[kind]
        if name not in names:
            raise Failure(code, f"{kind.replace('_', ' ')} {name!r} does not exist")
        if kind != "organization":
            setattr(self, kind, name)

    def adopt(self, request: StatementRequest) -> None:
        """Take what a request names. Raises Failure."""
        given = {
            "organization": request.organization,
            "role": request.role,
            "store": request.store,
            "compute_pool": request.compute_pool,
        }
        for kind, name in given.items():
            if name and name != getattr(self, kind):
                self.use(kind, name)

    def echo(self, database: str, schema: str) -> ContextEcho:
        return ContextEcho(
            organization_id=self.organization,
            role_name=self.role,
            database_name=database,
            schema_name=schema,
            store_name=self.store or None,
            compute_pool_name=self.compute_pool,
        )
