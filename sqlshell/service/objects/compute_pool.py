"""Compute pools: how many statements run at once and how many wait."""

from __future__ import annotations

from collections.abc import Iterator

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import duplicate, missing
from sqlshell.service.dialect.forms import Form
from sqlshell.service.engines.engine import Outcome, Rights
from sqlshell.service.failure import Failure
from sqlshell.service.objects.kind import Create, DialectStatement, Drop, Execution, Kind, Needs, Result, Update, Work
from sqlshell.service.objects.result_rows import NUMBER, OWNED, TIMES, Facts, columns
from sqlshell.service.objects.scope import Scope
from sqlshell.service.organizations.pools import DEFAULT, Size, read_size, size_of


class StartPool(DialectStatement, frozen=True):
    """START and STOP of a pool."""

    name: str
    start: bool

    def needs(self) -> Needs:
        return Needs(Work.SERVICE)

    def run(self, execution: Execution) -> Outcome:
        verb = f"{'START' if self.start else 'STOP'} COMPUTE_POOL"
        execution.begin_change(Rights.OBJECTS, verb)
        with execution.organization.changing:
            pool = _find(execution, self.name)
            if pool is None:
                execution.add("compute_pool", self.name, _detail(Size()) | {"running": self.start})
            else:
                execution.change("compute_pool", self.name, {**pool, "running": self.start})
        return Outcome(message=verb)


class ComputePool(Kind):
    name, plural = "compute_pool", "compute_pools"
    verbs = ("create", "use", "update", "drop", "describe")
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

    def forms(self) -> Iterator[tuple[str, Form[DialectStatement]]]:
        yield from super().forms()
        yield "start", Form("START COMPUTE_POOL ! <name:one>", StartPool, start=True)
        yield "stop", Form("STOP COMPUTE_POOL ! <name:one>", StartPool, start=False)

    def create(self, asked: Create, execution: Execution) -> None:
        size = read_size(asked.options)
        if asked.name == DEFAULT and execution.find(self.name, DEFAULT) is None:
            raise duplicate(self.name, DEFAULT)
        execution.add(self.name, asked.name, _detail(size))

    def update(self, asked: Update, execution: Execution) -> None:
        pool = _find(execution, asked.name)
        if pool is None:
            execution.add(self.name, asked.name, _detail(read_size(asked.options)))
        else:
            changed = _detail(read_size(asked.options, size_of(pool)))
            execution.change(self.name, asked.name, changed | {"running": pool["running"]})

    def drop(self, asked: Drop, execution: Execution) -> Result | None:
        if asked.name == DEFAULT:
            raise Failure(sqlstate.DEPENDENTS, f"cannot drop compute pool {DEFAULT!r}: it is predefined")
        super().drop(asked, execution)
        execution.services.sessions.leave_dropped_object(execution.organization.id, self.name, asked.name)
        return None

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
