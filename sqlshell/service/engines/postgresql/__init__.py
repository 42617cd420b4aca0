"""PostgreSQL: an external server, reached by the package psycopg; the queries of its catalog are in `sql/`."""

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
