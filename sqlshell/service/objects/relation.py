"""Relations: tables, views, materialized views, streams and changelogs.

Streams are append-only. A changelog is a stream of changes: each row is the latest state of its key.
"""

from __future__ import annotations

import contextlib
import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from msgspec import field
from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.catalog import duplicate, missing
from sqlshell.service.dialect.forms import Form
from sqlshell.service.dialect.lexer import END, NAME, SIGN, WORD, Names, Token, Tokens, TooMany
from sqlshell.service.engines.engine import (
    NO_CONTINUOUS_QUERIES,
    CatalogQuery,
    LocalSession,
    Outcome,
    Relation,
    Rights,
    RunOptions,
    Sink,
    check_supported,
)
from sqlshell.service.error_places import placed
from sqlshell.service.failure import Failure
from sqlshell.service.objects.attachments import attachment_named
from sqlshell.service.objects.database import listed_database, schemas
from sqlshell.service.objects.kind import (
    CREATE,
    EVERYTHING,
    IF_NOT_EXISTS,
    OPTIONS,
    SYNTAX,
    DialectStatement,
    Execution,
    Kind,
    Listed,
    Needs,
    OfKind,
    Place,
    Result,
    behind,
)
from sqlshell.service.objects.names import NOT_FOUND, check_named
from sqlshell.service.objects.result_rows import BOOLEAN, OWNED, TIMES, Facts, columns, keep
from sqlshell.service.objects.scope import Scope
from sqlshell.service.organizations.organizations import Organization
from sqlshell.service.organizations.sessions import Session
from sqlshell.service.results.results import Discard
from sqlshell.sql.analysis.secrets import shown_options
from sqlshell.sql.identifiers import literal, qualified

_FLOWS = "RELATION|STREAM|CHANGELOG"

_NEAR: Final = re.compile(r'syntax error at or near "(\w+)"')
_HEAD: Final = 2000
"""Characters of a message in which it is searched."""


class CreateAs(DialectStatement, frozen=True):
    """CREATE … AS SELECT that the engine does not support: of a stream, changelog or materialized_view, or of a table
    with options."""

    kind: str
    names: Names
    select: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    replace: bool = False
    if_not_exists: bool = False
    columns: str = ""

    def needs(self) -> Needs:
        return EVERYTHING

    def engine_sql(self) -> tuple[str, str]:
        """CREATE TABLE or CREATE VIEW in SQL of the engine: our own text, and the user's text after it.

        Raises Failure for a query that would never end.
        """
        if self.kind in {"stream", "changelog"}:
            message = f"CREATE {self.kind.upper()} … AS SELECT is not supported: {NO_CONTINUOUS_QUERIES}"
            raise Failure(sqlstate.UNSUPPORTED, message)
        verb, there = "CREATE OR REPLACE" if self.replace else "CREATE", " IF NOT EXISTS" * self.if_not_exists
        # A view shows the current rows of its sources; a table would show those at its creation.
        what = "VIEW" if self.kind == "materialized_view" else "TABLE"
        head = f"{verb} {what}{there} {qualified(*self.names)} "
        return (f"{head}{self.columns} AS\n", self.select) if self.select else (head, self.columns)

    def run(self, execution: Execution) -> Result:
        before, part = self.engine_sql()
        with placed(execution.sql, before, part):
            outcome = execution.run_engine(before + part)
        if isinstance(outcome, tuple):
            return outcome
        outcome = replace(outcome, message=f"CREATE {self.kind.replace('_', ' ').upper()}")
        return execution.created(outcome, self.kind, execution.session.connection.resolve(self.names))


class _OfRelation(DialectStatement, frozen=True, kw_only=True):
    names: Names

    def needs(self) -> Needs:
        return Needs(parts=behind(self.names[:-1]), database=True)


class Truncate(_OfRelation, frozen=True):
    def run(self, execution: Execution) -> Outcome:
        execution.require(Rights.DATA, "TRUNCATE RELATION")
        relation, kind = find_relation(self.names, execution.session)
        if kind == "stream":
            message = f'cannot truncate stream "{relation[2]}": a stream is append-only'
            raise Failure(sqlstate.UNSUPPORTED, message)
        if kind == "view":
            message = f'cannot truncate view "{relation[2]}": a view has no rows of its own'
            raise Failure(sqlstate.UNSUPPORTED, message)
        execution.session.connection.run(f"TRUNCATE {qualified(*relation)}", execution.options, Discard())
        return Outcome(message="TRUNCATE RELATION")


