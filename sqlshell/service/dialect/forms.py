"""A small language for the syntax of statements: a form is matched once, from left to right.

A form consists of these items, separated by blanks:

    WORD            a keyword, in any case
    A|B             one of these keywords; `field:A|B` stores it in lower case. COMPUTE_POOL may be written as two words
    [ … ]           optional items; they are present if the first of them is
    =field          a flag that is set when this position is reached
    !               from here on the statement has this form: a mismatch is a syntax error with its position
    <field:kind>    a value of one of the KINDS
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from sqlshell.interface import sqlstate
from sqlshell.service.dialect.lexer import END, NAME, NUMBER, TEXT, WORD, Tokens, TooMany
from sqlshell.service.failure import Failure

T_co = TypeVar("T_co", covariant=True)

SHOWN = 40
"""The maximum number of characters of a statement that a syntax error shows."""


class FormMatch:
    """The state of matching one form: `values` by field, and the farthest token that did not match."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.values: dict[str, Any] = {}
        self.committed = self.ended = False
        """Whether the statement must have this form, and whether all of it was read."""
        self.farthest, self.wanted = 0, ""

    def note_mismatch(self, at: int, wanted: str) -> int:
        """Record that token `at` is not the expected `wanted`; returns -1."""
        if at >= self.farthest:
            self.farthest, self.wanted = at, wanted
        return -1

    def error(self) -> Failure:
        token = self.tokens[self.farthest]
        text = self.tokens.text
        shown = text[token.start : max(token.end, token.start + 1)][:SHOWN]
        where = f'at or near "{shown}"' if token.kind != END else "at end of input"
        line = text.count("\n", 0, token.start) + 1
        place = f" (line {line})" if line > 1 else ""
        return Failure(sqlstate.SYNTAX, f"syntax error {where}{place}: expected {self.wanted}")


Item = Callable[[FormMatch, int], int]
"""Matches one item of a form from a token on; returns the number of the next token, or -1 if it does not match."""


class Form(Generic[T_co]):
    """A form, with the class or function that makes an object from its values, or None for those of another form.

    `more` are further fields of every statement of this form. `first` is its first word, in lower case; `second` are
    the words that may follow it and OR REPLACE, none if any may.
    """

    def __init__(self, text: str, make: Callable[..., T_co | None], **more: object) -> None:
        self.text, self._make, self._more = text, make, more
        first, second, *_ = [*text.replace(" [ OR REPLACE =replace ]", "").split(), "!"]
        self.first, choices = first.rpartition(":")[2].lower(), second.rpartition(":")[2].split("|")
        parts = (part for choice in choices for part in (choice, choice.partition("_")[0]))
        self.second = frozenset() if second[0] in "[<!=" else frozenset(parts)

    def read(self, tokens: Tokens) -> T_co | None:
        """Parse a statement; None if it has another form. Raises Failure."""
        match = FormMatch(tokens)
        at = compiled(self.text)(match, 0)
        if not match.ended and at >= 0:
            while tokens.is_sign(at, ";"):
                at += 1
            if tokens[at].kind != END:
                at = match.note_mismatch(at, "the end of the statement")
        if at >= 0:
            return self._make(**match.values, **self._more)
        if match.committed:
            raise match.error()
        return None


def first_of(forms: Iterable[Form[T_co]], tokens: Tokens) -> T_co | None:
    """Parse a statement with the first form that matches; None if none matches or the statement has too many tokens.

    Raises Failure.
    """
    try:
        return next((asked for form in forms if (asked := form.read(tokens)) is not None), None)
    except TooMany:
        return None


@functools.cache
def compiled(form: str) -> Item:
    items, rest = _sequence(form.split())
    if rest:
        raise ValueError(f"unbalanced bracket in form {form!r}")
    return items


def _sequence(words: Sequence[str]) -> tuple[Item, Sequence[str]]:
    """The items up to the closing bracket, and the words after it."""
    items: list[Item] = []
    while words:
        word, words = words[0], words[1:]
        if word == "]":
            break
        if word == "[":
            inner, words = _sequence(words)
            items.append(_optional(inner))
        elif word == "!":
            items.append(_commit)
        elif word.startswith("="):
            items.append(_flag(word[1:]))
        elif word.startswith("<"):
            field, _, kind = word[1:-1].partition(":")
            items.append(_value(field, *KINDS[kind]))
        else:
            field, _, choices = word.rpartition(":")
            items.append(_keyword(field, choices.split("|")))

    def sequence(match: FormMatch, at: int) -> int:
        for item in items:
            at = item(match, at)
            if at < 0:
                return -1
        return at

    return sequence, words


def _optional(inner: Item) -> Item:
    def optional(match: FormMatch, at: int) -> int:
        before = match.values
        match.values = dict(before)
        behind = inner(match, at)
        if behind < 0:
            match.values = before
            # The items are present if the first of them matched.
            return at if match.farthest <= at else -1
        return behind

    return optional


