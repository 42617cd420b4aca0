"""Calls the client of deltastream-sdk, in a virtual environment with it, and reports the outcomes.

Reads {"url", "token", "calls": [[dotted name, arguments], …]} as JSON from stdin; writes a list of outcomes as JSON
into the file that the first argument names: {"value": …, "state": sqlState, "error": text}.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from functools import reduce
from pathlib import Path
from typing import Any

from deltastream.api.error import SQLError
from deltastream_sdk import DeltaStreamClient
from deltastream_sdk.models import BaseModel


def plain(value: Any) -> Any:
    """A value as JSON: of a model, all that its properties read."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, BaseModel):
        names = [name for name, _ in inspect.getmembers(type(value), lambda item: isinstance(item, property))]
        return {name: plain(getattr(value, name)) for name in names}
    return value if isinstance(value, bool | int | float | dict) or value is None else str(value)


def state_of(error: BaseException | None) -> str:
    """The sqlState that an error came from, however the SDK wrapped it."""
    while error is not None:
        if isinstance(error, SQLError):
            return str(error.code.value)
        error = error.__cause__
    return ""


async def outcome(client: Any, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        value = await reduce(getattr, name.split("."), client)(**arguments)
        return {"value": plain(value), "state": "00000", "error": ""}
    except Exception as error:
        return {"value": None, "state": state_of(error), "error": f"{type(error).__name__}: {error}"}


async def outcomes(asked: dict[str, Any]) -> list[dict[str, Any]]:
    async def token() -> str:
        return str(asked["token"])

    client = DeltaStreamClient(server_url=asked["url"], token_provider=token)
    return [await outcome(client, name, arguments) for name, arguments in asked["calls"]]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(asyncio.run(outcomes(json.load(sys.stdin))), default=str))