class Alter(_OfRelation, frozen=True):
    """ALTER … SET 'description' = …"""

    kind: str
    options: Mapping[str, str]

    def run(self, execution: Execution) -> Outcome:
        verb = f"ALTER {self.kind.upper()}"
        if self.options.keys() != {"description"}:
            other = min(self.options.keys() - {"description"})
            raise Failure(sqlstate.UNSUPPORTED, f"{verb} can set only 'description', not {other!r}")
        execution.require(Rights.OBJECTS, verb)
        execution.check_options(self.options)
        relation, kind = find_relation(self.names, execution.session)
        if self.kind != "relation" and stream_kind(execution.organization, relation) != self.kind:
            raise missing(self.kind, self.names[-1])
        what = "VIEW" if kind == "view" else "TABLE"
        sql = f"COMMENT ON {what} {qualified(*relation)} IS {literal(self.options['description'])}"
        execution.session.connection.run(sql, execution.options, Discard())
        return Outcome(message=verb)


class Load(DialectStatement, frozen=True):
    """COPY … FROM '@file': load an attachment into a relation; no `columns` are all of them, in order."""

    names: Names
    file: str
    columns: tuple[str, ...] = ()
    form: str = "(FORMAT PARQUET)"

    def needs(self) -> Needs:
        return EVERYTHING

    def run(self, execution: Execution) -> Outcome:
        if self.form.strip("()").replace("'", "").upper().split() != ["FORMAT", "PARQUET"]:
            message = f"COPY FROM an attachment supports only (FORMAT parquet), not {self.form[:4096]}"
            raise Failure(sqlstate.UNSUPPORTED, message)
        organization, attachment = execution.organization, attachment_named(execution.files, self.file)
        check_supported(organization.engine, "attachments")
        load, options = cast(LocalSession, execution.session.connection).load, execution.options
        if not organization.is_confined:
            return load(self.names, self.columns, attachment.path, options)
        # The organization's engine sees no file outside of its own folder.
        place = organization.folder("temporary") / str(uuid.uuid4())
        try:
            place.hardlink_to(attachment.path)
            return load(self.names, self.columns, place, options)
        except Failure as failure:
            if failure.sql_state in NOT_FOUND:
                check_named(organization, execution.sql)
            raise
        finally:
            place.unlink(missing_ok=True)


class Relations(Kind):
    """Relations of every type. `listed_type` is the only type that LIST shows, "" for all; `created_as` is the form of
    CREATE … AS after the kind, "" if it has none."""

    name, plural, written = "relation", "relations", "names"
    verbs: Sequence[str] = ("drop", "describe")
    is_relation = is_transactional = True
    listed_type = created_as = ""
    only_columns = False
    """Whether DESCRIBE shows only columns."""
    listing = columns("Name", "Type", "Owner", "State", "Properties", *TIMES, "Database", "Schema")
    details = columns("PrimaryKey=primary_key", "Description", "FQN=fqn")
    relation = columns(
        *("database_name=database", "schema_name=schema", "name", "fqn", "relation_type=type", "type"),
        *("primary_key", "description", "state", *OWNED),
    )

    def forms(self) -> Iterator[Form[DialectStatement]]:
        if self.created_as:
            yield Form(f"{CREATE} kind:{self.title} {self.created_as}", CreateAs)
        yield from super().forms()

    def drop(self, asked: OfKind, execution: Execution) -> None:
        session = execution.session
        relation, kind = find_relation(asked.names, session)
        what = "view" if self.name == "materialized_view" else self.name
        if what not in {"relation", stream_kind(execution.organization, relation) or kind}:
            raise missing(self.name, asked.name)
        what = "VIEW" if kind == "view" else "TABLE"
        session.connection.run(f"DROP {what} {qualified(*relation)}", RunOptions(), Discard())
        if kind == "stream":
            execution.organization.check_streams()

    def facts(self, scope: Scope) -> list[Facts]:
        return relations(scope)

    def listed(self, place: Place, execution: Execution) -> Listed:
        scope, database = execution.scope, listed_database(place, execution)
        schema = "" if place.kind == "database" else place.names[-1] if place.kind == "schema" else scope.schema
        if place.kind == "schema" and schema.lower() not in {
            str(item["name"]).lower() for item in schemas(scope, database)
        }:
            raise missing("schema", schema)
        if self.listed_type and not place.kind:
            database = schema = ""
        kind = self.listed_type
        if kind == "materialized view" and execution.organization.engine.traits.interface_sql:
            kind = "view"
        return self.listing, self.details, relations(scope, database, schema, kind=kind)

    def describe(self, asked: OfKind, execution: Execution) -> Outcome:
        return describe_relation(asked, execution, only_columns=self.only_columns or asked.only_columns)


