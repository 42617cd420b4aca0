"""Checks whether a name is valid and free, whether a database or store could be opened, and what was not found.

The engine ignores the case of database names. Databases and stores share one namespace, and the names of the engine's
own databases are reserved.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import duplicate, duplicate_code
from sqlshell.service.dialect.lexer import WRITES, targets
from sqlshell.service.engines.engine import CatalogQuery
from sqlshell.service.failure import Failure
from sqlshell.service.organizations.organizations import Organization

UNREADABLE: Final = "58030"

_UNSHOWN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories: control and format characters, halves of surrogate pairs, separators of lines."""

_SEARCHED: Final = (range(0x20000), range(0xE0000, 0xE1000))
"""Where these characters are: all other planes have none, and searching them takes a tenth of a second."""

NOT_FOUND = frozenset({sqlstate.NO_RELATION, sqlstate.NO_SCHEMA, sqlstate.NO_DATABASE, sqlstate.PRIVILEGE, UNREADABLE})
"""The engine's sqlStates for a missing relation; if the name looks like a file's, the engine looks for a file."""

_NO_FUNCTION: Final = frozenset({"42883", sqlstate.PRIVILEGE})


class NameTaken(Failure):
    """The name belongs to an object of another kind, so that IF NOT EXISTS has no effect."""


@contextmanager
def reserved_name(organization: Organization, kind: str, name: str) -> Iterator[None]:
    """Hold the lock while a database or store is created. Raises Failure if the name is not free."""
    with organization.changing:
        low = name.lower()
        if low in organization.engine.traits.reserved_names:
            raise NameTaken(duplicate_code(kind), f'the name "{name}" is reserved; choose another name for the {kind}')
        catalog, engine = organization.catalog, organization.engine
        known = [
            (item, existing.name)
            for item in ("database", "store")
            for existing in catalog.objects(organization.id, item)
        ]
        known += [("database", row[0]) for row in engine.catalog(CatalogQuery("databases"))]
        for item, taken in known:
            if taken.lower() == low:
                if item == kind:
                    raise duplicate(kind, taken)
                raise NameTaken(
                    duplicate_code(kind), f'{item} "{taken}" already exists; databases and stores share one namespace'
                )
        yield


def check_open(organization: Organization, kind: str, name: str) -> None:
    """Raises Failure if a database or store exists but could not be opened."""
    if reason := organization.broken.get((kind, name)):
        raise broken(kind, name, reason)


def check_named(organization: Organization, sql: str) -> None:
    """Raises Failure if a statement names a database that could not be opened."""
    for (kind, name), reason in organization.broken.items():
        if kind == "database" and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sql, re.I):
            raise broken(kind, name, reason)


def broken(kind: str, name: str, reason: str) -> Failure:
    return Failure(UNREADABLE, f'cannot open {kind} "{name}": {reason}')


@cache
def name_pattern() -> str:
    """A regular expression for the texts that check_name() accepts, in the syntax of JSON Schema."""
    unshown = [code for part in _SEARCHED for code in part if unicodedata.category(chr(code)) in _UNSHOWN - {"Cs"}]
    begins = [code for code, before in zip(unshown, [-2, *unshown], strict=False) if code != before + 1]
    ends = [code for code, after in zip(unshown, [*unshown[1:], -2], strict=True) if code != after - 1]
    ranges = "".join(f"{chr(begin)}-{chr(end)}" for begin, end in zip(begins, ends, strict=True))
    shown, ending = f"[^{ranges}]", rf"[^\s{ranges}]"
    return f"^(?:{ending}(?:{shown}*{ending})?)?$"


def check_name(name: str) -> None:
    """Raises Failure (42602) for a name that could be shown as another one, such as the operator's."""
    why = ""
    if name != name.strip():
        why = "spaces at its beginning or end are not allowed"
    elif not name.isascii() or not name.isprintable():
        unshown = next((sign for sign in name if unicodedata.category(sign) in _UNSHOWN), "")
        why = f"the invisible character U+{ord(unshown):04X} is not allowed" if unshown else ""
    if why:
        raise Failure("42602", f'"{name[:80]}" is not a valid name: {why}')


def check_called(organization: Organization, sql: str, failure: Failure) -> None:
    """Raises Failure if a statement failed because it calls a function that is only recorded."""
    if failure.sql_state not in _NO_FUNCTION:
        return
    low = sql.lower()
    for item in organization.catalog.objects(organization.id, "function"):
        name = str(item.detail["name"])
        # Avoids the regular expression, which blocks other threads, for a long statement.
        if name.lower() in low and re.search(rf"(?<![\w$]){re.escape(name)}[\"`]?\s*\(", sql, re.I):
            message = f'cannot call function "{name}": this service stores Java functions but cannot run them'
            raise Failure(sqlstate.UNSUPPORTED, message)


def with_missing_database(organization: Organization, sql: str, failure: Failure) -> Failure:
    """The engine's failure with the sqlState of a missing database, for which DuckDB reports a missing schema."""
    if failure.sql_state != sqlstate.NO_SCHEMA or not failure.missing:
        return failure
    name = failure.missing[0].lower()
    if len(failure.missing) == 1 and name not in {
        names[0].lower() for names in targets(sql, WRITES) if len(names) == 3
    }:
        return failure
    there = {row[0].lower() for row in organization.engine.catalog(CatalogQuery("databases"))}
    return failure if name in there else Failure(sqlstate.NO_DATABASE, failure.message)
