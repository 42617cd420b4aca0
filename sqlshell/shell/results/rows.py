"""Results that the shell itself produces: the output of \\jobs is a result like any other, in every format."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlshell.errors import StatementError, Where
from sqlshell.interface import sqlstate
from sqlshell.output.sinks.sink import OutputClosed, Sink
from sqlshell.output.text.type_names import simple_type
from sqlshell.output.text.value_colors import QUIET
from sqlshell.output.writer import Summary, Writer
from sqlshell.result import Batch, BatchWrapper, Column, HeldBatches, Partitions, Result, Rows
from sqlshell.text import nearest

MOST_SUGGESTED = 2
"""How many names are suggested for one that does not exist."""


def table_of(columns: Sequence[tuple[str, str]], rows: Rows) -> Result:
    """A result with `columns`, each a name and a type, and `rows`."""
    return result_of([Column(name, type_) for name, type_ in columns], rows)


def result_of(columns: Sequence[Column], rows: Rows) -> Result:
    """A result with these columns and rows."""
    return Result(list(columns), HeldBatches(Batch(len(columns), rows=rows)), row_counts=[len(rows)])


def column_index(columns: Sequence[Column], *names: str) -> int | None:
    """The position of the first of these columns; services write them as `createdOn`, `created_on` or `Created On`."""
    low = [column.name.lower().replace("_", "").replace(" ", "") for column in columns]
    return next((low.index(name) for name in names if name in low), None)


def title_of(name: str) -> str:
    """The name of a column of the service, such as IsDefault, in the form of other lists: is_default."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def value(row: Sequence[str | None], place: int | None) -> str:
    """A value of a row, "" for NULL and for a missing column."""
    return (row[place] or "") if place is not None and place < len(row) else ""


def text_table(titles: Sequence[str], rows: Rows) -> Result:
    """A result whose columns are all text."""
    return table_of([(title, "VARCHAR") for title in titles], rows)


def columns_table(titles: Sequence[str], rows: Rows, *, for_people: bool) -> Result:
    """A description of columns: their names, their types, and more. People see types as in the header of a table."""
    if not for_people:
        return text_table(titles, rows)
    shown = blank([[name, simple_type(kind or ""), *more] for name, kind, *more in rows])
    columns = [Column(title, display_hint=QUIET if at == 1 else "") for at, title in enumerate(titles)]
    return Result(columns, HeldBatches(Batch(len(columns), rows=shown)), row_counts=[len(rows)])


def blank(rows: Rows) -> Rows:
    """The rows for the screen, with "" instead of NULL."""
    return [[value or "" for value in row] for row in rows]


def no_match_message(pattern: Sequence[str], hint: str, what: str) -> str:
    """The message for an empty list; `what` is what it lists, such as "indexes"."""
    message = f"nothing matches {in_quotes(pattern[0])}" if pattern else f"no {what}"
    return f"{message}; {hint}" if hint else message


def not_found(what: str, name: str, known: Mapping[str, Sequence[str]]) -> StatementError:
    """The error for a name that does not exist; `known` has the names that do, each with the forms to be suggested."""
    hint = "\\d lists the relations of this schema, \\d *.* all" if what == "relation" else "\\df * lists the functions"
    wanted = name.rpartition(".")[2].strip('"')
    near = nearest(wanted, known, most=MOST_SUGGESTED)
    # If the name exists elsewhere, similar ones are no help.
    near = near[:1] if near and near[0].lower() == wanted.lower() else near
    forms = [form for similar in near for form in known[similar]][:MOST_SUGGESTED]
    hint = f"did you mean {' or '.join(map(in_quotes, forms))}?" if forms else hint
    where = Where(sqlstate.NO_RELATION if what == "relation" else "")
    return StatementError(f"no {what} matches {in_quotes(name)}", hint, where)


def in_quotes(name: str) -> str:
    """A name as written in SQL, in the double quotes of messages unless it has its own."""
    return name if '"' in name else f'"{name}"'


async def collect(result: Result, most: int) -> tuple[Summary, Rows]:
    """The rows of a result, at most `most`; the summary says whether these are all. Raises the
    errors of reading them.
    """
    rows: Rows = []
    complete = True
    try:
        async for batch in result.batches:
            rows += batch.rows
            if len(rows) > most or (result.endless is not None and len(rows) == most):
                del rows[most:]
                complete = False
                break
    finally:
        await result.batches.aclose()
    return Summary(len(rows), complete), rows


class KeptRows(BatchWrapper):
    """Batches whose first `most` rows are stored while they are read."""

    def __init__(self, batches: Partitions, most: int) -> None:
        super().__init__(batches)
        self._most = most
        self.rows: Rows = []
        self.whole = True

    def each(self, batch: Batch) -> Batch:
        left = self._most - len(self.rows)
        self.rows += batch.rows[:left]
        self.whole = self.whole and len(batch.rows) <= left
        return batch


class CopiedBatches(BatchWrapper):
    """The batches of a result for \\tee and \\log, each also written to `sink`, until the sink's reader leaves."""

    def __init__(self, result: Result, writer: Writer, sink: Sink) -> None:
        super().__init__(result.batches)
        self._columns = result.columns
        self._writer: Writer | None = writer
        self._sink = sink
        self._rows = 0
        self._begun = False

    def each(self, batch: Batch) -> Batch:
        self._write(batch)
        return batch

    def at_end(self) -> None:
        self._write(None)

    def _write(self, batch: Batch | None) -> None:
        if self._writer is None:
            return
        chunks = [] if self._begun else list(self._writer.begin(self._columns))
        self._begun = True
        if batch is None:
            chunks += self._writer.end(Summary(self._rows, True))
        else:
            self._rows += len(batch.rows)
            chunks += self._writer.write(batch)
        try:
            self._sink.write(b"".join(chunks))
        except OutputClosed:
            self._writer = None
