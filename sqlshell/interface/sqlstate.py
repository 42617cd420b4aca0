"""sqlState codes: the meaning of each, and of its class if the code is unknown."""

from __future__ import annotations

DONE = "00000"
WARNING = "01000"
ROW_LIMIT = "01R01"
"""Only the embedded service sends this: the result was cut off at the request's rowLimit."""
NOTICES = "01N01"
"""Only the local service sends this: the message consists of notices of the engine, each with its severity."""
NO_DATA = "02000"
RUNNING = "03000"
UNSUPPORTED = "0A000"
DEPENDENTS = "2BP01"
NO_USER = "3D000"
NO_ROLE = "3D001"
NO_DATABASE = "3D002"
NO_SCHEMA = "3D003"
NO_ORGANIZATION = "3D004"
NO_STORE = "3D006"
INVALID_PARAMETER = "3D008"
NO_SCHEMA_REGISTRY = "3D009"
NO_DESCRIPTOR_SOURCE = "3D011"
NO_SECRET = "3D016"
NO_FUNCTION = "3D017"
NO_FUNCTION_SOURCE = "3D018"
NO_QUERY = "3D019"
NO_SESSION = "08003"
NO_RELATION = "3D020"
NO_COMPUTE_POOL = "3D023"
STORE_NOT_READY = "3E001"
SCHEMA_REGISTRY_NOT_READY = "3E002"
RELATION_NOT_READY = "3E003"
COMPUTE_POOL_NOT_READY = "3E004"
PRIVILEGE = "42501"
SYNTAX = "42601"
DUPLICATE = "42710"
DUPLICATE_DATABASE = "42P04"
DUPLICATE_STORE = "42P05"
DUPLICATE_SCHEMA = "42P06"
DUPLICATE_SECRET = "42P014"
DUPLICATE_FUNCTION = "42P015"
DUPLICATE_FUNCTION_SOURCE = "42P016"
DUPLICATE_RELATION = "42P017"
DUPLICATE_SCHEMA_REGISTRY = "42P018"
DUPLICATE_COMPUTE_POOL = "42P019"
LIMIT = "53000"
DISK_FULL = "53100"
TOO_LARGE = "54000"
CANCELED = "57000"
TIMEOUT = "57014"
SESSION_LOST = "57P02"
REMOTE_UNAVAILABLE = "57015"
INTERNAL = "XX000"
UNDEFINED = "XX001"

MEANINGS = {
    DONE: "done",
    WARNING: "warning",
    ROW_LIMIT: "row limit reached",
    NOTICES: "notices of the engine",
    NO_DATA: "no data",
    RUNNING: "not yet complete",
    UNSUPPORTED: "not supported",
    DEPENDENTS: "other objects depend on it",
    NO_USER: "user not found",
    NO_ROLE: "role not found",
    NO_DATABASE: "database not found",
    NO_SCHEMA: "schema not found",
    NO_ORGANIZATION: "organization not found",
    NO_STORE: "store not found",
    INVALID_PARAMETER: "invalid parameter",
    NO_SCHEMA_REGISTRY: "schema registry not found",
    NO_DESCRIPTOR_SOURCE: "descriptor source not found",
    NO_SECRET: "secret not found",
    NO_FUNCTION: "function not found",
    NO_FUNCTION_SOURCE: "function source not found",
    NO_QUERY: "query not found",
    NO_SESSION: "session not found",
    NO_RELATION: "relation not found",
    NO_COMPUTE_POOL: "compute pool not found",
    STORE_NOT_READY: "store not ready",
    SCHEMA_REGISTRY_NOT_READY: "schema registry not ready",
    RELATION_NOT_READY: "relation not ready",
    COMPUTE_POOL_NOT_READY: "compute pool not ready",
    PRIVILEGE: "insufficient privilege",
    SYNTAX: "syntax error",
    DUPLICATE: "object already exists",
    DUPLICATE_DATABASE: "database already exists",
    DUPLICATE_STORE: "store already exists",
    DUPLICATE_SCHEMA: "schema already exists",
    DUPLICATE_SECRET: "secret already exists",
    DUPLICATE_FUNCTION: "function already exists",
    DUPLICATE_FUNCTION_SOURCE: "function source already exists",
    DUPLICATE_RELATION: "relation already exists",
    DUPLICATE_COMPUTE_POOL: "compute pool already exists",
    LIMIT: "limit exceeded",
    DISK_FULL: "disk full",
    TOO_LARGE: "too large",
    CANCELED: "canceled",
    TIMEOUT: "timed out",
    SESSION_LOST: "session lost",
    REMOTE_UNAVAILABLE: "remote service unavailable",
    INTERNAL: "internal error",
    UNDEFINED: "undefined error",
}

CONDITIONS = {
    "21000": "cardinality violation",
    "22001": "string data right truncation",
    "22003": "numeric value out of range",
    "22007": "invalid datetime format",
    "22008": "datetime field overflow",
    "22012": "division by zero",
    "22023": "invalid parameter value",
    "22P02": "invalid text representation",
    "23502": "not-null violation",
    "23503": "foreign key violation",
    "23505": "unique violation",
    "23514": "check violation",
    "25001": "active transaction",
    "25006": "read-only transaction",
    "25P01": "no active transaction",
    "25P02": "in failed transaction",
    "40001": "serialization failure",
    "40P01": "deadlock detected",
    "42701": "duplicate column",
    "42702": "ambiguous column",
    "42703": "undefined column",
    "42704": "undefined object",
    "42712": "duplicate alias",
    "42725": "ambiguous function",
    "42803": "grouping error",
    "42804": "datatype mismatch",
    "42846": "cannot coerce",
    "42883": "undefined function",
    "42P01": "undefined table",
    "42P07": "duplicate table",
    "42P10": "invalid column reference",
    "55000": "object not in prerequisite state",
    "58030": "I/O error",
}
"""Codes that engines send beside those of the interface, with PostgreSQL's names of their conditions."""

CLASSES = {
    "00": "done",
    "01": "warning",
    "02": "no data",
    "03": "not yet complete",
    "08": "connection failure",
    "0A": "not supported",
    "21": "wrong number of values",
    "22": "invalid value",
    "23": "constraint violation",
    "25": "invalid transaction state",
    "28": "not authorized",
    "2B": "other objects depend on it",
    "3D": "object not found",
    "3E": "object not ready",
    "40": "transaction rolled back",
    "42": "syntax error or access rule violation",
    "53": "limit exceeded",
    "54": "too complex",
    "55": "object not in the required state",
    "57": "terminated by the service",
    "58": "system error",
    "XX": "internal error",
}


def meaning(code: str) -> str:
    """The meaning of `code`; for unknown codes that of the class, "" if the class is unknown too."""
    return MEANINGS.get(code) or CONDITIONS.get(code) or CLASSES.get(code[:2], "")


def failed(code: str) -> bool:
    """Whether a statement with this sqlState failed: classes 00 to 03 mean success, warning, no data and running."""
    return code[:2] not in {"00", "01", "02", "03"}


def warns(code: str) -> bool:
    """Whether a statement with this sqlState succeeded with a warning (class 01)."""
    return code[:2] == "01"


def is_not_found(code: str) -> bool:
    """Whether a name in the statement is unknown: class 3D, or the codes for columns, objects, functions and tables."""
    return code[:2] == "3D" or code in {"42703", "42704", "42883", "42P01"}


def running(code: str) -> bool:
    return code[:2] == "03"


def not_ready(code: str) -> bool:
    """Whether the statement may be retried shortly (class 3E)."""
    return code[:2] == "3E"