class AnyRelation(Relations):
    syntax = (
        ("describe", "DESCRIBE KIND COLUMNS <names:names> =only_columns"),
        ("describe", SYNTAX["describe"]),
    )

    def forms(self) -> Iterator[Form[DialectStatement]]:
        yield from super().forms()
        yield Form(f"TRUNCATE {_FLOWS} <names:names>", Truncate)
        yield Form(f"ALTER kind:{_FLOWS} <names:names> SET ! <options:settings>", Alter)
        yield Form("COPY <names:names> [ <columns:columns> ] FROM <file:attached> ! [ <form:parentheses> ]", Load)


class Table(Relations):
    name, plural = "table", "tables"
    verbs = ("describe",)
    shown = False
    only_columns = True
    left_to_servers = frozenset({"create"})
    # DuckDB has CREATE TABLE too: only WITH makes it a statement of the dialect.
    created_as = (
        f"{IF_NOT_EXISTS} <names:names> [ <columns:parentheses> ] WITH ! <options:options> [ AS <select:rest> ]"
    )


class View(Table):
    name, plural, created_as = "view", "", ""


class MaterializedView(Relations):
    """For the interface's engine these are views, so that LIST shows all views."""

    name, plural, listed_type = "materialized_view", "materialized_views", "materialized view"
    left_to_servers = frozenset({"create", "drop", "show"})
    created_as = f"! {IF_NOT_EXISTS} <names:names> {OPTIONS} AS <select:rest>"


class Stream(Relations):
    name = listed_type = "stream"
    plural = "streams"
    verbs = ("create", "drop", "describe")
    syntax = (("create", f"{CREATE} KIND ! {IF_NOT_EXISTS} <names:names> <columns:parentheses> {OPTIONS}"),)
    is_transactional = False
    created_as = f"{IF_NOT_EXISTS} <names:names> [ <columns:parentheses> ] {OPTIONS} AS ! <select:rest>"

    def number(self, execution: Execution) -> int:
        return len(execution.scope.kept("stream"))

    def create(self, asked: OfKind, execution: Execution) -> Result:
        """Create the table of a stream. Its options and key are stored; the options have no effect."""
        relation = execution.session.connection.resolve(asked.names)
        try:
            with placed(execution.sql, "", asked.columns):
                _create_table(asked, relation, execution)
        except Failure as failure:
            if not (asked.if_not_exists and failure.sql_state.startswith("42P")):
                raise
        return execution.created(Outcome(message=asked.title), self.name, relation)


class Changelog(Stream):
    name = listed_type = "changelog"
    plural = "changelogs"


def relations(scope: Scope, database: str = "", schema: str = "", *, kind: str = "", name: str = "") -> list[Facts]:
    """The relations of a database and schema, or of all; optionally only of this `kind` or with this `name`."""
    noted = scope.noted()
    streams = {tuple(json.loads(item.name)): item for item in scope.kept("stream")}
    rows: list[Facts] = []
    for named, within, listed, place, key, comment in scope.catalog(
        "relations", database, schema=schema, name=name, streams=set(streams)
    ):
        stream = streams.get((place, within, named))
        detail = stream.detail if stream else {}
        type_ = str(detail.get("kind", listed))
        if kind and type_ != kind:
            continue
        rows.append(
            (scope.owned(stream) if stream else noted(place, within, named))
            | {
                **{"name": named, "type": type_, "state": "created", "database": place, "schema": within},
                "fqn": qualified(place, within, named),
                "primary_key": key or ", ".join(detail.get("primary_key", ())),
                "description": detail.get("description") or comment,
                "properties": json.dumps(shown_options(detail.get("options", {}))),
            }
        )
    return rows


def describe_relation(asked: OfKind, execution: Execution, *, only_columns: bool) -> Outcome:
    """The columns of a relation, or its properties. Raises Failure."""
    session = execution.session
    relation = session.connection.resolve(asked.names)
    streams = {tuple(part.lower() for part in known) for known in session.organization.streams.known}
    wrong = asked.kind == "stream" and tuple(part.lower() for part in relation) not in streams
    if wrong or not session.exists(relation):
        raise _missing(session, "stream" if asked.kind == "stream" else "relation", relation)
    if only_columns:
        return column_rows(session.connection.columns(relation, execution.options), execution.sink)
    facts = relations(execution.scope, relation[0], relation[1], name=relation[2])
    return AnyRelation().described(relation[2], facts, execution)


def column_rows(described: Sequence[ColumnInfo], sink: Sink) -> Outcome:
    """A row for each column: name, type and nullability."""
    facts = [{"name": item.name, "type": item.type, "nullable": item.nullable} for item in described]
    return keep(columns("name", "type", "nullable", nullable=BOOLEAN), facts, sink)


