"""The ledger of one process among several that share their records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from sqlshell.interface import sqlstate
from sqlshell.service.cluster.cluster import Cluster
from sqlshell.service.results.results import Spool
from sqlshell.service.statements.ledger import (
    COLUMNS,
    ENDED,
    INSERT,
    LISTED_COLUMNS,
    Endings,
    Ledger,
    Record,
    Row,
    StatementLoad,
)
from sqlshell.service.storage.storage import Storage, Unavailable

_ENDED_HERE = f"{ENDED} AND process = ? AND state = '{sqlstate.RUNNING}'"


class SharedLedger(Ledger):
    """Records are written before they run and when they end. An end counts only if no other process has taken the
    statement over."""

    def __init__(self, storage: Storage, place: Callable[[str, str], Spool], cluster: Cluster) -> None:
        self._cluster = cluster
        self._unwritten: list[tuple[Record, str, str]] = []
        """Ends that could not be written, because the database did not respond."""
        super().__init__(storage, place)

    @property
    def process(self) -> str:
        return self._cluster.id

    def begin(self, records: Sequence[Record]) -> None:
        """Add records. Raises Unavailable if they cannot be written: another process could not find them."""
        if not self._cluster.holds_lease():
            # Others may run statements of the same session already.
            raise Unavailable("this process of the service has lost its lease")
        super().begin(records)
        if self._fresh:
            self.drop(records)
            raise Unavailable("cannot record the statements")

    def loads(self, keys: Collection[str]) -> Mapping[str, StatementLoad]:
        elsewhere = self._cluster.loads(keys)
        found = {}
        for key, own in self.own_loads(keys).items():
            found[key] = StatementLoad()
            number, size = elsewhere.get(key, (0, 0))
            found[key].add(own.number + number, own.size + size)
        return found

    def write_again(self) -> None:
        """Finish the records whose ends could not be written."""
        waiting, self._unwritten = self._unwritten, []
        if waiting:
            self.finish(*waiting)

    def latest(self, organization: str, number: int) -> list[Record]:
        rows = self._storage.read(
            f"SELECT {LISTED_COLUMNS} FROM statements WHERE organization = ? AND state = ? AND process <> ?",
            (organization, sqlstate.RUNNING, self.process),
        )
        elsewhere = [self._restored(row) for row in rows]
        have_slots = self._cluster.have_slots([item.statement_id for item in elsewhere]) if elsewhere else ()
        for item in elsewhere:
            item.started = item.statement_id in have_slots
        return sorted(elsewhere + super().latest(organization, number), key=lambda item: item.created, reverse=True)

    def _written(self, endings: Endings, updates: Sequence[Row], inserts: Sequence[Row]) -> Endings:
        rows = {row[-1]: row for row in updates}
        written = []
        for record, state, message in endings:
            row = rows.get(record.statement_id)
            try:
                if row is None:
                    self._storage.write_all(INSERT, [item for item in inserts if item[0] == record.statement_id])
                elif not self._storage.write(_ENDED_HERE, (*row, self.process)):
                    state, message = self._taken_over(record)
            except Unavailable:
                self._unwritten.append((record, state, message))
                continue
            written.append((record, state, message))
        return tuple(written)

    def _taken_over(self, record: Record) -> tuple[str, str]:
        """The end of a statement that is recorded already, by another process that has taken it over or by an earlier
        attempt of this one; as far as it is known.
        """
        record.outcome = None
        record.spool.forget()
        rows = self._storage.read(f"SELECT {COLUMNS} FROM statements WHERE id = ?", (record.statement_id,))
        found = self._restored(rows[0]) if rows else None
        if found is None or found.running:
            return sqlstate.INTERNAL, TAKEN_OVER
        record.outcome, record.spool = found.outcome, found.spool
        return found.state, found.message


TAKEN_OVER = "another process of the service has taken over the statement; look the statement up again"
