"""The bodies of the interface as msgspec structs.

The specification marks `sqlState`, `statementID` and `createdOn` as required and the rest as optional; running
services leave out more and send null for what they leave out, so that every field here has a default. Unknown fields
are ignored.
"""

from __future__ import annotations

from typing import Any

import msgspec

Rows = list[list[str | None]]

MADE = ("type", "name", "command", "summary", "path")
"""The columns of the row that tells what a statement made."""


class Model(msgspec.Struct, omit_defaults=True, rename="camel"):
    """A body of the interface: camelCase on the wire, defaults left out."""


class Parameters(Model):
    """`parameters` of a request. `row_limit` is an extra of the embedded service alone."""

    timezone: str | None = None
    session_id: str | None = msgspec.field(default=None, name="sessionID")
    row_limit: int | None = None


class StatementRequest(Model):
    """The part `request` of POST /v2/statements.

    `statements` and `on_error` ("stop" or "continue") belong to the extension `batch`, and stand in the place of
    `statement`.
    """

    statement: str = ""
    organization: str | None = None
    role: str | None = None
    database: str | None = None
    schema: str | None = None
    store: str | None = None
    compute_pool: str | None = None
    parameters: Parameters | None = None
    statements: list[str] | None = None
    on_error: str | None = None


class PartitionInfo(Model, omit_defaults=False):
    row_count: int = 0


class ColumnInfo(Model):
    name: str | None = None
    type: str | None = None
    nullable: bool | None = None
    display_hint: str | None = msgspec.field(default=None, name="display_hint")


class DataplaneRequest(Model):
    token: str | None = None
    uri: str | None = None
    statement_id: str | None = msgspec.field(default=None, name="statementID")
    query_id: str | None = msgspec.field(default=None, name="queryID")
    request_type: str | None = None


class ContextEcho(Model):
    """`metadata.context`: what the statement ran in. A field that is missing says nothing about that part.

    `transaction` is the local service's own: "open" or "failed" while the session has a transaction.
    """

    organization_id: str | None = msgspec.field(default=None, name="organizationID")
    role_name: str | None = None
    database_name: str | None = None
    schema_name: str | None = None
    store_name: str | None = None
    compute_pool_name: str | None = None
    transaction: str | None = None
    timezone: str | None = None
    """The session's time zone: an extra of services where SET TimeZone changes it, such as the local one."""


class Metadata(Model):
    encoding: str | None = None
    partition_info: list[PartitionInfo] | None = None
    columns: list[ColumnInfo] | None = None
    dataplane_request: DataplaneRequest | None = None
    context: ContextEcho | None = None


class StatementHead(Model):
    """A statement response without its rows: cheap to decode, however large the body."""

    sql_state: str | None = None
    message: str | None = None
    statement_id: str | None = msgspec.field(default=None, name="statementID")
    statement_ids: list[str] | None = msgspec.field(default=None, name="statementIDs")
    created_on: int | float | None = None
    metadata: Metadata | None = None
    progress: float | None = None
    """Share done, 0 to 1: an extra of services that can tell, such as the local one."""
    elapsed: float | None = None
    """Seconds that the statement itself took: an extra of the answers in a batch."""


class StatementResponse(StatementHead):
    """The whole answer of POST /v2/statements and GET /v2/statements/{statementID}."""

    data: Rows | None = None


class BatchResponse(Model):
    """The answer to a batch. Each of `statements` is the answer of one statement that was begun, in order; those that
    are missing from an answer that is not 03000 did not run."""

    sql_state: str | None = None
    message: str | None = None
    statement_id: str | None = msgspec.field(default=None, name="statementID")
    statements: list[msgspec.Raw] | None = None


class StatementData(Model):
    """The rows of an answer alone."""

    data: Rows | None = None


class Version(Model, omit_defaults=False):
    major: int = 0
    minor: int = 0
    patch: int = 0


class ErrorBody(Model):
    """The body of an answer that is not 200 or 202. `message` is any JSON, for proxies answer as they like."""

    message: Any = None
    trace_id: Any = msgspec.field(default=None, name="traceID")
