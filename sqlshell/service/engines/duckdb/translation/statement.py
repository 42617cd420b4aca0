"""Translates a statement from the dialect to DuckDB's SQL, in one pass over its tokens."""

from __future__ import annotations

import bisect
import functools
import json
from collections.abc import Callable, Collection
from typing import Any, Final

import duckdb
from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.service.engines.duckdb.translation import functions
from sqlshell.service.engines.duckdb.translation.text import BracketedTokens, Edits
from sqlshell.service.engines.duckdb.translation.types import read_type
from sqlshell.service.engines.engine import NO_CONTINUOUS_QUERIES
from sqlshell.service.error_places import TranslatedStatement
from sqlshell.service.failure import Failure
from sqlshell.sql.analysis.tokens import Token
from sqlshell.sql.identifiers import always_quoted, literal

_BEFORE_KIND: Final = frozenset(
    {
        "OR", "REPLACE", "TEMP", "TEMPORARY", "LOCAL", "GLOBAL", "UNLOGGED", "PERSISTENT", "RECURSIVE", "UNIQUE",
    }
)  # fmt: skip
_MACROS: Final = frozenset({"MACRO", "FUNCTION"})
_NAMED: Final = _MACROS | {
    "ANALYZE", "CHANGELOG", "COPY", "EXISTS", "FROM", "INDEX", "INTO", "JOIN", "RECURSIVE", "REFERENCES", "STREAM",
    "TABLE", "TYPE", "UPDATE", "VACUUM", "VIEW",
}  # fmt: skip
"""Words after which a name with parentheses is not a call."""

_ENDS: Final = frozenset(
    {
        "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "UNION", "INTERSECT", "EXCEPT", "WINDOW",
        "QUALIFY", "ON", "VALUES",
    }
)  # fmt: skip
"""Words that may follow a list of columns."""

_MANY_COLUMNS: Final = frozenset({"COLUMNS", "UNNEST"})
"""Calls that may return several columns, whose names are not ours."""

_LONGEST_NAME: Final = 1000
"""Maximum characters of a column's text that are used as its name."""

_WINDOWS: Final = frozenset({"TUMBLE", "HOP", "CUMULATE"})
_POSITION: Final = "starting.position"

_NOT_VALUES: Final = frozenset(
    {
        "ALL", "AND", "AS", "BETWEEN", "BY", "CASE", "DISTINCT", "ELSE", "END", "FROM", "HAVING", "IN", "IS", "LIKE",
        "LIMIT", "NOT", "ON", "OR", "RETURNING", "SELECT", "SET", "THEN", "UNION", "USING", "VALUES", "WHEN", "WHERE",
    }
)  # fmt: skip
"""Words that cannot end a value."""

_NOT_FIELDS: Final = frozenset(
    {
        "ANY", "ARRAY", "CASE", "CAST", "DATE", "EXISTS", "FALSE", "INTERVAL", "LAMBDA", "MAP", "NOT", "NULL", "ROW",
        "SELECT", "TIMESTAMP", "TRUE", "TRY_CAST",
    }
)  # fmt: skip
"""Words that begin an expression, such as the body of a lambda after its arrow, and name no field there."""

_OPERATORS: Final = frozenset("+-*/%=<>|&^~")
_END_VALUES: Final = frozenset({"END", "FALSE", "NULL", "TRUE"})
_BEFORE_VALUES: Final = frozenset({"AND", "LIKE", "NOT", "OR"})
"""Words that are not names, and after which a value begins."""

_MOST_SITES: Final = 1000
_TRIES: Final = 64
"""Maximum number of attempts to bind a statement to find out the types of its values."""


class Translation(Struct, frozen=True):
    """A translated statement; `from_earliest` if its stream is read from the first row."""

    statement: TranslatedStatement
    from_earliest: bool = False


