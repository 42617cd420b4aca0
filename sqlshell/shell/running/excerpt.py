"""The place of an error in a statement, its cause in one sentence, and similar names for an unknown one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from sqlshell.diagnostics import Excerpt
from sqlshell.errors import ShellError
from sqlshell.interface import sqlstate
from sqlshell.output.text.cells import cells, printable
from sqlshell.sql.analysis.error_places import QUOTED, SHOWN, shown_span, span_of
from sqlshell.sql.analysis.lexed import Sql, lexed
from sqlshell.text import nearest

WIDEST = 100
"""Maximum cells of a line that are shown around the mark."""

_KIND = re.compile(
    r"(?:Binder|Catalog|Parser|Syntax|Conversion|Constraint|Invalid Input|Invalid Type|Mismatch Type|Out of Range"
    r"|Not implemented|Permission|Transaction|TransactionContext|Dependency|IO|HTTP|Serialization|Sequence"
    r"|Out of Memory|Decimal|Divide by Zero|Parameter Not Allowed|Parameter Not Resolved|Missing Extension) Error: "
)
"""The words with which DuckDB begins a message; the sqlState means the same."""
_CANDIDATES = re.compile(r"\n^(?:Candidate [\w ]+|Did you mean):[: ]*(.*)$", re.M)
_FUNCTIONS = re.compile(r"\s*\n\s*Candidate functions:\n((?:[ \t]+\S.*\n?)+)", re.M)
MOST_FUNCTIONS = 2
"""The forms of a function that an error lists; more are as long as the statement, and rarely read."""
_WITH_NAME = re.compile(
    r'\A(?:Scalar |Aggregate |Table |Pragma )?(\w+) with name "?([^"\s]{1,200})"? (does not exist|already exists)'
)
_NO_SCHEMA = re.compile(r'\ASET schema: No catalog \+ schema named ("[^"]+") found\.')
_ENDED = re.compile(r"!$|(?<!\.\.)\.\Z", re.M)
_CAPITAL = re.compile(r"\A[A-Z](?=[a-z]+ )")
_NAMED = re.compile(r'"((?:[^"]|"")+)"')
_ASKED = re.compile(r"\n^Did you mean (.+?)\?*$", re.M)

MISSPELLED = 3
"""The fewest letters of a word that may be a misspelled keyword."""
_SYSTEM = re.compile(r'"?(?:pg_|duckdb_|sqlite_|pragma_|information_schema\b)', re.I)
"""Names of the catalog's own views, which few users look for."""


class MessageParts(Struct, frozen=True):
    """A service's message: `words` say what is wrong, `asked` is the name that it suggests as written, `candidates` are
    the names that it knows in this place, and `functions` the forms that a function has."""

    words: str
    asked: str = ""
    candidates: Sequence[str] = ()
    functions: Sequence[str] = ()


def cause(message: str) -> MessageParts:
    """Split a message into what is wrong, and what is shown in another form."""
    kind = _KIND.match(message)
    words = SHOWN.sub("", message[kind.end() :] if kind else message)
    named, asked = _CANDIDATES.search(words), _ASKED.search(words)
    candidates = [match[1] for match in _NAMED.finditer(named[1])] if named else ()
    if candidates:
        words = _CANDIDATES.sub("", words)
    if asked:
        words = _ASKED.sub("", words)
    forms = _FUNCTIONS.search(words)
    functions = [line.strip().replace(", /)", ")") for line in forms[1].splitlines()] if forms else ()
    words = _FUNCTIONS.sub("", words)
    if kind:
        words = _plainly(words)
    # DuckDB puts several names into one pair of quotes.
    several = '" or "'.join(asked[1].split(" or ")) if asked else ""
    return MessageParts(words.strip() or message, several, candidates, functions)


def _plainly(words: str) -> str:
    """DuckDB's sentences as others write them: in lower case, with quoted names and without marks at their end."""
    words = _WITH_NAME.sub(lambda match: f'{match[1].lower()} "{match[2]}" {match[3]}', words, 1)
    words = _NO_SCHEMA.sub(r"database or schema \1 does not exist", words)
    words = _ENDED.sub("", words.removeprefix("Referenced "))
    return _CAPITAL.sub(lambda match: match[0].lower(), words)


