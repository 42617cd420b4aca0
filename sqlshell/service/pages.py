"""Partitions of finished results, for whoever asks: read a stretch at a time, shared by all who read the same."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from sqlshell.service.organizations import Organizations
from sqlshell.service.records import Record
from sqlshell.service.results import in_zone

STRETCH_ROWS = 160_000
STRETCH_BYTES = 16 << 20
"""What one reading of an engine's file may come to, by the file's own size."""

KEPT_BYTES = 96 << 20
"""What all stretches together may hold."""


class Pages:
    """Gives partitions of records. Lives in one event loop."""

    def __init__(self, organizations: Organizations) -> None:
        self._organizations = organizations
        self._stretches: OrderedDict[tuple[str, int], asyncio.Future[list[bytes]]] = OrderedDict()
        self._sizes: dict[tuple[str, int], int] = {}

    async def partition(self, record: Record, number: int, timezone: str) -> bytes:
        """The rows of a partition as text with commas between them. Raises Failure and OSError."""
        layout = record.spool.layout
        if layout.form != "engine":
            rows = (
                await asyncio.to_thread(record.spool.partition, number)
                if layout.form == "text"
                else record.spool.partition(number)
            )
        else:
            rows = await self._from_engine(record, number)
        outcome = record.outcome
        if outcome is not None and outcome.zoned and timezone != "UTC":
            return await asyncio.to_thread(in_zone, rows, outcome.zoned, timezone)
        return rows

    async def _from_engine(self, record: Record, number: int) -> bytes:
        layout = record.spool.layout
        if not layout.rows:
            return b""
        by_size = STRETCH_BYTES * layout.rows // max(record.spool.size, 1)
        length = max(1, min(STRETCH_ROWS, by_size) // layout.partition_rows)
        first = number // length * length
        key = (record.statement_id, first)
        found = self._stretches.get(key)
        if found is None:
            found = self._stretches[key] = asyncio.ensure_future(self._read(record, first, length))
        self._stretches.move_to_end(key)
        try:
            partitions = await asyncio.shield(found)
        except Exception:
            self._stretches.pop(key, None)
            raise
        return partitions[number - first]

    async def _read(self, record: Record, first: int, length: int) -> list[bytes]:
        organization = await asyncio.to_thread(self._organizations.get, record.organization)
        path = record.spool.path
        assert path is not None
        rows = record.spool.layout.partition_rows
        partitions = await asyncio.to_thread(organization.engine.read, path, first, rows, length)
        self._sizes[record.statement_id, first] = sum(map(len, partitions))
        while sum(self._sizes.values()) > KEPT_BYTES and len(self._sizes) > 1:
            oldest = next((key for key in self._stretches if key in self._sizes), None)
            if oldest is None:
                break
            del self._stretches[oldest]
            del self._sizes[oldest]
        return partitions
