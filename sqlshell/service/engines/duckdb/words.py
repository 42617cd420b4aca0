"""The words of a statement, by DuckDB's own tokenizer."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
from msgspec import Struct


class Word(Struct, frozen=True):
    """A word, sign or string of a statement.

    `text` is as written. `word` is in lower case, "" if it is quoted; `name` is the name in lower case that it is if it
    is one. `start` is its first byte in UTF-8.
    """

    text: str
    word: str
    name: str
    start: int


def words(text: str) -> list[Word]:
    """The words, signs and strings of a statement without its comments.

    What decides on rights passes what DuckDB gives as the text of a parsed statement, in which all blanks are blanks
    for the tokenizer too.
    """
    return list(_words(text))


def _words(text: str) -> Iterator[Word]:
    encoded = text.encode("utf-8", "surrogatepass")
    lexed = duckdb.tokenize(text)
    ends = [start for start, _ in lexed[1:]] + [len(encoded)]
    for (start, kind), end in zip(lexed, ends, strict=True):
        if kind.name == "comment":
            continue
        written = encoded[start:end].decode("utf-8", "replace").strip()
        low = written.lower()
        if (quote := low[:1]) in {'"', "`", "'"}:
            yield Word(written, "", low[1:-1].replace(quote * 2, quote), start)
        else:
            yield Word(written, low, low, start)
