"""The bodies of the interface as msgspec structs.

The specification requires `sqlState`, `statementID` and `createdOn`; the rest is optional. Running services omit more,
or send null, so every field here has a default. Unknown fields are ignored.
"""

from __future__ import annotations

from typing import Any

import msgspec

Rows = list[list[str | None]]

MADE = ("type", "name", "command", "summary", "path")
"""The columns of the row that describes what a statement created."""


PARQUET = "application/vnd.apache.parquet"
"""The media type of a whole result, in the extension `whole-result`."""

COLUMNS_KEY = "columns"
"""The key of a Parquet file's metadata that holds the result's columns: a JSON array of ColumnInfo."""

INSTANTS_KEY = "instants"
"""The key of the numbers of the columns whose values are or contain instants: a JSON array, counted from 0."""


MINIMAL = "return=minimal"
"""The preference (RFC 7240) of a client that reads a large result from its file: responses to submissions and lookups
may leave out its first rows."""

ENGINE_TYPES = "engine-types"
"""The preference (header Prefer) of a client that wants the engine's types of columns too."""


class Model(msgspec.Struct, omit_defaults=True, rename="camel"):
    """A body of the interface: camelCase on the wire, defaults omitted."""


class Parameters(Model):
    """`parameters` of a request. `row_limit` is an extension of the embedded service.

    `transaction` is one of the local service: the transaction of its session that the client knows of, as in
    ContextEcho. A service that had to begin the session anew runs nothing until a ROLLBACK.
    """

    timezone: str | None = None
    session_id: str | None = msgspec.field(default=None, name="sessionID")
    transaction: str | None = None
    row_limit: int | None = None


class StatementRequest(Model):
    """The part "request" of POST /v2/statements.

    `statements` and `on_error` ("stop" or "continue") belong to the extension `batch` and replace `statement`.
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
    engine_type: str | None = None
    """The engine's type, if it does not follow from `type`: an extension for requests that ask for ENGINE_TYPES."""


class DataplaneRequest(Model):
    token: str | None = None
    uri: str | None = None
    statement_id: str | None = msgspec.field(default=None, name="statementID")
    query_id: str | None = msgspec.field(default=None, name="queryID")
    request_type: str | None = None


class ContextEcho(Model):
    """`metadata.context`: the context that the statement ran in. A missing field says nothing about that part.

    `transaction` is an extension of the local service: "open" or "failed" while the session has a transaction.
    """

    organization_id: str | None = msgspec.field(default=None, name="organizationID")
    role_name: str | None = None
    database_name: str | None = None
    schema_name: str | None = None
    store_name: str | None = None
    compute_pool_name: str | None = None
    transaction: str | None = None
    timezone: str | None = None
    """The session's time zone: an extension of services in which SET TimeZone changes it, such as the local one."""


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
    """Progress from 0 to 1: an extension of services that report it, such as the local one."""
    elapsed: float | None = None
    """Seconds that the statement took: an extension for the responses to a batch."""


class StatementResponse(StatementHead):
    """The whole response to POST /v2/statements and GET /v2/statements/{statementID}."""

    data: Rows | None = None


class BatchResponse(Model):
    """The response to a batch. `statements` has the response of each statement that was started, in order. Statements
    that are missing from a final response (not 03000) did not run.
    """

    sql_state: str | None = None
    message: str | None = None
    statement_id: str | None = msgspec.field(default=None, name="statementID")
    statements: list[msgspec.Raw] | None = None


class StatementData(Model):
    """Only the rows of a response."""

    data: Rows | None = None


class Version(Model, omit_defaults=False):
    major: int = 0
    minor: int = 0
    patch: int = 0


class ErrorBody(Model):
    """The body of a response other than 200 or 202. `message` may be any JSON, because proxies send their own."""

    message: Any = None
    trace_id: Any = msgspec.field(default=None, name="traceID")