def find_relation(names: Names, session: Session) -> tuple[Relation, str]:
    """An existing relation, and whether it is a table, a view or a stream. Raises Failure."""
    relation = session.connection.resolve(names)
    if relation[0].lower() in {name.lower() for name in session.organization.store_names}:
        message = f'"{relation[0]}" is a store; use INSERT INTO ENTITY or DROP ENTITY to change its entities'
        raise Failure(sqlstate.UNSUPPORTED, message)
    found = session.catalog(CatalogQuery("relations", *relation, streams=session.organization.streams.known))
    if not found:
        raise _missing(session, "relation", relation)
    # Names are case-insensitive in most engines.
    name, _, kind, *_ = min(found, key=lambda row: row[0] != relation[2])
    return (*relation[:2], name), kind


def stream_kind(organization: Organization, relation: Relation) -> str:
    """ "stream" or "changelog", "" for neither."""
    if relation not in organization.streams.known:
        return ""
    found = organization.catalog.find(organization.id, "stream", json.dumps(relation))
    return str(found.detail.get("kind", "stream")) if found is not None else "stream"


def _missing(session: Session, kind: str, relation: Relation) -> Failure:
    """The Failure for a missing relation: the database, its schema, or the relation does not exist."""
    database, schema, name = relation
    listed = session.catalog(CatalogQuery("schemas"))
    there = [row[0].lower() for row in listed if row[1].lower() == database.lower()]
    if not there:
        return missing("database", database)
    return missing(kind, name) if schema.lower() in there else missing("schema", schema)


def _create_table(asked: OfKind, relation: Relation, execution: Execution) -> None:
    organization, verb = execution.organization, "CREATE"
    if organization.engine.catalog(CatalogQuery("relation", *relation)):
        if not asked.replace or relation not in organization.streams.known:
            raise duplicate(asked.kind, asked.name)
        verb = "CREATE OR REPLACE"
    columns, key = columns_of(asked)
    with explained_columns(columns, before := f"{verb} TABLE {qualified(*relation)} "):
        execution.session.connection.run(before + columns, RunOptions(), Discard())
    organization.add_stream(relation, {"kind": asked.kind, "options": shown_options(asked.options), "primary_key": key})


@contextlib.contextmanager
def explained_columns(columns: str, before: str) -> Iterator[None]:
    """Rewrite errors about `columns` that run after our own text `before`, so that they are about the columns alone."""
    try:
        with placed(columns, before, columns):
            yield
    except Failure as error:
        near = _NEAR.search(error.message, 0, _HEAD)
        if near is None or near[1].lower() not in _first_words(columns):
            raise
        advised = f'{near[0]}: a column of this name must be quoted, "{near[1]}"'
        raise error.with_message(error.message.replace(near[0], advised, 1)) from error.__cause__


def columns_of(asked: OfKind) -> tuple[str, list[str]]:
    """The parenthesized columns, and the key: unique in a stream, but not in a changelog."""
    columns, key = without_key(asked.columns)
    return asked.columns if asked.kind == "stream" else columns, key


def without_key(text: str) -> tuple[str, list[str]]:
    """A parenthesized column list without its PRIMARY KEY, and the columns of that key."""
    tokens = Tokens(text)
    kept: list[str] = []
    key: list[str] = []
    for piece in pieces(tokens):
        start, end = piece[0].start, piece[-1].end
        words = [token.upper for token in piece]
        primary = next((at for at in range(len(words)) if words[at : at + 2] == ["PRIMARY", "KEY"]), None)
        if primary is None:
            kept.append(text[start:end])
        elif primary:
            key += _names(piece[:1])
            kept.append(text[start : piece[primary].start] + text[piece[primary + 1].end : end])
        else:
            key += _names(piece[primary + 2 :])
    return (f"({', '.join(kept)})", key) if key else (text, [])


def _names(tokens: Sequence[Token]) -> list[str]:
    return [
        token.value.lower() if token.kind == WORD else token.value for token in tokens if token.kind in {NAME, WORD}
    ]


def _first_words(text: str) -> set[str]:
    """The first words, in lower case, of the columns in a parenthesized list: their names, unless they are quoted."""
    return {piece[0].value.lower() for piece in pieces(Tokens(text))}


def pieces(tokens: Tokens) -> list[list[Token]]:
    """The tokens of each item of a parenthesized list, such as a column; none if it is not closed or has too many."""
    found: list[list[Token]] = [[]]
    depth, at = 0, 1
    with contextlib.suppress(TooMany):
        while (token := tokens[at]).kind != END:
            if token.kind == SIGN:
                depth += (token.value in "(<") - (token.value in ")>")
            if depth < 0:
                return [piece for piece in found if piece]
            if depth == 0 and token.kind == SIGN and token.value == ",":
                found.append([])
            else:
                found[-1].append(token)
            at += 1
    return []
