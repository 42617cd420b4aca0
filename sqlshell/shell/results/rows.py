"""Results that the shell itself has: what \\jobs shows is a result like any other, in every format."""

from __future__ import annotations

from collections.abc import Sequence

from sqlshell.errors import StatementError, Where
from sqlshell.interface import sqlstate
from sqlshell.output.writer import Summary
from sqlshell.result import Batch, BatchWrapper, Column, HeldBatches, Partitions, Result, Rows
from sqlshell.spelling import did_you_mean
from sqlshell.sql.identifiers import quoted


def table_of(columns: Sequence[tuple[str, str]], rows: Rows) -> Result:
    """A result of `columns`, each a name and a type, with `rows`."""
    return Result(
        [Column(name, type_) for name, type_ in columns],
        HeldBatches(Batch(len(columns), rows=rows)),
        row_counts=[len(rows)],
    )


def at(columns: Sequence[Column], *names: str) -> int | None:
    """The place of the first of these columns; services write them as `createdOn`, `created_on` or `Created On`."""
    low = [column.name.lower().replace("_", "").replace(" ", "") for column in columns]
    return next((low.index(name) for name in names if name in low), None)


def value(row: Sequence[str | None], place: int | None) -> str:
    """A value of a row, "" for NULL and for a column that is not there."""
    return (row[place] or "") if place is not None and place < len(row) else ""


def texts_of(titles: Sequence[str], rows: Rows) -> Result:
    """A result whose columns are all texts."""
    return table_of([(title, "VARCHAR") for title in titles], rows)


def nothing(pattern: Sequence[str], hint: str = "") -> str:
    """The message for an empty list."""
    said = f"nothing matches {pattern[0]}" if pattern else "nothing found"
    return f"{said}; {hint}" if hint else said


def no_such(what: str, name: str, known: Sequence[str]) -> StatementError:
    lists = (
        "\\d lists the relations of this schema, \\d *.* all" if what == "relation" else "\\df * lists the functions"
    )
    hint = did_you_mean(name.rpartition(".")[2].strip('"'), known, lists, most=2, shown=quoted)
    return StatementError(f"no {what} matches {name}", hint, Where(sqlstate.NO_RELATION if what == "relation" else ""))


async def collect(result: Result, most: int) -> tuple[Summary, Rows]:
    """The rows of a result, `most` of them; the summary says whether that is all. Raises what reading them raises."""
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


class Kept(BatchWrapper):
    """Batches whose first `most` rows are kept as they are read."""

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
