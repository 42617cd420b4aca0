"""COPY and \\copy, parsed: the table or query, where the data is, and the options, as psql and DuckDB spell them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from sqlshell.errors import UsageError
from sqlshell.sql.analysis.lexed import Lexed, Sql, lexed, once_per_statement
from sqlshell.sql.analysis.tokens import Token

STREAMS: Final = frozenset({"STDIN", "STDOUT", "PSTDIN", "PSTDOUT"})

_NAMES: Final = {"DELIM": "delimiter", "SEP": "delimiter", "NULLSTR": "null", "NULL_STRING": "null", "NULLS": "null"}
KNOWN: Final = frozenset({"format", "header", "delimiter", "null", "quote", "escape", "encoding"})
"""Options of the data's form."""
LOADED: Final = frozenset({"freeze", "allow_quoted_nulls", "force_not_null", "force_null"})
"""Further options that only loading takes."""
WRITTEN: Final = frozenset({"force_quote"})
"""Further options that only writing takes."""
OWN: Final = frozenset({"create", "dry_run", "max_errors", "rejects", "resume", "round", "sniff", "if_unknown"})
"""Options of sqlshell's own, for loading."""
_ALL: Final = KNOWN | LOADED | WRITTEN | OWN
_COLUMNS: Final = frozenset({"force_quote", "force_not_null", "force_null"})
_FLAGS: Final = frozenset({"header", "create", "dry_run", "resume", "round", "sniff", "freeze", "allow_quoted_nulls"})
_TRUE: Final = frozenset({"true", "on", "1", "yes", "match"})
_FALSE: Final = frozenset({"false", "off", "0", "no"})
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}
_HINT: Final = "example: \\copy t FROM 'file.csv' WITH (FORMAT csv, HEADER)"
_EXAMPLES: Final = {
    "delimiter": "';'",
    "null": "'NULL'",
    "quote": "'\"'",
    "escape": "'\\'",
    "encoding": "'UTF8'",
    "format": "csv",
    "max_errors": "10",
    "rejects": "'rejects.csv'",
    "if_unknown": "skip",
}
"""Values of the options that are not flags; those of the others are columns."""


class CopyStatement(Struct, frozen=True):
    """`source` is a table as written, with `columns` as written or none for all, or a `query`. It is read, or with
    `loads` written. `place` is a file, or with `stream` one of STREAMS, or with `program` a command. `options` are by
    name in lower case: a text, or "true" and "false" of those that are flags. FORCE_QUOTE, FORCE_NOT_NULL and
    FORCE_NULL are `*`, or names of columns with line breaks between them. `end` is where the options begin, in
    characters, and `tail` their text. `wrong` is the error of options that only the engine may understand; `options`
    has those before it. `text` is the statement or command as the user wrote it."""

    source: str
    columns: tuple[str, ...]
    query: bool
    loads: bool
    place: str
    stream: bool
    program: bool = False
    end: int = 0
    options: Mapping[str, str] = field(default_factory=dict)
    tail: str = ""
    wrong: UsageError | None = None
    text: str = ""

    def check(self) -> None:
        """Raises UsageError for wrong options."""
        if self.wrong is not None:
            raise self.wrong


@once_per_statement
def loads_rows(statement: Lexed) -> bool:
    """Whether a statement is COPY … FROM an attachment or from stdin."""
    if not any(token.word == "COPY" for token in statement.first(1)[:1]):
        return False
    with contextlib.suppress(UsageError):
        copy = read_copy(statement)
        return copy.loads and copy.wrong is None and (copy.stream or copy.place.startswith("@"))
    return False


@once_per_statement
def is_copy(statement: Lexed) -> bool:
    """Whether a statement is a COPY of any kind."""
    return statement.text[:4].lower() == "copy"


def returns_rows(statement: Lexed) -> CopyStatement | None:
    """A COPY … TO STDOUT, parsed, whatever its options; None for other statements, and if it cannot be parsed."""
    if not is_copy(statement) or "stdout" not in statement.text.lower():
        return None
    with contextlib.suppress(UsageError):
        copy = read_copy(statement)
        return copy if not copy.loads and copy.stream and copy.place == "STDOUT" else None
    return None


