"""Batches: statements that were submitted together, run one after another, and are answered together.

Each is a statement like any other, with a record of its own. What is saved is a request, a turn of the session and a
change of threads for each of them.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque

from msgspec import Struct, field

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ContextEcho
from sqlshell.service.engines.engine import Outcome
from sqlshell.service.statements.ledger import Record

KEPT = 2_000
"""Statements of batches that stay findable as such; their records stay longer."""

KEPT_SIZE = 16 << 20
"""Characters of their texts and bytes of their results, about."""

RESULTS = 4 << 20
"""Bytes of results that one batch comes to at most, but for the last one."""


class Ended(Struct, frozen=True):
    """What a statement came to, told by the thread that ran it; `committed` says whether others may see it."""

    record: Record
    state: str
    message: str
    outcome: Outcome | None
    context: ContextEcho
    committed: bool


class Batch(Struct, eq=False):
    """`records` are all statements until the batch is over, and then those that were begun.

    `stops` says whether a failure ends it; `over` is set when no more of it will run. `ended` is what a thread has to
    tell, and `told` whether the event loop knows that there is something. `size` is the bytes of the results.
    """

    records: list[Record]
    stops: bool
    over: asyncio.Event = field(default_factory=asyncio.Event)
    ended: deque[Ended] = field(default_factory=deque)
    told: bool = False
    size: int = 0
    state: str = sqlstate.DONE
    """What the latest statement that a thread ran came to; "not yet complete" for an endless SELECT."""
    text: int = 0
    """Characters of its statements."""

    def ends_with(self, record: Record, state: str) -> bool:
        """Whether nothing runs behind a statement that came to `state`.

        So it is behind a failure, where that stops; behind what was ended, met something that is not ready and is to be
        sent again, or met a session that has lost what the rest may mean; behind a result that is not small, for its
        reader may fail before it has read all; and behind an endless SELECT; and when all results have become many
        bytes.
        """
        if record.feed is not None:
            return True
        if sqlstate.failed(state):
            return self.stops or state in {sqlstate.CANCELLED, sqlstate.SESSION_LOST} or sqlstate.not_ready(state)
        return record.spool.layout.form != "record" or self.size > RESULTS


class Batches:
    """The latest batches, by the id of their first statement."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Batch] = OrderedDict()

    def keep(self, batch: Batch) -> None:
        """Remember a batch. Where there are too many, old ones go, first those of the token that has most."""
        self._known[batch.records[0].statement_id] = batch
        number = sum(len(item.records) for item in self._known.values())
        size = sum(map(_weight, self._known.values()))
        if number <= KEPT and size <= KEPT_SIZE:
            return
        shares: Counter[str] = Counter()
        for item in self._known.values():
            shares[_owner(item)] += len(item.records) * KEPT_SIZE // KEPT + _weight(item)
        over = [(key, item) for key, item in self._known.items() if item.over.is_set()]
        # Some more than must go, so that the next ones find room at once.
        for key, item in sorted(over, key=lambda found: -shares[_owner(found[1])]):
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
    return batch.text + batch.size
