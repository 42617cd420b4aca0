"""The engine of an organization, and its objects in its own terms: LIST ENGINE and DESCRIBE ENGINE."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.dialect.forms import Form
from sqlshell.service.dialect.lexer import Names
from sqlshell.service.engines.engine import ObjectQuery, Outcome, Relation
from sqlshell.service.objects.kind import DialectStatement, Execution, Kind, Needs, behind
from sqlshell.service.objects.result_rows import Facts, columns
from sqlshell.service.objects.scope import Scope

_LISTED = "RELATIONS|COLUMNS|FOREIGN_KEYS|INDEXES|FUNCTIONS|TYPES|DATABASES|SCHEMAS|ROLES|PRIVILEGES|CONNECTIONS"
_DETAILS = "[ WITH DETAILS =details ]"
_FORMS = (
    ("list", f"LIST ENGINE ! kind:{_LISTED} [ IN SCHEMA <place:names> ] {_DETAILS}"),
    ("describe", f"DESCRIBE ENGINE kind:RELATION part:COLUMNS|SQL <names:names> {_DETAILS}"),
    ("describe", "DESCRIBE ENGINE kind:FUNCTION part:SQL <names:names> [ <arguments:parentheses> ]"),
    ("describe", f"DESCRIBE ENGINE kind:RELATION <names:names> {_DETAILS}"),
)


class EngineObjects(DialectStatement, frozen=True):
    """LIST ENGINE and DESCRIBE ENGINE. The fields are those of ObjectQuery; `place` is the name of a schema."""

    kind: str
    part: str = ""
    names: Names = ()
    place: Names = ()
    details: bool = False
    arguments: str = ""

    def needs(self) -> Needs:
        if self.kind in {"databases", "connections", "roles", "schemas"}:
            return Needs()
        return Needs(parts=behind(self.names[:-1] if self.names else self.place))

    def run(self, execution: Execution) -> Outcome:
        organization = execution.organization
        query = ObjectQuery(
            self.kind,
            self.part,
            self.names,
            self.place[-1] if self.place else "",
            self.details,
            self.arguments,
            {
                cast(Relation, tuple(json.loads(item.name))): str(item.detail.get("kind", "stream"))
                for item in execution.scope.kept("stream")
            },
            organization.store_names,
        )
        listing = organization.engine.objects(query, execution.session.connection)
        if listing.rows:
            execution.sink.keep([json.dumps(row, ensure_ascii=False) for row in listing.rows])
        return Outcome([ColumnInfo(name, kind, True) for name, kind in listing.columns])


class Engine(Kind):
    name, plural = "engine", "engines"
    listing = columns("Name", "Version", "State", "Supported", "NotSupported=unsupported")

    def forms(self) -> Iterator[tuple[str, Form[DialectStatement]]]:
        for verb, text in _FORMS:
            yield verb, Form(text, EngineObjects)

    def facts(self, scope: Scope) -> list[Facts]:
        """The engine of the organization, with what it can and cannot do."""
        engine = scope.organization.engine
        return [
            {
                "name": engine.name,
                "version": engine.version,
                "state": "ready",
                "supported": ", ".join(engine.capabilities.named(present=True)),
                "unsupported": ", ".join(engine.capabilities.named(present=False)),
            }
        ]
