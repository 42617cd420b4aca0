"""DESCRIBE of a CREATE or INSERT: what it would create, as JSON, without running it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.catalog import duplicate
from sqlshell.service.dialect.changes import Change, read_change
from sqlshell.service.dialect.lexer import WORD, Names, Tokens
from sqlshell.service.engines.engine import LocalSession, Outcome, Plan, Relation, Rights, RunOptions, check_supported
from sqlshell.service.error_places import placed
from sqlshell.service.failure import Failure
from sqlshell.service.objects.kind import EVERYTHING, DialectStatement, Execution, Needs, OfKind
from sqlshell.service.objects.relation import CreateAs, columns_of, explained_columns, stream_kind
from sqlshell.service.objects.result_rows import table
from sqlshell.service.objects.store import InsertEntity
from sqlshell.service.organizations.sessions import Session
from sqlshell.service.stores import stores
from sqlshell.sql.analysis.secrets import shown_options
from sqlshell.sql.identifiers import qualified
from sqlshell.sql.keywords import CREATE_FILLERS

COLUMNS = ("type", "description")


class DescribeStatement(DialectStatement, frozen=True):
    """DESCRIBE of a CREATE or INSERT: shows what it would create, without running it."""

    sql: str

    def needs(self) -> Needs:
        return EVERYTHING

    def run(self, execution: Execution) -> Outcome:
        """Two columns: the kind of the statement, such as CREATE_TABLE, and a description of what it would create.

        Raises Failure, as the statement would, for missing rights, missing names and duplicate names.
        """
        with placed(execution.sql, "", self.sql):
            kind, description = _described(self.sql, execution)
        return table(execution.sink, COLUMNS, [(kind, json.dumps(description, ensure_ascii=False))])


def _described(sql: str, execution: Execution) -> tuple[str, Mapping[str, Any]]:
    session, options = execution.session, execution.options
    match asked := execution.read(sql):
        case OfKind(verb="create", kind="stream" | "changelog"):
            execution.require(Rights.OBJECTS, asked.title)
            columns, key = columns_of(asked)
            relation = _free(session, asked.kind, asked)
            with (
                placed(sql, "", asked.columns),
                explained_columns(columns, before := f"CREATE TABLE {qualified(*relation)} "),
            ):
                plan = _planned(session, before + columns, options)
            facts = _relation(session, relation, asked.kind, asked.options, plan.columns) | {"primary_key": key}
            return _kind("CREATE", asked.kind), {"ddl": facts}
        case CreateAs():
            before, part = asked.engine_sql()
            relation = _free(session, asked.kind, asked)
            with placed(sql, before, part):
                plan = _planned(session, before + part, options)
            facts = _relation(session, relation, asked.kind, asked.options, plan.columns)
            return _kind("CREATE", asked.kind), {"ddl": facts, "sink": facts, **_plan(session, plan)}
        case OfKind(verb="create"):
            what = asked.kind
            execution.require(Rights.OBJECTS, f"CREATE {what.upper()}")
            if what == "organization":
                execution.check_operator()
            elif what == "store" and {"uri", "uris"} & asked.options.keys():
                stores.read_options(asked.options, execution.organizations)
            if not asked.if_not_exists and execution.find(what, asked.name) is not None:
                raise duplicate(what, asked.name)
            name = asked.names[0] if what == "function" else asked.name
            return _kind("CREATE", what), {"ddl": {"type": what, "name": name}}
        case InsertEntity():
            execution.require(Rights.DATA, "INSERT INTO ENTITY")
            facts = {"type": "entity", "name": ".".join(asked.names), "store_name": asked.store or session.store}
            return "INSERT_INTO_ENTITY", {"sink": facts}
        case None:
            return _engines(sql, session, options)
    raise Failure(sqlstate.UNSUPPORTED, "DESCRIBE supports only CREATE and INSERT statements")


def _planned(session: Session, sql: str, options: RunOptions) -> Plan:
    check_supported(session.organization.engine, "plans")
    return cast(LocalSession, session.connection).plan(sql, options)


def _engines(sql: str, session: Session, options: RunOptions) -> tuple[str, Mapping[str, Any]]:
    """Describe a statement that the engine runs."""
    plan = _planned(session, sql, options)
    change = read_change(sql)
    if change is None or change.kind in {"view", "schema"}:
        what, names = _object(sql)
        facts = {"type": what, "name": names[-1] if names else ""}
        return _kind("CREATE", what), {"ddl": facts, **_plan(session, plan)}
    if change.verb == "insert":
        relation = session.full_name(change.names)
        sink = _relation(session, relation, _type(session, relation), {}, plan.columns)
        return "INSERT_INTO", {"sink": sink, **_plan(session, plan)}
    facts = _relation(session, _free(session, change.kind, change), change.kind, {}, plan.columns)
    sink = {"sink": facts} if change.selects else {}
    return _kind("CREATE", change.kind), {"ddl": facts, **sink, **_plan(session, plan)}


def _free(session: Session, kind: str, asked: OfKind | CreateAs | Change) -> Relation:
    """The full name of a relation that can be created. Raises Failure if it already exists."""
    relation = session.full_name(asked.names)
    if not (asked.replace or asked.if_not_exists) and session.exists(relation):
        raise duplicate(kind, asked.names[-1])
    return relation


def _plan(session: Session, plan: Plan) -> Mapping[str, Any]:
    sources = [_relation(session, item, _type(session, item), {}, None) for item in plan.reads]
    return {"sources": sources, "plan": json.loads(plan.tree) if plan.tree else None}


def _relation(
    session: Session,
    relation: Relation,
    kind: str,
    options: Mapping[str, str],
    columns: Sequence[ColumnInfo] | None,
) -> dict[str, Any]:
    organization = session.organization
    in_store = relation[0] if relation[0] in organization.store_names else ""
    facts: dict[str, Any] = {
        # Terraform's provider compares it with its organization and the fqn of deltastream.sys.
        "fqn": qualified(organization.id, *relation),
        "type": kind,
        "db_name": relation[0],
        "schema_name": relation[1],
        "name": relation[2],
        "store_name": in_store or options.get("store", session.store),
    }
    if options:
        facts["properties"] = shown_options(options)
    if columns is not None:
        facts["columns"] = [{"name": item.name, "type": item.type, "nullable": item.nullable} for item in columns]
    return facts


def _type(session: Session, relation: Relation) -> str:
    if relation[0] in session.organization.store_names:
        return "entity"
    return stream_kind(session.organization, relation) or "table"


def _kind(verb: str, what: str) -> str:
    return f"{verb}_{what}".upper()


def _object(sql: str) -> tuple[str, Names]:
    """The kind and name of the object that a CREATE of the engine creates."""
    tokens, at = Tokens(sql), 1
    while tokens[at].kind == WORD and tokens[at].upper in CREATE_FILLERS:
        at += 1
    what, at = tokens[at].value.lower(), at + 1
    if (tokens[at].upper, tokens[at + 1].upper, tokens[at + 2].upper) == ("IF", "NOT", "EXISTS"):
        at += 3
    return what, tokens.dotted(at, 3)[0]
