"""The statements that are the interface's and not the engine's: USE, LIST, DESCRIBE RELATION, TERMINATE QUERY."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlshell.service.objects import COMPUTE_POOL, ORGANIZATION, ORGANIZATION_ID, ROLE

_NAME = r'(?:"(?:[^"]|"")+"|[A-Za-z_][\w$-]*)'
_COMMENTS = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.S)
_USE = re.compile(rf"USE\s+(DATABASE|SCHEMA|ROLE|STORE|ORGANIZATION|COMPUTE_POOL)\s+({_NAME}(?:\.{_NAME})?)\s*", re.I)
_LIST = re.compile(rf"LIST\s+(\w+)(?:\s+IN\s+(DATABASE|SCHEMA|STORE)\s+({_NAME}(?:\.{_NAME})?))?\s*", re.I)
_DESCRIBE = re.compile(rf"DESCRIBE\s+RELATION\s+((?:{_NAME}\.){{0,2}}{_NAME})(?:\s+COLUMNS)?\s*", re.I)
_TERMINATE = re.compile(r"""TERMINATE\s+QUERY\s+(?:'([^']*)'|"([^"]*)"|([\w-]+))\s*""", re.I)

EMPTY = {
    "stores": "type",
    "entities": "type",
    "function_sources": "type",
    "descriptor_sources": "type",
    "secrets": "type",
    "api_tokens": "role",
    "schema_registries": "type",
    "invitations": "state",
    "users": "state",
    "streams": "type",
    "changelogs": "type",
}


@dataclass(frozen=True, slots=True)
class Use:
    kind: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A statement of the dialect that the engine can answer as this SQL."""

    sql: str


@dataclass(frozen=True, slots=True)
class ListQueries:
    """LIST QUERIES: answered from the service's own records."""


@dataclass(frozen=True, slots=True)
class Terminate:
    statement_id: str


Own = Use | Query | ListQueries | Terminate


def read(sql: str, database: str, schema: str) -> Own | None:
    """What a statement of the dialect asks for, None for the engine's own. Names not given are `database`, `schema`."""
    blank = _COMMENTS.match(sql)
    text = sql[blank.end() if blank else 0 :]
    if found := _USE.fullmatch(text):
        return Use(found[1].lower(), _names(found[2]))
    if found := _TERMINATE.fullmatch(text):
        return Terminate(found[1] or found[2] or found[3] or "")
    if found := _LIST.fullmatch(text):
        return _list(found[1].lower(), _names(found[3] or ""), (found[2] or "").lower(), database, schema)
    if found := _DESCRIBE.fullmatch(text):
        names = _names(found[1])
        relation = names[-1]
        inside = names[-2] if len(names) > 1 else schema
        within = names[-3] if len(names) > 2 else database
        return Query(
            "SELECT column_name AS name, data_type AS type, is_nullable = 'YES' AS nullable "
            f"FROM information_schema.columns WHERE table_catalog = {_text(within)} AND table_schema = {_text(inside)} "
            f"AND table_name = {_text(relation)} ORDER BY ordinal_position"
        )
    return None


def _list(what: str, names: tuple[str, ...], place: str, database: str, schema: str) -> Own | None:
    match what:
        case "databases":
            return Query(
                "SELECT DISTINCT catalog_name AS name FROM information_schema.schemata "
                "WHERE catalog_name NOT IN ('system', 'temp') ORDER BY 1"
            )
        case "schemas":
            within = names[-1] if names else database
            return Query(
                f"SELECT schema_name AS name FROM information_schema.schemata WHERE catalog_name = {_text(within)} "
                "AND schema_name NOT IN ('information_schema', 'pg_catalog') ORDER BY 1"
            )
        case "relations" | "tables":
            inside = names[-1] if place == "schema" else schema
            within = names[0] if len(names) > 1 or place == "database" else database
            only = f"AND table_schema = {_text(inside)}" if place != "database" else ""
            return Query(
                "SELECT table_name AS name, table_schema AS schema, CASE table_type WHEN 'VIEW' THEN 'view' "
                f"ELSE 'table' END AS type FROM information_schema.tables WHERE table_catalog = {_text(within)} {only} "
                "ORDER BY ALL"
            )
        case "functions":
            return Query(
                "SELECT DISTINCT function_name AS name, function_type AS type FROM duckdb_functions() ORDER BY ALL"
            )
        case "organizations":
            return Query(f"SELECT {_text(ORGANIZATION)} AS name, {_text(ORGANIZATION_ID)} AS id")
        case "roles":
            return Query(f"SELECT {_text(ROLE)} AS name")
        case "compute_pools":
            return Query(f"SELECT {_text(COMPUTE_POOL)} AS name, 'running' AS state")
        case "queries":
            return ListQueries()
    if what in EMPTY:
        return Query(f"SELECT ''::VARCHAR AS name, ''::VARCHAR AS {EMPTY[what]} WHERE false")
    return None


def _names(text: str) -> tuple[str, ...]:
    """Names of a dotted name: unquoted ones fold to lower case."""
    found = re.findall(_NAME, text)
    return tuple(part[1:-1].replace('""', '"') if part.startswith('"') else part.lower() for part in found)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
