"""The kinds of objects of the interface as completion, colors, `\\h` and the effects of statements know them.

A new kind is a row of OBJECT_KINDS; what may follow CREATE, DROP, UPDATE, LIST and DESCRIBE follows from it, and their
syntax.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class ObjectKind(NamedTuple):
    """A kind: its name; its plural, as in LIST, or ""; the verbs that take it; the syntax of its CREATE."""

    name: str
    plural: str
    verbs: str
    create: str = ""
    is_system: bool = False
    """Whether `deltastream.sys` has a relation of the plural's name."""


OBJECT_KINDS: Final = (
    ObjectKind("DATABASE", "DATABASES", "create drop describe", "CREATE DATABASE name", is_system=True),
    ObjectKind(
        *("SCHEMA", "SCHEMAS", "create drop describe"),
        "CREATE SCHEMA [IF NOT EXISTS] name [IN DATABASE database]",
        is_system=True,
    ),
    ObjectKind(
        *("STORE", "STORES", "create drop update describe"),
        "CREATE STORE name WITH ('type' = 'files', 'uri' = '/path' [, 'writable' = TRUE])",
        is_system=True,
    ),
    ObjectKind(
        *("STREAM", "STREAMS", "create drop describe"),
        "CREATE STREAM name (column type [NOT NULL], …) [WITH ('store' = '…', 'value.format' = '…')]\n"
        "CREATE STREAM name [WITH (…)] AS SELECT …",
    ),
    ObjectKind(
        *("CHANGELOG", "CHANGELOGS", "create drop"),
        "CREATE CHANGELOG name (column type, …, PRIMARY KEY (column)) [WITH (…)]\n"
        "CREATE CHANGELOG name [WITH (…)] AS SELECT … GROUP BY …",
    ),
    ObjectKind(
        *("TABLE", "", "create drop"),
        "CREATE [OR REPLACE] [TEMP] TABLE [IF NOT EXISTS] name (column type [NOT NULL], …)\n"
        "CREATE [OR REPLACE] [TEMP] TABLE name AS SELECT …",
    ),
    ObjectKind("VIEW", "", "", "CREATE [OR REPLACE] [TEMP] VIEW name [(column, …)] AS SELECT …"),
    ObjectKind("MATERIALIZED VIEW", "", "create drop", "CREATE MATERIALIZED VIEW name AS SELECT …"),
    ObjectKind(
        *("ENTITY", "ENTITIES", "create drop update describe"),
        "CREATE ENTITY name [IN STORE store] [WITH ('kafka.partitions' = 1, …)]",
        is_system=True,
    ),
    ObjectKind("INDEX", "", "create drop", "CREATE [UNIQUE] INDEX name ON table (column, …)"),
    ObjectKind(
        *("FUNCTION", "FUNCTIONS", "create drop describe"),
        "CREATE FUNCTION name(argument type, …) RETURNS type LANGUAGE JAVA "
        "WITH ('source.name' = '…', 'class.name' = '…')\n"
        "CREATE [OR REPLACE] [TEMP] FUNCTION name(argument, …) AS expression",
        is_system=True,
    ),
    ObjectKind(
        *("FUNCTION_SOURCE", "FUNCTION_SOURCES", "create drop"),
        "CREATE FUNCTION_SOURCE name WITH ('file' = '@path/file.jar' [, 'description' = '…'])",
        is_system=True,
    ),
    ObjectKind(
        *("DESCRIPTOR_SOURCE", "DESCRIPTOR_SOURCES", "create drop"),
        "CREATE DESCRIPTOR_SOURCE name WITH ('file' = '@path/file.desc')",
        is_system=True,
    ),
    ObjectKind(
        *("COMPUTE_POOL", "COMPUTE_POOLS", "create drop update describe"),
        "CREATE COMPUTE_POOL name WITH ('concurrency' = 2, 'queue' = 100, 'timeout' = '10m')",
        is_system=True,
    ),
    ObjectKind("ROLE", "ROLES", "create drop describe", "CREATE ROLE name"),
    ObjectKind(
        *("SECRET", "SECRETS", "create drop update describe"),
        "CREATE SECRET name\n  WITH ('type' = 'generic_string', 'secret_string' = '…' [, 'description' = '…'])",
        is_system=True,
    ),
    ObjectKind(
        *("SCHEMA_REGISTRY", "SCHEMA_REGISTRIES", "create drop update describe"),
        "CREATE SCHEMA_REGISTRY name WITH ('type' = 'CONFLUENT', 'uris' = 'https://…' [, …])",
        is_system=True,
    ),
    ObjectKind(
        *("API_TOKEN", "API_TOKENS", "create drop"),
        "CREATE API_TOKEN name [WITH ('role' = {'reader' | 'writer' | 'owner'})]",
    ),
    ObjectKind("ORGANIZATION", "ORGANIZATIONS", "create drop", "CREATE ORGANIZATION name"),
    ObjectKind("METRICS INTEGRATION", "", "create drop", "CREATE METRICS INTEGRATION name WITH ('type' = '…', …)"),
    ObjectKind("SECURITY INTEGRATION", "", "create drop", "CREATE SECURITY INTEGRATION name WITH ('type' = '…', …)"),
    ObjectKind("RELATION", "RELATIONS", "drop describe", is_system=True),
    ObjectKind("QUERY", "QUERIES", "describe", is_system=True),
    ObjectKind("USER", "USERS", "drop describe"),
    ObjectKind("INVITATION", "INVITATIONS", ""),
)


def names(verb: str) -> tuple[str, ...]:
    """The names of the kinds that a verb in lower case takes, sorted."""
    return tuple(sorted(kind.name for kind in OBJECT_KINDS if verb in kind.verbs.split()))


PLURALS: Final = tuple(sorted(kind.plural for kind in OBJECT_KINDS if kind.plural))
SYSTEM_TABLES: Final = tuple(sorted(kind.plural.lower() for kind in OBJECT_KINDS if kind.is_system))
"""The tables of `deltastream.sys`, which describe the service, filtered by the caller's rights."""
