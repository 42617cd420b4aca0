"""Functions: macros of the engine, and functions in other languages, which are recorded but cannot be called."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import field

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import duplicate, missing
from sqlshell.service.dialect.forms import Form
from sqlshell.service.dialect.lexer import Names
from sqlshell.service.engines.engine import CatalogQuery, Outcome, Rights
from sqlshell.service.failure import Failure
from sqlshell.service.objects.kind import (
    CREATE,
    IF_EXISTS,
    IF_NOT_EXISTS,
    OPTIONS,
    DialectStatement,
    Execution,
    Kind,
    Result,
)
from sqlshell.service.objects.names import check_name
from sqlshell.service.objects.result_rows import OWNED, TIMES, Facts, columns
from sqlshell.service.objects.scope import Scope
from sqlshell.service.organizations.organizations import Organization
from sqlshell.sql.analysis.secrets import shown_options

UNKNOWN: Final = frozenset({"42883", sqlstate.PRIVILEGE})
"""The engine's sqlStates for an unknown function."""

ARGUMENTS: Final = 4096
"""The maximum length of a function's arguments with their types, in characters."""

_LANGUAGES: Final = ("JAVA",)
_SOURCE, _CLASS, _EGRESS = "source.name", "class.name", "egress.allow.uris"
_ARGUMENT: Final = re.compile(r"\s*(?:([A-Za-z_]\w*)\s+)?([A-Za-z].*?)\s*", re.S)


class CreateFunction(DialectStatement, frozen=True):
    """CREATE FUNCTION; `arguments` are pairs of name and type; types have the form of normal_type()."""

    name: str
    arguments: tuple[tuple[str, str], ...]
    returns: str
    language: str
    options: Mapping[str, str] = field(default_factory=dict)
    replace: bool = False
    if_not_exists: bool = False

    def run(self, execution: Execution) -> Outcome:
        execution.begin_change(Rights.OBJECTS, "CREATE FUNCTION")
        execution.check_options(self.options)
        execution.check_number(FUNCTION)
        check_name(self.name)
        key = _key(self.name, tuple(kind for _, kind in self.arguments))
        most = execution.services.settings.name_length
        if len(key) > most:
            raise Failure("42622", f"the name is longer than {most} characters")
        try:
            self._record(key, execution)
        except Failure as failure:
            if not (self.if_not_exists and failure.sql_state == sqlstate.DUPLICATE_FUNCTION):
                raise
        return Outcome(message="CREATE FUNCTION")

    def _record(self, key: str, execution: Execution) -> None:
        if self.language not in _LANGUAGES:
            message = f"functions in language {self.language[:40]} are not supported; expected JAVA"
            raise Failure(sqlstate.UNSUPPORTED, message)
        for option in (_SOURCE, _CLASS):
            if not self.options.get(option):
                raise Failure("22023", f"CREATE FUNCTION … LANGUAGE JAVA requires option {option!r}")
        with execution.organization.changing:
            execution.get("function_source", self.options[_SOURCE])
            if execution.organization.engine.catalog(CatalogQuery("function", name=self.name)):
                raise duplicate("function", self.name)
            execution.add("function", key, self._detail(), replace=self.replace)

    def _detail(self) -> dict[str, Any]:
        """What is kept: `signature` as written, `source` is a function source, `properties` are further options."""
        arguments = ", ".join(f"{name} {kind}".strip() for name, kind in self.arguments)
        options = shown_options(self.options)
        return {
            "name": self.name,
            "signature": f"{self.name}({arguments}) {self.returns}",
            "returns": self.returns,
            "language": self.language,
            "source": self.options[_SOURCE],
            "class": self.options[_CLASS],
            "egress": options.get(_EGRESS, ""),
            "properties": {name: value for name, value in options.items() if name not in {_SOURCE, _CLASS, _EGRESS}},
        }


class DropFunction(DialectStatement, frozen=True):
    """DROP FUNCTION; `types` are the argument types, or None if the statement does not list them."""

    name: str
    types: tuple[str, ...] | None
    if_exists: bool = False

    def run(self, execution: Execution) -> Result:
        named = [item.name for item in execution.scope.kept("function") if item.detail["name"] == self.name]
        if self.types is None and not named:
            # It is a macro of the engine.
            return execution.run_engine(execution.sql)
        execution.begin_change(Rights.OBJECTS, "DROP FUNCTION")
        keys = named if self.types is None else [_key(self.name, self.types)]
        if len(keys) > 1:
            choice = f"specify the types: DROP FUNCTION {' or '.join(keys)}"
            raise Failure("42725", f"function name {self.name!r} is not unique; {choice}")
        key = keys[0]
        if execution.find("function", key) is not None:
            execution.forget("function", key)
        elif not self.if_exists:
            raise missing("function", key)
        return Outcome(message="DROP FUNCTION")


