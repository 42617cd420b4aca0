"""Everything that a writer gives for batches of rows."""

from __future__ import annotations

from sqlshell.output.writer import Summary, Writer
from sqlshell.result import Batch, Column, Rows


def written(writer: Writer, columns: list[Column], *batches: Rows) -> bytes:
    chunks = [*writer.begin(columns)]
    for rows in batches:
        chunks += writer.write(Batch(len(columns), rows=rows))
    return b"".join([*chunks, *writer.end(Summary(sum(map(len, batches)), True))])


def drawn(writer: Writer, columns: list[Column], *batches: Rows) -> str:
    return written(writer, columns, *batches).decode()