def read_copy(sql: Sql, *, command: bool = False) -> CopyStatement:
    """Parse a statement from COPY on. With `command` it is the text of \\copy: a file may be written without quotes,
    and PROGRAM names a command that this machine runs.

    Raises UsageError, but not for options.
    """
    statement = lexed(sql)
    tokens = list(statement.tokens)
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    reader = _Reader(statement.text, tokens)
    reader.word("COPY")
    source, columns, query = reader.source()
    direction = reader.next("FROM or TO").word
    if direction not in {"FROM", "TO"} or (query and direction == "FROM"):
        raise UsageError(f"COPY: expected {'TO' if query else 'FROM or TO'}, found {reader.last!r}", _HINT)
    place, stream, program = reader.place(command=command)
    end = reader.end
    options: dict[str, str] = {}
    wrong: UsageError | None = None
    try:
        reader.options(options)
    except UsageError as error:
        wrong = error
    tail = statement.text[end : tokens[-1].end].strip()
    text, loads = "\\" * command + statement.text, direction == "FROM"
    return CopyStatement(source, columns, query, loads, place, stream, program, end, options, tail, wrong, text)


class _Reader:
    """Goes through the tokens of a statement."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._at = 0
        self.last = ""

    def next(self, wanted: str) -> Token:
        if self._at >= len(self._tokens):
            raise UsageError(f"COPY: expected {wanted} at the end", _HINT)
        token = self._tokens[self._at]
        self._at += 1
        self.last = token.text
        return token

    @property
    def end(self) -> int:
        """The end of the last token."""
        return self._tokens[self._at - 1].end

    def peek(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def word(self, wanted: str) -> None:
        if self.next(wanted).word != wanted:
            raise UsageError(f"COPY: expected {wanted}, found {self.last!r}", _HINT)

    def source(self) -> tuple[str, tuple[str, ...], bool]:
        first = self.next("a table or a query in parentheses")
        if first.text == "(":
            end = self._closing()
            return self._text[first.end : end.start].strip(), (), True
        if first.word == "BINARY":
            raise UsageError("COPY BINARY is not supported", "use the format csv, text or parquet")
        last = first
        while (dot := self.peek()) is not None and dot.text == ".":
            self.next(".")
            last = self.next("a name")
        if any(token.kind not in {"word", "name"} for token in (first, last)):
            raise UsageError(f"COPY: {self.last!r} is not the name of a table", _HINT)
        name = self._text[first.start : last.end]
        opening = self.peek()
        if opening is None or opening.text != "(":
            return name, (), False
        self.next("(")
        columns = []
        while True:
            column = self.next("a column")
            if column.kind not in {"word", "name"}:
                raise UsageError(f"COPY: {column.text!r} is not the name of a column", _HINT)
            columns.append(column.text)
            if self.next('"," or ")"').text == ")":
                return name, tuple(columns), False
            if self.last != ",":
                raise UsageError(f'COPY: expected "," or ")", found {self.last!r}', _HINT)

    def place(self, *, command: bool) -> tuple[str, bool, bool]:
        """A file, the name of a stream or a command; and whether it is a stream, and whether it is a command."""
        first = self.next("a file")
        if first.word == "PROGRAM":
            if not command:
                raise UsageError("COPY … PROGRAM is not supported", "\\copy … PROGRAM runs a command on this machine")
            given = self.next("a command in single quotes")
            if given.kind != "string":
                raise UsageError(f"COPY: expected a command in single quotes, found {given.text!r}", _HINT)
            return given.value, False, True
        if first.word in STREAMS and self._alone(first):
            return first.word, True, False
        if first.kind == "string":
            if command and not first.value:
                raise UsageError("\\copy: the file name is empty", _HINT)
            return first.value, False, False
        if not command:
            raise UsageError(f"COPY: expected a file in single quotes, found {first.text!r}", _HINT)
        written = re.compile(r"[^\s;]+").match(self._text, first.start)
        if written is None:
            raise UsageError(f"COPY: {first.text!r} is not the name of a file", _HINT)
        while (token := self.peek()) is not None and token.start < written.end():
            self._at += 1
        return written[0], False, False

    def _alone(self, token: Token) -> bool:
        return self._text[token.end : token.end + 1] in {"", ";", "("} or self._text[token.end].isspace()

    def options(self, given: dict[str, str]) -> None:
        if (token := self.peek()) is not None and token.word == "WITH":
            self.next("WITH")
        if (token := self.peek()) is not None and token.text == "(":
            self.next("(")
            while True:
                self._option(given)
                if self.next('"," or ")"').text == ")":
                    break
                if self.last != ",":
                    raise UsageError(f'COPY: expected "," or ")", found {self.last!r}', _HINT)
        else:
            while self.peek() is not None:
                self._old_option(given)
        if (token := self.peek()) is not None:
            raise UsageError(f"COPY: unexpected {token.text!r}", _HINT)

    def _option(self, given: dict[str, str]) -> None:
        named = self.next("an option")
        name = _NAMES.get(named.value.upper(), named.value.lower())
        if (token := self.peek()) is not None and token.text == "=":
            self.next("=")
        value = self.peek()
        if value is None or value.text in {",", ")"}:
            _set(given, name, "true" if name in _FLAGS else None, named.text)
            return
        if name in _COLUMNS:
            given[name] = self._listed_columns(option=True)
            return
        self.next("a value")
        if value.text == "(":
            self._closing()
        _set(given, name, self._encoding(value) if name == "encoding" else _value(value), named.text)

    def _encoding(self, first: Token) -> str:
        """The name of an encoding, which may be several tokens without quotes, as latin-1 is."""
        if first.kind == "string":
            return _value(first)
        last = first
        while (token := self.peek()) is not None and token.start == last.end and token.text not in {",", ")"}:
            last = self.next("a value")
        return self._text[first.start : last.end]

    def _old_option(self, given: dict[str, str]) -> None:
        """An option in the old syntax without parentheses."""
        named = self.next("an option")
        match named.word:
            case "CSV" | "TEXT":
                given["format"] = named.word.lower()
            case "HEADER":
                given["header"] = "true"
            case "BINARY":
                raise UsageError("COPY BINARY is not supported", "use the format csv, text or parquet")
            case "FORCE":
                kind = self.next("QUOTE, NULL or NOT NULL").word
                if kind == "NOT":
                    self.word("NULL")
                    given["force_not_null"] = self._listed_columns()
                elif kind == "NULL":
                    given["force_null"] = self._listed_columns()
                elif kind == "QUOTE":
                    given["force_quote"] = self._listed_columns()
                else:
                    raise UsageError(f"COPY: expected QUOTE, NULL or NOT NULL, found {self.last!r}", _HINT)
            case "DELIMITER" | "DELIMITERS" | "NULL" | "QUOTE" | "ESCAPE" | "ENCODING":
                if (token := self.peek()) is not None and token.word == "AS":
                    self.next("AS")
                value = self.next("a string")
                if value.kind != "string":
                    raise UsageError(f"COPY: {named.text} takes a string in quotes, found {value.text!r}", _HINT)
                _set(given, named.word.lower().removesuffix("s"), _value(value), named.text)
            case _:
                if named.word.lower() in _ALL:
                    raise UsageError(f"COPY: {named.word} must be in parentheses: WITH ({named.word} …)")
                raise UsageError(f"COPY: unknown option {named.text!r}", _HINT)

    def _listed_columns(self, *, option: bool = False) -> str:
        """`*`, or names in parentheses or, in the old form, without. In an `option` in parentheses a name may be a
        string, as DuckDB writes it, and further names need parentheses."""
        first = self.next("* or columns")
        if first.text == "*":
            return "*"
        names = [first] if first.text != "(" else [self.next("a column")]
        listed = first.text == "(" or not option
        while listed and (token := self.peek()) is not None and token.text == ",":
            self.next(",")
            names.append(self.next("a column"))
        if first.text == "(" and self.next('"," or ")"').text != ")":
            raise UsageError(f'COPY: expected "," or ")", found {self.last!r}', _HINT)
        kinds = {"word", "name", "string"} if option else {"word", "name"}
        if bad := [name.text for name in names if name.kind not in kinds]:
            raise UsageError(f"COPY: {bad[0]!r} is not the name of a column", _HINT)
        return "\n".join(name.value for name in names)

    def _closing(self) -> Token:
        depth = 1
        while depth:
            token = self.next("a closing parenthesis")
            depth += (token.text == "(") - (token.text == ")")
        return token


def _set(given: dict[str, str], name: str, value: str | None, written: str) -> None:
    if name not in _ALL:
        raise UsageError(f"COPY: unknown option {written!r}", f"options: {', '.join(sorted(_ALL)).upper()}")
    example = f"example: {written.upper()} {_EXAMPLES.get(name, '(a, b)')}"
    if value is None:
        raise UsageError(f"COPY: {written.upper()} requires a value", example)
    if name == "rejects" and not value:
        raise UsageError(f"COPY: the file name of {written.upper()} is empty", example)
    if name in _FLAGS:
        if value.lower() not in _TRUE | _FALSE:
            raise UsageError(f"COPY: {written.upper()} must be true or false, not {value!r}", _HINT)
        value = "true" if value.lower() in _TRUE else "false"
    given[name] = value.lower() if name == "format" else value


def _value(token: Token) -> str:
    if token.kind == "string" and token.text[0] in "eE":
        return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), token.text[2:-1].replace("''", "'"))
    return token.value