class Function(Kind):
    name, plural = "function", "functions"
    verbs = ("describe",)
    left_to_servers = frozenset({"create", "drop", "show"})
    listing = columns(
        *("Name", "Signature", "Type", "Language", "SourceName=source_name", "ClassName=class_name"),
        *("EgressAllowURIs=uris", "Properties", "Owner", "State", *TIMES),
    )
    relation = columns("name", "signature", "type", "language", "source_name", "class_name", *OWNED)

    def forms(self) -> Iterator[tuple[str, Form[DialectStatement]]]:
        yield from super().forms()
        yield (
            "create",
            Form(
                f"{CREATE} FUNCTION {IF_NOT_EXISTS} <names:names> <arguments:parentheses> "
                f"RETURNS ! <returns:type> LANGUAGE <language:word> {OPTIONS}",
                _create,
            ),
        )
        yield "drop", Form(f"DROP FUNCTION {IF_EXISTS} <names:names> [ <types:parentheses> ]", _drop)

    def facts(self, scope: Scope) -> list[Facts]:
        noted = scope.noted()
        macros: list[Facts] = [
            noted(database, schema, name)
            | {
                **{"name": name, "signature": signature, "type": kind, "database": database, "schema": schema},
                **{"language": "SQL", "state": "ready", "uris": [], "properties": "{}"},
            }
            for name, signature, kind, database, schema in scope.catalog("functions")
        ]
        recorded: list[Facts] = [
            scope.facts(item)
            | {
                "name": item.detail["name"],
                "type": "function",
                "state": "ready",
                "source_name": item.detail["source"],
                "class_name": item.detail["class"],
                "uris": [text.strip() for text in str(item.detail["egress"]).split(",") if text.strip()],
            }
            for item in scope.kept("function")
        ]
        return macros + recorded


FUNCTION = Function()


def check_source_unused(source: str, scope: Scope) -> None:
    """Raises Failure if a function uses this function source."""
    for item in scope.kept("function"):
        if item.detail["source"] == source:
            raise Failure(sqlstate.DEPENDENTS, f"function source {source!r} is in use by function {item.name!r}")


def check_called(organization: Organization, sql: str, failure: Failure) -> None:
    """Raises Failure if a statement failed because it calls a function that is only recorded."""
    if failure.sql_state not in UNKNOWN:
        return
    low = sql.lower()
    for item in organization.catalog.objects(organization.id, "function"):
        name = str(item.detail["name"])
        # Avoids the regular expression, which blocks other threads, for a long statement.
        if name.lower() in low and re.search(rf"(?<![\w$]){re.escape(name)}[\"`]?\s*\(", sql, re.I):
            message = f"cannot call function {name!r}: this service stores Java functions but cannot run them"
            raise Failure(sqlstate.UNSUPPORTED, message)


def normal_type(text: str) -> str:
    """A type in upper case with single spaces, so that different spellings are equal."""
    return re.sub(r"\s*([<>(),])\s*", r"\1", " ".join(text.upper().split())).replace(",", ", ")


def _key(name: str, types: tuple[str, ...]) -> str:
    """The key of a function: its name and the types of its arguments."""
    return f"{name}({', '.join(types)})"


def _create(names: Names, arguments: str, returns: str, language: str, **values: Any) -> CreateFunction:
    return CreateFunction(names[-1], _arguments(arguments[1:-1]), normal_type(returns), language.upper(), **values)


def _drop(names: Names, types: str = "", **values: Any) -> DropFunction:
    return DropFunction(names[-1], tuple(kind for _, kind in _arguments(types[1:-1])) if types else None, **values)


def _arguments(text: str) -> tuple[tuple[str, str], ...]:
    if len(text) > ARGUMENTS:
        raise Failure(sqlstate.LIMIT, f"the arguments of the function are longer than {ARGUMENTS} characters")
    arguments = []
    for piece in _pieces(text):
        match = _ARGUMENT.fullmatch(piece)
        if not match:
            raise Failure(sqlstate.SYNTAX, f"syntax error at {piece.strip()[:60]!r}: expected name TYPE")
        arguments.append(((match[1] or "").lower(), normal_type(match[2])))
    return tuple(arguments)


def _pieces(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    pieces, depth, start = [], 0, 0
    for position, sign in enumerate(text):
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and not depth:
            pieces.append(text[start:position])
            start = position + 1
    return [piece for piece in (*pieces, text[start:]) if piece.strip()]
