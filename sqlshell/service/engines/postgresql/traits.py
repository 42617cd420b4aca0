"""PostgreSQL's capabilities for the service."""

from __future__ import annotations

from typing import Final

from sqlshell.service.engines.engine import Capabilities

CAPABILITIES: Final = Capabilities(
    transactions=True,
    temporary_tables=True,
    applications=True,
    cancel=True,
    typed_results=True,
    attachments=True,
)


def product(version: str, number: int) -> str:
    """The server's product and version, from what `version()` returns and libpq's number of the version."""
    known = version.partition(" on ")[0].partition(",")[0].strip()
    return known or f"PostgreSQL {number // 10_000}.{number % 10_000}"
