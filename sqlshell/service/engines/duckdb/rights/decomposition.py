"""Takes apart statements that DuckDB cannot plan as a whole, so that their parts can be checked.

Nothing here decides what is allowed: the reassembled statement is checked, and it is what runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import duckdb
from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.service.failure import Failure

_OPTIONS = frozenset(
    {"analyze", "format", "html", "json", "text", "graphviz", "yaml", "mermaid", "true", "false", "on", "off"}
)
_SELECTING = frozenset({"select", "from", "with", "values"})
_ENDS = frozenset({"using", "group", "order", "limit", "union", "except", "intersect", "offset", ";"})


class Token(Struct, frozen=True):
    """`word` is in lower case, "" for a comment; `start` and `end` are its position in characters."""

    word: str
    start: int
    end: int
    depth: int


class Pivot(Struct, frozen=True):
    """A PIVOT whose columns depend on its data: `sql` takes them from types, each created from the
    result of `values`.
    """

    sql: str
    values: Sequence[tuple[str, str]]


def tokens(sql: str) -> list[Token]:
    """The words and punctuation of a statement without comments, from DuckDB's tokenizer."""
    return list(_tokens(sql))


def _tokens(sql: str) -> Iterator[Token]:
    encoded = sql.encode("utf-8", "surrogatepass")
    lexed = duckdb.tokenize(sql)
    starts = [start for start, _ in lexed] + [len(encoded)]
    depth = at = before = 0
    for number, (start, kind) in enumerate(lexed):
        piece = encoded[start : starts[number + 1]].decode("utf-8", "surrogatepass")
        at += len(encoded[before:start].decode("utf-8", "surrogatepass"))
        before = start
        text = piece.rstrip()
        if kind.name == "comment":
            continue
        depth -= text == ")"
        yield Token(text.lower(), at, at + len(text), depth)
        depth += text == "("


def bare(sql: str) -> str:
    """A statement without trailing semicolons and comments."""
    return _written(sql, _without_end(tokens(sql)))


def _without_end(words: Sequence[Token]) -> Sequence[Token]:
    """Without trailing semicolons."""
    end = len(words)
    while end and words[end - 1].word == ";":
        end -= 1
    return words[:end]


def _written(sql: str, words: Sequence[Token]) -> str:
    return sql[words[0].start : words[-1].end] if words else ""


def explained(sql: str) -> tuple[str, str, bool]:
    """EXPLAIN with its options, the explained statement, and whether the options run it (ANALYZE).

    Raises Failure for unknown options.
    """
    words = tokens(sql)[1:]
    head = ["EXPLAIN"]
    if words and words[0].word == "analyze":
        head.append("ANALYZE")
        words = words[1:]
    if len(words) > 1 and words[0].word == "(" and words[1].word in {"format", "analyze"}:
        end = next((number for number, token in enumerate(words) if token.word == ")"), 0)
        options = [token.word.strip("'\"") for token in words[1:end]]
        if unknown := [word for word in options if word not in _OPTIONS and word != ","]:
            raise Failure(sqlstate.UNSUPPORTED, f"unknown option {unknown[0]!r} of EXPLAIN")
        head.append(f"({' '.join(options)})")
        words = words[end + 1 :]
    text = " ".join(head)
    return text + "\n", sql[words[0].start :] if words else "", "analyze" in text.lower()


def prepared(sql: str) -> str:
    """The statement of a PREPARE, with NULL for its parameters."""
    words = tokens(sql)
    behind = next((number for number, token in enumerate(words) if token.word == "as"), len(words)) + 1
    pieces: list[str] = []
    taken = words[behind].start if behind < len(words) else len(sql)
    for token, following in pairwise([*words[behind:], Token("", len(sql), len(sql), 0)]):
        if token.word in {"?", "$"}:
            pieces += [sql[taken : token.start], "NULL"]
            taken = following.end if following.start == token.end and following.word.isalnum() else token.end
    return "".join([*pieces, sql[taken:]])


def copied_database(sql: str) -> str | None:
    """The database whose rows EXPORT DATABASE or COPY FROM DATABASE reads, "" for the current one; None for other
    statements.
    """
    words = [token.word for token in tokens(sql)]
    if words[:2] == ["export", "database"]:
        name = 2
    elif words[:3] == ["copy", "from", "database"]:
        name = 3
    else:
        return None
    if "(schema" in "".join(words[name:]):
        return None
    if len(words) <= name or words[name].startswith("'"):
        return ""
    return words[name].removeprefix('"').removesuffix('"').replace('""', '"')


