"""Statements that are submitted together and run one after another: those of a text, or a batch with one response."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque

from msgspec import Struct, field

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ContextEcho
from sqlshell.service.engines.engine import Outcome
from sqlshell.service.objects.kind import StartedFeed
from sqlshell.service.statements.statement import Statement

KEPT = 2_000
"""Batches can be looked up while they have at most this many statements together; the records are kept longer."""

KEPT_SIZE = 16 << 20
"""The approximate maximum of the characters of their texts and the bytes of their results."""

RESULTS = 4 << 20
"""A batch ends when its results exceed this many bytes."""


class EndedStatement(Struct, frozen=True):
    """The end of a statement, reported by the thread that ran it; `committed` says whether others may see its changes.

    `result` is that of a statement with this sqlState, or the SELECT on a stream that it has started.
    """

    record: Statement
    sql_state: str
    message: str
    result: Outcome | StartedFeed | None
    context: ContextEcho
    committed: bool


class Batch(Struct, eq=False):
    """`records` are all statements until the batch has ended, and then those that were started.

    `stops` says whether a failure ends the batch; `finished` is set when no more statements of it will run. `combined`
    is False for the statements of a text, each of which has a response of its own.
    """

    records: list[Statement]
    stops: bool
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    combined: bool = True
    at: int = 0
    """How many statements have ended or were passed over."""
    ended: deque[EndedStatement] = field(default_factory=deque)
    """The ends from the thread that are not recorded yet."""
    notified: bool = False
    """Whether the event loop was woken for them."""
    size: int = 0
    """The size of all results in bytes."""
    text_size: int = 0
    """Characters of its statements."""

    def ends_with(self, record: Statement, sql_state: str) -> bool:
        """Whether the batch ends after a statement with this sqlState.

        It does so after a failure if `stops` is set; after a canceled statement, one that failed because something was
        not ready and should be sent again, or one whose session was lost. If it is `combined`, also after a large
        result, because reading it may fail; after a SELECT on a stream; and when the results are too large in total.
        """
        if sqlstate.failed(sql_state):
            return (
                self.stops or sql_state in {sqlstate.CANCELED, sqlstate.SESSION_LOST} or sqlstate.not_ready(sql_state)
            )
        if not self.combined:
            return False
        return sql_state == sqlstate.RUNNING or record.spool.layout.form != "record" or self.size > RESULTS


class Batches:
    """The latest batches by the ID of their first statement."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Batch] = OrderedDict()

    def keep(self, batch: Batch) -> None:
        """Add a batch. If there are too many, remove old ones, beginning with those of the token that has the most."""
        self._known[batch.records[0].statement_id] = batch
        number = sum(len(item.records) for item in self._known.values())
        size = sum(map(_weight, self._known.values()))
        if number <= KEPT and size <= KEPT_SIZE:
            return
        shares: Counter[str] = Counter()
        for item in self._known.values():
            shares[_owner(item)] += len(item.records) * KEPT_SIZE // KEPT + _weight(item)
        over = [(key, item) for key, item in self._known.items() if item.finished.is_set()]
        # Removes a few more than necessary, so that the next batches find room.
        for key, item in sorted(over, key=lambda entry: -shares[_owner(entry[1])]):
            if number <= 0.9 * KEPT and size <= 0.9 * KEPT_SIZE:
                break
            number -= len(item.records)
            size -= _weight(item)
            del self._known[key]

    def find(self, statement_id: str) -> Batch | None:
        return self._known.get(statement_id)


def _owner(batch: Batch) -> str:
    return batch.records[0].owner


def _weight(batch: Batch) -> int:
    return batch.text_size + batch.size
