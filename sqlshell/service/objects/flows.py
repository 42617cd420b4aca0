"""Streams and changelogs, which are only added to; and what a CREATE … AS SELECT of the interface is to the engine.

A changelog is a stream of changes: each of its rows is the latest of its key.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

from sqlshell.interface import sqlstate
from sqlshell.service.dialect import Create, CreateAs, Drop
from sqlshell.service.dialect.columns import first_words, without_key
from sqlshell.service.engines.duckdb.messages import near
from sqlshell.service.engines.duckdb.translation.errors import placed
from sqlshell.service.engines.engine import CONTINUOUS, Failure, Options, Relation
from sqlshell.service.objects.catalog import duplicate
from sqlshell.service.organizations.organizations import Organization
from sqlshell.service.organizations.sessions import Session
from sqlshell.service.results.results import Discard
from sqlshell.sql.analysis.secrets import shown_options
from sqlshell.sql.identifiers import qualified


def create(asked: Create, session: Session) -> Relation:
    """Make a stream or changelog. Its options and key are kept, and no option does anything here. Raises Failure."""
    organization, connection = session.organization, session.connection
    if connection.in_transaction:
        raise Failure("25001", f"CREATE {asked.kind.upper()} cannot be part of a transaction")
    relation = connection.resolve(asked.names)
    verb = "CREATE"
    if organization.engine.exists(relation):
        if not asked.replace or relation not in organization.streams.known:
            raise duplicate(asked.kind, asked.names[-1])
        verb = "CREATE OR REPLACE"
    columns, key = columns_of(asked)
    with told(columns, before := f"{verb} TABLE {qualified(*relation)} "):
        connection.run(before + columns, Options(), Discard())
    organization.check_streams()
    organization.add_stream(relation, {"kind": asked.kind, "options": shown_options(asked.options), "primary_key": key})
    return relation


@contextlib.contextmanager
def told(columns: str, before: str) -> Iterator[None]:
    """What fails within about the columns, behind something of ours, is told about them alone."""
    try:
        with placed(columns, before, columns):
            yield
    except Failure as error:
        said, word = near(error.message)
        if not said or word.lower() not in first_words(columns):
            raise
        advised = f'{said}: as the name of a column it needs quotes, "{word}"'
        raise error.about(error.message.replace(said, advised, 1)) from error.__cause__


def columns_of(asked: Create) -> tuple[str, list[str]]:
    """The columns of what is made, in parentheses, and its key: a stream has one row of each, a changelog many."""
    columns, key = without_key(asked.columns)
    return asked.columns if asked.kind == "stream" else columns, key


def engines(asked: CreateAs) -> tuple[str, str]:
    """A CREATE TABLE or CREATE MATERIALIZED VIEW as the engine's own: what is ours, and behind it what was typed.

    Raises Failure for what would go on for ever.
    """
    if asked.kind in {"stream", "changelog"}:
        said = f"CREATE {asked.kind.upper()} … AS SELECT would run for ever: {CONTINUOUS}"
        raise Failure(sqlstate.UNSUPPORTED, said)
    verb = "CREATE OR REPLACE" if asked.replace else "CREATE"
    # A view shows what its sources hold when it is read, which a table that was made once would not.
    kind = "VIEW" if asked.kind == "materialized_view" else "TABLE"
    there = " IF NOT EXISTS" if asked.if_not_exists else ""
    name = qualified(*asked.names)
    head = f"{verb} {kind}{there} {name} "
    return (f"{head}{asked.columns} AS\n", asked.select) if asked.select else (head, asked.columns)


def schema(asked: Create | Drop) -> str:
    """CREATE or DROP SCHEMA … IN DATABASE as the engine's own."""
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