class Site(Struct, frozen=True):
    """A form whose meaning depends on a value's type, with its two possible replacements in the order in which they are
    tried.

    `start` is its first token; sites with the same `about` have the same meaning.
    """

    start: int
    about: str
    first: Edits
    second: Edits


_ARGUMENT_ERRORS: Final = frozenset({"NO_MATCHING_FUNCTION", "COLUMN_NOT_FOUND", "MISSING_ENTRY"})
"""Error types of a statement that calls a function with wrong arguments."""

_MANY_ARGUMENTS: Final = ", ".join("111111111")
"""More arguments than any macro is expected to have, so that none is evaluated."""


def has_function(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Tell whether a scalar function or macro of this name exists for the session."""
    error = _binding_error(connection, f"SELECT {always_quoted(name)}({_MANY_ARGUMENTS})")
    return bool(error.get("error_subtype") != "MISSING_ENTRY")


def mismatch(connection: duckdb.DuckDBPyConnection, sql: str) -> int | None:
    """Return the position in a statement, in characters, of a function that does not accept its arguments.

    None if all do, or if there is another error. Binding advances sequences outside of a READ ONLY transaction.
    """
    error = _binding_error(connection, sql)
    if error.get("error_subtype") in _ARGUMENT_ERRORS and "position" in error:
        return len(sql.encode()[: int(error["position"])].decode(errors="ignore"))
    return None


def _binding_error(connection: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    """The error of binding a statement, which does not abort the open transaction; empty if there is none."""
    asked = "SELECT system.main.json_serialize_plan(?, optimize := false)"
    [(text,)] = connection.execute(asked, [sql]).fetchall()
    # A plan may be large, and constants of some types in it are not valid JSON.
    error: dict[str, Any] = json.loads(text) if text.startswith('{"error":true') else {}
    return error


class _Frame(Struct):
    """Open parentheses: what they belong to, whether they contain a FROM, how many brackets and braces are open in
    them, where the current column of a SELECT begins (-1 outside of its list), and whether its name is kept.
    """

    opening: int = -1
    kind: str = ""
    reads: bool = False
    brackets: int = 0
    column: int = -1
    keeps: bool = False


def translated(sql: str, is_own: Callable[[str], bool], mismatch: Callable[[str], int | None]) -> Translation | None:
    """Return the statement translated into DuckDB's SQL; None if there is nothing to translate.

    `is_own` says whether a function exists without translation; `mismatch` returns the position of a function that does
    not accept its arguments, None if all do. Raises Failure for what DuckDB does not support.
    """
    reader = _Reader(sql, is_own)
    reader.read()
    if not reader.edits and not reader.sites:
        return None
    return Translation(_settled(reader, mismatch), reader.from_earliest)


def _settled(reader: _Reader, mismatch: Callable[[str], int | None]) -> TranslatedStatement:
    """The statement with the first replacement of each site that can be bound."""
    second: set[str] = set()
    for _ in range(_TRIES):
        statement = reader.edited(second)
        tried = [site for site in reader.sites if site.about not in second]
        offset = mismatch(statement.sql) if tried else None
        if offset is None:
            return statement
        place = statement.place(offset)
        wrong = {site.about for site in tried if reader.text.tokens[site.start].start == place}
        if not wrong:
            return statement
        second |= wrong
    return reader.edits.applied(reader.text)


def _continuous(what: str) -> Failure:
    return Failure(sqlstate.UNSUPPORTED, f"{what} is not supported: {NO_CONTINUOUS_QUERIES}")


class _Reader:
    """Reads the tokens once and records their replacements."""

    def __init__(self, sql: str, is_own: Callable[[str], bool]) -> None:
        self.text = BracketedTokens(sql)
        self.edits = Edits()
        self.sites: list[Site] = []
        self.unnamed: list[tuple[int, int]] = []
        """The columns without an alias: the first token of each, and the one after it."""
        self.changes: list[int] = []
        """The tokens where text of columns is replaced in any case."""
        self.from_earliest = False
        self._is_own = functools.cache(is_own)
        self._values: dict[int, int] = {}
        """The first tokens of values by their last ones: of columns, calls, and expressions in parentheses, each with
        the subscripts, fields and arrows behind it."""
        self._arrows: dict[int, str] = {}
        """The texts of the values before arrows, by their first tokens."""
        self._fields: dict[int, str] = {}
        """The same, by the fields after the arrows."""
        self._frames = [_Frame()]
        self._kind = ""
        self._columns = -1
        self._default = False
        """Whether a DEFAULT has been read."""
        self._place = 0

    def read(self) -> None:
        text = self.text
        at = self._head()
        while at < len(text):
            self._place = at + 1
            token = text.tokens[at]
            self._value(at, token)
            if token.kind == "word":
                self._word(at, token.word)
            elif token.kind == "sign":
                self._sign(at, token.text)
            at = self._place
        self._end_column(len(text))

    def edited(self, second: Collection[str]) -> TranslatedStatement:
        """The statement with the second replacement of the sites about `second`, and the first one of the others."""
        edits, changes = Edits(), list(self.changes)
        edits.add(self.edits)
        for site in self.sites:
            chosen = site.second if site.about in second else site.first
            edits.add(chosen)
            if chosen:
                changes.append(site.start)
        changes.sort()
        for start, behind in self.unnamed:
            at = bisect.bisect_left(changes, start)
            if at < len(changes) and changes[at] < behind and (name := self._name(start, behind, second)):
                edits.append(behind - 1, f" AS {always_quoted(name)}")
        return edits.applied(self.text)

    def _name(self, start: int, behind: int, second: Collection[str]) -> str:
        """The name of a column without an alias: that of its field, or its text. It is "" for a very long text."""
        first, last = self.text.tokens[start], self.text.tokens[behind - 1]
        about = self._fields.get(behind - 1)
        if about is not None and about not in second and self._values[behind - 1] == start:
            return last.value
        text = self.text.sql[first.start : last.end]
        return " ".join(text.split()) if len(text) <= _LONGEST_NAME else ""

    def _head(self) -> int:
        """The position after the beginning of a statement, whose words say where types may occur."""
        text, at = self.text, 0
        while text.word(at) in {"EXPLAIN", "ANALYZE"}:
            at += 1
        verb = text.word(at)
        self._kind = verb
        if verb != "CREATE":
            return at
        at += 1
        while text.word(at) in _BEFORE_KIND:
            at += 1
        self._kind = text.word(at)
        at += 1
        if text.word(at) == "IF":
            at += 3
        if not text.is_name(at):
            return at
        at += 1
        while text.sign(at) == "." and text.is_name(at + 1):
            at += 2
        if self._kind in _MACROS | {"TABLE", "STREAM", "CHANGELOG"} and text.sign(at) == "(":
            self._columns = at
        if self._kind == "TYPE" and text.word(at) == "AS":
            self._type(at + 1)
            return self._place
        return at

    def _type(self, at: int) -> None:
        """Translate the type at a token and continue after it."""
        self._place = max(at, read_type(self.text, at, self.edits))

    def _column(self, at: int) -> None:
        if self.text.is_name(at):
            self._type(at + 1)

    def _sign(self, at: int, sign: str) -> None:
        text, frame = self.text, self._frames[-1]
        if sign in {"[", "{"}:
            frame.brackets += 1
        elif sign in {"]", "}"}:
            frame.brackets -= 1
        elif sign == "," and frame.brackets > 0:
            return
        if sign in {",", ")", ";"}:
            self._end_column(at, at + 1 if sign == "," else -1)
        match sign:
            case "(":
                self._open(at)
            case ")" if len(self._frames) > 1:
                self._frames.pop()
            case "," if frame.kind == "columns":
                self._column(at + 1)
            case "," if self._kind in _MACROS and len(self._frames) == 1 and text.sign(at + 1) == "(":
                # Another form of the macro, with its own parameters.
                if text.word(text.closing.get(at + 1, at) + 1) == "AS":
                    self._columns = at + 1
            case ":" if text.joined(at, "::"):
                self._type(at + 2)
            case "-" if self._kind not in _MACROS and text.joined(at, "->"):
                self._arrow(at)

    def _value(self, at: int, token: Token) -> None:
        """Note where the value that ends at a token begins, if it can end there."""
        text, values = self.text, self._values
        if token.kind in {"word", "name"}:
            if token.word not in _NOT_VALUES:
                values.setdefault(at, values.get(at - 2, at) if text.sign(at - 1) == "." else at)
        elif token.text in {")", "]", "}"} and (opening := text.opening.get(at)) is not None:
            before = opening - 1
            if before in values and (token.text == "]" or (token.text == ")" and text.is_name(before))):
                values[at] = values[before]
            elif token.text != ")" or not text.commas[opening]:
                values[at] = opening

    def _arrow(self, at: int) -> None:
        """`s->field` of a struct, as far as the position shows: DuckDB's arrow belongs to JSON, and to lambdas."""
        text, last = self.text, at + 2
        start = self._values.get(at - 1)
        is_field = text.is_name(last) and text.sign(last + 1) not in {"(", "."} and text.word(last) not in _NOT_FIELDS
        if start is None or not is_field:
            return
        is_in_call = self._frames[-1].opening - 1 in self._values
        if is_in_call and start == at - 1 and text.tokens[start].value == text.tokens[last].value:
            # `x -> x + 1`: the parameter of a lambda may have the name of a column, too.
            return
        edits = Edits()
        edits.insert(start, "struct_extract(")
        edits.drop(at, last)
        edits.replace(last, f", {literal(text.tokens[last].value)})")
        self._values[last] = start
        # All arrows of a chain refer to the value that it begins with.
        self._fields[last] = self._arrows.setdefault(start, text.written(start, at))
        self._add(Site(start, self._fields[last], edits, Edits()))

    def _add(self, site: Site) -> None:
        if len(self.sites) == _MOST_SITES:
            message = f"the statement has more than {_MOST_SITES} -> operators and type-dependent calls"
            raise Failure(sqlstate.LIMIT, message)
        self.sites.append(site)

    def _open(self, at: int) -> None:
        before = self.text.word(at - 1)
        kind = ""
        if at == self._columns:
            kind = "columns"
        elif before in {"CAST", "TRY_CAST"}:
            kind = "cast"
        elif before in _WINDOWS:
            kind = before if self.text.word(at - 2) in {"FROM", "JOIN"} else ""
        elif before in {"JSON_VALUE", "JSON_QUERY", "JSON_OBJECT", "FLOOR", "CEIL"}:
            kind = before
        self._frames.append(_Frame(at, kind))
        if kind == "columns":
            self._column(at + 1)

    def _word(self, at: int, word: str) -> None:
        text, frame = self.text, self._frames[-1]
        begins = word == "SELECT" or (word == "RETURNING" and not frame.kind)
        if begins or (word in {"DISTINCT", "ALL"} and frame.column == at):
            frame.column, frame.keeps = at + 1, False
        elif word in _MANY_COLUMNS:
            frame.keeps = True
        elif word in _ENDS:
            self._end_column(at)
        match word:
            case "AS" if frame.kind == "cast":
                self._type(at + 1)
            case "KEY" if frame.kind == "JSON_OBJECT" and text.sign(at - 1) in {"(", ","} and text.sign(at + 1) != ",":
                self.edits.drop(at, at + 1)
            case "VALUE" if frame.kind == "JSON_OBJECT" and text.sign(at - 1) not in {"(", ","}:
                self.edits.replace(at, ",")
            case "JSON" if text.word(at - 1 - (text.word(at - 1) == "NOT")) == "IS":
                raise Failure(sqlstate.UNSUPPORTED, "IS JSON is not supported; use json_valid(value)")
            case "RETURNING" if frame.kind in {"JSON_VALUE", "JSON_QUERY"}:
                self._returning(at, frame)
            case "TO" if frame.kind in {"FLOOR", "CEIL"}:
                self._rounded(at, frame)
            case "FROM" | "JOIN":
                frame.reads = True
            case "SIZE" | "ADVANCE" if frame.kind in _WINDOWS:
                raise _continuous(f"{frame.kind} over a stream")
            case "WITH" if frame.reads and self._kind != "COPY":
                self._options(at)
            case "MATCH_RECOGNIZE" if frame.reads and text.sign(at + 1) == "(":
                raise _continuous("MATCH_RECOGNIZE")
            case "MAP" if text.sign(at + 1) == "[" and text.commas[at + 1] and at + 1 in text.closing:
                self._map(at + 1)
            case "WITHIN" if frame.reads and text.word(at + 2) and text.tokens[at + 1].kind == "number":
                raise _continuous("JOIN … WITHIN")
            case "ADD" if self._kind == "ALTER" and len(self._frames) == 1:
                self._added(at + 1)
            case "DEFAULT":
                self._default = True
            case "TYPE" if self._kind == "ALTER" and len(self._frames) == 1 and text.word(at - 1) != "ALTER":
                self._type(at + 1)
            case _ if text.sign(at + 1) == "(" and word.lower() in functions.NAMES:
                self._call(at, word.lower())

    def _options(self, at: int) -> None:
        """Remove WITH ('key' = value, …) after a relation."""
        text = self.text
        if text.sign(at + 1) != "(" or text.sign(at + 3) != "=" or text.tokens[at + 2].kind not in {"string", "name"}:
            return
        arguments = text.arguments(at + 1)
        if not arguments or any(behind != start + 3 or text.sign(start + 1) != "=" for start, behind in arguments):
            return
        given = {text.tokens[start].value.lower(): text.tokens[start + 2].value for start, _ in arguments}
        position = given.get(_POSITION, "latest")
        if position.lower() not in {"earliest", "latest"}:
            message = f"'{_POSITION}': expected 'earliest' or 'latest', not {position[:60]!r}"
            raise Failure(sqlstate.UNSUPPORTED, message)
        self.from_earliest = self.from_earliest or position.lower() == "earliest"
        self._place = text.closing[at + 1] + 1
        # QUERY WITH (…) names the query of a streaming engine.
        self.edits.drop(at - (text.word(at - 1) == "QUERY"), self._place)

    def _map(self, at: int) -> None:
        """MAP[key, value, …]; a subscript contains no commas."""
        commas = self.text.commas[at]
        if len(commas) % 2 == 0:
            raise Failure(sqlstate.SYNTAX, "MAP[key, value, …] contains a key without a value")
        self.edits.replace(at, "{")
        self.edits.replace(self.text.closing[at], "}")
        for comma in commas[::2]:
            self.edits.replace(comma, ":")
        self.changes.append(at)

    def _added(self, at: int) -> None:
        """ALTER TABLE … ADD [COLUMN] [IF NOT EXISTS] name type; the name may be that of a field."""
        text = self.text
        at += text.word(at) == "COLUMN"
        if text.word(at) == "IF":
            at += 3
        while text.sign(at + 1) == ".":
            at += 2
        self._column(at)

    def _returning(self, at: int, frame: _Frame) -> None:
        """JSON_VALUE(…, path RETURNING type); a value that cannot be converted to the type is NULL."""
        end = self.text.closing.get(frame.opening)
        commas = self.text.commas[frame.opening]
        self._type(at + 1)
        if end is None or len(commas) != 1:
            return
        if self._place != end:
            message = f"{frame.kind} … {self.text.written(self._place, end)[:60]} is not supported: DuckDB returns NULL"
            raise Failure(sqlstate.UNSUPPORTED, message)
        path = at - 1
        if self.text.tokens[path].kind == "string":
            self.edits.replace(path, functions.path(self.text, path, at))
        # These functions fail for a text that is not JSON.
        call, behind = ("json_value", " ->> '$'") if frame.kind == "JSON_VALUE" else ("json_extract", "")
        self.edits.replace(frame.opening - 1, "TRY_CAST((list_transform")
        self.edits.replace(frame.opening, "([")
        self.edits.replace(commas[0], f"], lambda _v: CASE WHEN json_valid(_v) THEN {call}(_v,")
        self.edits.replace(at, f") END)[1]{behind}) AS")
        self.changes.append(at)

    def _rounded(self, at: int, frame: _Frame) -> None:
        """FLOOR(time TO unit)."""
        if self.text.closing.get(frame.opening) != at + 2:
            return
        if frame.kind == "CEIL":
            raise Failure(sqlstate.UNSUPPORTED, "CEIL of a time is not supported; use FLOOR and add an interval")
        unit = functions.unit(self.text, at + 1, at + 2)
        self.edits.replace(frame.opening, f"({unit}, ")
        self.edits.replace(frame.opening - 1, "date_trunc")
        self.edits.drop(at, at + 2)
        self.changes.append(at)

    def _call(self, at: int, name: str) -> None:
        text = self.text
        before = text.word(at - 1)
        end = text.closing.get(at + 1)
        if end is None or text.sign(at - 1) == "." or before in _NAMED or (before == "ON" and self._kind == "INDEX"):
            return
        behind = text.word(end + 1), text.word(end + 2) or text.sign(end + 2)
        if behind in {("AS", "("), ("AS", "MATERIALIZED"), ("AS", "NOT"), ("USING", "KEY")}:
            # A common table expression with names for its columns.
            return
        arguments = text.arguments(at + 1)
        if name == "json_query" and arguments and text.word(arguments[-1][0] + 1) == "RETURNING":
            return
        if name != "to_timestamp" and self._is_own(name):
            return
        variants = functions.variants(text, arguments, name)
        if self._in_definition(at) and any("lambda" in variant for variant in variants):
            message = f"{name.upper()} is not supported in a DEFAULT, CHECK or generated column"
            raise Failure(sqlstate.UNSUPPORTED, message)
        written = [Edits() for _ in variants]
        for edits, expression in zip(written, variants, strict=True):
            if expression:
                functions.write(text, at, expression, edits)
        if len(written) == 1:
            self.edits.add(written[0])
            self.changes.append(at)
        else:
            self._add(Site(at, text.written(at, end + 1), *written))

    def _end_column(self, behind: int, following: int = -1) -> None:
        """End a column before a token: it keeps its name if it has no alias. The next column begins at `following`."""
        text, frame = self.text, self._frames[-1]
        start, keeps = frame.column, frame.keeps
        if start < 0:
            return
        frame.column, frame.keeps = following, False
        if start < behind and not keeps and text.sign(start + 1) != ":" and self._ends_unnamed(behind - 1):
            self.unnamed.append((start, behind))

    def _ends_unnamed(self, last: int) -> bool:
        """Whether the text that ends with a token is a value without an alias, as far as that is certain."""
        token = self.text.tokens[last]
        if token.kind in {"number", "sign", "string"} or token.word in _END_VALUES:
            return True
        return self.text.sign(last - 1) in _OPERATORS or self.text.word(last - 1) in _BEFORE_VALUES

    def _in_definition(self, at: int) -> bool:
        """Whether a token is in an expression that a table stores: DEFAULT, CHECK, a generated column."""
        if self._kind == "ALTER":
            return self._default
        return self._kind not in _MACROS and self._columns < at < self.text.closing.get(self._columns, 0)
