"""Checks what a statement may do: by DuckDB's type of the statement, a few words, and the functions that it calls.

Little is decided here. DuckDB's lock refuses files outside of the organization's folder, settings and extensions. A
reader's statements and a writer's DROP run in READ ONLY transactions, in which DuckDB refuses every lasting change.
What remains is refused here: types of statements, COPY within a statement, functions that reach around both, and the
names of the service's own files. SQL that the service runs itself is not checked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from itertools import dropwhile, pairwise, takewhile
from pathlib import Path
from typing import Any, Final

import duckdb
from msgspec import Struct
from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.service.engines.duckdb.rights.functions import is_refused
from sqlshell.service.engines.duckdb.statement import Word, words
from sqlshell.service.engines.engine import Rights
from sqlshell.service.failure import Failure

LEAST_RIGHTS: Final = {
    "SELECT": Rights.READ,
    "EXPLAIN": Rights.READ,
    "TRANSACTION": Rights.READ,
    "SET": Rights.READ,
    # Of temporary objects: in a READ ONLY transaction DuckDB refuses all others.
    "CREATE": Rights.READ,
    "DROP": Rights.READ,
    "INSERT": Rights.READ,
    "UPDATE": Rights.READ,
    "DELETE": Rights.READ,
    "MERGE_INTO": Rights.READ,
    "ALTER": Rights.OBJECTS,
    "VACUUM": Rights.OBJECTS,
}
"""The types of statements that may run, and the least rights for each. MULTI counts as the type of its first word."""

_SELECTS: Final = ("(", "describe", "from", "pivot", "pivot_wider", "select", "summarize", "table", "unpivot", "with")
_MULTI: Final = {
    "merge": "MERGE_INTO",
    **{word: word.upper() for word in ("alter", "create", "delete", "explain", "insert", "update")},
    **dict.fromkeys(_SELECTS, "SELECT"),
}
"""The types of statements with a PIVOT or a DEFAULT that DuckDB runs as several statements, by their first words."""

_OBJECTS: Final = frozenset(("column", "function", "index", "macro", "schema", "sequence", "table", "type", "view"))
"""The kinds of objects of CREATE, ALTER, COMMENT and DROP: no secrets, no triggers."""

_FILLERS: Final = frozenset(("or", "replace", "recursive", "unique", "local", "global", "on"))
_TEMPORARY_OBJECTS: Final = _OBJECTS - {"column", "index", "schema"}
_TEMPORARY: Final = frozenset(("temp", "temporary"))
_BEFORE_INTO: Final = frozenset(("ignore", "insert", "merge", "replace"))
_WRITING: Final = frozenset(("delete", "insert", "merge", "truncate", "update"))
_SEQUENCES: Final = frozenset(("nextval", "setval"))
_CHANGES_DATA: Final = frozenset(("SELECT", "EXPLAIN", "INSERT", "UPDATE", "DELETE", "MERGE_INTO"))

_BEGINS: Final = frozenset(("begin", "start"))
_SHARED: Final = frozenset(("CALL", "DROP", "LOAD", "MULTI", "PRAGMA", "VACUUM"))
"""Types that several statements share: CHECKPOINT, DEALLOCATE, INSTALL, IMPORT and ANALYZE too."""

_FIRST: Final = 12
_HEAD: Final = 4096
"""How many of the first words of a statement are needed, and the characters in which they are looked for."""


class Policy:
    """What all checks of an engine share. Before restrict() the user of the engine, who is its owner, may do anything.

    `functions` lists the names of DuckDB's own functions.
    """

    def __init__(self, functions: Callable[[], Collection[str]]) -> None:
        self.strict = False
        self.folder = ""
        """What each path of the organization's own files contains, with slashes as separators."""
        self._functions = functions

    def restrict(self, folder: Path) -> None:
        self.strict, self.folder = True, f"{folder.name}/"

    @cached_property
    def functions(self) -> frozenset[str]:
        return frozenset(self._functions())

    @cached_property
    def refused(self) -> frozenset[str]:
        """The functions that no statement may call."""
        return frozenset(filter(is_refused, self.functions))


