"""Which statements a role may run, and what SQL may never reach under `serve`: files, settings, other places.

DuckDB says itself what a statement is (extract_statements) and where its words are (tokenize), so that nothing is read
differently here and there. Table functions are refused unless they are known to read nothing but their arguments and
the catalog, so that one that a later DuckDB brings is refused too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import duckdb

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import Failure, Rights

HARMLESS = frozenset(
    {
        "duckdb_columns", "duckdb_constraints", "duckdb_dependencies", "duckdb_functions", "duckdb_indexes",
        "duckdb_keywords", "duckdb_schemas", "duckdb_sequences", "duckdb_tables", "duckdb_types", "duckdb_variables",
        "duckdb_views", "generate_series", "generate_subscripts", "histogram", "histogram_values", "icu_calendar_names",
        "json_each", "json_tree", "pg_timezone_names", "pragma_collations", "pragma_table_info", "pragma_version",
        "range", "repeat", "repeat_row", "summary", "test_all_types", "test_vector_types", "unnest",
    }
)  # fmt: skip
REFUSED = frozenset(
    {
        "current_setting", "duckdb_databases", "duckdb_extensions", "duckdb_external_file_cache", "duckdb_logs",
        "duckdb_prepared_statements", "duckdb_secrets", "duckdb_settings", "duckdb_temporary_files", "getenv",
        "pg_settings", "pragma_database_list", "write_log",
    }
)  # fmt: skip
"""Scalars and views that tell of the machine or write outside the databases."""

SETTABLE = frozenset({"timezone", "search_path", "schema", "variable"})
CREATED = frozenset(["table", "view", "schema", "index", "sequence", "type", "macro", "function"])
CHANGED = frozenset(["table", "view", "schema", "sequence", "index", "type", "macro", "function", "column"])
FILLERS = frozenset({"or", "replace", "temp", "temporary", "unique", "recursive", "local"})
WRITING = frozenset({"insert", "delete", "merge", "truncate", "update"})
HIDDEN = frozenset({"copy"})
"""DuckDB 2.0 takes COPY TO as the body of a CTE."""

RETURNING = frozenset({"returning", "return_files", "return_stats"})

KINDS = {
    "SELECT": Rights.READ,
    "EXPLAIN": Rights.READ,
    "TRANSACTION": Rights.READ,
    "SET": Rights.READ,
    "VARIABLE_SET": Rights.READ,
    "RELATION": Rights.READ,
    "MULTI": Rights.READ,
    "INSERT": Rights.DATA,
    "UPDATE": Rights.DATA,
    "DELETE": Rights.DATA,
    "MERGE_INTO": Rights.DATA,
    "CREATE": Rights.OBJECTS,
    "CREATE_FUNC": Rights.OBJECTS,
    "DROP": Rights.OBJECTS,
    "ALTER": Rights.OBJECTS,
    "VACUUM": Rights.OBJECTS,
    "ANALYZE": Rights.OBJECTS,
}
"""Statement types that may run, and the least rights for each. What is not here never runs under `serve`."""

FIRST = frozenset(
    {
        "(", "abort", "alter", "analyze", "begin", "comment", "commit", "create", "delete", "desc", "describe", "drop",
        "end", "explain", "from", "insert", "merge", "pivot", "replace", "reset", "rollback", "select", "set", "show",
        "start", "summarize", "table", "truncate", "unpivot", "update", "use", "vacuum", "values", "with",
    }
)  # fmt: skip

NEVER = frozenset(
    {
        "attach", "call", "checkpoint", "copy", "deallocate", "declare", "detach", "do", "execute", "export", "fetch",
        "force", "grant", "import", "install", "kill", "listen", "load", "lock", "pragma", "prepare", "refresh",
        "revoke",
    }
)  # fmt: skip
"""First words that are refused as such; any other that is not in FIRST begins no statement."""

_BLANK = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.S)
_WRITES = re.compile(r"(?<!\w)(?:insert|update|delete|merge|copy)(?!\w)", re.I)
_WORD = re.compile(r"\w+|\(")
_FILE = re.compile(
    r"\b(?:from|join|into|update|table|describe|desc|summarize|show|pivot|unpivot|using|pivot_wider|pivot_longer)"
    r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:'|\be'|\$\w*\$)",
    re.I | re.S,
)
_PATH = re.compile(r"(?:[/\\*]|\.(?:csv|tsv|parquet|json|jsonl|ndjson|duckdb|db|ddb|txt|gz|zst)\b)", re.I)
_MISSING = re.compile(r"Table with name (.*) does not exist")


class Gate:
    """The gate of one engine: `tables` are the names of all its table functions."""

    def __init__(self, tables: Collection[str]) -> None:
        self._refused = (frozenset(name.lower() for name in tables) - HARMLESS) | REFUSED
        words = "|".join(sorted(self._refused | HIDDEN | {"deltastream"}, key=len, reverse=True))
        self._suspicious = re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.I)

    def before(self, sql: str) -> None:
        """What is refused by its first words, before DuckDB itself looks at it. Raises Failure."""
        word = first_word(sql)
        if word in NEVER:
            raise Failure(sqlstate.PRIVILEGE, f"{word.upper()} is not allowed on this service")
        if word not in FIRST:
            raise Failure(sqlstate.SYNTAX, f'syntax error at or near "{word}"')

    def check(self, sql: str, kind: str) -> None:
        """What is refused wherever it hides in a statement of the type `kind`. Raises Failure."""
        if kind not in KINDS:
            raise Failure(sqlstate.PRIVILEGE, f"{kind} is not allowed on this service")
        head = _words(sql[:4000])
        match kind:
            case "EXPLAIN":
                self._explained(head)
            case "CREATE":
                self._created("CREATE", head[1:], CREATED)
            case "DROP" | "ALTER":
                # COMMENT ON TABLE is an ALTER too.
                self._created(head[0].upper(), [word for word in head[1:] if word != "on"], CHANGED)
            case "SET" | "VARIABLE_SET":
                self._set(head)
        if _FILE.search(sql) and any(True for _ in self._files(sql)):
            raise Failure(sqlstate.PRIVILEGE, "files are read through stores here: CREATE STORE, then store.entity")
        if self._suspicious.search(sql):
            self._look(sql, kind)

    @staticmethod
    def explain(failure: Failure) -> Failure:
        """The refusal that a missing relation is when its name is a path."""
        found = _MISSING.search(failure.message.partition("\n")[0])
        if found and _PATH.search(found[1]):
            said = f"{found[1]} is not a relation, and files are read through stores here"
            return Failure(sqlstate.PRIVILEGE, said)
        return failure

    def _look(self, sql: str, kind: str) -> None:
        tokens = list(_tokens(sql))
        for number, (word, quoted) in enumerate(tokens):
            after = tokens[number + 1][0] if number + 1 < len(tokens) else ""
            if word in self._refused and (after == "(" or word in REFUSED or word.startswith(("duckdb_", "pragma_"))):
                raise Failure(sqlstate.PRIVILEGE, f"{word} is not allowed on this service")
            if word in HIDDEN and not quoted:
                raise Failure(sqlstate.PRIVILEGE, f"{word.upper()} is not allowed on this service")
            if word == "deltastream" and kind not in {"SELECT", "EXPLAIN", "SET", "INSERT", "CREATE"}:
                raise Failure(sqlstate.PRIVILEGE, "deltastream.sys is read only")
            if word == "deltastream" and kind in {"INSERT", "CREATE"}:
                before = {text for text, _ in tokens[:number]}
                if not before & {"select", "from", "as"}:
                    raise Failure(sqlstate.PRIVILEGE, "deltastream.sys is read only")

    @staticmethod
    def _files(sql: str) -> Iterator[str]:
        """Words in the place of a relation that are followed by a string."""
        before = ""
        for word, _ in _tokens(sql, strings=True):
            if word == "'" and before in {
                "from", "join", "into", "update", "table", "describe", "desc", "summarize", "show", "pivot", "unpivot",
                "using", "pivot_wider", "pivot_longer",
            }:  # fmt: skip
                yield before
            if word != "(":
                before = word

    @staticmethod
    def _explained(head: list[str]) -> None:
        words = head[1:]
        while words and words[0] in {"analyze", "("}:
            words = words[words.index(")") + 1 :] if words[0] == "(" and ")" in words else words[1:]
        if words and words[0] not in FIRST:
            raise Failure(sqlstate.PRIVILEGE, f"EXPLAIN {words[0].upper()} is not allowed on this service")

    @staticmethod
    def _created(verb: str, head: list[str], known: Collection[str]) -> None:
        words = [word for word in head if word not in FILLERS]
        if not words or words[0] not in known:
            raise Failure(sqlstate.PRIVILEGE, f"{verb} {words[0].upper() if words else ''} is not allowed here")

    @staticmethod
    def _set(head: list[str]) -> None:
        if head[0] == "use":
            return
        words = [word for word in head[1:] if word not in {"session", "local"}]
        if words[:2] == ["global", "timezone"]:
            # It is refused everywhere, with what to do instead.
            return
        if words and words[0] == "time" and words[1:2] == ["zone"]:
            return
        if not words or words[0] not in SETTABLE:
            said = f"setting {words[0] if words else ''} is not allowed on this service"
            raise Failure(sqlstate.PRIVILEGE, said)


def needed(sql: str, kind: str) -> Rights:
    """The least rights for a statement of the type `kind`; a writing CTE or EXPLAIN ANALYZE counts as what it does."""
    least = KINDS.get(kind, Rights.OBJECTS)
    if least > Rights.READ or kind in {"SET", "TRANSACTION"}:
        return least
    if re.search(rf"(?<!\w)(?:{'|'.join(WRITING | CREATED_WORDS)})(?!\w)", sql, re.I):
        before = ""
        for word, quoted in _tokens(sql):
            if not quoted and word in WRITING and not (word == "update" and before == "for"):
                return Rights.DATA
            if kind == "EXPLAIN" and not quoted and word in CREATED_WORDS:
                return Rights.OBJECTS
            before = word
    return least


CREATED_WORDS = frozenset({"create", "drop", "alter"})


def writes_inside(sql: str) -> bool:
    """Whether a SELECT has a common table expression that writes, and so can stand in no subquery."""
    if not _WRITES.search(sql):
        return False
    before = ""
    for word, quoted in _tokens(sql):
        if before == "(" and not quoted and word in WRITING | HIDDEN:
            return True
        before = word
    return False


def returns_rows(sql: str) -> bool:
    """Whether a statement that writes asks for rows: RETURNING, or the RETURN_FILES and RETURN_STATS of COPY."""
    return "return" in sql.lower() and any(word in RETURNING and not quoted for word, quoted in _tokens(sql))


def first_word(sql: str) -> str:
    blank = _BLANK.match(sql)
    found = _WORD.match(sql, blank.end() if blank else 0)
    return found[0].lower() if found else ""


def _words(text: str) -> list[str]:
    return [word for word, _ in _tokens(text)]


def _tokens(sql: str, *, strings: bool = False) -> Iterator[tuple[str, bool]]:
    """Words and signs in lower case, and whether each was quoted; strings as "'" or not at all."""
    encoded = sql.encode("utf-8", "surrogatepass")
    found = duckdb.tokenize(sql)
    starts = [start for start, _ in found] + [len(encoded)]
    for number, (start, kind) in enumerate(found):
        name = kind.name
        if name == "comment":
            continue
        if name in {"string_const", "string_constant"}:
            if strings:
                yield "'", True
            continue
        text = encoded[start : starts[number + 1]].decode("utf-8", "replace").strip()
        if text.startswith('"'):
            yield text.strip('"').replace('""', '"').lower(), True
        else:
            yield text.lower(), False
