"""Formats a script, if nothing is lost by it."""

from __future__ import annotations

import contextlib
import logging

from sqlshell.sql.analysis.tokens import tokens
from sqlshell.sql.script.items import Statement
from sqlshell.sql.script.splitting import split
from sqlshell.text import how_to_install

WAITING = frozenset(
    {"AND", "AS", "BETWEEN", "BY", "CROSS", "DISTINCT", "EXCEPT", "FROM", "FULL", "GROUP", "HAVING", "ILIKE", "IN"}
    | {"INNER", "INTERSECT", "INTO", "IS", "JOIN", "LEFT", "LIKE", "LIMIT", "NATURAL", "NOT", "ON", "OR", "ORDER"}
    | {"OVER", "PARTITION", "RIGHT", "SELECT", "SET", "UNION", "USING", "VALUES", "WHEN", "WHERE", "WITH"}
)
"""Words that cannot end a statement."""
NOISE = frozenset({"TRANSACTION", "WORK"})
"""Optional keywords, which are ignored."""


def format_script(text: str) -> tuple[str, str]:
    """The formatted script, or the reason why it was not formatted."""
    try:
        import sqlglot
        from sqlglot.errors import SqlglotError
    except ImportError:
        return text, f"formatting requires the package sqlglot; {how_to_install('sqlglot')}"
    # sqlglot logs unsupported syntax to stderr, over the prompt.
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    try:
        if any(unfinished(item.text) for item in split(text, commands=False) if isinstance(item, Statement)):
            return text, "not formatted: a statement is unfinished"
        parts = sqlglot.transpile(text, read="duckdb", write="duckdb", pretty=True)
    except (SqlglotError, ValueError, RecursionError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        return text, f"not formatted: cannot parse the text: {first[:120]}"
    end = ";" if text.rstrip().endswith(";") else ""
    formatted = ";\n".join(part for part in parts if part) + end
    # Of a text that is only a comment, the parser returns nothing.
    return formatted or text, ""


def unfinished(sql: str) -> bool:
    """Whether a statement is incomplete, so that formatting would lose its last words.

    The parser ignores some words that require a continuation: if it reads the statement in the same way without them,
    the statement is incomplete. Raises the parser's errors.
    """
    import sqlglot

    given = list(tokens(sql))
    if not given:
        return False
    if given[-1].word in WAITING or given[-1].text in {",", "."}:
        return True
    whole = sqlglot.transpile(sql, read="duckdb", write="duckdb")
    for last in given[-2:]:
        # The text before it may not be a statement.
        with contextlib.suppress(sqlglot.errors.SqlglotError):
            before = sql[: last.start].strip()
            if before and last.word not in NOISE and sqlglot.transpile(before, read="duckdb", write="duckdb") == whole:
                return True
    return False
