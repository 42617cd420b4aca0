"""PostgreSQL: an external server, reached by the package psycopg; the queries of its catalog are in `sql/`."""

from typing import Final

from sqlshell.service.engines.engine import Capabilities, Traits

CAPABILITIES: Final = Capabilities(
    transactions=True,
    temporary_tables=True,
    applications=True,
    cancel=True,
    typed_results=True,
    attachments=True,
)

TRAITS: Final = Traits(initial_schema="public", default_timezone="", text_in_files=True)
"""Without the names of the template databases, which differ between servers."""
