"""Syntax highlighting for SQL and backslash commands: a pygments lexer with the scanner's lexical rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, Final

from pygments.lexer import RegexLexer, bygroups  # type: ignore[import-untyped]
from pygments.token import (  # type: ignore[import-untyped]
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    Whitespace,
)

from sqlshell.sql import keywords
from sqlshell.sql.script.lexical_rules import ESCAPE_STRING, IN_TAG, IN_WORD, LETTER, QUOTED_NAME, STRING

_WORD: Final = rf"{LETTER}{IN_WORD}*+"
_TAG: Final = rf"\$(?:{LETTER}{IN_TAG}*+)?\$"
_KINDS: Final = (
    dict.fromkeys(keywords.KEYWORDS, Keyword)
    | dict.fromkeys(keywords.TYPES, Keyword.Type)
    | dict.fromkeys(keywords.CONSTANTS, Keyword.Constant)
)
_CALLED: Final = _KINDS | dict.fromkeys((name.upper() for name in keywords.FUNCTIONS), Name.Builtin)


def _word(lexer: SqlshellLexer, match: re.Match[str]) -> Iterator[tuple[int, object, str]]:
    yield match.start(), _KINDS.get(match[0].upper(), Name), match[0]


def _called(lexer: SqlshellLexer, match: re.Match[str]) -> Iterator[tuple[int, object, str]]:
    yield match.start(), _CALLED.get(match[0].upper(), Name.Function), match[0]


class SqlshellLexer(RegexLexer):  # type: ignore[misc]
    """SQL of the interface and of the local service. The tokens cover the whole text; invalid characters are Error
    tokens.
    """

    name = "sqlshell"
    aliases: ClassVar[list[str]] = ["sqlshell"]
    flags = re.DOTALL

    tokens: ClassVar = {
        "root": [
            (r"\s+", Whitespace),
            (r"--[^\r\n]*", Comment.Single),
            (r"/\*", Comment.Multiline, "comment"),
            (ESCAPE_STRING, String.Escape),
            (STRING, String.Single),
            (QUOTED_NAME, String.Symbol),
            (rf"({_TAG}).*?\1", String.Heredoc),
            # The first one that is not closed takes the rest: searching for the end of each would take quadratic time.
            (rf"{_TAG}.*", String.Heredoc),
            (rf"\$(?:[0-9]++|{_WORD})|(?<!:):{_WORD}|\?", Name.Variable),
            (r"\\[;:\\]", Punctuation),
            (r"(\\!)([^\n]*)", bygroups(Name.Decorator, String.Other)),
            (r"\\(?:[?@]|[A-Za-z0-9_][A-Za-z0-9_+\-]*+)", Name.Decorator, "arguments"),
            (r"0[xX][0-9A-Fa-f]++(?:_[0-9A-Fa-f]++)*+", Number.Hex),
            (r"0[bB][01]++(?:_[01]++)*+", Number.Bin),
            (r"0[oO][0-7]++(?:_[0-7]++)*+", Number.Oct),
            (
                r"(?:[0-9][0-9_]*+\.(?!\.)[0-9_]*+|\.[0-9][0-9_]*+)(?:[eE][+-]?[0-9]++)?|[0-9]++[eE][+-]?[0-9]++",
                Number.Float,
            ),
            (r"[0-9][0-9_]*+", Number.Integer),
            (rf"{_WORD}(?=\s*+\()", _called),
            (_WORD, _word),
            (r"[-+*/<>=~!@#%^&|]|::?", Operator),
            (r"[()\[\]{},;.]", Punctuation),
        ],
        "comment": [
            (r"[^*/]++", Comment.Multiline),
            (r"/\*", Comment.Multiline, "#push"),
            (r"\*/", Comment.Multiline, "#pop"),
            (r"[*/]", Comment.Multiline),
        ],
        "arguments": [
            (r"\n", Whitespace, "#pop"),
            (r"[^\S\n]++", Whitespace),
            (r"\\\\", Punctuation, "#pop"),
            (r"(?=\\[?!@A-Za-z0-9_])", Text, "#pop"),
            (r"'[^'\n]*+'?|\"[^\"\n]*+\"?|`[^`\n]*+`?", String.Other),
            (r"[^\s\\'\"`]++|\\", Text),
        ],
    }

    def __init__(self, **options: object) -> None:
        super().__init__(**({"stripnl": False, "ensurenl": False} | options))
