"""Streams and changelogs, which are append-only.

A changelog is a stream of changes: each row is the latest state of its key.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Final

from sqlshell.service.catalog import duplicate
from sqlshell.service.dialect.forms import Form
from sqlshell.service.dialect.lexer import END, SIGN, Tokens, TooMany
from sqlshell.service.engines.engine import CatalogQuery, Outcome, Relation, RunOptions
from sqlshell.service.error_places import placed
from sqlshell.service.failure import Failure
from sqlshell.service.objects.kind import (
    CREATE,
    IF_NOT_EXISTS,
    OPTIONS,
    Create,
    DialectStatement,
    Execution,
    Result,
    Syntax,
)
from sqlshell.service.objects.relation import CreateAs, Relations
from sqlshell.service.results.results import Discard
from sqlshell.sql.analysis.secrets import shown_options
from sqlshell.sql.identifiers import qualified

_NEAR: Final = re.compile(r'syntax error at or near "(\w+)"')
_HEAD: Final = 2000
"""Characters of a message in which it is searched."""


class Stream(Relations):
    name, plural = "stream", "streams"
    verbs = ("create", "drop", "describe")
    syntax: Syntax = (("create", f"{CREATE} KIND ! {IF_NOT_EXISTS} <names:names> <columns:parentheses> {OPTIONS}"),)
    is_transactional = False
    listed_type = "stream"
    relation = ()

    def forms(self) -> Iterator[tuple[str, Form[DialectStatement]]]:
        text = f"{CREATE} kind:{self.title} {IF_NOT_EXISTS} <names:names> [ <columns:parentheses> ] {OPTIONS}"
        yield "create", Form(f"{text} AS ! <select:rest>", CreateAs)
        yield from super().forms()

    def number(self, execution: Execution) -> int:
        return len(execution.scope.kept("stream"))

    def create(self, asked: Create, execution: Execution) -> Result:
        """Create the table of a stream. Its options and key are stored; the options have no effect."""
        relation = execution.session.connection.resolve(asked.names)
        try:
            with placed(execution.sql, "", asked.columns):
                _create_table(asked, relation, execution)
        except Failure as failure:
            if not (asked.if_not_exists and failure.sql_state.startswith("42P")):
                raise
        return execution.created(Outcome(message=asked.title), self.name, relation)


class Changelog(Stream):
    name, plural, listed_type = "changelog", "changelogs", "changelog"


def _create_table(asked: Create, relation: Relation, execution: Execution) -> None:
    organization, verb = execution.organization, "CREATE"
    if organization.engine.catalog(CatalogQuery("relation", *relation)):
        if not asked.replace or relation not in organization.streams.known:
            raise duplicate(asked.kind, asked.name)
        verb = "CREATE OR REPLACE"
    columns, key = columns_of(asked)
    with explained_columns(columns, before := f"{verb} TABLE {qualified(*relation)} "):
        execution.session.connection.run(before + columns, RunOptions(), Discard())
    organization.check_streams()
    organization.add_stream(relation, {"kind": asked.kind, "options": shown_options(asked.options), "primary_key": key})


@contextlib.contextmanager
def explained_columns(columns: str, before: str) -> Iterator[None]:
    """Rewrite errors about `columns` that run after our own text `before`, so that they are about the columns alone."""
    try:
        with placed(columns, before, columns):
            yield
    except Failure as error:
        near = _NEAR.search(error.message, 0, _HEAD)
        if near is None or near[1].lower() not in _first_words(columns):
            raise
        advised = f'{near[0]}: a column of this name must be quoted, "{near[1]}"'
        raise error.with_message(error.message.replace(near[0], advised, 1)) from error.__cause__


def columns_of(asked: Create) -> tuple[str, list[str]]:
    """The parenthesized columns, and the key: unique in a stream, but not in a changelog."""
    columns, key = without_key(asked.columns)
    return asked.columns if asked.kind == "stream" else columns, key


def without_key(text: str) -> tuple[str, list[str]]:
    """A parenthesized column list without its PRIMARY KEY, and the columns of that key."""
    tokens = Tokens(text)
    kept: list[str] = []
    key: list[str] = []
    try:
        pieces = _pieces(tokens)
    except TooMany:
        return text, []
    for numbers in pieces:
        start, end = tokens[numbers[0]].start, tokens[numbers[-1]].end
        primary = next((at for at in numbers if tokens[at].upper == "PRIMARY" and tokens[at + 1].upper == "KEY"), None)
        if primary is None:
            kept.append(text[start:end])
        elif primary == numbers[0]:
            key += [part for at in numbers[2:] for part in tokens.dotted(at, 1)[0]]
        else:
            key += tokens.dotted(numbers[0], 1)[0]
            kept.append(text[start : tokens[primary].start] + text[tokens[primary + 1].end : end])
    return (f"({', '.join(kept)})", key) if key else (text, [])


def _first_words(text: str) -> set[str]:
    """The first words, in lower case, of the columns in a parenthesized list: their names, unless they are quoted."""
    tokens = Tokens(text)
    try:
        return {tokens[numbers[0]].value.lower() for numbers in _pieces(tokens) if numbers}
    except TooMany:
        return set()


def _pieces(tokens: Tokens) -> list[list[int]]:
    """The numbers of the tokens of each column or constraint."""
    pieces: list[list[int]] = [[]]
    depth, at = 0, 1
    while (token := tokens[at]).kind != END:
        if token.kind == SIGN:
            depth += (token.value in "(<") - (token.value in ")>")
        if depth < 0:
            return [piece for piece in pieces if piece]
        if depth == 0 and token.kind == SIGN and token.value == ",":
            pieces.append([])
        else:
            pieces[-1].append(at)
        at += 1
    return []
