"""LIST and SHOW: objects as rows, with conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import field
from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.dialect.forms import Form
from sqlshell.service.dialect.lexer import Names
from sqlshell.service.engines.engine import Outcome, Rights
from sqlshell.service.error_places import placed
from sqlshell.service.failure import Failure
from sqlshell.service.objects.kind import (
    DialectStatement,
    Execution,
    Kind,
    Needs,
    Place,
    Result,
    Work,
    behind,
    unsupported,
)
from sqlshell.service.objects.result_rows import Facts, ShownColumn, keep, listed
from sqlshell.sql.analysis.tokens import tokens

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class List(DialectStatement, frozen=True):
    """LIST or SHOW: what is listed, in lower case, and its kind if there is one; the kind and name of its place; the
    name of a store after IN STORE; and the text of the condition of WHERE. `show` distinguishes SHOW, which the engine
    has too. `options` such as 'all' have no effect."""

    what: str
    of: Kind | None = None
    place: str = ""
    names: Names = ()
    store: str = ""
    where: str = ""
    show: bool = False
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_control(self) -> bool:
        # The engine evaluates a condition, and SHOW may be about one of its relations.
        return self.what in {"queries", "sessions"} and not self.where and not self.show

    def needs(self) -> Needs:
        # The engine evaluates a condition.
        work = Work.ENGINE if self.where else Work.SERVICE
        return Needs(work, self._parts(), organizations=self.what == "organizations")

    def _parts(self) -> tuple[str, ...]:
        if self.what == "schemas" and not self.place:
            return ("database",)
        if self.what == "entities" and not self.store and self.place in {"", "entity"}:
            return ("store",)
        if self.what in {"relations", "tables", "functions"} and self.place in {"", "schema"}:
            return behind(self.names)
        return ()

    def run(self, execution: Execution) -> Result:
        session = execution.session
        if (
            self.show
            and not self.place
            and (self.what == "schemas" or session.exists(session.connection.resolve((self.what,))))
        ):
            # DuckDB's SHOW shows all schemas, and describes a relation.
            return execution.run_engine(execution.sql)
        if self.of is None:
            raise unsupported("SHOW" if self.show else "LIST", self.what)
        shown, more, facts = self.of.listed(Place(self.place, self.names, self.store), execution)
        if self.where:
            return _filtered(self.where, shown, (*more, *self.of.relation), facts, execution)
        return keep(shown, facts, execution.sink)


_WHERE = "[ WITH <options:flags> ] [ WHERE ! <where:rest> ]"


def forms(kinds: Sequence[Kind], *, server: bool) -> Iterator[Form[DialectStatement]]:
    """The forms of LIST and SHOW; `server`: without the SHOW that an engine of its own may have itself."""
    by_plural = {kind.plural: kind for kind in kinds}

    def made(what: str, **values: Any) -> List:
        if values.get("names") and not values.get("place"):
            values["place"] = "database" if what == "schemas" else "schema"
        return List(what, by_plural.get(what), verb="list", **values)

    shown = [kind for kind in kinds if kind.shown and not (server and "show" in kind.left_to_servers)]
    # The engine has no statement that begins with LIST.
    for word, what in (("LIST", _what(kinds)), ("LIST", "<what:word>"), ("SHOW", _what(shown))):
        more = {"show": word == "SHOW"}
        yield Form(f"{word} what:ENTITIES IN STORE <store:one> {_WHERE}", made, **more)
        yield Form(
            f"{word} what:ENTITIES IN <names:path> [ IN STORE <store:one> ] {_WHERE}", made, place="entity", **more
        )
        yield Form(f"{word} {what} IN place:DATABASE|SCHEMA|STORE <names:names> {_WHERE}", made, **more)
        yield Form(f"{word} {what} IN <names:names> {_WHERE}", made, **more)
        yield Form(f"{word} {what} {_WHERE}", made, **more)
    yield Form(f"LIST ! <what:word> {_WHERE}", made)


def _what(kinds: Sequence[Kind]) -> str:
    return f"what:{'|'.join(kind.plural.upper() for kind in kinds)}"


def _filtered(
    where: str, shown: Sequence[ShownColumn], more: Sequence[ShownColumn], facts: Sequence[Facts], execution: Execution
) -> Outcome:
    """The facts that satisfy a condition: a SELECT over them with a reader's rights, checked like any other.

    A condition may also name the columns of `more`, and write a name such as CreatedAt as created_at.
    """
    _check_condition(where)
    snakes = (ShownColumn(_CAPITAL.sub("_", column.name), column.key, column.type) for column in shown)
    known: dict[str, ShownColumn] = {}
    for column in (*shown, *more, *snakes):
        known.setdefault(column.name.lower(), column)
    rows = execution.organization.engine.inline(listed([*known.values()], facts))
    # Engines quote names differently. Behind a dot, all of them accept any word.
    names = ", ".join(f"listed.{column.name}" for column in shown)
    # The newline ends a comment at the end of the condition.
    before, behind = f"SELECT {names} FROM ({rows}) listed WHERE (\n", "\n)"
    options = replace(execution.options, rights=Rights.READ)
    with placed(execution.sql, before, where, behind):
        outcome = execution.session.connection.run(f"{before}{where}{behind}", options, execution.sink)
    if outcome.columns is None:
        return outcome
    result_columns = [ColumnInfo(column.name, column.type, False) for column in shown]
    return replace(outcome, columns=result_columns if len(result_columns) == len(outcome.columns) else outcome.columns)


def _check_condition(where: str) -> None:
    """Raises Failure if the condition has an unmatched closing parenthesis: it is run in parentheses."""
    depth = 0
    for token in tokens(where):
        depth += (token.text == "(") - (token.text == ")")
        if depth < 0:
            raise Failure(sqlstate.SYNTAX, 'syntax error at or near ")" in the condition of WHERE')
