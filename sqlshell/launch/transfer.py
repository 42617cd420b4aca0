"""`sqlshell import` and `sqlshell export` as backslash commands, which do the work."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sqlshell.errors import MISSING, UsageError
from sqlshell.shell.loading.spec import format_of
from sqlshell.shell.running.submitting import require_rows
from sqlshell.sql.analysis.lexed import lexed
from sqlshell.sql.identifiers import RESERVED, always_quoted, literal
from sqlshell.sql.script.items import Statement
from sqlshell.sql.script.splitting import split

_QUOTE: Final = "quote a name with spaces: --table '\"no such\"'"


def import_command(
    path: str, table: str, with_: str | None, flags: Mapping[str, bool], texts: Mapping[str, str | None]
) -> str:
    """The \\copy that loads a file. `with_` are options of \\copy as given, to which `flags` and `texts` are added.

    Raises UsageError if the file does not exist, or a text does not fit into the command.
    """
    words = [token.kind in {"word", "name"} for token in lexed(table).tokens]
    if any(map(operator.and_, words, words[1:])):
        raise UsageError(f"--table {table!r} is not the name of a table", _QUOTE)
    if path != "-" and not path.startswith("~") and not Path(path).exists():
        # Before TARGET is opened, which may create it.
        raise UsageError(f"cannot read {path}: {MISSING}")
    most = texts.get("MAX_ERRORS")
    if most is not None and not (most.isascii() and most.isdecimal()):
        raise UsageError(f"--max-errors: invalid value {most!r}", "expected a number of rows")
    if texts.get("IF_UNKNOWN") and not flags.get("RESUME") and not with_:
        raise UsageError("--if-unknown requires --resume")
    options = [
        *filter(None, [with_]),
        *(name for name, is_set in flags.items() if is_set),
        *(f"{name} {_literal(text)}" for name, text in texts.items() if text is not None),
    ]
    if not format_of(path):
        # A later option of the same name counts.
        options.insert(0, "FORMAT auto")
    source = "PSTDIN" if path == "-" else _literal(path)
    return f"\\copy {_with_quotes(table)} FROM {source}" + (f" WITH ({', '.join(options)})" if options else "")


def export_query(query: str | None, table: str | None) -> str:
    """The statement whose result is exported. Raises UsageError unless it is one query."""
    if (query is None) == (table is None):
        raise UsageError("export requires either --query or --table", "sqlshell export --help lists the options")
    if table is not None:
        _check_name(table)
    items = split(query if query is not None else f"SELECT * FROM {_with_quotes(table or '')}")
    if len(items) != 1 or not isinstance(items[0], Statement):
        raise UsageError("export requires exactly one statement", "omit backslash commands and other statements")
    require_rows(items[0].lexed, "export")
    return items[0].text


def _check_name(table: str) -> None:
    """Raises UsageError for a text that is not a table name: the second word of `no such` would be read as an alias."""
    tokens = list(lexed(table).tokens)
    names, dots = tokens[::2], tokens[1::2]
    if (
        len(tokens) % 2 == 0
        or any(each.kind not in {"word", "name"} for each in names)
        or any(each.text != "." for each in dots)
    ):
        raise UsageError(f"--table {table!r} is not the name of a table", f"{_QUOTE}; or use --query")


def _with_quotes(table: str) -> str:
    """A table as given, perhaps with columns, with quotes around keywords, which can only be names here."""
    for token in reversed(list(lexed(table).tokens)):
        if token.kind == "word" and token.text.upper() in RESERVED:
            table = table[: token.start] + always_quoted(token.text) + table[token.end :]
    return table


def _literal(text: str) -> str:
    """A string of SQL. Raises UsageError for a text that does not fit on the line of a command."""
    if "\n" in text:
        raise UsageError(f"{text!r} contains a line break", "use another name")
    return literal(text)
