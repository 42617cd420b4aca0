"""Records as the interface answers them."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from sqlshell.interface import sqlstate
from sqlshell.interface.models import Metadata, PartitionInfo, StatementResponse
from sqlshell.service.body import BadRequest
from sqlshell.service.dataplane import DataPlane
from sqlshell.service.engines.engine import Failure
from sqlshell.service.pages import Pages
from sqlshell.service.records import Record


class Answers:
    """Makes responses of records."""

    def __init__(self, pages: Pages, plane: DataPlane) -> None:
        self._pages = pages
        self._plane = plane

    async def one(
        self, record: Record, partition: int, timezone: str, request: Request, *, by_plane: bool = False
    ) -> Response:
        """A record: status while it runs, failure, or a result set with one partition.

        `by_plane` says that the request came to the data plane. Raises BadRequest for a partition out of range.
        """
        head = StatementResponse(
            sql_state=record.state,
            message=record.message or None,
            statement_id=record.statement_id,
            created_on=int(record.created),
            metadata=Metadata(context=record.context),
        )
        if record.running and record.feed is not None:
            head.sql_state = sqlstate.DONE
            asked = self._plane.streaming(record, request)
            head.metadata = Metadata(encoding="json", columns=[], dataplane_request=asked, context=record.context)
            return json_response(msgspec.json.encode(head))
        if record.running:
            head.message = "the statement is running" if record.started else "the statement waits"
            connection = record.connection
            head.progress = connection.progress() if connection is not None else None
            return json_response(msgspec.json.encode(head), 202)
        outcome = record.outcome
        if outcome is None or sqlstate.failed(record.state):
            # Clients with strict models want these members of a failed statement too.
            head.metadata = Metadata(encoding="json", partition_info=[], columns=[], context=record.context)
            return json_response(msgspec.json.encode(head))
        counts = record.spool.layout.counts
        if outcome.secret:
            counts = [1]
        if partition >= len(counts):
            raise BadRequest(f"partitionID: {partition} is out of range, there are {len(counts)} partitions")
        metadata = head.metadata = Metadata(
            encoding="json",
            partition_info=[PartitionInfo(count) for count in counts],
            columns=outcome.columns or [],
            context=record.context,
        )
        if outcome.columns and not outcome.secret and not by_plane and self._plane.wants(record):
            metadata.dataplane_request = self._plane.result_set(record, request)
            return json_response(msgspec.json.encode(head))
        if outcome.secret:
            # Shown once: the record forgets it with this answer.
            name = [record.sql.split()[2].strip('"'), outcome.secret]
            rows = msgspec.json.encode(name)
            record.outcome = None
        else:
            try:
                rows = await self._pages.partition(record, partition, timezone)
            except (OSError, Failure) as error:
                raise BadRequest(f"the result cannot be read: {error}", 500) from error
        response = json_response(msgspec.json.encode(head)[:-1] + b',"data":[' + rows + b"]}")
        # Which partition this is, for a client that wants to know that it has the one that it asked for.
        path = request.url.path.rstrip("/") if request.method == "GET" else f"/v2/statements/{record.statement_id}"
        response.headers["Content-Location"] = f"{path}?partitionID={partition}"
        return response


def several(records: list[Record]) -> Response:
    """The answer to several statements: their ids, and how far they are as a whole."""
    failed = next((record for record in records if sqlstate.failed(record.state)), None)
    running = failed is None and any(record.running and record.feed is None for record in records)
    first = records[0]
    head = StatementResponse(
        sql_state=sqlstate.RUNNING if running else failed.state if failed else sqlstate.DONE,
        message=failed.message if failed else None,
        statement_id=first.statement_id,
        statement_ids=[record.statement_id for record in records],
        created_on=int(first.created),
        metadata=Metadata(context=records[-1].context),
    )
    return json_response(msgspec.json.encode(head), 202 if running else 200)


def json_response(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/json")


def message(text: str, status: int, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode({"message": text}), status, headers, "application/json")
