"""Recognizes what a statement of the engine creates, changes or drops, or where it inserts rows."""

from __future__ import annotations

import re

from msgspec import Struct

from sqlshell.service.dialect.forms import Form, first_of
from sqlshell.service.dialect.lexer import BLANK, Names, Tokens

_MAY_CHANGE = re.compile(BLANK.pattern + r"(?:create|alter|drop|insert)(?!\w)", re.I)
_VALUES = re.compile(BLANK.pattern + r"""insert\s++into\s++[\w."]++\s*+(?:\([^()]*+\)\s*+)?values\b""", re.I)


class Change(Struct, frozen=True):
    """A change by an INSERT, or by a CREATE, ALTER or DROP (`verb`) of a `kind`: "table", "view" or "schema".

    `selects` says that the rows come from a SELECT.
    """

    verb: str
    names: Names
    kind: str = ""
    selects: bool = False
    replace: bool = False
    if_not_exists: bool = False


def _made(**values: object) -> Change:
    return Change(**{name: value for name, value in values.items() if name not in {"listed", "rest"}})  # type: ignore[arg-type]


_INSERT = "verb:INSERT INTO <names:names>"
_CREATE = "verb:CREATE [ OR REPLACE =replace ] [ RECURSIVE ]"
_NAME = "[ IF NOT EXISTS =if_not_exists ] <names:names>"
_FORMS = (
    Form(f"{_INSERT} <rest:selection>", _made, selects=True),
    Form(f"{_INSERT} [ <listed:parentheses> ] [ BY NAME|POSITION ] <rest:selection>", _made, selects=True),
    Form(f"{_INSERT} <rest:rest>", _made),
    Form(f"{_CREATE} kind:TABLE {_NAME} [ <listed:parentheses> ] AS <rest:rest>", _made, selects=True),
    Form(f"{_CREATE} kind:TABLE|VIEW|SCHEMA {_NAME} [ <rest:rest> ]", _made),
    Form("verb:ALTER|DROP kind:TABLE|VIEW|SCHEMA [ IF EXISTS ] <names:names> [ <rest:rest> ]", _made),
)


def read_change(sql: str) -> Change | None:
    """Parse a statement; None for one that changes none of these."""
    return first_of(_FORMS, Tokens(sql)) if _MAY_CHANGE.match(sql) else None


def change_of(sql: str) -> Change | None:
    """As read_change(), but quickly None for INSERT … VALUES, which nobody asks about."""
    return None if _VALUES.match(sql) else read_change(sql)
