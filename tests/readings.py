"""Runs the program and writes down what it scans and lexes: `python -m tests.readings FILE ARGUMENT…`.

The file has a JSON array a line: where (the shell's thread, or one of the service's), what reads, and the text.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from sqlshell.service.dialect import lexer as dialect
from sqlshell.sql.analysis import lexed
from sqlshell.sql.analysis import tokens as tokens_module
from sqlshell.sql.analysis.tokens import Token
from sqlshell.sql.script.scanner import Scanner


def read(file: Path) -> Counter[tuple[str, str, str]]:
    """How often each text was read, by where and what."""
    return Counter((where, what, text) for where, what, text in map(json.loads, file.read_text().splitlines()))


def write_down(file: Path) -> None:
    """From now on."""
    descriptor = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def note(what: str, text: str) -> None:
        where = "shell" if threading.current_thread() is threading.main_thread() else "service"
        os.write(descriptor, json.dumps([where, what, text.rstrip(";\n")]).encode() + b"\n")

    lex, feed = tokens_module.tokens, Scanner.feed

    def noted(what: str) -> Callable[..., Iterator[Token]]:
        def tokens(sql: str, **given: bool) -> Iterator[Token]:
            note(what, sql)
            yield from lex(sql, **given)

        return tokens

    def fed(scanner: Scanner, piece: str) -> None:
        if piece.strip():
            note("scan", piece)
        feed(scanner, piece)

    for holder, name, instead in (
        (lexed, "tokens", noted("lex")),
        (dialect, "tokens", noted("dialect")),
        (Scanner, "feed", fed),
    ):
        setattr(holder, name, instead)


def main() -> None:
    from sqlshell.__main__ import main

    write_down(Path(sys.argv.pop(1)))
    main()


if __name__ == "__main__":
    main()
