"""Recognizes and parses the statements of the dialect: one list of forms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sqlshell.service.dialect import unsupported
from sqlshell.service.dialect.forms import Form, first_of
from sqlshell.service.dialect.lexer import BLANK, HEAD, Tokens
from sqlshell.service.failure import Failure
from sqlshell.service.objects import listing, privileges
from sqlshell.service.objects.kind import DialectStatement
from sqlshell.service.objects.kinds import KINDS
from sqlshell.service.objects.query import read_application
from sqlshell.service.organizations.organizations import Organizations

READ_LENGTH = 1 << 20
"""Statements longer than this many characters are for the engine."""


def _forms(*, server: bool) -> Iterator[Form[DialectStatement]]:
    """The forms in the order in which they are tried; `server`: without those that an engine of its own has itself."""
    yield from unsupported.FORMS
    if not server:
        yield from unsupported.ENGINE_FORMS
    for kind in KINDS:
        for verb, form in kind.forms():
            if not (server and verb in kind.left_to_servers):
                yield form
    for verb, form in listing.forms():
        if not (server and verb == "show"):
            yield form
    yield privileges.FORM


class Dialect:
    """The statements that are the service's; all others are for the engine."""

    def __init__(self, forms: Sequence[Form[DialectStatement]]) -> None:
        self.forms: dict[str, list[Form[DialectStatement]]] = {}
        for form in forms:
            self.forms.setdefault(form.text.split()[0].lower(), []).append(form)
        self.first = re.compile(
            # Most statements that begin with these words are for the engine.
            r"insert(?!\s+into\s+(?!entity\b)[\w\"`])\b|update(?!\s+[\w\"`]+\s+set\b)\b|"
            + "|".join(rf"{word}\b" for word in sorted({"begin", *self.forms} - {"insert", "update"})),
            re.I,
        )

    def first_word(self, sql: str) -> str:
        """The first word of a statement that may be one of the dialect, in lower case; "" for others."""
        blank = BLANK.match(sql, 0, HEAD)
        found = self.first.match(sql, blank.end() if blank else 0, HEAD)
        return found[0].lower() if found else ""


INTERFACE = Dialect(tuple(_forms(server=False)))
"""The interface's statements, on an engine that has no statements of its own with the same first words."""

SERVER = Dialect(tuple(_forms(server=True)))
"""The statements about the service's own objects, on an engine with its own databases, roles, functions and views."""


def dialect_of(organizations: Organizations) -> Dialect:
    """The statements that the service carries out itself."""
    return SERVER if organizations.server is not None else INTERFACE


class ParsedStatement:
    """A statement for a dialect: its tokens are read when they are first needed, and it is parsed once.

    Neither is kept of a statement longer than HEAD characters.
    """

    __slots__ = ("_dialect", "_own", "_parsed", "_tokens", "sql")

    def __init__(self, sql: str, dialect: Dialect = INTERFACE) -> None:
        self.sql = sql
        self._dialect = dialect
        self._tokens: Tokens | None = None
        self._own: DialectStatement | None = None
        self._parsed = False

    @property
    def tokens(self) -> Tokens:
        tokens = self._tokens or Tokens(self.sql)
        if len(self.sql) <= HEAD:
            self._tokens = tokens
        return tokens

    def tokens_of(self, sql: str) -> Tokens:
        """The tokens of SQL that runs for this statement: mostly its own."""
        return self.tokens if sql == self.sql else Tokens(sql)

    def statement(self) -> DialectStatement | None:
        """The statement parsed; None for one that is for the engine.

        Raises Failure for a syntax error in a statement of the dialect.
        """
        if self._parsed:
            return self._own
        statement = self._read()
        if len(self.sql) <= HEAD:
            self._own, self._parsed = statement, True
        return statement

    def is_for_engine(self) -> bool:
        """Whether the statement is for the engine, rather than about objects of the service."""
        try:
            return self.statement() is None
        except Failure:
            return False

    def _read(self) -> DialectStatement | None:
        word = self._dialect.first_word(self.sql)
        if not word or len(self.sql) > READ_LENGTH:
            return None
        return read_application(self.sql) if word == "begin" else first_of(self._dialect.forms[word], self.tokens)


def read(sql: str, dialect: Dialect = INTERFACE) -> DialectStatement | None:
    """Parse a statement of the dialect, as ParsedStatement.statement() does."""
    return ParsedStatement(sql, dialect).statement()
