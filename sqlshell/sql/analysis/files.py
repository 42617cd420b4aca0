"""The local files that a statement uploads: `'file' = '@path'`, as in other tools for the interface."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import Final

from msgspec import Struct

from sqlshell.origin import Text, Trusted, refused
from sqlshell.sql.analysis.kinds import calls_unknown
from sqlshell.sql.analysis.lexed import Lexed, lexed, once_per_statement
from sqlshell.sql.analysis.tokens import Token
from sqlshell.sql.identifiers import RESERVED, literal

_READER: Final = r"(?i)read_\w+|\w+_scan|sniff_csv"
_MAY_READ: Final = r"(?i)from|read_|_scan|sniff_csv"


_OPENS: Final = (
    r"(?i)read_\w+|\w+_scan|scan_\w+|glob|sniff_csv|parquet_\w+|st_read\w*|iceberg_\w+|delta_\w+|query|query_table"
    r"|getenv|json_execute_serialized_sql|from_substrait\w*"
)
"""Functions of DuckDB that open files, or run SQL that may."""
_SETTLING: Final = frozenset(
    {
        *("ATTACH", "DETACH", "EXPORT", "IMPORT", "INSTALL", "LOAD", "PRAGMA", "CALL", "STORE"),
        *("SECRET", "GLOBAL", "VARIABLE", "EXECUTE"),
    }
)
"""Words near the beginning of statements that access something outside the database."""
_NO_CALLS: Final = RESERVED | {
    *("CHECK", "COMMENT", "CONFLICT", "COPY", "ENUM", "EXCLUDE", "EXISTS", "FILTER", "GLOB", "ILIKE", "IN", "KEY"),
    *("LATERAL", "MAP", "OVER", "REPLACE", "RETURNING", "ROW", "SIMILAR", "SOME", "STRUCT", "TO", "UNIQUE"),
}
"""Words that may precede a parenthesis that is not a call."""
_NAMING: Final = frozenset({"TABLE", "INTO", "EXISTS", "TYPE", "STREAM", "CHANGELOG", "RECURSIVE"})
"""Words that are followed by a name and a list of its columns."""
_QUERIES: Final = frozenset(
    {"SHOW", "SELECT", "FROM", "WITH", "TABLE", "DESCRIBE", "SUMMARIZE", "PIVOT", "UNPIVOT", "COPY"}
)
_RELATIONS: Final = frozenset({"SHOW", "FROM", "JOIN", "USING", "TABLE", "DESCRIBE", "SUMMARIZE", "PIVOT", "UNPIVOT"})
_ENDS: Final = frozenset(
    {
        *("SELECT", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "ON"),
        *("SET", "QUALIFY", "WINDOW", "UNION", "EXCEPT", "INTERSECT", "RETURNING", "WITH"),
    }
)
"""Words that end a list of relations."""
_ENDINGS: Final = frozenset(
    {
        *("csv", "tsv", "txt", "parquet", "json", "jsonl", "ndjson", "gz", "zst"),
        *("xlsx", "arrow", "avro", "db", "ddb", "duckdb", "sqlite", "vortex", "blob"),
    }
)


class NamedFile(Struct, frozen=True):
    """A file that a statement names, and the option that names it."""

    key: str
    path: Trusted


class StatementWithFiles(Struct, frozen=True):
    """A statement and its files. In `sql` they are named by their base names; `files` are those that the text named
    with `@`.
    """

    sql: str
    files: tuple[NamedFile, ...]


def named_files(statement: Lexed | Text, *, again: bool = False) -> StatementWithFiles:
    """Replace the `@path` of each `'key' = '@path'` in the WITH lists of a statement by the base name.

    `'@@value'` becomes the value `@value`. A lone `@` is not changed, and neither is a value from a service that begins
    with `@`, except for the key `file`, or if the text may be read `again` as the user's own. Raises UsageError if a
    part of the path came from a service.
    """
    statement = lexed(statement)
    sql = statement.text
    if "'@" not in sql:
        return StatementWithFiles(sql, ())
    own = statement.own
    pieces: list[str] = []
    files: list[NamedFile] = []
    done = 0
    for key, sign, value in _options(statement.tokens):
        if value.kind != "string" or not value.value.startswith("@") or len(value.value) < 2:
            continue
        name = "".join(token.value for token in key)
        if not again and not own(value) and all(map(own, key)) and name.lower() != "file":
            continue
        if not all(map(own, (*key, sign, value))):
            raise refused("the name of a file to upload", statement.whole.source)
        sent = path = value.value[1:]
        if not path.startswith("@"):
            files.append(NamedFile(name, Trusted(path)))
            sent = PurePath(path).name
        pieces += [sql[done : value.start], literal(sent)]
        done = value.end
    return StatementWithFiles("".join([*pieces, sql[done:]]), tuple(dict.fromkeys(files)))


def _options(given: Sequence[Token]) -> Iterator[tuple[list[Token], Token, Token]]:
    """The tokens of key, `=` and value of each `key = value` in the WITH lists of a statement."""
    lists: list[bool] = []
    key: list[Token] = []
    sign: Token | None = None
    for number, token in enumerate(given):
        if token.kind == "sign" and token.text in "(),":
            if token.text == "(":
                lists.append(number > 0 and given[number - 1].word == "WITH")
            elif token.text == ")" and lists:
                lists.pop()
            key, sign = [], None
        elif not lists or not lists[-1]:
            continue
        elif token.text == "=" and key and sign is None:
            sign = token
        elif sign is None:
            key.append(token)
        else:
            yield key, sign, token
            key, sign = [], None


@once_per_statement
def read_files(statement: Lexed) -> tuple[str, ...]:
    """The paths that a statement reads: those of `FROM 'path'`, also in COPY, and of `read_csv('path')` and similar
    functions.
    """
    return tuple(_read_files(statement)) if re.search(_MAY_READ, statement.text) else ()


def _read_files(statement: Lexed) -> Iterator[str]:
    reader = False
    for before, token in pairwise(statement):
        if token.text == "(" and re.fullmatch(_READER, before.word):
            reader = True
        elif token.text == ")":
            reader = False
        elif token.kind in {"string", "name"} and (reader or before.word == "FROM"):
            yield token.value


def names_file(statement: Lexed | Text, name: str) -> bool:
    """Whether a string of the statement is that name.

    Raises UsageError if the string names a file to upload and came from a service.
    """
    statement = lexed(statement)
    own, given = statement.own, statement.tokens
    if any(value.kind == "string" and value.value == name and not own(value) for _, _, value in _options(given)):
        raise refused("the name of a file to upload", statement.whole.source)
    return any(token.kind == "string" and token.value == name and own(token) for token in given)


def refuse_files(statement: Lexed | Text) -> None:
    """Raise UsageError if a value from a service names a file, as far as the tokens show.

    For statements that a DuckDB runs with the user's own permissions.
    """
    statement = lexed(statement)
    if not statement.whole.foreign:
        return
    own, given = statement.own, statement.tokens
    settles = any(token.word in _SETTLING for token in given[:4]) or any(token.word == "SET" for token in given[:1])
    if settles and not all(map(own, given)):
        raise refused("a part of this statement", statement.whole.source)
    open_ = [_Bracket(query=True)]
    for number, token in enumerate(given):
        before = given[number - 1] if number else None
        last = open_[-1]
        foreign = not own(token)
        names = last.relations and (last.expected or (before is not None and before.text in {",", ":"}))
        if token.text == "(":
            reader = before is not None and re.fullmatch(_OPENS, before.value) is not None
            foreign = reader and before is not None and not own(before)
            query = names or (len(given) > number + 1 and given[number + 1].word in _QUERIES)
            unknown = last.unknown or _calls_unknown(given, number)
            open_.append(_Bracket(reader or last.reader, unknown, query=query, relations=names, expected=names))
        elif token.text == ")":
            open_, foreign = open_[:-1] or [_Bracket(query=True)], False
        elif token.word == "COPY":
            last.copies = True
        elif last.query and token.word in _RELATIONS and (before is None or before.word != "DISTINCT"):
            last.relations = last.expected = True
            continue
        elif token.word in _ENDS or (token.word == "VALUES" and before is not None and before.text == "("):
            last.relations, foreign = False, False
        elif foreign and not last.reader:
            # DuckDB looks for a file whose name is all parts of a relation's name, joined by dots.
            part = last.relations and before is not None and before.text == "."
            ending = part and token.value.lower() in _ENDINGS
            file = (names or part) and _like_file(token, given[number + 1 : number + 3])
            target = last.copies and not (token.kind == "name" and before is not None and before.word == "COPY")
            foreign = file or target or ending or (last.unknown and token.kind == "string")
        if foreign:
            raise refused("a file name or part of an expression that opens a file", statement.whole.source)
        last.expected = False


class _Bracket(Struct):
    """An open bracket: of a function that opens files, or of an `unknown` one, which may be a macro that does.

    If `relations` is set, a string is a file; `expected` says that the next token may be one.
    """

    reader: bool = False
    unknown: bool = False
    copies: bool = False
    query: bool = False
    relations: bool = False
    expected: bool = False


def _calls_unknown(given: Sequence[Token], number: int) -> bool:
    """Whether a bracket begins the arguments of an unknown function."""
    at = number - 1
    if given[at].word in _NO_CALLS or not calls_unknown(given, number):
        return False
    while at > 1 and given[at - 1].text == ".":
        at -= 2
    return at == 0 or given[at - 1].word not in _NAMING


def _like_file(token: Token, following: Sequence[Token]) -> bool:
    """Whether a relation looks like a file: `'a.csv'`, `"a.csv"` or `a.csv`."""
    if (
        token.kind == "string"
        or any(char in token.value for char in "/\\*?[")
        or (token.kind == "name" and "." in token.value)
    ):
        return True
    return len(following) == 2 and following[0].text == "." and following[1].value.lower() in _ENDINGS