def excerpt(sent: Sql, error: ShellError, widest: int = WIDEST) -> Excerpt | None:
    """The line of the statement with the place of the error, at most `widest` cells of it; None if it is unknown."""
    statement = lexed(sent)
    shown = SHOWN.search(error.message)
    span = shown_span(statement, shown) if shown else span_of(statement, error)
    if span is None and shown:
        before = max(0, len(shown[3]) - len(f"LINE {shown[1]}: "))
        return Excerpt(int(shown[1]), 0, shown[2], before, len(shown[4]))
    if span is None:
        return None
    sql, (start, end) = statement.text, span
    line_start = sql.rfind("\n", 0, start) + 1
    line_end = sql.find("\n", start)
    line = sql[line_start : line_end if line_end >= 0 else len(sql)]
    number = sql.count("\n", 0, start) + 1
    at, size = start - line_start, max(1, min(end, line_start + len(line)) - start)
    column = at + 1
    if len(line) > widest:
        cut = max(0, min(at - widest // 2, len(line) - widest))
        ends = "" if cut + widest >= len(line) else "…"
        line, at = line[cut : cut + widest], at - cut
        line = ("…" if cut else line[:1]) + line[1 : widest - len(ends)] + ends
    before = cells(printable(line[:at].replace("\t", " ")))
    marked = max(1, cells(printable(line[at : at + size].replace("\t", " "))))
    return Excerpt(number, column, line.replace("\t", " "), before, min(marked, widest))


def _forms(functions: Sequence[str]) -> str:
    """A hint with the first forms of a function, and the command that lists all of them."""
    shown = ", ".join(functions[:MOST_FUNCTIONS])
    name = functions[0].partition("(")[0]
    more = f"; \\df {name} lists all {len(functions)}" if len(functions) > MOST_FUNCTIONS else ""
    return f"candidates: {shown}{more}"


def suggested(error: ShellError, known: Iterable[str]) -> str:
    """A question with names similar to an unknown one, first among those that the service knows in this place; "" if
    there are none.
    """
    reason = cause(error.message)
    unknown = [next(part for part in match.groups() if part) for match in QUOTED.finditer(reason.words)]
    system = any(_SYSTEM.match(name) for name in unknown)
    if reason.asked and (system or not _SYSTEM.match(reason.asked)):
        return f"did you mean {reason.asked}?"
    if reason.functions:
        return _forms(reason.functions)
    if reason.candidates:
        columns = [name.rpartition(".")[2] for name in reason.candidates]
        for name in unknown:
            if near := nearest(name, columns):
                return f"did you mean {_quoted(near)[0]}?"
        return ""
    if not sqlstate.is_not_found(error.where.sql_state) or "did you mean" in (reason.words + error.hint).lower():
        return ""
    # DuckDB finds a view of its own for every short name.
    names = [name for name in known if system or not _SYSTEM.match(name)]
    low = {name.lower() for name in names}
    for name in unknown:
        wanted = name.rpartition(".")[2].lower()
        if wanted in low:
            continue
        near = nearest(wanted, names, 3, 0.7)
        if near:
            return f"did you mean {' or '.join(_quoted(near))}?"
    return ""


def misspelled(sent: Sql, error: ShellError, known: Iterable[str]) -> str:
    """A question with the keyword that the word at a syntax error, or the one before it, is similar to; "" if none is.

    A `known` name is none, nor is the plural of a keyword, such as orders. Letters in another order are the likeliest
    mistake: form is from.
    """
    from sqlshell.sql.keywords import KEYWORDS, TYPES

    statement = lexed(sent)
    span = span_of(statement, error) if error.where.sql_state == sqlstate.SYNTAX else None
    if span is None:
        return ""
    others = {name.rpartition(".")[2].upper() for name in known} | KEYWORDS | set(TYPES)
    around = [token for token in statement.tokens if token.start <= span[0]][-2:]
    words = [token.value.upper() for token in around if token.kind == "word"]
    words = [word for word in words if len(word) >= MISSPELLED and not {word, word.removesuffix("S")} & others]
    mixed = [name for word in words for name in sorted(KEYWORDS) if sorted(name) == sorted(word)]
    near = mixed or [name for word in words for name in nearest(word, KEYWORDS, 1, 0.8)]
    return f"did you mean {_quoted(near)[0].lower()}?" if near else ""


def _quoted(names: Iterable[str]) -> list[str]:
    return [f'"{name}"' for name in names]
