"""Recognizes and parses the statements of the dialect."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlshell.service.dialect import alterations, definitions, inspection, running_queries, unsupported
from sqlshell.service.dialect.forms import Form, first_of
from sqlshell.service.dialect.names import HEAD, without_comments
from sqlshell.service.dialect.tokens import Tokens
from sqlshell.service.failure import Failure

READ_LENGTH = 1 << 20
"""Statements longer than this many characters are for the engine."""

DialectStatement = (
    running_queries.QueryStatement
    | running_queries.Application
    | inspection.Inspection
    | alterations.Alteration
    | definitions.Definition
)

Family = Mapping[str, tuple[Form[DialectStatement], ...]]
"""Forms by the first word of a statement, in the order in which they are tried."""


class Dialect:
    """The statements that are the service's; all others are for the engine."""

    def __init__(self, *families: Family) -> None:
        self.forms: Family = {
            word: tuple(form for family in families for form in family.get(word, ()))
            for word in {word for family in families for word in family}
        }
        self.first = re.compile(
            # Most statements that begin with these words are for the engine.
            r"insert(?!\s+into\s+(?!entity\b)[\w\"`])\b|update(?!\s+[\w\"`]+\s+set\b)\b|"
            + "|".join(rf"{word}\b" for word in sorted({"begin", *self.forms} - {"insert", "update"})),
            re.I,
        )


INTERFACE = Dialect(unsupported.FORMS, running_queries.FORMS, inspection.FORMS, alterations.FORMS, definitions.FORMS)
"""The interface's statements, on an engine that has no statements of its own with the same first words."""

SERVER = Dialect(
    unsupported.SERVER_FORMS,
    running_queries.FORMS,
    inspection.SERVER_FORMS,
    alterations.SERVER_FORMS,
    definitions.SERVER_FORMS,
)
"""The statements about the service's own objects, on an engine with its own databases, roles, functions and views."""


class Reading:
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
        sql = self.sql
        start = sql[:HEAD].lstrip()
        if not start[:1].isalpha():
            start = without_comments(start)
        first = self._dialect.first.match(start)
        if not first or len(sql) > READ_LENGTH:
            return None
        word = first[0].lower()
        if word == "begin":
            return running_queries.read_application(sql)
        return first_of(self._dialect.forms[word], self.tokens)


def read(sql: str) -> DialectStatement | None:
    """Parse a statement of the dialect, as Reading.statement() does."""
    return Reading(sql).statement()


def is_about_organizations(asked: DialectStatement | None) -> bool:
    """Whether a statement creates, drops, describes or lists organizations, or switches to one."""
    if isinstance(asked, inspection.List):
        return asked.what == "organizations"
    return (
        isinstance(asked, definitions.Use | definitions.Create | definitions.Drop | inspection.Describe)
        and asked.kind == "organization"
    )
