"""What may stand at the cursor: kinds of names, and keywords, by the grammar around it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from sqlshell.sql import grammar, words
from sqlshell.sql.scopes import Group, Scope, grouped, path_to, scope_at, segment, sources_of
from sqlshell.sql.tokens import Token, tokens

LONGEST = 60_000
"""Characters before the cursor, and after it, that are looked at."""

NOWHERE: Final = Scope()


class Expected(Struct, frozen=True):
    """`kinds` of names and `keywords` that may come; `prefix` is what is typed of it, from `start` on.

    `qualifier` are the names before it, as in `schema.`; `within` is what else the kind depends on: the relation whose
    columns are meant, the command whose argument it is, the object of a WITH list.
    """

    kinds: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    prefix: str = ""
    start: int = 0
    qualifier: tuple[str, ...] = ()
    scope: Scope = NOWHERE
    within: str = ""
    quoted: str = ""


NOTHING: Final = Expected()
SETS: Final = frozenset({"UNION", "INTERSECT", "EXCEPT"})


def expected(text: str, cursor: int) -> Expected:
    """What may stand at `cursor` (characters from 0) of a buffer. Raises nothing."""
    # A `;` at a line's end begins a statement, but for those inside strings: then what is expected is a guess.
    begin = max(0, cursor - LONGEST, text.rfind(";\n", 0, max(0, cursor - 1)) + 1)
    text = text[begin : cursor + LONGEST]
    cursor -= begin
    found = _expected(text, cursor)
    if found is NOTHING:
        return NOTHING
    return Expected(
        found.kinds,
        found.keywords,
        found.prefix,
        found.start + begin,
        found.qualifier,
        found.scope,
        found.within,
        found.quoted,
    )


def _expected(text: str, cursor: int) -> Expected:
    command = _command(text, cursor)
    if command is not None:
        return command
    given, partial = _statement(text, cursor)
    if partial is not None and partial.kind == "name" and not _closed(partial):
        # What follows is not the name's, though no quote says so yet.
        given, partial = _statement(f"{text[:cursor]}{partial.text[0]}{text[cursor:]}", cursor)
    if partial is None and _inside(text, cursor, given):
        return NOTHING
    prefix, start, quoted = "", cursor, ""
    if partial is not None:
        if partial.kind == "string":
            return _string(partial, given, cursor)
        prefix, start = text[partial.start : cursor], partial.start
        if partial.kind == "name":
            quoted, prefix = prefix[0], prefix[1:].replace(prefix[0] * 2, prefix[0])
        given = [token for token in given if token is not partial]
    before = [token for token in given if token.end <= start]
    qualifier, before = _qualifier(before)
    root = grouped(given)
    scope = scope_at(root, start)
    at = start if not qualifier else given[len(before)].start
    kinds, keywords, within = _kinds(root, at, before)
    if qualifier and kinds == ("column", "function", "relation"):
        kinds = ("column", "relation")
    return Expected(kinds, () if qualifier else keywords, prefix, start, qualifier, scope, within, quoted)


def _statement(text: str, cursor: int) -> tuple[list[Token], Token | None]:
    """The tokens of the statement around the cursor, and the one that is being typed."""
    current: list[Token] = []
    partial: Token | None = None
    depth = 0
    for token in tokens(text):
        if token.kind == "sign" and token.text in "()":
            depth = max(0, depth + (1 if token.text == "(" else -1))
        if token.text == ";" and token.kind == "sign" and not depth:
            if token.start >= cursor:
                break
            current = []
            continue
        if token.start < cursor <= token.end and token.kind != "sign":
            ended = token.kind in {"string", "name"} and cursor == token.end and _closed(token)
            if not ended and token.kind != "number":
                partial = token
        current.append(token)
    return current, partial


def _closed(token: Token) -> bool:
    quote = token.text[0] if token.text[0] in "'\"`" else "'"
    body = token.text[1:] if token.text[0] in "'\"`" else token.text[2:]
    return body.endswith(quote) and (len(body) - len(body.rstrip(quote))) % 2 == 1


def _inside(text: str, cursor: int, given: Sequence[Token]) -> bool:
    """Whether the cursor is in a comment, or behind a number."""
    if any(token.kind == "number" and token.start < cursor <= token.end for token in given):
        return True
    line = text.rfind("\n", 0, cursor) + 1
    covered = [(token.start, token.end) for token in given if token.kind in {"string", "name"}]
    dash = text.find("--", line, cursor)
    while dash >= 0:
        if not any(start < dash < end for start, end in covered):
            return True
        dash = text.find("--", dash + 2, cursor)
    opened = text.rfind("/*", 0, cursor)
    closed = text.find("*/", opened) if opened >= 0 else -1
    return opened >= 0 and (closed < 0 or closed + 1 >= cursor) and not any(s < opened < e for s, e in covered)


def _qualifier(before: Sequence[Token]) -> tuple[tuple[str, ...], list[Token]]:
    left = list(before)
    parts: list[str] = []
    while len(left) >= 2 and left[-1].text == "." and left[-2].kind in {"word", "name"}:
        parts.append(left[-2].value)
        left = left[:-2]
    return tuple(reversed(parts)), left


def _kinds(root: Group, position: int, before: Sequence[Token]) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    if before and before[-1].word in SETS:
        return (), ("ALL", *grammar.QUERY), ""
    if len(before) > 1 and before[-1].word == "ALL" and before[-2].word in SETS:
        return (), grammar.QUERY, ""
    path = path_to(root, position)
    group = path[-1]
    here = [item for item in segment(group, position) if item.start < position]
    if len(path) > 1:
        opened = _opened(path[-2], group)
        found = _in_brackets(opened, here, path)
        if found is not None:
            return found
    elif not before:
        return (), (*words.STATEMENTS, *words.LOCAL_STATEMENTS), ""
    else:
        said = [item.word if isinstance(item, Token) else "" for item in group.items if item.start < position]
        found = grammar.statement_words(said) if said else None
        if found is not None:
            return (*found[:2], _named_by(before)) if "columnof" in found[0] else found
    return _in_query(here)


def _named_by(before: Sequence[Token], *words: str) -> str:
    """The relation behind the last of these words (TABLE where none are given), in its parts, one a line."""
    starts = [number for number, token in enumerate(before) if token.word in (words or ("TABLE",))]
    previous = "."
    parts: list[str] = []
    for token in before[starts[-1] + 1 :] if starts else ():
        if token.text != ".":
            if token.kind not in {"word", "name"} or previous != ".":
                break
            parts.append(token.value)
        previous = token.text
    return "\n".join(parts)


def _opened(outer: Group, inner: Group) -> list[Token]:
    """The tokens before a bracket, the nearest last."""
    found: list[Token] = []
    for item in outer.items:
        if item is inner:
            break
        if isinstance(item, Token):
            found.append(item)
    return found[-8:]


def _in_brackets(
    opened: Sequence[Token], here: Sequence[Token | Group], path: Sequence[Group]
) -> tuple[tuple[str, ...], tuple[str, ...], str] | None:
    last = opened[-1] if opened else None
    word = last.word if last is not None else ""
    comma = bool(here) and isinstance(here[-1], Token) and here[-1].text == ","
    first = not here
    if word == "OVER" or any(token.word == "WINDOW" for token in opened[-3:]):
        return None if here else ((), grammar.WINDOW, "")
    if (first or comma) and any(token.word == "VALUES" for token in opened):
        values = opened[[token.word for token in opened].index("VALUES") + 1 :]
        if all(token.text == "," for token in values):
            return ("function",), ("NULL", "DEFAULT", "TRUE", "FALSE", "CAST", "CASE"), ""
    bare = last is None or (not word and last.kind == "sign")
    if first and (bare or word in {"FROM", "JOIN", "LATERAL", "AS", "IN", "EXISTS", "ALL", "ANY", "MATERIALIZED"}):
        inner = () if word in {"FROM", "JOIN", "LATERAL", "AS", "MATERIALIZED", "EXISTS"} else ("column", "function")
        return inner, grammar.QUERY, ""
    if first and word in grammar.OPERAND_AFTER:
        return grammar.COMPLETE_TYPES, (*grammar.QUERY, *grammar.OPERANDS), ""
    if word in {"EXCLUDE", "REPLACE"}:
        return (("column",), (), "") if first or comma else None
    if word == "USING":
        return ("common",), (), ""
    if (first or comma) and "REFERENCES" in {token.word for token in opened[-6:]} and word != "REFERENCES":
        return ("columnof",), (), _named_by(opened, "REFERENCES")
    if word == "WITH" and path[0].items and isinstance(path[0].items[0], Token):
        return (("withkey",), (), _object(path[0])) if first or comma else ((), (), "")
    if isinstance(head := path[0].items[0] if path[0].items else None, Token) and len(path) == 2:
        if head.word == "INSERT" and len(opened) > 1 and any(token.word == "INTO" for token in opened):
            return (("column",), (), "") if first or comma else ((), (), "")
        if head.word == "CREATE" and any(token.word == "INDEX" for token in opened):
            return (("columnof",), (), _named_by(opened, "ON")) if first or comma else ((), ("ASC", "DESC"), "")
        if head.word == "CREATE" and last is not None and not _queried(here):
            return _definition(here)
    if here and isinstance(here[-1], Token) and here[-1].word == "AS" and word in {"CAST", "TRY_CAST"}:
        return ("type",), (), ""
    return None


def _queried(here: Sequence[Token | Group]) -> bool:
    return any(isinstance(item, Token) and item.word in {"SELECT", "FROM", "VALUES"} for item in here)


def _definition(here: Sequence[Token | Group]) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """A column's definition: its name, which nobody knows, its type, its constraints."""
    since = 0
    for number, item in enumerate(here):
        if isinstance(item, Token) and item.text == ",":
            since = number + 1
    count = len(here) - since
    if count == 0:
        return (), ("PRIMARY KEY", "CHECK", "FOREIGN KEY", "UNIQUE"), ""
    if count == 1:
        return ("type",), (), ""
    if isinstance(here[-1], Token) and here[-1].word == "REFERENCES":
        return ("relation",), (), ""
    return (), ("NOT NULL", "DEFAULT", "PRIMARY KEY", "UNIQUE", "CHECK", "REFERENCES"), ""


