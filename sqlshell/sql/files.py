"""The local files that a statement's text names: `'file' = '@path'`, as tools of the interface write it."""

from __future__ import annotations

from pathlib import PurePath

from msgspec import Struct

from sqlshell.sql.tokens import tokens


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


def mentioned(sql: str, name: str) -> bool:
    """Whether a string of the statement is that name."""
    return any(token.kind == "string" and token.value == name for token in tokens(sql))
