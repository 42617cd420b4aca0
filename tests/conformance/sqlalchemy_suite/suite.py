"""SQLAlchemy's own tests of dialects. Two set-ups are replaced that DuckDB's checks of foreign keys do not allow."""

from typing import Any

import sqlalchemy.testing.suite as published
from sqlalchemy.testing.suite import *  # noqa: F403


class CTETest(published.CTETest):  # type: ignore[no-redef]
    """A row that refers to another of its table is inserted after it, and both are deleted with the table."""

    run_define_tables = "each"
    run_deletes: Any = None

    @classmethod
    def insert_data(cls, connection: Any) -> None:
        for number, parent in enumerate((None, 1, 1, 3, 3), 1):
            row = {"id": number, "data": f"d{number}", "parent_id": parent}
            tables: Any = cls.tables
            connection.execute(tables.some_table.insert(), row)


class JoinTest(published.JoinTest):  # type: ignore[no-redef]
    """All tests read the same rows: DuckDB cannot delete both sides of a foreign key in one transaction."""

    run_inserts = "once"
    run_deletes: Any = None
