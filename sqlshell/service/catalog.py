"""The catalog: organizations, the objects that they own, and API tokens."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import Rights
from sqlshell.service.failure import Failure
from sqlshell.service.storage.storage import Duplicate, Storage

T = TypeVar("T")

ORGANIZATION_ID = "00000000-0000-4000-8000-00000000c0de"
ORGANIZATION = "local"
ROLES: Mapping[str, Rights] = {"owner": Rights.OBJECTS, "writer": Rights.DATA, "reader": Rights.READ}
NAMES_OF_ROLES: Mapping[str, Rights] = {**ROLES, "sysadmin": ROLES["owner"]}
"""The rights by every name of a role: `sysadmin`, which some clients send unless told otherwise, is another name of
`owner`."""

OPERATOR, ANONYMOUS = "operator", "anonymous"
"""The token IDs of callers without a token in the catalog: the operator, and anonymous users of legacy endpoints."""

TIDIED = 1000
"""Old timestamps of an organization are removed at the first note and after each further TIDIED notes."""

CODES: Mapping[str, tuple[str, str]] = {
    "organization": (sqlstate.NO_ORGANIZATION, sqlstate.DUPLICATE),
    "role": (sqlstate.NO_ROLE, sqlstate.DUPLICATE),
    "database": (sqlstate.NO_DATABASE, sqlstate.DUPLICATE_DATABASE),
    "schema": (sqlstate.NO_SCHEMA, sqlstate.DUPLICATE),
    "store": (sqlstate.NO_STORE, sqlstate.DUPLICATE_STORE),
    "compute_pool": (sqlstate.NO_COMPUTE_POOL, sqlstate.DUPLICATE_COMPUTE_POOL),
    "function_source": (sqlstate.NO_FUNCTION_SOURCE, sqlstate.DUPLICATE_FUNCTION_SOURCE),
    "descriptor_source": (sqlstate.NO_DESCRIPTOR_SOURCE, sqlstate.DUPLICATE),
    "stream": (sqlstate.NO_RELATION, sqlstate.DUPLICATE_RELATION),
    "changelog": (sqlstate.NO_RELATION, sqlstate.DUPLICATE_RELATION),
    "materialized_view": (sqlstate.NO_RELATION, sqlstate.DUPLICATE_RELATION),
    "entity": (sqlstate.INVALID_PARAMETER, sqlstate.DUPLICATE),
    "secret": (sqlstate.NO_SECRET, sqlstate.DUPLICATE_SECRET),
    "schema_registry": (sqlstate.NO_SCHEMA_REGISTRY, sqlstate.DUPLICATE_SCHEMA_REGISTRY),
    "function": (sqlstate.NO_FUNCTION, sqlstate.DUPLICATE_FUNCTION),
    "table": (sqlstate.NO_RELATION, sqlstate.DUPLICATE_RELATION),
}
DEFAULT_CODES = (sqlstate.NO_RELATION, sqlstate.DUPLICATE)
"""The sqlStates for a missing and for a duplicate object of each kind, and of others."""


def owning_role(role: str = "") -> str:
    """The role that owns created objects, the one that may create them: by the name by which `role` is it."""
    return role if NAMES_OF_ROLES.get(role) is Rights.OBJECTS else "owner"


def least_role() -> str:
    """The role with the fewest rights: the default for new tokens."""
    return min(ROLES, key=lambda role: ROLES[role])


class Caller(Struct, frozen=True):
    """The sender of a request: the token's ID, the token's organization ("" for all), and its roles.

    The first role is the initial one. `by_plane` says that the request came to the data plane, with a token of it.
    """

    token_id: str
    organization: str = ""
    roles: tuple[str, ...] = tuple(ROLES)
    by_plane: bool = False

    def has_role(self, name: str) -> bool:
        """Whether the token has a role, by this or another name of it. The role must exist."""
        return NAMES_OF_ROLES[name] in {NAMES_OF_ROLES[role] for role in self.roles}

    def may_see(self, organization: str) -> bool:
        return self.organization in {"", organization}

    def may_read(self, organization: str, owner: str) -> bool:
        """Whether this caller may read a statement that the token `owner` ran in an organization, and its result.

        `organization` is "" for a statement that belongs to no organization: it requires access to all of them.
        """
        may_all = any(NAMES_OF_ROLES[role] >= Rights.OBJECTS for role in self.roles)
        return self.may_see(organization) and (may_all or owner == self.token_id)


class Object(Struct, frozen=True):
    """A store, pool, database, stream or resource; `detail` depends on its kind. Times are seconds since 1970."""

    kind: str
    name: str
    detail: Mapping[str, Any]
    created: float
    updated: float
    """When it was last changed, or else created."""


class Catalog:
    """The named objects of the service. Methods raise Failure with the interface's sqlStates."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._noted: Counter[str] = Counter()
        """The number of notes for each organization since the start."""
        self.dropped: set[str] = set()
        """IDs of tokens dropped since the start; their statements are canceled and their responses cut off."""
        if not self.organizations():
            self._storage.write(
                "INSERT INTO organizations VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (ORGANIZATION_ID, ORGANIZATION, time.time()),
            )

    async def run_async(self, work: Callable[[], T]) -> T:
        """Do work that calls the catalog, while the event loop goes on if the storage is on another machine."""
        return await self._storage.run_async(work)

    def organizations(self) -> list[tuple[str, str]]:
        """Pairs of ID and name, the oldest first."""
        return [
            (row[0], row[1]) for row in self._storage.read("SELECT id, name FROM organizations ORDER BY created, id")
        ]

    def organization(self, given: str) -> str:
        """The ID of the organization with this ID or name. Raises Failure."""
        rows = self._storage.read("SELECT id FROM organizations WHERE id = lower(?) OR name = ?", (given, given))
        if not rows:
            raise missing("organization", given)
        return str(rows[0][0])

    def organization_name(self, organization: str) -> str:
        rows = self._storage.read("SELECT name FROM organizations WHERE id = ?", (organization,))
        return str(rows[0][0]) if rows else ""

    def organization_created(self, organization: str) -> float:
        rows = self._storage.read("SELECT created FROM organizations WHERE id = ?", (organization,))
        return float(rows[0][0]) if rows else 0.0

    def add_organization(self, name: str) -> str:
        organization_id = str(uuid.uuid4())
        taken = {text.lower() for row in self.organizations() for text in row}
        if name.lower() in taken:
            raise Failure(sqlstate.DUPLICATE, f'organization "{name}" already exists')
        try:
            self._storage.write("INSERT INTO organizations VALUES (?, ?, ?)", (organization_id, name, time.time()))
        except Duplicate:
            raise Failure(sqlstate.DUPLICATE, f'organization "{name}" already exists') from None
        return organization_id

    def drop_organization(self, organization: str) -> None:
        self._drop_tokens("organization = ?", organization)
        for table in ("objects", "statements"):
            self._storage.write(f"DELETE FROM {table} WHERE organization = ?", (organization,))
        self._storage.write("DELETE FROM organizations WHERE id = ?", (organization,))

    def objects(self, organization: str, kind: str) -> list[Object]:
        return self._objects("organization = ? AND kind = ? ORDER BY name", organization, kind)

    def find(self, organization: str, kind: str, name: str) -> Object | None:
        found = self._objects("organization = ? AND kind = ? AND name = ?", organization, kind, name)
        return found[0] if found else None

    def _objects(self, condition: str, *values: str) -> list[Object]:
        rows = self._storage.read(f"SELECT kind, name, detail, created, updated FROM objects WHERE {condition}", values)
        return [Object(kind, name, json.loads(text), made, changed or made) for kind, name, text, made, changed in rows]

    def get(self, organization: str, kind: str, name: str) -> Object:
        found = self.find(organization, kind, name)
        if found is None:
            raise missing(kind, name)
        return found

    def add(self, organization: str, kind: str, name: str, detail: Mapping[str, Any]) -> None:
        try:
            self._storage.write(
                "INSERT INTO objects VALUES (?, ?, ?, ?, ?, 0)",
                (organization, kind, name, json.dumps(detail), time.time()),
            )
        except Duplicate:
            raise duplicate(kind, name) from None

    def holds_sealed(self) -> bool:
        """Whether any object of any organization has an encrypted value."""
        asked = (
            "SELECT 1 FROM objects WHERE kind IN ('secret', 'schema_registry') AND detail LIKE '%\"sealed\"%' LIMIT 1"
        )
        return bool(self._storage.read(asked))

    def change(self, organization: str, kind: str, name: str, detail: Mapping[str, Any]) -> None:
        self._storage.write(
            "UPDATE objects SET detail = ?, updated = ? WHERE organization = ? AND kind = ? AND name = ?",
            (json.dumps(detail), time.time(), organization, kind, name),
        )

    def drop(self, organization: str, kind: str, name: str) -> None:
        if not self.forget(organization, kind, name):
            raise missing(kind, name)

    def note(self, organization: str, kind: str, name: str, most: int, *, again: bool = True) -> None:
        """Record the creation time of an object of the engine, which does not record it.

        At least the latest `most` times are kept. `again` replaces an earlier time of this name.
        """
        conflict = (
            "(organization, kind, name) DO UPDATE SET created = excluded.created, updated = 0"
            if again
            else "DO NOTHING"
        )
        values = (organization, kind, name, time.time())
        self._storage.write(f"INSERT INTO objects VALUES (?, ?, ?, '{{}}', ?, 0) ON CONFLICT {conflict}", values)
        self._noted[organization] += 1
        if self._noted[organization] % TIDIED == 1:
            self._storage.write(
                "DELETE FROM objects WHERE organization = ? AND kind = ? AND created < (SELECT created FROM objects "
                "WHERE organization = ? AND kind = ? ORDER BY created DESC LIMIT 1 OFFSET ?)",
                (organization, kind, organization, kind, most),
            )

    def note_change(self, organization: str, kind: str, name: str) -> None:
        self._storage.write(
            "UPDATE objects SET updated = ? WHERE organization = ? AND kind = ? AND name = ?",
            (time.time(), organization, kind, name),
        )

    def forget(self, organization: str, kind: str, name: str) -> bool:
        """Remove an object; returns whether it existed."""
        where = "organization = ? AND kind = ? AND name = ?"
        return bool(self._storage.write(f"DELETE FROM objects WHERE {where}", (organization, kind, name)))

    def new_token(self, organization: str, roles: Sequence[str], name: str = "") -> str:
        """Create a token and return its text; only a hash is stored. Raises Failure."""
        for role in roles:
            if role not in NAMES_OF_ROLES:
                raise missing("role", role)
        if name.lower() in {OPERATOR, ANONYMOUS}:
            raise Failure(sqlstate.DUPLICATE, f'the name "{name}" is reserved')
        text, token_id = secrets.token_urlsafe(32), str(uuid.uuid4())
        try:
            self._storage.write(
                "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?)",
                (digest(text), token_id, name or token_id[:8], organization, ",".join(roles), time.time()),
            )
        except Duplicate:
            raise Failure(sqlstate.DUPLICATE, f'API token "{name}" already exists') from None
        return text

    def tokens(self, organization: str) -> list[tuple[str, str]]:
        """Pairs of name and roles."""
        rows = self._storage.read(
            "SELECT name, roles FROM tokens WHERE organization = ? ORDER BY name", (organization,)
        )
        return [(row[0], row[1]) for row in rows]

    def owners(self, organization: str) -> dict[str, str]:
        """The names of an organization's tokens by ID."""
        rows = self._storage.read("SELECT id, name FROM tokens WHERE organization = ?", (organization,))
        return {row[0]: row[1] for row in rows}

    def drop_token(self, organization: str, name: str) -> bool:
        return self._drop_tokens("organization = ? AND name = ?", organization, name)

    def _drop_tokens(self, condition: str, *values: str) -> bool:
        gone = [row[0] for row in self._storage.read(f"SELECT id FROM tokens WHERE {condition}", values)]
        self._storage.write(f"DELETE FROM tokens WHERE {condition}", values)
        self.dropped.update(gone)
        return bool(gone)

    def holder(self, token_id: str) -> Caller | None:
        """The caller of the token with this ID, or None if it was dropped."""
        if token_id in {OPERATOR, ANONYMOUS}:
            return Caller(token_id)
        rows = self._storage.read("SELECT organization, roles FROM tokens WHERE id = ?", (token_id,))
        return Caller(token_id, rows[0][0], tuple(rows[0][1].split(","))) if rows else None

    def caller(self, token: str) -> Caller | None:
        """The caller of a token, or None. The lookup uses a hash, so that its timing reveals nothing about tokens."""
        wanted = digest(token)
        rows = self._storage.read("SELECT digest, id, organization, roles FROM tokens WHERE digest = ?", (wanted,))
        if not rows or not hmac.compare_digest(rows[0][0], wanted):
            return None
        return Caller(rows[0][1], rows[0][2], tuple(rows[0][3].split(",")))


def digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def missing(kind: str, name: str) -> Failure:
    state, _ = CODES.get(kind, DEFAULT_CODES)
    return Failure(state, f'{kind.replace("_", " ")} "{name}" does not exist')


def duplicate(kind: str, name: str) -> Failure:
    return Failure(duplicate_code(kind), f'{kind.replace("_", " ")} "{name}" already exists')


def duplicate_code(kind: str) -> str:
    """The sqlState for an object of a kind that exists already."""
    return CODES.get(kind, DEFAULT_CODES)[1]
