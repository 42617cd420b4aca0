"""What a statement may do, for a policy: whether it writes, and the words by which a person would name it.

By tokens, never by substrings. What is not known writes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from sqlshell.sql.kinds import reads, verb_of
from sqlshell.sql.tokens import Token, tokens
from sqlshell.sql.words import DROP_OBJECTS, LOCAL_STATEMENTS, STATEMENTS

_SESSION: Final = frozenset({"USE", "RESET", "COMMIT", "ROLLBACK", "END", "ABORT", "START"})
"""Verbs that change the session alone; some have other forms, which are looked at below."""

_FILLERS: Final = frozenset(
    {"OR", "REPLACE", "TEMP", "TEMPORARY", "IF", "NOT", "EXISTS", "RECURSIVE", "UNLOGGED", "ONLY"}
)
_OBJECTS: Final = frozenset(
    {"CREATE", "DROP", "ALTER", "TRUNCATE", "GRANT", "REVOKE", "START", "STOP", "TERMINATE", "RESTART", "RESUME"}
)
_TWO_WORDS: Final = frozenset({"MATERIALIZED", "METRICS", "SECURITY", "FOREIGN"})

_VERBS: Final = frozenset(words.split()[0] for words in (*STATEMENTS, *LOCAL_STATEMENTS)) | {
    *("ABORT", "COMMENT", "DEALLOCATE", "EXECUTE", "IMPORT", "PREPARE", "START", "STOP"),
}
_KINDS: Final = frozenset(DROP_OBJECTS) | {"CONNECTION", "MACRO", "SEQUENCE", "TYPE", "VIEW", "FOREIGN TABLE"}
_FORMS: Final = frozenset(
    {
        *("DELETE WITHOUT WHERE", "UPDATE WITHOUT WHERE", "COPY TO", "COPY FROM", "SELECT INTO", "EXPLAIN ANALYZE"),
        *("TRUNCATE TABLE", "CREATE OR REPLACE", "START COMPUTE_POOL", "STOP COMPUTE_POOL", "WRITE"),
        *("TERMINATE QUERY", "TERMINATE SESSION", "RESTART QUERY", "RESUME QUERY"),
        *(f"{verb} {kind}" for verb in ("ALTER", "CREATE", "CREATE OR REPLACE", "DROP") for kind in _KINDS),
    }
)


def means(pattern: str) -> bool:
    """Whether there are statements that a policy's pattern means."""
    wanted = " ".join(pattern.upper().split())
    # What is granted are privileges, of which a service has its own.
    granted = wanted.removeprefix("GRANT ").removeprefix("REVOKE ")
    return wanted in _VERBS or wanted in _FORMS or (granted != wanted and granted.isidentifier())


def nearest_pattern(pattern: str) -> str:
    """The pattern most like this one, "" where none is."""
    near = difflib.get_close_matches(" ".join(pattern.upper().split()), sorted(_VERBS | _FORMS), 1)
    return near[0] if near else ""


class Effects(Struct, frozen=True):
    """`names` are what a statement is called, from the general to the special: `DROP`, `DROP TABLE`."""

    writes: bool
    names: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.names[-1] if self.names else "nothing"

    def matches(self, pattern: str) -> bool:
        """Whether a policy's pattern means this statement, such as `DROP` or `DELETE WITHOUT WHERE`."""
        wanted = " ".join(pattern.upper().split())
        return wanted in self.names or (wanted == "WRITE" and self.writes)


def effects(sql: str) -> list[Effects]:
    """Of each statement in a text: one, as a rule; those of an application, and those joined by `;`, apart."""
    return [_effects(part) for part in _parts(list(tokens(sql)))]


def _parts(given: Sequence[Token]) -> Iterator[list[Token]]:
    part: list[Token] = []
    depth = 0
    for token in given:
        if token.kind == "sign" and token.text in "()":
            depth = max(0, depth + (1 if token.text == "(" else -1))
        if token.kind == "sign" and token.text == ";" and not depth:
            yield from _unwrapped(part)
            part = []
        else:
            part.append(token)
    yield from _unwrapped(part)


def _unwrapped(part: list[Token]) -> Iterator[list[Token]]:
    """Without what opens and closes an application around its statements."""
    said = [token.word for token in part[:2]]
    if said == ["BEGIN", "APPLICATION"]:
        part = part[3:]
    elif said == ["END", "APPLICATION"]:
        return
    if part:
        yield part


