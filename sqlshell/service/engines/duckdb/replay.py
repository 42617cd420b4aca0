"""Statements whose effects DuckDB could not repeat from its log after a crash, so that the database would not open."""

from __future__ import annotations

import re
from typing import Final

import duckdb

from sqlshell.interface import sqlstate
from sqlshell.service.engines.duckdb.words import words
from sqlshell.service.failure import Failure

_USING: Final = re.compile(r"(?<!\w)using(?!\w)", re.I)
_NAMES: Final = """
SELECT lower(function_name) FROM system.main.duckdb_functions() WHERE NOT internal
UNION SELECT lower(type_name) FROM system.main.duckdb_types() WHERE NOT internal
"""


def check_replay(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Raises Failure (0A000) for ALTER … USING with a sequence, or with a macro or type of a database.

    DuckDB writes the expression to its log as it is, and repeats it without a current database: it would not find them.
    """
    if not _USING.search(sql):
        return
    found = [word.name for word in words(str(connection.extract_statements(sql)[0].query))]
    known = {"nextval", "setval"} | {str(row[0]) for row in connection.execute(_NAMES).fetchall()}
    if "using" in found and (named := known.intersection(found[found.index("using") :])):
        message = f"{min(named)} is not supported in USING; use ADD COLUMN and UPDATE"
        raise Failure(sqlstate.UNSUPPORTED, message)