def _commit(match: FormMatch, at: int) -> int:
    match.committed = True
    return at


def _flag(field: str) -> Item:
    def flag(match: FormMatch, at: int) -> int:
        match.values[field] = True
        return at

    return flag


def _keyword(field: str, choices: Sequence[str]) -> Item:
    known = [(choice, choice.split("_")) for choice in choices]
    expected = choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"

    def keyword(match: FormMatch, at: int) -> int:
        tokens = match.tokens
        for choice, parts in known:
            behind = at + 1 if tokens[at].upper == choice and tokens[at].kind == WORD else _words(tokens, at, parts)
            if behind > 0:
                if field:
                    match.values[field] = choice.lower()
                return behind
        return match.note_mismatch(at, expected)

    return keyword


def _words(tokens: Tokens, at: int, parts: Sequence[str]) -> int:
    for part in parts:
        if tokens[at].upper != part or tokens[at].kind != WORD:
            return -1
        at += 1
    return at


def _value(field: str, read: Callable[[FormMatch, int], tuple[Any, int]], expected: str) -> Item:
    def value(match: FormMatch, at: int) -> int:
        result, behind = read(match, at)
        if behind < 0:
            return match.note_mismatch(at, expected)
        match.values[field] = result
        return behind

    return value


def _dotted(most: int) -> Callable[[FormMatch, int], tuple[Any, int]]:
    def dotted(match: FormMatch, at: int) -> tuple[Any, int]:
        names, behind = match.tokens.dotted(at, most)
        return (names, behind) if names else ((), match.note_mismatch(behind, "a name"))

    return dotted


def _one(match: FormMatch, at: int) -> tuple[str, int]:
    names, behind = match.tokens.dotted(at, 1)
    return (names[0], behind) if names else ("", -1)


def _id(match: FormMatch, at: int) -> tuple[str, int]:
    token = match.tokens[at]
    return (token.value, at + 1) if token.kind in {TEXT, NAME, WORD, NUMBER} and token.value else ("", -1)


def _word(match: FormMatch, at: int) -> tuple[str, int]:
    token = match.tokens[at]
    return (token.value.lower(), at + 1) if token.kind == WORD else ("", -1)


def _parentheses(match: FormMatch, at: int) -> tuple[str, int]:
    """The text in parentheses, which may be nested, with the parentheses."""
    tokens = match.tokens
    if not tokens.is_sign(at, "("):
        return "", -1
    end = tokens.closing(at)
    if tokens[end].kind == END:
        return "", match.note_mismatch(end, "a closing parenthesis")
    return tokens.text[tokens[at].start : tokens[end].end], end + 1


def _columns(match: FormMatch, at: int) -> tuple[tuple[str, ...], int]:
    """The names in a list in parentheses."""
    tokens, names = match.tokens, []
    if not tokens.is_sign(at, "("):
        return (), -1
    while True:
        name, behind = _one(match, at + 1)
        if behind < 0:
            return (), match.note_mismatch(at + 1, "a name")
        names.append(name)
        if tokens.is_sign(behind, ")"):
            return tuple(names), behind + 1
        if not tokens.is_sign(behind, ","):
            return (), match.note_mismatch(behind, "a comma or a closing parenthesis")
        at = behind


def _attached(match: FormMatch, at: int) -> tuple[str, int]:
    """A string that names an attachment: it begins with @."""
    token = match.tokens[at]
    attached = token.kind == TEXT and token.value.startswith("@") and len(token.value) > 1
    return (token.value[1:], at + 1) if attached else ("", -1)


def _type(match: FormMatch, at: int) -> tuple[str, int]:
    """The text up to the word LANGUAGE."""
    tokens, behind = match.tokens, at
    while tokens[behind].kind != END and tokens[behind].upper != "LANGUAGE":
        behind += 1
    return (tokens.text[tokens[at].start : tokens[behind - 1].end], behind) if behind > at else ("", -1)


def _texts(match: FormMatch, at: int) -> tuple[tuple[str, ...], int]:
    """The strings of one or more parenthesized lists."""
    tokens = match.tokens
    given: list[str] = []
    while tokens.is_sign(at, "("):
        while tokens.is_sign(at, ",") or tokens.is_sign(at, "("):
            if tokens[at + 1].kind != TEXT:
                return (), match.note_mismatch(at + 1, "a string in single quotes")
            given.append(tokens[at + 1].value)
            at += 2
        if not tokens.is_sign(at, ")"):
            return (), match.note_mismatch(at, "a comma or a closing parenthesis")
        at += 1
        if not (tokens.is_sign(at, ",") and tokens.is_sign(at + 1, "(")):
            return tuple(given), at
        at += 1
    return (), -1


def _rest(match: FormMatch, at: int) -> tuple[str, int]:
    text = match.tokens.rest(at)
    match.ended = bool(text)
    return text, at if text else -1


