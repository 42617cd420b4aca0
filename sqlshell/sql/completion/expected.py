"""The valid words at the cursor: kinds of names, and keywords, by the grammar around it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.sql.analysis.tokens import Token, tokens, with_depth
from sqlshell.sql.completion import grammar
from sqlshell.sql.completion.clauses import kinds_at, object_of
from sqlshell.sql.completion.scopes import Group, Scope, path_to, scope_at, token_tree

LONGEST = 60_000
"""Maximum characters before and after the cursor that are analyzed."""

_ENDED: Final = re.compile(r";[ \t]*(?:--[^\n]*)?\n")
"""The end of a statement at the end of a line, with or without a comment behind it."""

EMPTY_SCOPE: Final = Scope()


class Expected(Struct, frozen=True):
    """The valid `kinds` of names and `keywords`; `prefix` is the part that has been typed, from `start` on.

    `qualifier` are the names before it, as in `schema.`; `within` is the context of the kind: the relation whose
    columns are valid, the command of an argument, the object of a WITH list.
    """

    kinds: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    prefix: str = ""
    start: int = 0
    qualifier: tuple[str, ...] = ()
    scope: Scope = EMPTY_SCOPE
    within: str = ""
    quoted: str = ""


NOTHING: Final = Expected()


def expected(text: str, cursor: int) -> Expected:
    """What is valid at `cursor` (characters from 0) of a buffer. Raises nothing."""
    # A `;` at the end of a line ends a statement, except inside strings; the result is then a guess.
    begin = max(0, cursor - LONGEST)
    for ended in _ENDED.finditer(text, begin, max(0, cursor - 1)):
        begin = ended.start() + 1
    text = text[begin : cursor + LONGEST]
    cursor -= begin
    wanted = _expected(text, cursor)
    if wanted is NOTHING:
        return NOTHING
    return replace(wanted, start=wanted.start + begin)


def _expected(text: str, cursor: int) -> Expected:
    command = _command(text, cursor)
    if command is not None:
        return command
    given, partial = _statement(text, cursor)
    if partial is not None and partial.kind == "name" and not _closed(partial):
        # The text after the cursor is not part of the name, although the quote is not closed yet.
        given, partial = _statement(f"{text[:cursor]}{partial.text[0]}{text[cursor:]}", cursor)
    if partial is None and _inside(text, cursor, given):
        return NOTHING
    if (variable := _variable(text, cursor, given)) is not None:
        return variable
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
    root = token_tree(given)
    scope = scope_at(root, start)
    at = start if not qualifier else given[len(before)].start
    kinds, keywords, within = kinds_at(root, at, before)
    return Expected(kinds, () if qualifier else keywords, prefix, start, qualifier, scope, within, quoted)


def _statement(text: str, cursor: int) -> tuple[list[Token], Token | None]:
    """The tokens of the statement around the cursor, and the token that is being typed."""
    current: list[Token] = []
    partial: Token | None = None
    for token, depth in with_depth(tokens(text)):
        if token.text == ";" and not depth:
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
    """Whether the cursor is in a comment or after a number."""
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
    end = len(before)
    parts: list[str] = []
    while end >= 2 and before[end - 1].text == "." and before[end - 2].kind in {"word", "name"}:
        parts.append(before[end - 2].value)
        end -= 2
    return tuple(reversed(parts)), list(before[:end])


_VARIABLE: Final = re.compile(r"""(?:^|[\s(,=<>+*/|-]):(['"]?|\{\?)(\w*)\Z""")


def _variable(text: str, cursor: int, given: Sequence[Token]) -> Expected | None:
    """The name of a variable after its colon."""
    match = _VARIABLE.search(text, max(0, cursor - 100), cursor)
    if match is None or any(token.kind == "string" and token.start < match.start(1) - 1 < token.end for token in given):
        return None
    return Expected(("variable",), (), match[2], match.start(2), within=match[1])


def _string(partial: Token, given: Sequence[Token], cursor: int) -> Expected:
    """Inside a string: the keys of a WITH list, and file names where they are allowed."""
    body = partial.text[1 : cursor - partial.start]
    before = [token for token in given if token.end <= partial.start]
    last = before[-1] if before else None
    at = body.startswith("@") and not body.startswith("@@")
    if last is not None and last.text == "=" and len(before) > 1 and (at or before[-2].value.lower() == "file"):
        return Expected(("path",), (), body[at:], partial.start + 1 + at, quoted="'")
    root = token_tree(given)
    if partial.text[0] == "'" and _names_file(before, path_to(root, partial.start)):
        return Expected(("path",), (), body, partial.start + 1, quoted="'")
    if last is not None and last.text in {"(", ","} and any(token.word == "WITH" for token in before):
        return Expected(("withkey",), (), body, partial.start + 1, within=object_of(root), quoted="'")
    return NOTHING


def _names_file(before: Sequence[Token], path: Sequence[Group]) -> bool:
    """Whether a string may name a file: in COPY, ATTACH and similar, as a relation, or as an argument of a function."""
    words = [token.word for token in before]
    last = words[-1] if words else ""
    first = words[0] if words else ""
    if first in grammar.FILE_STATEMENTS and last in {first, "TO", "FROM", "DATABASE", "EXISTS"}:
        return True
    group = path[-1]
    if last in {"FROM", "JOIN"}:
        # In EXTRACT(part FROM '…') and IS DISTINCT FROM '…' it is a value.
        begins = next((item.word for item in group.items if isinstance(item, Token)), "")
        return words[-2:-1] != ["DISTINCT"] and (len(path) == 1 or begins in {"SELECT", "FROM", "WITH"})
    if last in {"SUMMARIZE", "DESCRIBE", "DESC"}:
        return len(words) == 1
    if before and before[-1].text not in {"(", "[", ","}:
        return False
    # The first argument of a function that reads files, or an item of its list.
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
    """A command at the cursor: its name or an argument."""
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
        return replace(inner, start=inner.start + begin)
    words = list(_ARGUMENT.finditer(rest))
    last = words.pop() if words and words[-1].end() == len(rest) else None
    start = begin + last.start() if last is not None else cursor
    if last is not None and (variable := _variable(text, cursor, ())) is not None:
        return variable
    before = tuple(word[0].strip("'\"") for word in words)
    return Expected(("argument",), (), last[0] if last is not None else "", start, before, within=name)


STATEMENTS: Final = frozenset({"local"})
"""Commands with a statement as their argument."""


def _mark(text: str, line: int, typed: str) -> int:
    """The start of the command in its line: at a backslash, or at a `.` or `!` that begins a statement; -1 if there is
    none.
    """
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
