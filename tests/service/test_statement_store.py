"""The store: its memory is limited, each organization has its own quota, and a full disk loses no statement."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo, ContextEcho
from sqlshell.service.engines.engine import Outcome
from sqlshell.service.results.results import Spool
from sqlshell.service.statements.statement import Statement
from sqlshell.service.statements.store import LATE_SIZE, UNREAD, StatementStore
from sqlshell.service.statements.texts import Secret
from sqlshell.service.storage.storage import Storage


def made(folder: Path, organization: str = "a", sql: str = "select 1", owner: str = "t") -> Statement:
    spool = Spool(lambda: folder / record.statement_id, 10)
    record = Statement(sql, organization, owner, spool, ContextEcho())
    return record


def store_of(folder: Path, storage: Storage) -> StatementStore:
    return StatementStore(storage, lambda organization, statement_id: Spool(lambda: folder / statement_id, 10))


def test_what_is_held_is_bounded_and_all_is_found(tmp_path: Path, storage: Storage) -> None:
    store = store_of(tmp_path, storage)
    running = [made(tmp_path) for _ in range(3)]
    ended = [made(tmp_path, sql=f"select {number}") for number in range(UNREAD + 2)]
    asyncio.run(store.admit([*running, *ended]))
    assert (store.loads(["t"])["t"].number, store.loads(["a"])["a"].number) == (len(ended) + 3, len(ended) + 3)
    for record in ended:
        record.secret = Secret("s", "hush")
        store.end(record, sqlstate.DONE, "")
    assert {record.statement_id for record in store.running()} == {record.statement_id for record in running}
    assert (store.loads(["t"])["t"].number, store.loads(["t"])["t"].size) == (3, 3 * len("select 1"))
    found = store.find(ended[0].statement_id)
    assert found is not None
    assert (found is ended[0], found.sql, found.sql_state) == (False, "select 0", sqlstate.DONE)
    assert store.find(ended[-1].statement_id) is ended[-1]
    # Only what has a secret that was not looked up is held, and that is bounded.
    other = made(tmp_path)
    asyncio.run(store.admit([other]))
    other.outcome, other.timezone, other.seconds = Outcome(), "Asia/Tokyo", 0.5
    store.end(other, sqlstate.DONE, "")
    found = store.find(other.statement_id)
    assert found is not None
    assert (found is other, found.timezone, found.seconds) == (False, "Asia/Tokyo", 0.5)
    failed = made(tmp_path)
    asyncio.run(store.admit([failed]))
    failed.seconds = 0.5
    store.end(failed, "22000", "failed")
    found = store.find(failed.statement_id)
    assert found is not None
    assert (found.seconds, found.outcome) == (0.5, None)


def test_the_quota_of_one_organization_takes_nothing_of_another(tmp_path: Path, storage: Storage) -> None:
    store = store_of(tmp_path, storage)
    other = made(tmp_path, "other")
    asyncio.run(store.admit([other]))
    store.end(other, sqlstate.DONE, "")
    many = [made(tmp_path, "many", "x" * 1000) for _ in range(700)]
    asyncio.run(store.admit(many))
    for record in many:
        store.end(record, sqlstate.DONE, "")
    turns = 1
    while store.sweep(1000.0, 5100, 100):
        turns += 1
    assert turns > 1
    assert sum(store.find(record.statement_id) is not None for record in many) == 5
    assert store.find(many[-1].statement_id) is not None
    assert store.find(other.statement_id) is not None
    while store.sweep(-1.0, 5000, 100):
        pass
    assert store.find(other.statement_id) is None


def test_no_more_is_removed_than_exceeds_the_limits(tmp_path: Path, storage: Storage) -> None:
    store = store_of(tmp_path, storage)
    records = [made(tmp_path) for _ in range(10)]
    asyncio.run(store.admit(records))
    for record in records:
        store.end(record, "22000", "failed")

    def left(quota: int, number: int) -> list[Statement]:
        assert not store.sweep(1000.0, quota, number)
        return [record for record in records if store.find(record.statement_id) is not None]

    assert left(1 << 20, 10) == records
    assert left(1 << 20, 9) == records[1:]
    ((size,),) = storage.read("SELECT sum(bytes + length(sql) + length(message) + length(context)) FROM statements")
    assert left(size, 10) == records[1:]
    assert left(size - 1, 10) == records[2:]
    # Those that have expired at the same time count once.
    expired = "UPDATE statements SET finished = 1 WHERE id IN (?, ?)"
    storage.write(expired, [record.statement_id for record in records[2:4]])
    assert left(1 << 20, 5) == records[5:]


def test_all_that_is_stored_of_a_record_counts_against_the_quota(tmp_path: Path, storage: Storage) -> None:
    store = store_of(tmp_path, storage)
    columns = [made(tmp_path) for _ in range(10)]
    texts = [made(tmp_path, sql="select '\0ä" + "ä" * 9_000) for _ in range(10)]
    messages = [made(tmp_path) for _ in range(10)]
    for record in columns:
        record.outcome = Outcome([ColumnInfo("\0" * 3_000, "INTEGER", True)])
    asyncio.run(store.admit([*columns, *texts, *messages]))
    for record in (*columns, *texts):
        store.end(record, sqlstate.DONE, "")
    for record in messages:
        store.end(record, "22000", "ä" * 9_000)

    def left(store: StatementStore, quota: int) -> list[int]:
        while store.sweep(1000.0, quota, 100):
            pass
        return [sum(store.find(item.statement_id) is not None for item in some) for some in (columns, texts, messages)]

    assert left(store, 30 * 19_000) == [10, 10, 10]
    assert sum(left(store, 15 * 19_000)) in {15, 16}
    # Another process counts in the same way.
    again = store_of(tmp_path, storage)
    assert left(again, 15 * 19_000) == left(store, 15 * 19_000)
    assert sum(left(again, 5 * 19_000)) == 5
    assert left(again, 10) == [0, 0, 0]


def test_statements_go_on_while_the_disk_is_full(tmp_path: Path, storage: Storage) -> None:
    store = store_of(tmp_path, storage)
    before, running = made(tmp_path), made(tmp_path)
    asyncio.run(store.admit([before, running]))
    pages = storage.read("PRAGMA page_count")[0][0]
    storage.read(f"PRAGMA max_page_count = {pages}")
    full = [made(tmp_path, sql="x" * 50_000) for _ in range(5)]
    asyncio.run(store.admit(full))
    for record in (before, *full):
        store.end(record, sqlstate.DONE, "done")
        found = store.find(record.statement_id)
        assert found is not None
        assert found.sql_state == sqlstate.DONE
    assert storage.read("SELECT count(*) FROM statements WHERE length(sql) > 100") == [(0,)]
    storage.read("PRAGMA max_page_count = 100000")
    store.end(running, sqlstate.DONE, "done")
    assert storage.read("SELECT count(*) FROM statements WHERE state = '00000'") == [(7,)]
    again = store_of(tmp_path, storage)
    assert all(again.find(record.statement_id) is not None for record in (before, running, *full))


def test_what_waits_for_space_on_the_disk_is_bounded(tmp_path: Path, storage: Storage) -> None:
    store = store_of(tmp_path, storage)
    pages = storage.read("PRAGMA page_count")[0][0]
    storage.read(f"PRAGMA max_page_count = {pages}")
    large = [made(tmp_path, sql="x" * (LATE_SIZE // 4)) for _ in range(9)]
    for record in large:
        asyncio.run(store.admit([record]))
        store.end(record, sqlstate.DONE, "")
    storage.read("PRAGMA max_page_count = 100000")
    store.end(made(tmp_path), sqlstate.DONE, "")
    # The latest ones are kept, as far as there is room for them.
    assert [store.find(record.statement_id) is not None for record in large] == [False] * 6 + [True] * 3


def test_what_has_not_ended_is_always_among_the_latest(tmp_path: Path, storage: Storage) -> None:
    store = store_of(tmp_path, storage)
    waiting, ended = [made(tmp_path) for _ in range(5)], [made(tmp_path) for _ in range(10)]
    for record in (*waiting, *ended):
        asyncio.run(store.admit([record]))
    for record in ended:
        store.end(record, sqlstate.DONE, "")
    latest = {record.statement_id for record in store.latest("a", 7)}
    assert latest >= {record.statement_id for record in waiting}
    assert len(latest) == 7
    assert {record.statement_id for record in store.latest("a", 3)} == {record.statement_id for record in waiting}


def test_a_list_begins_with_the_newest(tmp_path: Path, storage: Storage) -> None:
    store = store_of(tmp_path, storage)
    records = [made(tmp_path) for _ in range(300)]
    for number, record in enumerate(records):
        record.created = float(number)
    asyncio.run(store.admit(records))
    for record in records:
        store.end(record, sqlstate.DONE, "")
    for number in (1, 100, 300, 500):
        assert [record.created for record in store.latest("a", number)] == [float(n) for n in range(299, -1, -1)][
            :number
        ]
