"""Translates failures of requests to the server into messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import duckdb
import grpc
import grpc.aio
import pyarrow as pa
from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.service.engines.duckdb.failures import failure as failure_of_duckdb
from sqlshell.service.engines.spark import failures, messages
from sqlshell.service.engines.spark.kept_session import KeptSession
from sqlshell.service.engines.spark.library import proto
from sqlshell.service.engines.spark.operation import Ended, Operation
from sqlshell.service.engines.spark.results import MissingFirstResponse
from sqlshell.service.failure import Failure


@asynccontextmanager
async def explained(kept: KeptSession, sql: str = "", running: Operation | None = None) -> AsyncIterator[None]:
    """Translate errors to Failure, those of the statement `sql` that `running` runs. A session that the server has lost
    is made again by the next request.
    """
    try:
        yield
    except (grpc.aio.AioRpcError, Ended, asyncio.CancelledError) as error:
        if running is not None and running.left:
            raise Failure(sqlstate.SESSION_LOST, "the statement was terminated because its session ended") from error
        if isinstance(error, asyncio.CancelledError):
            raise
        if running is not None and running.canceled:
            raise canceled() from error
        if isinstance(error, Ended):
            kept.lose()
            raise failures.session_lost() from error
        raise await _explanation(error, kept, sql, running) from error
    except MissingFirstResponse as error:
        message = "the server no longer has the first rows of the result; run the statement again"
        raise Failure(sqlstate.SESSION_LOST, message) from error
    except duckdb.Error as error:
        raise failure_of_duckdb(error) from error
    except pa.ArrowException as error:
        raise Failure(sqlstate.INTERNAL, f"cannot read the rows that the server sent: {error}") from error


def canceled() -> Failure:
    return Failure(sqlstate.CANCELED, "the statement was canceled")


async def _explanation(error: grpc.aio.AioRpcError, kept: KeptSession, sql: str, running: Operation | None) -> Failure:
    details = failures.details_of(error)
    if details.error_id and (messages.cut_off(details.message) or not details.sql_state):
        details = await _whole(details, kept)
    failure = failures.failure(error, details, sql, kept.client.address.endpoint)
    if failure.sql_state == failures.UNREACHABLE and running is not None and running.begun:
        kept.lose()
        message = (
            "the connection to the server was lost while the statement was running; it is unknown whether the "
            "statement took effect"
        )
        return Failure(sqlstate.SESSION_LOST, message)
    if failure.sql_state == sqlstate.SESSION_LOST:
        kept.lose()
    return failure


async def _whole(details: failures.ErrorDetails, kept: KeptSession) -> failures.ErrorDetails:
    """The server's full report of an error, if it keeps one."""
    with suppress(grpc.RpcError):
        asked = proto.FetchErrorDetailsRequest(error_id=details.error_id)
        response: Any = await kept.client.ask("FetchErrorDetails", asked, kept.id)
        if response.HasField("root_error_idx") and response.root_error_idx < len(response.errors):
            root = response.errors[response.root_error_idx]
            return replace(
                details,
                message=root.message or details.message,
                sql_state=root.spark_throwable.sql_state or details.sql_state,
                condition=root.spark_throwable.error_class or details.condition,
            )
    return details
