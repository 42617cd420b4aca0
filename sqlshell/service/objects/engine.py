"""The engine of an organization, its objects in its own terms, and pools: how many statements it runs at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import duplicate, missing
from sqlshell.service.dialect.forms import Form
from sqlshell.service.dialect.lexer import Names
from sqlshell.service.engines.engine import ObjectQuery, Outcome, Relation
from sqlshell.service.failure import Failure
from sqlshell.service.objects.kind import DialectStatement, Execution, Kind, Needs, OfKind, Result, behind
from sqlshell.service.objects.result_rows import NUMBER, OWNED, TIMES, Facts, columns, rows_of
from sqlshell.service.objects.scope import Scope
from sqlshell.service.organizations.pools import DEFAULT, Size, read_size, size_of

_LISTED = "RELATIONS|COLUMNS|FOREIGN_KEYS|INDEXES|FUNCTIONS|TYPES|DATABASES|SCHEMAS|ROLES|PRIVILEGES|CONNECTIONS"
_DETAILS = "[ WITH DETAILS =details ]"
_FORMS = (
    f"LIST ENGINE ! kind:{_LISTED} [ IN SCHEMA <place:names> ] {_DETAILS}",
    f"DESCRIBE ENGINE kind:RELATION part:COLUMNS|SQL <names:names> {_DETAILS}",
    "DESCRIBE ENGINE kind:FUNCTION part:SQL <names:names> [ <arguments:parentheses> ]",
    f"DESCRIBE ENGINE kind:RELATION <names:names> {_DETAILS}",
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
        return rows_of(organization.engine.objects(query, execution.session.connection), execution.sink, nullable=True)


class Engine(Kind):
    name, plural = "engine", "engines"
    listing = columns("Name", "Version", "State", "Supported", "NotSupported=unsupported")

    def forms(self) -> Iterator[Form[DialectStatement]]:
        for text in _FORMS:
            yield Form(text, EngineObjects)

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


class ComputePool(Kind):
    name, plural = "compute_pool", "compute_pools"
    verbs = ("create", "use", "update", "start", "stop", "drop", "describe")
    syntax = (("start", "START KIND ! <names:one>"), ("stop", "STOP KIND ! <names:one>"))
    is_services = True
    listing = columns(
        *("Name", "Size", "IntendedState=intended", "ActualState=actual", "ErrorMessages=errors"),
        *("Timeout=timeout_min", "Owner", *TIMES, "Concurrency", "Queue", "StatementTimeout=longest"),
        timeout_min=NUMBER,
    )
    relation = columns(
        *("name", "state", "size", "intended_state=intended", "actual_state=actual", "timeout_min", *OWNED),
        timeout_min=NUMBER,
    )

    def change(self, asked: OfKind, execution: Execution) -> Result | None:
        if asked.verb not in {"start", "stop"}:
            return super().change(asked, execution)
        with execution.organization.changing:
            pool, running = _find(execution, asked.name), {"running": asked.verb == "start"}
            if pool is None:
                execution.add(self.name, asked.name, _detail(Size()) | running)
            else:
                execution.change(self.name, asked.name, pool | running)
        return None

    def create(self, asked: OfKind, execution: Execution) -> None:
        size = read_size(asked.options)
        if asked.name == DEFAULT and execution.find(self.name, DEFAULT) is None:
            raise duplicate(self.name, DEFAULT)
        execution.add(self.name, asked.name, _detail(size))

    def update(self, asked: OfKind, execution: Execution) -> None:
        pool = _find(execution, asked.name)
        if pool is None:
            execution.add(self.name, asked.name, _detail(read_size(asked.options)))
        else:
            changed = _detail(read_size(asked.options, size_of(pool)))
            execution.change(self.name, asked.name, changed | {"running": pool["running"]})

    def drop(self, asked: OfKind, execution: Execution) -> None:
        if asked.name == DEFAULT:
            raise Failure(sqlstate.DEPENDENTS, f'cannot drop compute pool "{DEFAULT}": it is predefined')
        super().drop(asked, execution)
        execution.sessions.leave_dropped_object(execution.organization.id, self.name, asked.name)

    def facts(self, scope: Scope) -> list[Facts]:
        known = {item.name: item for item in scope.kept(self.name)}
        rows: list[Facts] = []
        for name in sorted({*known, DEFAULT}):
            detail = {**_detail(Size()), **(known[name].detail if name in known else {})}
            state = "running" if detail["running"] else "stopped"
            rows.append(
                {key: str(value) for key, value in detail.items()}
                | scope.owned(known.get(name))
                | {
                    **{"name": name, "type": self.name, "intended": state, "actual": state, "state": state},
                    "longest": f"{detail['timeout']:g}s" if detail["timeout"] else "none",
                }
            )
        return rows


def _find(execution: Execution, name: str) -> dict[str, object] | None:
    """The detail of a pool; None for the predefined one while nothing of it was changed."""
    pool = execution.find("compute_pool", name)
    if pool is None and name != DEFAULT:
        raise missing("compute_pool", name)
    return None if pool is None else dict(pool.detail)


def _detail(size: Size) -> dict[str, object]:
    return {
        "concurrency": size.concurrency,
        "queue": size.queue,
        "timeout": size.timeout,
        "size": size.name,
        "timeout_min": size.idle,
        "running": True,
    }
