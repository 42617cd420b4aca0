"""The lexical rules of SQL scripts as regular expressions: those of psql, with quotes in backticks added.

Every repetition is possessive: no pattern backtracks, so hostile input costs no more than any other. Words are those of
psql: every character outside ASCII is a letter.
"""

from __future__ import annotations

import functools
import re
from typing import Final

BLANKS: Final = " \t\n\r\f\v"
"""Whitespace and semicolons between statements."""

_BLANK: Final = r"[ \t\n\r\f\v]"
# All characters except other ASCII characters. Ranges up to the last code point take milliseconds to compile.
LETTER: Final = r"[^\x00-@\[-^`{-\x7f]"
IN_TAG: Final = r"[^\x00-/:-@\[-^`{-\x7f]"
IN_WORD: Final = r"[^\x00-#%-/:-@\[-^`{-\x7f]"

STRING: Final = r"'[^']*+(?:''[^']*+)*+(?:'|\Z)"
ESCAPE_STRING: Final = r"[eE]'(?:[^'\\]++|\\.|'')*+(?:'|\\?\Z)"
QUOTED_NAME: Final = r""""[^"]*+(?:""[^"]*+)*+(?:"|\Z)|`[^`]*+(?:``[^`]*+)*+(?:`|\Z)"""
"""Strings and names of a whole text; one that is not closed takes the rest."""

BLANK: Final = re.compile(rf"{_BLANK}*+")
BLANK_OR_SEMICOLON: Final = re.compile(r"[ \t\n\r\f\v;]*+")
WORD: Final = re.compile(rf"{LETTER}{IN_WORD}*+")
LINE: Final = re.compile(r"[^\r\n]*+")
LINE_END: Final = re.compile(r"[\r\n]")
DATA_END: Final = re.compile(r"^\\\.\r?\n", re.MULTILINE)
"""The line that ends the data of COPY … FROM STDIN."""
COMMENT_MARK: Final = re.compile(r"/\*|\*/")
DOLLAR_TAG: Final = re.compile(rf"\$(?:{LETTER}{IN_TAG}*+)?+(\$)?+")
ESCAPED_BODY: Final = re.compile(r"(?:[^'\\]++|\\.)*+", re.DOTALL)

_OTHER: Final = r"[\x00-!#%&*+,.0-:<-@\[\]^{-\x7f]++|-(?=[^-])|/(?=[^*])"
BETWEEN_WORDS: Final = re.compile(rf"(?:{_OTHER})*+")
"""Everything that is neither a word nor a significant token."""
UNTIL_TOKEN: Final = re.compile(rf"(?:{_OTHER}|(?![eE]'){LETTER}{IN_WORD}*+)*+")
"""Includes whole words."""

COMMAND: Final = re.compile(r"\\([?!@]|[A-Za-z0-9_][A-Za-z0-9_+\-]*+)")
NAMED_COMMAND: Final = re.compile(r"[ \t]+\\(?:[?!@]|[A-Za-z0-9_][A-Za-z0-9_+\-]*+)[ \t\r]*")
"""A command as the argument of another: `\\? \\x`."""
DOTTED: Final = re.compile(r"[.!][A-Za-z][A-Za-z0-9_]*+(?![^ \t\r\n;])")
"""A command of another shell (`.tables`, `!quit`), where a statement may begin."""
_ARGUMENT: Final = r"""[^\\'"`\n]++|'[^'\n]*+'|"[^"\n]*+"|`[^`\n]*+`|['"`][^\n]*+|\\(?![?!@A-Za-z0-9_\\])"""
ARGUMENTS: Final = re.compile(rf"(?:{_ARGUMENT})*+")
"""The arguments of a backslash command, up to the next command or the end of the line. Backslashes in quotes are
ignored; an unterminated quote includes the rest of the line.
"""


def _nested(depth: int) -> str:
    inner = rf"|{_nested(depth - 1)}" if depth > 1 else ""
    return rf"/\*(?:[^*/]++|\*(?!/)|/(?!\*){inner})*+\*/"


_HIDDEN: Final = (
    r"(?<![eE])'[^']*+'|(?<=[A-Za-z_][eE])'[^']*+'"
    rf"|--[^\r\n]*+|-|/(?!\*)|{_nested(2)}"
    r"""|"[^"]*+"|`[^`]*+`"""
    rf"|(?<!{IN_WORD})\$(?:\$(?:[^$]++|\$(?!\$))*+\$\$|[0-9]++(?!{IN_WORD}))"
    # The following text decides whether such a string continues; only this form is simple enough.
    rf"|(?<!{IN_WORD}[eE])(?<=[eE])'(?:[^'\\]++|\\.|'')*+'(?!{_BLANK}*+(?:'|--))"
)


def _parentheses(depth: int) -> str:
    inner = rf"|{_parentheses(depth - 1)}" if depth > 1 else ""
    return rf"""\((?:[^()'"`$\\/\-]++|{_HIDDEN}{inner})*+\)"""


BETWEEN: Final = re.compile(rf"(?:[ \t\n\r\f\v;]++|--[^\r\n]*+(?=[\r\n])|{_nested(2)})*+")
"""Complete whitespace and comments between statements, matched in one pass."""


@functools.cache
def whole_statement() -> re.Pattern[str]:
    """Group 1 is a statement without unusual parts; its `;` follows.

    The fast path of most statements. If it does not match, the statement may be unusual, or end in a later piece of
    text. It never matches beyond the end of the statement. For a function it may match only the beginning, up to a `;`
    in its body.
    """
    # Compiling it takes longer than all others together, and an engine's process splits no scripts.
    return re.compile(
        rf"(?!(?i:begin)(?:{_BLANK}++(?i:application)|{_BLANK}*+(?:--|/\*)))"
        rf"""((?:[^;()'"`$\\/\-]++|{_HIDDEN}|{_parentheses(3)}|\))++);""",
        re.DOTALL,
    )


FUNCTION: Final = re.compile(rf"(?i:create)(?:{_BLANK}++(?i:or|function|procedure)|{_BLANK}*+(?:--|/\*))")
"""The beginnings of statements that may have such a body."""