class CheckedStatement(Struct, frozen=True):
    """One statement: its type, its SQL, and its parsed form.

    `transaction` is "begin" or "end" if it begins or ends one. check() says whether it must run in a READ ONLY
    transaction, and whether it may leave temporary objects, settings or variables in its session.
    """

    kind: str
    sql: str
    parsed: Any
    transaction: str = ""
    read_only: bool = False
    leaves_state: bool = False


class _Rule(Struct, frozen=True):
    """What the first words of a statement say of it: `kind` is its type or that of what it explains."""

    kind: str
    read_only: bool = False
    temporary: bool = False
    keeps_sequences: bool = False
    """Whether it may not contain nextval: DuckDB would advance the sequence while it binds, which may be fatal."""


def parsed(connection: duckdb.DuckDBPyConnection, sql: str) -> CheckedStatement:
    """Parse exactly one statement. Raises Failure, and duckdb.Error for a syntax error."""
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise Failure(sqlstate.SYNTAX, f"expected one statement, found {len(statements)}")
    [statement] = statements
    try:
        kind = str(statement.type.name)
    except ValueError:
        # The Python package has no name for the type.
        kind = ""
    transaction = ""
    if kind == "TRANSACTION":
        transaction = "begin" if words(str(statement.query))[0].word in _BEGINS else "end"
    return CheckedStatement(kind, sql, statement, transaction)


def check(
    connection: duckdb.DuckDBPyConnection,
    policy: Policy,
    statement: CheckedStatement,
    rights: Rights,
    *,
    in_transaction: bool,
) -> CheckedStatement:
    """Check a statement, whose SQL then has DuckDB's blanks as blanks. Raises Failure for what the role may not do.

    Only the parser sees the statement here, and nothing is read from the session, whose user may have replaced it.
    """
    text = str(statement.parsed.query)
    kind, first = statement.kind, _first_words(text)
    rule = _rule(connection, kind, first, text, rights, in_transaction)
    _check_names(policy, text, rule, rights)
    setting = kind == "SET" and first[0].word != "use" and first[1].name != "schema"
    state = rule.temporary or setting or "setseed" in text.lower()
    return replace(statement, sql=text, read_only=rule.read_only, leaves_state=state)


def denied(what: str, rights: Rights, kind: str) -> Failure:
    """The refusal of a statement, a function or a type of statement that changes what this role may not change."""
    changed = "data" if kind in _CHANGES_DATA else "objects"
    return Failure(
        sqlstate.PRIVILEGE, f'permission denied: role "{rights.role}" cannot run {what}, which changes {changed}'
    )


def spoken(kind: str, first: str) -> str:
    """The name of a type of statement in messages; `first` is the statement's first word."""
    if kind == "COPY":
        return "COPY, except COPY … TO STDOUT,"
    return first.upper() if kind in _SHARED else kind.replace("_", " ") or "this kind of statement"


def _first_words(text: str) -> list[Word]:
    """The first words of a statement, at least _FIRST of them if it has so many."""
    found = words(text[:_HEAD])
    # It may begin with long comments.
    return found if len(found) > _FIRST or len(text) <= _HEAD else words(text)


def _rule(
    connection: duckdb.DuckDBPyConnection,
    kind: str,
    first: Sequence[Word],
    text: str,
    rights: Rights,
    in_transaction: bool,
) -> _Rule:
    """What applies to a statement with this type and these first words. Raises Failure if the role may not run it."""
    verb = first[0].word
    what = spoken(kind, verb)
    if kind == "MULTI":
        kind = _MULTI.get(verb, "")
    least = LEAST_RIGHTS.get(kind)
    if least is None or verb == "deallocate":
        raise refused(what)
    if rights < least:
        raise denied(what, rights, kind)
    if rights is Rights.READ and in_transaction and (kind not in {"SELECT", "TRANSACTION"} or _names_writing(text)):
        # The condition of a LIST runs in an owner's transaction; else a session keeps its role until that ends.
        raise Failure("25001", "a transaction of another role is open; COMMIT or ROLLBACK first")
    if kind == "EXPLAIN":
        statement = _explained(connection, text)
        if statement.kind not in {*_CHANGES_DATA, "CREATE", "MULTI"}:
            raise refused(f"EXPLAIN of {statement.kind}")
        inner = str(statement.parsed.query)
        return _rule(connection, statement.kind, _first_words(inner), inner, rights, in_transaction)
    if kind in {"CREATE", "DROP", "ALTER"}:
        return _rule_for_object(kind, what, first, rights, in_transaction)
    return _Rule(kind, read_only=rights is Rights.READ)


