"""The valid words at a position of a statement, by the clause that contains it: kinds of names, and keywords."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlshell.sql import keywords
from sqlshell.sql.analysis.tokens import Token
from sqlshell.sql.completion import grammar
from sqlshell.sql.completion.grammar import Wanted
from sqlshell.sql.completion.scopes import Group, path_to, select_at, sources_of

SETS: Final = frozenset({"UNION", "INTERSECT", "EXCEPT"})


def kinds_at(root: Group, position: int, before: Sequence[Token]) -> Wanted:
    if before and before[-1].word in SETS:
        return (), ("ALL", *grammar.QUERY), ""
    if len(before) > 1 and before[-1].word == "ALL" and before[-2].word in SETS:
        return (), grammar.QUERY, ""
    path = path_to(root, position)
    group = path[-1]
    here = [item for item in select_at(group, position) if item.start < position]
    if len(path) > 1:
        opened = _opened(path[-2], group)
        wanted = _in_brackets(opened, here, path)
        if wanted is not None:
            return wanted
    elif not before:
        return (), (*keywords.STATEMENTS, *keywords.LOCAL_STATEMENTS), ""
    else:
        words = [item.word if isinstance(item, Token) else "" for item in group.items if item.start < position]
        wanted = grammar.statement_words(words) if words else None
        if wanted is not None:
            return (*wanted[:2], _named_by(before)) if "columnof" in wanted[0] else wanted
        if words and words[0] and not grammar.QUERIES.intersection(words):
            return (), (), ""
    return _in_query(here)


def _named_by(before: Sequence[Token], *words: str) -> str:
    """The relation after the last of these words (TABLE by default), with its parts on separate lines."""
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
    tokens: list[Token] = []
    for item in outer.items:
        if item is inner:
            break
        if isinstance(item, Token):
            tokens.append(item)
    return tokens[-12:]


def _in_brackets(opened: Sequence[Token], here: Sequence[Token | Group], path: Sequence[Group]) -> Wanted | None:
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
    if [token.word for token in opened] == ["EXPLAIN"]:
        if first or comma:
            return (), grammar.EXPLAINED, ""
        format_of = isinstance(here[-1], Token) and here[-1].word == "FORMAT"
        return (), grammar.PLAN_FORMATS if format_of else ("ON", "OFF"), ""
    if word == "EXTRACT" and first:
        return (), grammar.PARTS_OF_TIME, ""
    bare = last is None or (not word and last.kind == "sign")
    if first and (bare or word in {"FROM", "JOIN", "LATERAL", "AS", "EXISTS", "ANY", "MATERIALIZED"}):
        inner = () if word in {"FROM", "JOIN", "LATERAL", "AS", "MATERIALIZED", "EXISTS"} else ("column", "function")
        return inner, grammar.QUERY, ""
    if first and word in grammar.OPERAND_AFTER:
        return grammar.COMPLETE_TYPES, (*grammar.QUERY, *grammar.OPERANDS), ""
    if word in {"EXCLUDE", "REPLACE", "CONFLICT"}:
        return (("column",), (), "") if first or comma else None
    if word in {"KEY", "UNIQUE"}:
        return (("columnof",), (), _named_by(opened)) if first or comma else ((), (), "")
    if word == "USING":
        return ("common",), (), ""
    match _before_name(opened):
        case "INTO" | "COPY":
            return (("column",), (), "") if first or comma else ((), (), "")
        case "REFERENCES" if first or comma:
            return ("columnof",), (), _named_by(opened, "REFERENCES")
        case "WITH" | "RECURSIVE":
            return (), (), ""
    if word == "WITH" and path[0].items and isinstance(path[0].items[0], Token):
        return (("withkey",), (), object_of(path[0])) if first or comma else ((), (), "")
    if isinstance(head := path[0].items[0] if path[0].items else None, Token) and len(path) == 2:
        if head.word == "CREATE" and any(token.word == "INDEX" for token in opened):
            return (("columnof",), (), _named_by(opened, "ON")) if first or comma else ((), ("ASC", "DESC"), "")
        if head.word == "CREATE" and last is not None and not _queried(here):
            return _definition(here)
    if here and isinstance(here[-1], Token) and here[-1].word == "AS" and word in {"CAST", "TRY_CAST"}:
        return ("type",), (), ""
    return None


def _before_name(opened: Sequence[Token]) -> str:
    """The word before the name, perhaps a qualified one, that ends these tokens; "" if they do not end in a name."""
    at = len(opened) - 1
    while at > 1 and opened[at].kind != "sign" and opened[at - 1].text == ".":
        at -= 2
    named = at > 0 and opened[at].kind in {"word", "name"}
    return opened[at - 1].word if named else ""


def _queried(here: Sequence[Token | Group]) -> bool:
    return any(isinstance(item, Token) and item.word in {"SELECT", "FROM", "VALUES"} for item in here)


def _definition(here: Sequence[Token | Group]) -> Wanted:
    """The definition of a column: its new name, its type, its constraints."""
    since = 0
    for number, item in enumerate(here):
        if isinstance(item, Token) and item.text == ",":
            since = number + 1
    count = len(here) - since
    if count == 0:
        return (), ("PRIMARY KEY", "CHECK", "FOREIGN KEY", "UNIQUE"), ""
    if isinstance(here[-1], Token) and here[-1].word in {"REFERENCES", "LIKE"}:
        return ("relation",), (), ""
    if count == 1:
        return ("type",), (), ""
    return (), ("NOT NULL", "DEFAULT", "PRIMARY KEY", "UNIQUE", "CHECK", "REFERENCES"), ""


def object_of(root: Group) -> str:
    """The kind of object that a CREATE creates, in capitals."""
    words = [item.word for item in root.items if isinstance(item, Token) and item.word][:5]
    return next((word for word in words[1:] if word in {*keywords.CREATE_OBJECTS, "VIEW"}), "")


def _in_query(here: Sequence[Token | Group]) -> Wanted:
    """The clauses of SELECT, INSERT, UPDATE and DELETE."""
    last = here[-1] if here else None
    if last is None:
        return grammar.COMPLETE_TYPES, ("DISTINCT", *grammar.OPERANDS), ""
    clause = _clause(here)
    after = grammar.AFTER_CLAUSE.get(clause, grammar.AFTER_CLAUSE[""])
    if isinstance(last, Group):
        return (), _created(here) if _creates(here) and not clause else after, ""
    word = last.word
    if word in grammar.RELATION_AFTER and not (word == "TABLE" and _creates(here)):
        return _sources(here) if word in {"FROM", "JOIN"} else (("relation",), (), "")
    if last.text == "," and clause in {"FROM", "JOIN"}:
        return _sources(here)
    if last.text == ":" and len(here) > 1 and isinstance(here[-2], Token) and here[-2].text == ":":
        return ("type",), (), ""
    if word == "USING":
        others = any(isinstance(item, Token) and item.word in {"DELETE", "MERGE"} for item in here)
        return ("relation",) if others else ("common",), (), ""
    if word == "AS":
        return (), grammar.QUERY if _creates(here) else (), ""
    if word in grammar.WORDS and not (word == "FOR" and len(here) == 1):
        return (), grammar.WORDS[word], ""
    if word in grammar.MERGED and clause != "CASE":
        return (), grammar.MERGED[word], ""
    if clause == "WITH":
        return (), ("AS",), ""
    if _creates(here) and clause in {"", "ON"}:
        return (("relation",) if word == "ON" else ()), _created(here), ""
    if clause == "ON" and (side := _joined(here)):
        if word == "ON":
            return ("join", "column", "function", "relation"), grammar.OPERANDS, side
        if last.text == "=":
            return ("counterpart", "column", "function", "relation"), grammar.OPERANDS, f"{side}\n{_equated(here)}"
    if word == "ALL" and clause == "GROUP":
        return (), after, ""
    if (word == "SET" or (clause == "SET" and last.text == ",")) and len(here) > 1:
        return ("column",), (), ""
    if word in grammar.OPERAND_AFTER:
        every = ("*", "DISTINCT") if word == "SELECT" else ()
        return ("column", "function", "relation"), (*every, *grammar.OPERANDS), ""
    if last.kind == "sign" and last.text not in {")", "]", "*"}:
        return ("column", "function", "relation"), grammar.OPERANDS, ""
    return (), after, ""


def _sources(here: Sequence[Token | Group]) -> Wanted:
    """What may be read from; after a JOIN with a condition, first whole joins."""
    words = [item.word if isinstance(item, Token) else "" for item in here[-3:]]
    joins = words[-1] == "JOIN" and not {"CROSS", "NATURAL", "POSITIONAL"}.intersection(words)
    return (*(("joined",) if joins else ()), "relation", "table function"), ("LATERAL",), ""


def _equated(here: Sequence[Token | Group]) -> str:
    """The column before a final `=`, as written."""
    tokens = [item.value if isinstance(item, Token) else "" for item in here[-4:-1]]
    return ".".join((tokens[0], tokens[2])) if len(tokens) == 3 and tokens[1] == "." else tokens[-1]


def _clause(here: Sequence[Token | Group]) -> str:
    """The last keyword that begins a clause; CASE inside an open CASE."""
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
    """What is valid in a CREATE, outside of its brackets and its query."""
    words = [item.word if isinstance(item, Token) else "" for item in here]
    if "INDEX" in words:
        return ("ON",) if "ON" not in words and words[-1] not in {"INDEX", "EXISTS"} else ()
    if words[-1] in {"TABLE", "VIEW", "SCHEMA", "SEQUENCE", "TYPE", "MACRO", "FUNCTION", "STREAM", "CHANGELOG"}:
        return ("IF NOT EXISTS",)
    if words[-1] in {"EXISTS", "ON"}:
        return ()
    return ("AS", "WITH")


def _joined(here: Sequence[Token | Group]) -> str:
    """The alias of the relation of the last JOIN, or of a MERGE's USING; "" if the ON does not belong to a join."""
    merges = isinstance(here[0], Token) and here[0].word == "MERGE"
    begins = {"JOIN", "USING"} if merges else {"JOIN"}
    sources = list(sources_of(here)) if any(isinstance(item, Token) and item.word in begins for item in here) else []
    return sources[-1].alias if sources else ""


def _creates(here: Sequence[Token | Group]) -> bool:
    return bool(here) and isinstance(here[0], Token) and here[0].word in {"CREATE", "PREPARE"}
