"""The pytest plugin of SQLAlchemy's tests, with what they ask about temporary tables and schemas."""

from typing import Any

import pytest

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403
from sqlalchemy.testing.provision import set_default_schema_on_connection, temp_table_keyword_args  # noqa: E402

_temporary_for: Any = temp_table_keyword_args.for_db
_schema_for: Any = set_default_schema_on_connection.for_db


def _temporary(cfg: object, eng: object) -> dict[str, list[str]]:
    return {"prefixes": ["TEMPORARY"]}


def _in_schema(cfg: object, connection: Any, schema: str) -> None:
    connection.schema = schema


_temporary_for("sqlshell")(_temporary)
_schema_for("sqlshell")(_in_schema)
