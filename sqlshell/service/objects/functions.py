"""Functions in other languages: they are recorded and listed, but cannot be called."""

from __future__ import annotations

import re
from typing import Any, Final

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import duplicate, missing
from sqlshell.service.dialect import CreateFunction, DropFunction
from sqlshell.service.engines.engine import CatalogQuery
from sqlshell.service.failure import Failure
from sqlshell.service.organizations.organizations import Organization
from sqlshell.sql.analysis.secrets import shown_options

KIND: Final = "function"
UNKNOWN: Final = frozenset({"42883", sqlstate.PRIVILEGE})
"""The engine's sqlStates for an unknown function."""

_LANGUAGES: Final = ("JAVA",)
_SOURCE, _CLASS, _EGRESS = "source.name", "class.name", "egress.allow.uris"


def create(organization: Organization, asked: CreateFunction) -> None:
    """Record a function. Raises Failure."""
    if asked.language not in _LANGUAGES:
        message = f"functions in language {asked.language[:40]} are not supported; expected JAVA"
        raise Failure(sqlstate.UNSUPPORTED, message)
    for option in (_SOURCE, _CLASS):
        if not asked.options.get(option):
            raise Failure("22023", f"CREATE FUNCTION … LANGUAGE JAVA requires option {option!r}")
    catalog = organization.catalog
    source = asked.options[_SOURCE]
    types = tuple(kind for _, kind in asked.arguments)
    name = key(asked.name, types)
    with organization.changing:
        catalog.get(organization.id, "function_source", source)
        if organization.engine.catalog(CatalogQuery("function", name=asked.name)):
            raise duplicate(KIND, asked.name)
        if asked.replace and catalog.find(organization.id, KIND, name) is not None:
            catalog.change(organization.id, KIND, name, _detail(asked))
        else:
            catalog.add(organization.id, KIND, name, _detail(asked))


def drop(organization: Organization, asked: DropFunction) -> None:
    """Remove a function. Raises Failure."""
    if asked.types is None:
        keys = keys_of(organization, asked.name)
        if len(keys) > 1:
            message = (
                f"function name {asked.name!r} is not unique; specify the types: DROP FUNCTION {' or '.join(keys)}"
            )
            raise Failure("42725", message)
        wanted = keys[0] if keys else asked.name
    else:
        wanted = key(asked.name, asked.types)
    try:
        organization.catalog.drop(organization.id, KIND, wanted)
    except Failure:
        raise missing(KIND, wanted) from None


def keys_of(organization: Organization, name: str) -> list[str]:
    """The keys of all functions with this name."""
    return [item.name for item in organization.catalog.objects(organization.id, KIND) if item.detail["name"] == name]


def key(name: str, types: tuple[str, ...]) -> str:
    """The key of a function: its name and the types of its arguments."""
    return f"{name}({', '.join(types)})"


def check_unused(source: str, organization: Organization) -> None:
    """Raises Failure if a function uses this function source."""
    for item in organization.catalog.objects(organization.id, KIND):
        if item.detail["source"] == source:
            raise Failure(sqlstate.DEPENDENTS, f"function source {source!r} is in use by function {item.name!r}")


def check_called(organization: Organization, sql: str, failure: Failure) -> None:
    """Raises Failure if a statement failed because it calls a function that is only recorded."""
    if failure.sql_state not in UNKNOWN:
        return
    low = sql.lower()
    for item in organization.catalog.objects(organization.id, KIND):
        name = str(item.detail["name"])
        # Avoids the regular expression, which blocks other threads, for a long statement.
        if name.lower() in low and re.search(rf"(?<![\w$]){re.escape(name)}[\"`]?\s*\(", sql, re.I):
            message = f"cannot call function {name!r}: this service stores Java functions but cannot run them"
            raise Failure(sqlstate.UNSUPPORTED, message)


def _detail(asked: CreateFunction) -> dict[str, Any]:
    """The stored detail: `signature` as written, `source` is a function source, `properties` are further options."""
    arguments = ", ".join(f"{name} {kind}".strip() for name, kind in asked.arguments)
    options = shown_options(asked.options)
    return {
        "name": asked.name,
        "signature": f"{asked.name}({arguments}) {asked.returns}",
        "returns": asked.returns,
        "language": asked.language,
        "source": asked.options[_SOURCE],
        "class": asked.options[_CLASS],
        "egress": options.get(_EGRESS, ""),
        "properties": {name: value for name, value in options.items() if name not in {_SOURCE, _CLASS, _EGRESS}},
    }