def _effects(part: list[Token]) -> Effects:
    while part and part[0].text == "(" and part[0].kind == "sign":
        part = part[1:]
    said = [token.word for token in part]
    first = said[0] if said else ""
    if first == "EXPLAIN":
        rest = _explained(part)
        if not {"ANALYZE", "ANALYSE"} & {token.word for token in part[: len(part) - len(rest)]}:
            return Effects(False, ("EXPLAIN",))
        # The statement runs: what asks about it asks about this.
        return Effects(True, (*(_effects(rest).names if rest else ()), "EXPLAIN", "EXPLAIN ANALYZE"))
    verb = verb_of(part)
    if first in _SESSION and _session_alone(said):
        return Effects(False, (first,))
    if first == "BEGIN" and (len(said) == 1 or said[1] in {"TRANSACTION", "WORK", "DEFERRED", "IMMEDIATE"}):
        return Effects(False, ("BEGIN",))
    if first == "SET" and len(said) > 1 and said[1] != "DEFAULT":
        return Effects(False, ("SET",))
    if verb in {"DELETE", "UPDATE"}:
        whole = "WHERE" not in _outside(part)
        return Effects(True, (verb, f"{verb} WITHOUT WHERE") if whole else (verb,))
    if verb == "COPY":
        out = "TO" in _outside(part)
        return Effects(True, ("COPY", "COPY TO" if out else "COPY FROM"))
    if first == "CREATE" and said[1:3] == ["OR", "REPLACE"]:
        # What stood under that name is gone, as after DROP.
        verbs = ("DROP", "CREATE", "CREATE OR REPLACE")
        return Effects(True, tuple(name for verb in verbs for name in _named(verb, said[1:])))
    if first == "TRUNCATE":
        return Effects(True, ("DELETE", "DELETE WITHOUT WHERE", *_named(first, said[1:])))
    if first in _OBJECTS:
        return Effects(True, _named(first, said[1:]))
    if reads(part):
        return Effects(False, (verb or first,))
    if verb == "SELECT" and "INTO" in _outside(part):
        return Effects(True, ("SELECT", "SELECT INTO"))
    return Effects(True, (verb or first or "UNKNOWN", *_inside(part)))


def _explained(part: list[Token]) -> list[Token]:
    """What an EXPLAIN is of, without its options."""
    depth = 0
    for number, token in enumerate(part[1:], 1):
        if token.kind == "sign" and token.text in "()":
            depth += 1 if token.text == "(" else -1
        elif not depth and token.word not in {"ANALYZE", "ANALYSE", "VERBOSE"}:
            return part[number:]
    return []


def _inside(part: Sequence[Token]) -> tuple[str, ...]:
    """What the common table expressions of a query write."""
    found: list[str] = []
    for number, token in enumerate(part[1:], 1):
        if token.word in {"INSERT", "UPDATE", "DELETE", "MERGE"} and part[number - 1].text == "(":
            depth, end = 0, number
            while end < len(part) and depth >= 0:
                text = part[end].text if part[end].kind == "sign" else ""
                depth += 1 if text == "(" else -1 if text == ")" else 0
                end += 1
            inner = part[number : end - 1 if depth < 0 else end]
            found.append(token.word)
            if token.word in {"UPDATE", "DELETE"} and "WHERE" not in _outside(inner):
                found.append(f"{token.word} WITHOUT WHERE")
    return tuple(found)


def _session_alone(said: Sequence[str]) -> bool:
    if said[0] == "START":
        return len(said) > 1 and said[1] == "TRANSACTION"
    return True


def _outside(part: Sequence[Token]) -> list[str]:
    """The words that stand in no brackets."""
    depth = 0
    found = []
    for token in part:
        if token.kind == "sign" and token.text in "()":
            depth = max(0, depth + (1 if token.text == "(" else -1))
        elif not depth and token.word:
            found.append(token.word)
    return found


def _named(first: str, rest: Sequence[str]) -> tuple[str, ...]:
    words = [word for word in rest[:8] if word and word not in _FILLERS]
    if not words:
        return (first,)
    kind = " ".join(words[:2]) if words[0] in _TWO_WORDS else words[0]
    return first, f"{first} {kind}"
