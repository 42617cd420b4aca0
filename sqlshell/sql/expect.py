"""What may stand at the cursor: kinds of names, and keywords, by the grammar around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from sqlshell.sql import grammar, words
from sqlshell.sql.scopes import Group, Scope, grouped, path_to, scope_at, segment
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
    if before and before[-1].word in {"UNION", "INTERSECT", "EXCEPT"}:
        return (), ("ALL", *grammar.QUERY), ""
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
        found = grammar.statement_words([token.word for token in before])
        if found is not None:
            return found
    return _in_query(here)


def _opened(outer: Group, inner: Group) -> list[Token]:
    """The tokens before a bracket, the nearest last."""
    found: list[Token] = []
    for item in outer.items:
        if item is inner:
            break
        if isinstance(item, Token):
            found.append(item)
    return found[-6:]


def _in_brackets(
    opened: Sequence[Token], here: Sequence[Token | Group], path: Sequence[Group]
) -> tuple[tuple[str, ...], tuple[str, ...], str] | None:
    last = opened[-1] if opened else None
    word = last.word if last is not None else ""
    comma = bool(here) and isinstance(here[-1], Token) and here[-1].text == ","
    first = not here
    if word == "OVER" or any(token.word == "WINDOW" for token in opened[-3:]):
        return None if here else ((), grammar.WINDOW, "")
    if first and (word in {"", "FROM", "JOIN", "AS", "IN", "EXISTS", "ALL", "ANY", "MATERIALIZED"} or not opened):
        inner = () if word in {"FROM", "JOIN", "AS", "MATERIALIZED", "EXISTS"} else ("column", "function")
        return inner, grammar.QUERY, ""
    if word == "USING":
        return ("common",), (), ""
    if word == "WITH" and path[0].items and isinstance(path[0].items[0], Token):
        return (("withkey",), (), _object(path[0])) if first or comma else ((), (), "")
    if isinstance(head := path[0].items[0] if path[0].items else None, Token) and len(path) == 2:
        if head.word == "INSERT" and len(opened) > 1 and any(token.word == "INTO" for token in opened):
            return (("column",), (), "") if first or comma else ((), (), "")
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
    return (), ("NOT NULL", "DEFAULT", "PRIMARY KEY", "UNIQUE", "CHECK", "REFERENCES"), ""


def _object(root: Group) -> str:
    """What a CREATE makes, in capitals."""
    found = [item.word for item in root.items if isinstance(item, Token) and item.word][:5]
    return next((word for word in found[1:] if word in {*words.CREATE_OBJECTS, "VIEW"}), "")


def _in_query(here: Sequence[Token | Group]) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """The clauses of SELECT, INSERT, UPDATE and DELETE."""
    last = here[-1] if here else None
    listing = _listing(here)
    if last is None:
        return grammar.COMPLETE_TYPES, grammar.QUERY, ""
    if isinstance(last, Group):
        return (), grammar.AFTER_RELATION if listing == "relation" else grammar.AFTER_OPERAND, ""
    word = last.word
    if word in grammar.RELATION_AFTER and not (word == "TABLE" and len(here) > 1):
        return ("relation",), ("LATERAL",) if word in {"FROM", "JOIN"} else (), ""
    if last.text == "," and listing == "relation":
        return ("relation",), ("LATERAL",), ""
    if last.text == ":" and len(here) > 1 and isinstance(here[-2], Token) and here[-2].text == ":":
        return ("type",), (), ""
    if word == "USING":
        return ("common",), (), ""
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
    if word in grammar.OPERAND_AFTER:
        every = ("*", "DISTINCT") if word == "SELECT" else ()
        return ("column", "function", "relation"), (*every, *grammar.OPERANDS), ""
    if last.kind == "sign" and last.text not in {")", "]", "*"}:
        return ("column", "function", "relation"), grammar.OPERANDS, ""
    if listing == "relation":
        return (), grammar.AFTER_RELATION, ""
    return (), grammar.AFTER_OPERAND, ""


def _creates(here: Sequence[Token | Group]) -> bool:
    return bool(here) and isinstance(here[0], Token) and here[0].word == "CREATE"


def _listing(here: Sequence[Token | Group]) -> str:
    """Whether the clause that these items end in lists relations."""
    for item in reversed(here):
        word = item.word if isinstance(item, Token) else ""
        if word in {"FROM", "JOIN", "INTO", "UPDATE"}:
            return "relation"
        if word in grammar.OPERAND_AFTER or word in {"VALUES", "USING", "WITH"}:
            return ""
    return ""


def _string(partial: Token, given: Sequence[Token], cursor: int) -> Expected:
    """Inside a string: the keys of a WITH list, and files where one is named."""
    body = partial.text[1 : cursor - partial.start]
    before = [token for token in given if token.end <= partial.start]
    last = before[-1] if before else None
    if last is not None and last.text == "=" and len(before) > 1 and before[-2].value.lower() == "file":
        at = body.startswith("@")
        return Expected(("path",), (), body[at:], partial.start + 1 + at, quoted="'")
    if last is not None and last.text in {"(", ","} and any(token.word == "WITH" for token in before):
        root = grouped(given)
        return Expected(("withkey",), (), body, partial.start + 1, within=_object(root), quoted="'")
    return NOTHING


def _command(text: str, cursor: int) -> Expected | None:
    """A backslash command at the cursor: its name, or an argument of it."""
    line = text.rfind("\n", 0, cursor) + 1
    typed = text[line:cursor]
    mark = typed.rfind("\\")
    if mark < 0 or typed.count("'", 0, mark) % 2 or (mark and not typed[mark - 1].isspace()):
        return None
    body = typed[mark + 1 :]
    name, blank, rest = body.partition(" ")
    if not blank:
        return Expected(("command",), (), name, line + mark + 1)
    argument = rest.split(" ")[-1]
    return Expected(("argument",), (), argument, cursor - len(argument), tuple(rest.split()[:1]), within=name)