def _names_writing(text: str) -> bool:
    return any(item.word in _WRITING for item in words(text))


def _rule_for_object(kind: str, what: str, first: Sequence[Word], rights: Rights, in_transaction: bool) -> _Rule:
    """What applies to CREATE, DROP, ALTER and COMMENT. Raises Failure if the role may not run it."""
    before = list(takewhile(lambda item: item.word in _FILLERS | _TEMPORARY, first[1:]))
    named, behind = first[1 + len(before)].word, first[2 + len(before) :]
    if named not in _OBJECTS:
        raise refused(f"{first[0].word.upper()} {named.upper()}")
    temporary = any(item.word in _TEMPORARY for item in before)
    if kind == "DROP" and rights < Rights.OBJECTS:
        name = list(dropwhile(lambda item: item.word in {"if", "exists", "table"}, behind))
        is_temporary = [item.name for item in name[:2]] == ["temp", "."]
        if in_transaction and rights > Rights.READ and not is_temporary:
            where = f'in a transaction, role "{rights.role}" may drop only temporary objects'
            raise Failure(sqlstate.PRIVILEGE, f"permission denied: {where}: DROP {named.upper()} temp.…")
        return _Rule(kind, read_only=True)
    if rights < Rights.OBJECTS and not (temporary and named in _TEMPORARY_OBJECTS):
        raise denied(what, rights, kind)
    is_lasting_table = named == "table" and not temporary
    return _Rule(kind, rights is Rights.READ, temporary, kind == "CREATE" and not is_lasting_table)


def _explained(connection: duckdb.DuckDBPyConnection, text: str) -> CheckedStatement:
    """The statement that an EXPLAIN explains, which follows its options."""
    found, encoded = words(text), text.encode("utf-8", "surrogatepass")
    rest = list(dropwhile(lambda item: item.word in {"explain", "analyze", "verbose"}, found))
    behind: Sequence[Word] = ()
    if rest[0].word == "(":
        # The options are in parentheses; a SELECT may begin with parentheses too.
        behind = list(dropwhile(lambda item: item.word != ")", rest))[1:2]
    for item in (*behind, rest[0]):
        with contextlib.suppress(duckdb.Error, Failure):
            return parsed(connection, encoded[item.start :].decode("utf-8", "surrogatepass"))
    raise refused("this form of EXPLAIN")


def _check_names(policy: Policy, text: str, rule: _Rule, rights: Rights) -> None:
    """Refuse COPY within a statement, calls of functions that the role may not call, and the service's own files."""
    # DuckDB takes a backslash for a separator too.
    if policy.folder and policy.folder in text.replace("\\", "/"):
        message = "a statement may not name files of the service; to read files, run CREATE STORE"
        raise Failure(sqlstate.PRIVILEGE, message)
    low = text.lower()
    if not any(name in low for name in ("copy", *_SEQUENCES, *policy.refused)):
        return
    target, before = False, ""
    for item, behind in pairwise([*words(text), Word("", "", "", 0)]):
        if item.word == "copy":
            raise refused("COPY within a statement", '; write the name of a column as "copy"')
        # After INSERT INTO, the columns of a relation follow its name. A column may be called into.
        is_called = behind.word == "(" and not target
        begins = item.word == "into" and before in _BEFORE_INTO and behind.word != "."
        target, before = begins or (target and "." in {item.word, behind.word}), item.word
        if not is_called:
            continue
        if item.name in policy.refused:
            raise refused(f"function {item.name}")
        if item.name in _SEQUENCES and rule.keeps_sequences:
            raise refused(f"{item.name} in CREATE, except of a permanent table,")
        if item.name in _SEQUENCES and rights is Rights.READ:
            raise denied(item.name, rights, "SELECT")


def refused(what: str, advice: str = "") -> Failure:
    return Failure(sqlstate.PRIVILEGE, f"{what} is not allowed on this service{advice}")
