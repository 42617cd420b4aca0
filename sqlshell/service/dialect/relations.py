"""Statements of the engine's own that make a relation of a SELECT, or add its rows to one."""

from __future__ import annotations

import re

from msgspec import Struct

from sqlshell.service.dialect.forms import Form, first_of
from sqlshell.service.dialect.names import Names

_INSERT = "INSERT INTO <names:names>"
_VALUES = re.compile(r"""insert\s++into\s++[\w."]++\s*+(?:\([^()]*+\)\s*+)?values\b""", re.I)
_TABLE = "CREATE [ OR REPLACE =replace ] kind:TABLE [ IF NOT EXISTS =if_not_exists ] <names:names>"


class Written(Struct, frozen=True):
    """A CREATE TABLE or INSERT; `kind` is "table" or "insert", `columns` the text of those of a table, in parentheses,
    and `selects` says that its rows come of a SELECT."""

    kind: str
    names: Names
    columns: str = ""
    selects: bool = True
    replace: bool = False
    if_not_exists: bool = False


def _made(**values: object) -> Written:
    values = {name: value for name, value in values.items() if name not in {"listed", "select"}}
    return Written(**values)  # type: ignore[arg-type]


_FORMS = (
    Form(f"{_INSERT} <select:selection>", _made, kind="insert"),
    Form(f"{_INSERT} [ <listed:parentheses> ] [ BY NAME|POSITION ] <select:selection>", _made, kind="insert"),
    Form(f"{_TABLE} [ <columns:parentheses> ] AS <select:rest>", _made),
)
_ALL = (
    *_FORMS,
    Form(f"{_INSERT} <select:rest>", _made, kind="insert", selects=False),
    Form(f"{_TABLE} <columns:parentheses>", _made, selects=False),
)


def selecting(sql: str) -> Written | None:
    """What a CREATE TABLE … AS SELECT or INSERT INTO … SELECT is about, None for any other statement."""
    return None if _VALUES.match(sql) else first_of(_FORMS, sql)


def writing(sql: str) -> Written | None:
    """The same of those without a SELECT too."""
    return first_of(_ALL, sql)