def _making(match: FormMatch, at: int) -> tuple[str, int]:
    return _rest(match, at) if match.tokens[at].upper in {"CREATE", "INSERT"} else ("", -1)


def _selection(match: FormMatch, at: int) -> tuple[str, int]:
    """A SELECT, optionally in parentheses."""
    tokens, first = match.tokens, at
    while tokens.is_sign(first, "("):
        first += 1
    return _rest(match, at) if tokens[first].upper in {"SELECT", "WITH", "FROM", "TABLE"} else ("", -1)


def read_options(match: FormMatch, at: int) -> tuple[dict[str, str], int]:
    """Options by lower-case name; values as written, without quotes."""
    return _listed(match, at, flags=False)


def _flags(match: FormMatch, at: int) -> tuple[dict[str, str], int]:
    return _listed(match, at, flags=True)


def _listed(match: FormMatch, at: int, *, flags: bool) -> tuple[dict[str, str], int]:
    tokens = match.tokens
    given: dict[str, str] = {}
    if not tokens.is_sign(at, "("):
        return given, -1
    if tokens.is_sign(at + 1, ")"):
        return given, at + 2
    while True:
        at = _setting(match, at + 1, given, flags=flags)
        if at < 0 or tokens.is_sign(at, ")"):
            return given, at + 1 if at >= 0 else at
        if not tokens.is_sign(at, ","):
            return given, match.note_mismatch(at, "a comma or a closing parenthesis")


def _settings(match: FormMatch, at: int) -> tuple[dict[str, str], int]:
    """Options without parentheses."""
    given: dict[str, str] = {}
    at = _setting(match, at, given, flags=False)
    while at >= 0 and match.tokens.is_sign(at, ","):
        at = _setting(match, at + 1, given, flags=False)
    return given, at


def _setting(match: FormMatch, at: int, given: dict[str, str], *, flags: bool) -> int:
    """Read one option; returns the number of the next token, or -1. With `flags`, the value may be missing: "true"."""
    tokens = match.tokens
    names, behind = tokens.dotted(at, 8)
    if tokens[at].kind == TEXT and tokens[at].value:
        names, behind = (tokens[at].value,), at + 1
    if not names:
        return match.note_mismatch(behind, "an option name")
    value = "true"
    if tokens.is_sign(behind, "="):
        value, end = _bare(tokens, behind + 1)
        if end < 0:
            return match.note_mismatch(behind + 1, "a value")
        behind = end
    elif not flags:
        return match.note_mismatch(behind, "= and a value")
    name = ".".join(names).lower()
    if name in given:
        raise Failure(sqlstate.SYNTAX, f"option {name!r} is given more than once")
    given[name] = value
    return behind


def _bare(tokens: Tokens, at: int) -> tuple[str, int]:
    """A value: a string, a quoted name, or words, numbers and punctuation without blanks."""
    token = tokens[at]
    if token.kind in {TEXT, NAME}:
        return token.value, at + 1
    if token.kind not in {WORD, NUMBER}:
        return "", -1
    end, at = token.end, at + 1
    while tokens[at].start == end and (tokens[at].kind in {WORD, NUMBER} or tokens[at].value in ".:/-+"):
        end, at = tokens[at].end, at + 1
    return tokens.text[token.start : end], at


KINDS: Mapping[str, tuple[Callable[[FormMatch, int], tuple[Any, int]], str]] = {
    "names": (_dotted(3), "a name"),
    "path": (_dotted(8), "a name"),
    "one": (_one, "a name"),
    "id": (_id, "an ID"),
    "word": (_word, "a word"),
    "options": (read_options, "a list of options such as ('key' = value, …)"),
    "flags": (_flags, "a list of options such as ('key' = value, …)"),
    "settings": (_settings, "key = value"),
    "texts": (_texts, "a list of strings such as ('…')"),
    "parentheses": (_parentheses, "a list in parentheses"),
    "columns": (_columns, "a list of names such as (a, b)"),
    "attached": (_attached, "the name of an attachment such as '@name'"),
    "type": (_type, "a type"),
    "making": (_making, "CREATE or INSERT"),
    "selection": (_selection, "SELECT"),
    "rest": (_rest, "more"),
}
"""The kinds of values: how each is read, and its name in syntax errors.

names        a dotted name of one to three parts, a tuple
path         a dotted name of up to eight parts, of an entity
one          a single name
id           a string, name, number or word
word         a word, in lower case
options      the list of WITH, a mapping; `flags` also accepts options without a value, which are "true"
settings     options without parentheses
texts        parenthesized lists of strings: a tuple
parentheses  a text in parentheses, with the parentheses
columns      a list of names in parentheses, a tuple
attached     a string that begins with @, without it
type         the text up to the word LANGUAGE
making       the text of a CREATE or INSERT, up to the end of the statement
selection    the text of a SELECT up to the end of the statement
rest         the text up to the end of the statement
"""
