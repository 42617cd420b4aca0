"""Streams and changelogs, which are append-only; and CREATE … AS SELECT of the interface in SQL of the engine.

A changelog is a stream of changes: each row is the latest state of its key.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import duplicate
from sqlshell.service.dialect import Create, CreateAs, Drop
from sqlshell.service.dialect.columns import first_words, without_key
from sqlshell.service.engines.duckdb.messages import near
from sqlshell.service.engines.duckdb.translation.text import placed
from sqlshell.service.engines.engine import NO_CONTINUOUS_QUERIES, CatalogQuery, Relation, RunOptions
from sqlshell.service.failure import Failure
from sqlshell.service.organizations.organizations import Organization
from sqlshell.service.organizations.sessions import Session
from sqlshell.service.results.results import Discard
from sqlshell.sql.analysis.secrets import shown_options
from sqlshell.sql.identifiers import qualified


def create(asked: Create, session: Session) -> Relation:
    """Create a stream or changelog. Its options and key are stored; the options have no effect. Raises Failure."""
    organization, connection = session.organization, session.connection
    relation = connection.resolve(asked.names)
    verb = "CREATE"
    if organization.engine.catalog(CatalogQuery("relation", *relation)):
        if not asked.replace or relation not in organization.streams.known:
            raise duplicate(asked.kind, asked.names[-1])
        verb = "CREATE OR REPLACE"
    columns, key = columns_of(asked)
    with explained_columns(columns, before := f"{verb} TABLE {qualified(*relation)} "):
        connection.run(before + columns, RunOptions(), Discard())
    organization.check_streams()
    organization.add_stream(relation, {"kind": asked.kind, "options": shown_options(asked.options), "primary_key": key})
    return relation


@contextlib.contextmanager
def explained_columns(columns: str, before: str) -> Iterator[None]:
    """Rewrite errors about `columns` that run after our own text `before`, so that they are about the columns alone."""
    try:
        with placed(columns, before, columns):
            yield
    except Failure as error:
        phrase, word = near(error.message)
        if not phrase or word.lower() not in first_words(columns):
            raise
        advised = f'{phrase}: a column of this name must be quoted, "{word}"'
        raise error.with_message(error.message.replace(phrase, advised, 1)) from error.__cause__


def columns_of(asked: Create) -> tuple[str, list[str]]:
    """The parenthesized columns, and the key: unique in a stream, but not in a changelog."""
    columns, key = without_key(asked.columns)
    return asked.columns if asked.kind == "stream" else columns, key


def engine_sql(asked: CreateAs) -> tuple[str, str]:
    """CREATE TABLE or CREATE MATERIALIZED VIEW in SQL of the engine: our own text, and the user's text after it.

    Raises Failure for a query that would never end.
    """
    if asked.kind in {"stream", "changelog"}:
        message = f"CREATE {asked.kind.upper()} … AS SELECT is not supported: {NO_CONTINUOUS_QUERIES}"
        raise Failure(sqlstate.UNSUPPORTED, message)
    verb = "CREATE OR REPLACE" if asked.replace else "CREATE"
    # A view shows the current rows of its sources; a table would show those at its creation.
    kind = "VIEW" if asked.kind == "materialized_view" else "TABLE"
    there = " IF NOT EXISTS" if asked.if_not_exists else ""
    name = qualified(*asked.names)
    head = f"{verb} {kind}{there} {name} "
    return (f"{head}{asked.columns} AS\n", asked.select) if asked.select else (head, asked.columns)


def schema_sql(asked: Create | Drop) -> str:
    """CREATE or DROP SCHEMA … IN DATABASE in SQL of the engine."""
    name = qualified(*asked.names)
    if isinstance(asked, Drop):
        there, cascade = " IF EXISTS" if asked.if_exists else "", " CASCADE" if asked.cascade else ""
        return f"DROP SCHEMA{there} {name}{cascade}"
    verb = "CREATE OR REPLACE" if asked.replace else "CREATE"
    return f"{verb} SCHEMA{' IF NOT EXISTS' if asked.if_not_exists else ''} {name}"


def kind_of(organization: Organization, relation: Relation) -> str:
    """ "stream" or "changelog", "" for neither."""
    if relation not in organization.streams.known:
        return ""
    found = organization.catalog.find(organization.id, "stream", json.dumps(relation))
    return str(found.detail.get("kind", "stream")) if found is not None else "stream"
