"""Statements that use streams: which streams they read, and that streams only grow."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import Final

import duckdb
from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.service.engines.duckdb.words import Word, words
from sqlshell.service.engines.engine import NO_CONTINUOUS_QUERIES, Relation
from sqlshell.service.failure import Failure

_READS: Final = frozenset(
    ("copy", "from", "join", "pivot", "pivot_wider", "summarize", "table", "unpivot", "using")
)  # fmt: skip
_OBJECTS: Final = frozenset(("table", "view"))
_FILLERS: Final = frozenset(("exists", "if", "not"))
_DESCRIBES: Final = frozenset(("desc", "describe", "show"))
_UNTOLD: Final = frozenset(
    ("delete", "export", "macro", "merge", "pivot", "pivot_wider", "truncate", "unnest", "update", "view")
)
"""Words of statements whose tables DuckDB does not tell, or that read all that are there."""

Resolve = Callable[[Sequence[str]], Relation]


class _Use(Struct, frozen=True):
    """A stream in a statement, and what happens to it: "change", "drop", "insert", "make", "read", "shadow" for a
    temporary relation of its name, "" for unknown."""

    stream: Relation
    how: str


class StreamUse:
    """What statements of a session do with `streams`. `resolve` completes the name of a relation."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, streams: Collection[Relation], resolve: Resolve, *, bound: bool
    ) -> None:
        """`bound` says that DuckDB may bind the statement: an error would fail an open transaction."""
        self._connection = connection
        self._streams = {tuple(part.lower() for part in stream): stream for stream in streams}
        self._names = {name for _, _, name in self._streams}
        self._resolve = resolve
        self._bound = bound

    def read(self, sql: str) -> list[Relation]:
        """The streams that a statement reads, also by views and macros if it may be bound; none if it describes
        something.
        """
        return self._read(sql, words(sql))

    def check(self, sql: str) -> None:
        """Raises Failure (0A000) for a statement that changes a stream in another way than by INSERT, or that would
        read a stream to its end, which it does not have.
        """
        found = words(sql)
        plain = [item.word for item in found]
        if plain[0] == "explain" and "analyze" not in plain[:3]:
            return
        uses = list(self._uses(found))
        replaces = "conflict" in plain or ("insert" in plain and "or" in plain[plain.index("insert") :][1:2])
        for use in uses:
            if use.how == "drop":
                name = ".".join(use.stream)
                raise Failure(sqlstate.UNSUPPORTED, f"{name} is a stream; use DROP STREAM {name}")
            if use.how in {"change", "make"} or (use.how == "insert" and replaces):
                raise Failure(sqlstate.UNSUPPORTED, "a stream is append-only; use INSERT INTO")
        if "macro" not in plain and self._read(sql, found):
            message = f"a statement that reads a stream would never end: {NO_CONTINUOUS_QUERIES}"
            raise Failure(sqlstate.UNSUPPORTED, message)

    def _read(self, sql: str, found: Sequence[Word]) -> list[Relation]:
        plain = {item.word for item in found}
        if plain & _DESCRIBES:
            return []
        uses = list(self._uses(found))
        if self._bound and not plain & _UNTOLD:
            with contextlib.suppress(duckdb.Error):
                told = self._connection.get_table_names(sql, qualified=True)
                read = [use.stream for name in told for use in islice(self._uses(words(name)), 1)]
                # DuckDB names the table that is created too.
                return [stream for stream in read if not self._is_only_made(stream, uses)]
        return [use.stream for use in uses if use.how == "read"]

    @staticmethod
    def _is_only_made(stream: Relation, uses: Sequence[_Use]) -> bool:
        """Whether a statement names a stream, but not to read it."""
        how = {use.how for use in uses if use.stream == stream}
        return bool(how) and how <= {"insert", "make", "shadow"}

    def _uses(self, found: Sequence[Word]) -> Iterator[_Use]:
        before: list[str] = ["", "", ""]
        number = 0
        while number < len(found):
            names = [found[number].name]
            while number + 2 < len(found) and found[number + 1].word == ".":
                number += 2
                names.append(found[number].name)
            if names[-1] in self._names and (stream := self._stream(names)):
                yield _Use(stream, _how(before))
            if found[number].word not in _FILLERS:
                before = [found[number].word, *before[:2]]
            number += 1

    def _stream(self, names: Sequence[str]) -> Relation | None:
        """The stream of this name; None if there is none, or if the session has a temporary relation of its name."""
        stream = self._streams.get(tuple(part.lower() for part in self._resolve(names)))
        if stream is None or len(names) > 1:
            return stream
        found = self._connection.execute(
            "SELECT 1 FROM system.information_schema.tables "
            "WHERE table_catalog = 'temp' AND system.main.lower(table_name) = $1",
            [names[0]],
        )
        return None if found.fetchone() else stream


def _how(before: Sequence[str]) -> str:
    """What happens to a relation behind these words, the nearest first."""
    match before:
        case ["into", "merge", _] | ["from", "delete", _] | ["update" | "truncate", *_] | ["table", "truncate", _]:
            return "change"
        case ["into", *_]:
            return "insert"
        case [kind, verb, _] if kind in _OBJECTS and verb in {"alter", "create", "drop", "recursive", "replace"}:
            return {"drop": "drop", "alter": "change"}.get(verb, "make")
        case [kind, "temp" | "temporary", _] if kind in _OBJECTS:
            return "shadow"
        case [kind, "on", _] if kind in _OBJECTS:
            return ""
        case [word, *_] if word in _READS:
            return "read"
    return ""
