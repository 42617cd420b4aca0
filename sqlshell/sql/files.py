"""The local files that a statement's text names: `'file' = '@path'`, as tools of the interface write it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import PurePath
from typing import Final

from msgspec import Struct

from sqlshell.sql.tokens import tokens

_READER: Final = re.compile(r"read_\w+|\w+_scan|sniff_csv", re.I)
_MAY_READ: Final = re.compile(r"from|read_|_scan|sniff_csv", re.I)


class WithFiles(Struct, frozen=True):
    """`sql` names the files by their base names alone; `paths` are those that the text named with `@`."""

    sql: str
    paths: tuple[str, ...]


def named_files(sql: str) -> WithFiles:
    """Take the `@path` of each `'file' = '@path'` out of a statement. Other strings with `@` are left alone."""
    if "'@" not in sql:
        return WithFiles(sql, ())
    given = list(tokens(sql))
    made: list[str] = []
    paths: list[str] = []
    done = 0
    for key, sign, value in zip(given, given[1:], given[2:], strict=False):
        if key.kind not in {"string", "name", "word"} or key.value.lower() != "file" or sign.text != "=":
            continue
        if value.kind != "string" or not value.value.startswith("@") or len(value.value) < 2:
            continue
        path = value.value[1:]
        paths.append(path)
        name = PurePath(path).name.replace("'", "''")
        made += [sql[done : value.start], f"'{name}'"]
        done = value.end
    return WithFiles("".join([*made, sql[done:]]), tuple(dict.fromkeys(paths)))


def read_files(sql: str) -> Iterator[str]:
    """The paths that a statement reads: those of `FROM 'path'`, as in COPY, and of `read_csv('path')` and its like."""
    if not _MAY_READ.search(sql):
        return
    given = list(tokens(sql))
    reader = False
    for before, token in pairwise(given):
        if token.text == "(" and _READER.fullmatch(before.word):
            reader = True
        elif token.text == ")":
            reader = False
        elif token.kind in {"string", "name"} and (reader or before.word == "FROM"):
            yield token.value


def mentioned(sql: str, name: str) -> bool:
    """Whether a string of the statement is that name."""
    return any(token.kind == "string" and token.value == name for token in tokens(sql))
