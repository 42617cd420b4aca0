"""Recognizes CREATE TABLE and INSERT statements of the engine, with and without a SELECT."""

from __future__ import annotations

import re

from msgspec import Struct

from sqlshell.service.dialect.forms import Form, first_of
from sqlshell.service.dialect.lexer import Names, Tokens

_INSERT = "INSERT INTO <names:names>"
_VALUES = re.compile(r"""insert\s++into\s++[\w."]++\s*+(?:\([^()]*+\)\s*+)?values\b""", re.I)
_TABLE = "CREATE [ OR REPLACE =replace ] kind:TABLE [ IF NOT EXISTS =if_not_exists ] <names:names>"


class TableWrite(Struct, frozen=True):
    """A CREATE TABLE or INSERT; `kind` is "table" or "insert", `columns` the parenthesized column list of a table, and
    `selects` says that its rows come from a SELECT."""

    kind: str
    names: Names
    columns: str = ""
    selects: bool = True
    replace: bool = False
    if_not_exists: bool = False


def _made(**values: object) -> TableWrite:
    values = {name: value for name, value in values.items() if name not in {"listed", "select"}}
    return TableWrite(**values)  # type: ignore[arg-type]


_FORMS = (
    Form(f"{_INSERT} <select:selection>", _made, kind="insert"),
    Form(f"{_INSERT} [ <listed:parentheses> ] [ BY NAME|POSITION ] <select:selection>", _made, kind="insert"),
    Form(f"{_TABLE} [ <columns:parentheses> ] AS <select:rest>", _made),
    Form(f"{_INSERT} <select:rest>", _made, kind="insert", selects=False),
    Form(f"{_TABLE} <columns:parentheses>", _made, selects=False),
)


def selecting(sql: str) -> TableWrite | None:
    """Parse CREATE TABLE … AS SELECT or INSERT INTO … SELECT; None for any other statement."""
    write = None if _VALUES.match(sql) else writing(sql)
    return write if write is not None and write.selects else None


def writing(sql: str) -> TableWrite | None:
    """Parse CREATE TABLE or INSERT INTO, with or without a SELECT; None for any other statement."""
    return first_of(_FORMS, Tokens(sql))