def _object(root: Group) -> str:
    """What a CREATE makes, in capitals."""
    found = [item.word for item in root.items if isinstance(item, Token) and item.word][:5]
    return next((word for word in found[1:] if word in {*words.CREATE_OBJECTS, "VIEW"}), "")


def _in_query(here: Sequence[Token | Group]) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """The clauses of SELECT, INSERT, UPDATE and DELETE."""
    last = here[-1] if here else None
    if last is None:
        return grammar.COMPLETE_TYPES, ("DISTINCT", *grammar.OPERANDS), ""
    clause = _clause(here)
    after = grammar.AFTER_CLAUSE.get(clause, grammar.AFTER_CLAUSE[""])
    if isinstance(last, Group):
        return (), _created(here) if _creates(here) and not clause else after, ""
    word = last.word
    if word in grammar.RELATION_AFTER and not (word == "TABLE" and len(here) > 1):
        return ("relation",), ("LATERAL",) if word in {"FROM", "JOIN"} else (), ""
    if last.text == "," and clause in {"FROM", "JOIN"}:
        return ("relation",), ("LATERAL",), ""
    if last.text == ":" and len(here) > 1 and isinstance(here[-2], Token) and here[-2].text == ":":
        return ("type",), (), ""
    if word == "USING":
        others = any(isinstance(item, Token) and item.word in {"DELETE", "MERGE"} for item in here)
        return ("relation",) if others else ("common",), (), ""
    if word == "AS":
        return (), grammar.QUERY if _creates(here) else (), ""
    if word in {"GROUP", "ORDER", "PARTITION"}:
        return (), ("BY",), ""
    if word == "WITH":
        return (), ("RECURSIVE",), ""
    if word in {"LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "ASOF", "SEMI", "ANTI", "OUTER", "POSITIONAL"}:
        return (), ("JOIN", "OUTER JOIN"), ""
    if word == "IS":
        return (), ("NULL", "NOT NULL", "DISTINCT FROM"), ""
    if word == "INTERVAL":
        return (), (), ""
    if clause == "WITH":
        return (), ("AS",), ""
    if _creates(here) and clause in {"", "ON"}:
        return (("relation",) if word == "ON" else ()), _created(here), ""
    if word == "ON" and (side := _joined(here)):
        return ("join", "column", "function", "relation"), grammar.OPERANDS, side
    if word in {"LIMIT", "OFFSET"}:
        return (), ("ALL",) if word == "LIMIT" else (), ""
    if word == "ALL" and clause == "GROUP":
        return (), after, ""
    if word in grammar.OPERAND_AFTER:
        every = ("*", "DISTINCT") if word == "SELECT" else ()
        return ("column", "function", "relation"), (*every, *grammar.OPERANDS), ""
    if last.kind == "sign" and last.text not in {")", "]", "*"}:
        return ("column", "function", "relation"), grammar.OPERANDS, ""
    return (), after, ""


def _clause(here: Sequence[Token | Group]) -> str:
    """The word of the clause that these items end in; CASE where one is open."""
    open_ends = 0
    for number in range(len(here) - 1, -1, -1):
        item = here[number]
        word = item.word if isinstance(item, Token) else ""
        if word == "END":
            open_ends += 1
        elif word == "CASE":
            if not open_ends:
                return "CASE"
            open_ends -= 1
        elif word == "FROM" and number and isinstance(before := here[number - 1], Token):
            if before.word == "DELETE":
                return "DELETE"
            if before.word != "DISTINCT":
                return "FROM"
        elif word in grammar.AFTER_CLAUSE and word:
            return word
    return ""


def _created(here: Sequence[Token | Group]) -> tuple[str, ...]:
    """What may stand in a CREATE, outside of its brackets and its query."""
    said = [item.word if isinstance(item, Token) else "" for item in here]
    if "INDEX" in said:
        return ("ON",) if "ON" not in said and said[-1] not in {"INDEX", "EXISTS"} else ()
    if said[-1] in {"TABLE", "VIEW", "SCHEMA", "SEQUENCE", "TYPE", "MACRO", "FUNCTION", "STREAM", "CHANGELOG"}:
        return ("IF NOT EXISTS",)
    if said[-1] in {"EXISTS", "ON"}:
        return ()
    return ("AS", "WITH")


def _joined(here: Sequence[Token | Group]) -> str:
    """The alias of the relation that the last JOIN joins, "" where the ON is no join's."""
    joins = [number for number, item in enumerate(here) if isinstance(item, Token) and item.word == "JOIN"]
    sources = list(sources_of(here[joins[-1] :])) if joins else []
    return sources[-1].alias if sources else ""


def _creates(here: Sequence[Token | Group]) -> bool:
    return bool(here) and isinstance(here[0], Token) and here[0].word == "CREATE"


def _string(partial: Token, given: Sequence[Token], cursor: int) -> Expected:
    """Inside a string: the keys of a WITH list, and files where one is named."""
    body = partial.text[1 : cursor - partial.start]
    before = [token for token in given if token.end <= partial.start]
    last = before[-1] if before else None
    if last is not None and last.text == "=" and len(before) > 1 and before[-2].value.lower() == "file":
        at = body.startswith("@")
        return Expected(("path",), (), body[at:], partial.start + 1 + at, quoted="'")
    root = grouped(given)
    if partial.text[0] == "'" and _names_file(before, path_to(root, partial.start)):
        return Expected(("path",), (), body, partial.start + 1, quoted="'")
    if last is not None and last.text in {"(", ","} and any(token.word == "WITH" for token in before):
        return Expected(("withkey",), (), body, partial.start + 1, within=_object(root), quoted="'")
    return NOTHING


def _names_file(before: Sequence[Token], path: Sequence[Group]) -> bool:
    """Whether a string may name a file: in COPY, ATTACH and their like, as a relation, or as a function's argument."""
    said = [token.word for token in before]
    last = said[-1] if said else ""
    first = said[0] if said else ""
    if first in grammar.FILE_STATEMENTS and last in {first, "TO", "FROM", "DATABASE", "EXISTS"}:
        return True
    group = path[-1]
    if last in {"FROM", "JOIN"}:
        # In EXTRACT(part FROM '…') and IS DISTINCT FROM '…' it is a value.
        begins = next((item.word for item in group.items if isinstance(item, Token)), "")
        return said[-2:-1] != ["DISTINCT"] and (len(path) == 1 or begins in {"SELECT", "FROM", "WITH"})
    if last in {"SUMMARIZE", "DESCRIBE", "DESC"}:
        return len(said) == 1
    if before and before[-1].text not in {"(", "[", ","}:
        return False
    # The first argument of a function that reads files, or one of its list.
    number = len(before) - 1
    if number < 0:
        return False
    if before[number].text in {"[", ","}:
        while number >= 0 and before[number].text != "[":
            if before[number].kind == "sign" and before[number].text not in {","}:
                return False
            number -= 1
        number -= 1
    if number < 1 or before[number].text != "(":
        return False
    name = before[number - 1].text.lower()
    return name in grammar.FILE_FUNCTIONS or name.startswith(("read_", "parquet_"))


_ARGUMENT: Final = re.compile(r"""(?:'(?:[^'\\]|\\.|'')*+(?:'|\Z)|"(?:[^"]|"")*+(?:"|\Z)|[^\s'"])+""", re.S)


def _command(text: str, cursor: int) -> Expected | None:
    """A command at the cursor: its name, or an argument of it."""
    line = text.rfind("\n", 0, cursor) + 1
    typed = text[line:cursor]
    mark = _mark(text, line, typed)
    if mark < 0:
        return None
    body = typed[mark:]
    name, blank, rest = body.partition(" ")
    foreign = name[0] in ".!" and len(name) > 1
    if not blank:
        return Expected(("command",), (), name.removeprefix("\\"), line + mark + (name[0] == "\\"))
    name = name if foreign else name[1:]
    begin = cursor - len(rest)
    if name in STATEMENTS:
        inner = _expected(text[begin:], len(rest))
        return Expected(
            inner.kinds,
            inner.keywords,
            inner.prefix,
            inner.start + begin,
            inner.qualifier,
            inner.scope,
            inner.within,
            inner.quoted,
        )
    words = list(_ARGUMENT.finditer(rest))
    last = words.pop() if words and words[-1].end() == len(rest) else None
    start = begin + last.start() if last is not None else cursor
    before = tuple(found[0].strip("'\"") for found in words)
    return Expected(("argument",), (), last[0] if last is not None else "", start, before, within=name)


STATEMENTS: Final = frozenset({"local"})
"""Commands whose argument is a statement."""


def _mark(text: str, line: int, typed: str) -> int:
    """Where the command begins in its line: at a backslash, or at a `.` or `!` that begins a statement; -1 for none."""
    blank = len(typed) - len(typed.lstrip())
    if typed[blank : blank + 1] in {".", "!"} and typed[blank + 1 : blank + 2].isalpha():
        return blank if not _statement(text[:line], line)[0] else -1
    if typed.lstrip() in {".", "!"}:
        return blank if not _statement(text[:line], line)[0] else -1
    first = re.search(r"(?:^|(?<=\s))\\(?=[a-zA-Z?!+-]*(?:\s|\Z))", typed)
    while first is not None and _in_quotes(typed, first.start()):
        first = re.compile(r"(?<=\s)\\").search(typed, first.end())
    return -1 if first is None else first.start()


def _in_quotes(typed: str, at: int) -> bool:
    return bool(typed.count("'", 0, at) % 2 or typed.count('"', 0, at) % 2)