def select_of_create(sql: str) -> str:
    """The text after the AS of CREATE TABLE … AS or CREATE VIEW … AS, "" for other statements."""
    words = tokens(sql)
    if not {"table", "view"} & {token.word for token in words[:8]}:
        return ""
    behind = next((number for number, token in enumerate(words) if token.word == "as" and not token.depth), None)
    if behind is None:
        return ""
    rest = _without_end(words[behind + 1 :])
    for end in (["with", "no", "data"], ["with", "data"]):
        if [token.word for token in rest[-len(end) :]] == end:
            return _written(sql, rest[: -len(end)])
    return _written(sql, rest)


def added(sql: str) -> str:
    """ALTER TABLE … ADD COLUMN with IF NOT EXISTS added, "" for another statement."""
    words = tokens(sql)
    if not words or words[0].word != "alter":
        return ""
    behind = next((number for number, token in enumerate(words) if token.word == "add" and not token.depth), None)
    if behind is None or behind + 1 == len(words):
        return ""
    at = words[behind + (words[behind + 1].word == "column")].end
    return f"{sql[:at]} IF NOT EXISTS{sql[at:]}"


def value(sql: str) -> str:
    """The value of a SET, as a SELECT; "" if it is a single word or a string.

    Raises Failure if the value cannot be separated from the rest.
    """
    words = _without_end(tokens(sql))
    behind = next((number for number, token in enumerate(words) if token.word in {"=", "to"} and not token.depth), None)
    if behind is None or len(words) == behind + 2:
        if any(token.word == "(" for token in words):
            raise Failure(sqlstate.SYNTAX, "expected SET name = value or SET VARIABLE name = value")
        return ""
    return f"SELECT (\n{sql[words[behind].end : words[-1].end]}\n)"


def pivot(sql: str, prefix: str) -> Pivot | None:
    """The PIVOTs of a statement, with type names in place of the columns that depend on its data.

    `prefix` begins the names of the types. None if the statement has none that can be taken apart.
    """
    words = tokens(sql)
    changed: list[tuple[int, int, str]] = []
    values: list[tuple[str, str]] = []
    for number, token in enumerate(words):
        if token.word not in {"pivot", "pivot_wider"}:
            continue
        on = next((at for at in range(number + 1, len(words)) if _at(words[at], "on", token.depth)), None)
        if on is None:
            continue
        source = sql[words[number + 1].start : words[on - 1].end]
        common = _common(sql, words[:number], token.depth)
        for entry in _entries(words[on + 1 :], token.depth):
            name = f"{prefix}{len(values)}"
            listed = _listed(entry, token.depth)
            if listed:
                if len(listed) > 2 and listed[0].word == "(" and listed[1].word in _SELECTING:
                    changed.append((listed[0].start, listed[-1].end, f'"{name}"'))
                    inner = sql[listed[0].start : listed[-1].end]
                    values.append((name, f"{common}SELECT * FROM {inner}"))
                continue
            text = sql[entry[0].start : entry[-1].end]
            changed.append((entry[0].start, entry[0].start, "("))
            changed.append((entry[-1].end, entry[-1].end, f') IN "{name}"'))
            wanted = f"SELECT DISTINCT CAST(({text}) AS VARCHAR) FROM {source} WHERE ({text}) IS NOT NULL ORDER BY ALL"
            values.append((name, f"{common}{wanted}"))
    if not changed:
        return None
    for start, end, text in sorted(changed, reverse=True):
        sql = sql[:start] + text + sql[end:]
    return Pivot(sql, values)


def _at(token: Token, word: str, depth: int) -> bool:
    return token.word == word and token.depth == depth


def _common(sql: str, before: Sequence[Token], depth: int) -> str:
    """The common table expressions before a PIVOT, as the beginning of a SELECT."""
    starts = [token for token in before if _at(token, "with", depth)]
    return sql[starts[-1].start : before[-1].end] + "\n" if starts else ""


def _listed(entry: Sequence[Token], depth: int) -> Sequence[Token]:
    """The text after the IN of an entry; nothing if IN is part of its expression."""
    for at, item in enumerate(entry):
        listed = entry[at + 1 :]
        if not listed or not _at(item, "in", depth):
            continue
        if listed[0].word != "(" or all(inner.depth > depth for inner in listed[1:-1]):
            return listed
    return ()


def _entries(words: Sequence[Token], depth: int) -> Iterator[Sequence[Token]]:
    """The text after ON, split at its commas."""
    entry: list[Token] = []
    for token in words:
        if token.depth < depth or (token.depth == depth and token.word in _ENDS):
            break
        if _at(token, ",", depth):
            if entry:
                yield entry
            entry = []
        else:
            entry.append(token)
    if entry:
        yield entry
