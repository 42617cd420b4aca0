"""The words of a statement, by DuckDB's own tokenizer, and what they say of how it is run; never what it may do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

import duckdb
from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.service.failure import Failure


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
    """Return the words, signs and strings of a statement without its comments.

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


_WRITING: Final = frozenset({"insert", "delete", "merge", "truncate", "update", "copy"})
_RETURNING: Final = frozenset({"returning", "return_files", "return_stats"})
_WRITES: Final = re.compile(r"(?<!\w)(?:insert|update|delete|merge|copy)(?!\w)", re.I)
_INSERT: Final = re.compile(r"\s*(?:insert|select)(?!\w)", re.I)
_READS: Final = re.compile(r"(?<!\w)(?:from|table|unnest|using|recursive|range|generate_series)(?!\w)", re.I)


def writes_inside(sql: str) -> bool:
    """Tell whether a SELECT has a common table expression that writes, so that it cannot be a subquery."""
    if not _WRITES.search(sql):
        return False
    return any(before.word == "(" and item.word in _WRITING for before, item in pairwise(words(sql)))


def returns_rows(sql: str) -> bool:
    """Tell whether a statement that writes returns rows: RETURNING, or RETURN_FILES or RETURN_STATS of COPY."""
    return "return" in sql.lower() and any(item.word in _RETURNING for item in words(sql))


def brief(sql: str) -> bool:
    """Tell whether a statement reads nothing, judging by its text, so that it finishes at once."""
    return _INSERT.match(sql) is not None and _READS.search(sql) is None


MOST_NESTED: Final = 500
"""The maximum number of brackets that are open at once. DuckDB itself has a limit of 1,000 levels for expressions."""

_OTHERS: Final = bytes(set(range(256)) - set(b"()[]{}"))


def check_nesting(sql: str) -> None:
    """Raises Failure if more than MOST_NESTED (among many pairs, some more) brackets are open at once."""
    brackets = sql.encode(errors="replace").translate(None, _OTHERS)
    while len(brackets) > MOST_NESTED:
        # Removing adjacent pairs is faster than reading the text, and leaves nothing of the rows of an INSERT.
        shorter = brackets.replace(b"()", b"").replace(b"[]", b"").replace(b"{}", b"")
        if len(shorter) * 4 > len(brackets) * 3:
            break
        brackets = shorter
    else:
        return
    depth = 0
    for item in _words(sql.encode(errors="replace").decode()):
        depth = max(0, depth + (item.word in {"(", "[", "{"}) - (item.word in {")", "]", "}"}))
        if depth > MOST_NESTED:
            cause = f"more than {MOST_NESTED} brackets are open at once"
            raise Failure(sqlstate.TOO_LARGE, f"the statement is nested too deeply: {cause}")


_USING: Final = re.compile(r"(?<!\w)using(?!\w)", re.I)
_NAMES: Final = """
SELECT system.main.lower(function_name) FROM system.main.duckdb_functions() WHERE NOT internal
UNION SELECT system.main.lower(type_name) FROM system.main.duckdb_types() WHERE NOT internal
"""


def check_replay(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Raises Failure (0A000) for ALTER … USING with a sequence, or with a macro or type of a database.

    DuckDB writes the expression to its log as it is, and repeats it without a current database: it would not find them.
    """
    if not _USING.search(sql):
        return
    found = [word.name for word in words(sql)]
    known = {"nextval", "setval"} | {str(row[0]) for row in connection.execute(_NAMES).fetchall()}
    if "using" in found and (named := known.intersection(found[found.index("using") :])):
        message = f"{min(named)} is not supported in USING; use ADD COLUMN and UPDATE"
        raise Failure(sqlstate.UNSUPPORTED, message)


SESSION_SETTINGS: Final = ("TimeZone", "enable_progress_bar", "enable_progress_bar_print", "search_path", "schema")
"""Settings that a session may change although the instance's configuration is locked."""

_PRINTS: Final = {
    "enable_progress_bar_print": "progress bar",
    "enable_print_progress_bar": "progress bar",
    "enable_profiling": "profile",
    "enable_profile": "profile",
    "profiling_mode": "profile",
    "enable_logging": "log",
    "logging_storage": "log",
}
"""Settings, pragmas and functions that make DuckDB print, and what it prints."""

_INSTEAD: Final = {
    "profile": "; use EXPLAIN ANALYZE, or set profiling_output to a .txt file first",
    "log": "; use storage 'memory' or 'file'",
}
_OFF: Final = frozenset({"", "false", "off", "0", "no", "default", "no_output", "null"})


def check_setting(sql: str, profile: Callable[[], str]) -> bool:
    """Tell whether a SET, RESET, PRAGMA or CALL resets the time zone.

    Raises Failure for a setting that would have no effect, or would write to the program's own output. `profile`
    returns the file that profiles are written to, "" if they are printed.
    """
    verb, *named = [item.name for item in words(sql) if item.word not in {"session", "local"}]
    place = "global" if named[:1] == ["global"] else ""
    named = named[1:] if place else named
    is_zone = named[:1] == ["timezone"] or named[:2] == ["time", "zone"]
    if is_zone and place:
        message = "SET GLOBAL TimeZone is not supported: each session has its own time zone; use SET TimeZone"
        raise Failure(sqlstate.UNSUPPORTED, message)
    printed = _PRINTS.get(named[0], "") if named and verb != "reset" else ""
    given = set(named[1:])
    match printed:
        case "log":
            prints = "stdout" in given
        case "profile":
            prints = not (given & (_OFF if verb == "set" else set()) or "save_location" in given or profile())
        case _:
            prints = not given & _OFF
    if printed and prints:
        cause = f"{named[0]} would write the {printed} to the standard output of the service"
        raise Failure(sqlstate.UNSUPPORTED, cause + _INSTEAD.get(printed, ""))
    return is_zone and (verb == "reset" or "default" in named)
