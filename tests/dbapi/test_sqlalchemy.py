"""The SQLAlchemy dialect: engines, sessions, reflection. tests/conformance runs SQLAlchemy's own tests."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import socket
import ssl
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import orm

from sqlshell.dbapi import Warning
from sqlshell.sqlalchemy.types import type_of
from tests.conftest import Served, serve, stop

METADATA = sa.MetaData()
OWNERS = sa.Table(
    "owners",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(20), nullable=False, unique=True, comment="what it's called"),
)
THINGS = sa.Table(
    "things",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("owner", sa.ForeignKey("owners.id")),
    sa.Column("key", sa.Uuid),
    sa.Column("price", sa.Numeric(10, 2)),
    sa.Column("made", sa.DateTime(timezone=True), index=True),
    sa.Column("raw", sa.LargeBinary),
    sa.Column("more", sa.JSON),
    sa.Column("share", sa.Float),
    sa.CheckConstraint("price > 0"),
)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[sa.Engine]:
    made = sa.create_engine(f"sqlshell:///{tmp_path}/a.duckdb")
    METADATA.create_all(made)
    yield made
    made.dispose()


def test_values_and_keys(engine: sa.Engine) -> None:
    made = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)
    row: dict[str, Any] = {"key": uuid.uuid4(), "price": Decimal("1.50"), "made": made, "raw": b"\0'", "share": 0.1}
    row["more"] = {"a": ["%?:x"]}
    with engine.begin() as connection:
        owner = connection.execute(OWNERS.insert().values(name="50% of ?:x")).inserted_primary_key
        assert owner == (1,)
        connection.execute(THINGS.insert(), [{**row, "owner": 1}, {**row, "owner": None, "price": None}])
        found = connection.execute(sa.select(THINGS).order_by(THINGS.c.id)).mappings().all()
        assert [dict(each) for each in found] == [
            {"id": 1, "owner": 1, **row},
            {"id": 2, "owner": None, **row, "price": None},
        ]
        changed = connection.execute(THINGS.update().where(THINGS.c.id > 1).values(share=2))
        assert changed.rowcount == 1
        joined = sa.select(OWNERS.c.name, THINGS.c.price / 2).join(THINGS).limit(1).offset(0)
        assert connection.execute(joined).all() == [("50% of ?:x", Decimal("0.75"))]
        assert connection.execute(sa.select(OWNERS).where(OWNERS.c.name.ilike("50%"))).all() == [(1, "50% of ?:x")]
    with pytest.raises(sa.exc.IntegrityError), engine.begin() as connection:
        connection.execute(OWNERS.insert().values(name="50% of ?:x"))


def test_reflection(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("create view v as select 1 as one")
        connection.exec_driver_sql("create schema other")
    found = sa.inspect(engine)
    assert found.get_table_names() == ["owners", "things"]
    assert found.get_view_names() == ["v"]
    assert {"main", "other"} <= set(found.get_schema_names())
    assert found.get_pk_constraint("things")["constrained_columns"] == ["id"]
    [key] = found.get_foreign_keys("things")
    assert (key["constrained_columns"], key["referred_table"], key["referred_columns"]) == (["owner"], "owners", ["id"])
    assert [index["column_names"] for index in found.get_indexes("things")] == [["made"]]
    assert [unique["column_names"] for unique in found.get_unique_constraints("owners")] == [["name"]]
    assert len(found.get_check_constraints("things")) == 1
    assert [column["comment"] for column in found.get_columns("owners")] == [None, "what it's called"]
    with pytest.raises(sa.exc.NoSuchTableError):
        found.get_columns("nothing")
    again = sa.Table("things", sa.MetaData(), autoload_with=engine)
    assert [str(column.type) for column in again.columns] == [
        *("INTEGER", "INTEGER", "UUID", "NUMERIC(10, 2)", "TIMESTAMP", "BLOB", "JSON", "DOUBLE"),
    ]
    METADATA.drop_all(engine)
    assert sa.inspect(engine).get_sequence_names() == []


def test_reflection_of_expressions(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql('create table e (x integer, "a, b" varchar, twice integer as (x * 2))')
        connection.exec_driver_sql("""create index i on e (lower("a, b"), "a, b", coalesce("a, b", '], ['))""")
    found = sa.inspect(engine)
    [index] = found.get_indexes("e")
    assert index["column_names"] == [None, "a, b", None]
    lower, column, coalesce = index["expressions"]
    assert ("lower(" in lower, column, "'], ['" in coalesce) == (True, "a, b", True)
    assert [each.get("computed", {}).get("sqltext") for each in found.get_columns("e")] == [None, None, "(x * 2)"]
    assert [each["default"] for each in found.get_columns("e")] == [None] * 3


def test_operators_and_literals() -> None:
    engine = sa.create_engine("sqlshell://")
    day = datetime.timedelta(days=1, microseconds=5)
    key = uuid.uuid4()
    text = str(key)
    with engine.connect() as connection:
        assert connection.scalar(sa.select(sa.literal(5).bitwise_xor(1))) == 4
        chosen = sa.select(sa.literal(day, literal_execute=True), sa.literal(key, literal_execute=True))
        assert connection.execute(chosen).one() == (day, key)
        kind = sa.Uuid(as_uuid=False, native_uuid=False)
        bound, literal = sa.literal(text, kind), sa.literal(text, kind, literal_execute=True)
        assert connection.execute(sa.select(bound, literal, bound == literal)).one() == (text, text, True)
    engine.dispose()


def test_joined_tables_are_updated_and_deleted(engine: sa.Engine) -> None:
    rows = sa.Table("rows", sa.MetaData(), sa.Column("id", sa.Integer), sa.Column("name", sa.String))
    with engine.begin() as connection:
        rows.create(connection)
        connection.execute(OWNERS.insert(), [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}])
        connection.execute(rows.insert(), [{"id": 1, "name": ""}, {"id": 2, "name": ""}, {"id": 3, "name": ""}])
        wanted = sa.select(OWNERS).where(OWNERS.c.id < 3).cte("wanted")
        connection.execute(rows.update().values(name=wanted.c.name).where(rows.c.id == wanted.c.id))
        assert connection.execute(sa.select(rows.c.name).order_by(rows.c.id)).scalars().all() == ["one", "two", ""]
        connection.execute(rows.delete().where(rows.c.id == OWNERS.c.id))
        assert connection.execute(sa.select(rows.c.id)).scalars().all() == [3]


class Base(orm.DeclarativeBase):
    pass


class Note(Base):
    __tablename__ = "notes"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    body: orm.Mapped[str]


def test_a_service_and_a_session(served: Served) -> None:
    host = served.url.removeprefix("http://")
    engine = sa.create_engine(f"sqlshell+http://:{served.token}@{host}/v2?schema=public", pool_size=1)
    assert served.token not in repr(engine.url)
    try:
        Base.metadata.create_all(engine)
        with orm.Session(engine) as session:
            session.add_all([Note(body="it's"), Note(body="two")])
            session.commit()
            assert session.scalars(sa.select(Note.body).order_by(Note.id)).all() == ["it's", "two"]
            session.add(Note(body="not kept"))
            session.flush()
            session.rollback()
            assert session.scalar(sa.select(sa.func.count()).select_from(Note)) == 2
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            assert connection.get_isolation_level() == "AUTOCOMMIT"
            connection.exec_driver_sql("create database dialect")
            connection.exec_driver_sql("drop database dialect")
        assert sa.inspect(engine).default_schema_name == "public"
        Base.metadata.drop_all(engine)
    finally:
        engine.dispose()


def test_an_orm_session_inserts_updates_and_deletes() -> None:
    engine = sa.create_engine("sqlshell://")
    Base.metadata.create_all(engine)
    with orm.Session(engine) as session:
        session.add_all([Note(body=f"note {number}") for number in range(50)])
        session.commit()
        note = session.get_one(Note, 7)
        note.body = "changed: 100% of ?:x"
        session.delete(session.get_one(Note, 8))
        session.commit()
        assert session.execute(sa.update(Note).where(Note.id > 40).values(body="late")).rowcount == 10  # type: ignore[attr-defined]
        assert session.execute(sa.delete(Note).where(Note.body == "late")).rowcount == 10  # type: ignore[attr-defined]
        session.commit()
        assert session.scalars(sa.select(Note.body).where(Note.id.in_([6, 7, 8])).order_by(Note.id)).all() == [
            *("note 5", "changed: 100% of ?:x"),
        ]
        assert session.scalar(sa.select(sa.func.count()).select_from(Note)) == 39
    engine.dispose()


@pytest.mark.parametrize("numbered", [(), (sa.Identity(start=5),), (sa.Sequence("numbers"),)])
def test_many_rows_are_inserted_together_and_their_keys_are_in_order(numbered: tuple[Any, ...]) -> None:
    engine = sa.create_engine("sqlshell://")
    table = sa.Table(
        "many", sa.MetaData(), sa.Column("id", sa.Integer, *numbered, primary_key=True), sa.Column("name", sa.String)
    )
    sent: list[str] = []
    sa.event.listen(engine, "before_cursor_execute", lambda *given: sent.append(given[2]))
    with engine.begin() as connection:
        table.metadata.create_all(connection)
        sent.clear()
        names = [f"name {number}" for number in range(2500, 0, -1)]
        insert = table.insert().returning(table.c.id, sort_by_parameter_order=True)
        keys = connection.execute(insert, [{"name": name} for name in names]).scalars().all()
        # One statement for each page of 1,000 rows.
        assert len(sent) == 3
        found = {row.id: row.name for row in connection.execute(sa.select(table))}
        assert [found[key] for key in keys] == names
    engine.dispose()


class Document(Base):
    __tablename__ = "documents"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    body: orm.Mapped[Any] = orm.mapped_column(sa.JSON)
    numbers: orm.Mapped[Any] = orm.mapped_column(sa.ARRAY(sa.Integer))
    grid: orm.Mapped[Any] = orm.mapped_column(sa.ARRAY(sa.Integer, dimensions=2))


def test_items_of_json_and_of_arrays() -> None:
    engine = sa.create_engine("sqlshell://")
    Base.metadata.create_all(engine)
    keys = ["a'b", 'a"b', "a\\b", "a.b[0]", "*", "", "/~", "?", ":x", "0"]
    body = {"a": [7, "seven", None, True, 1.5, {"b": [1, 2]}], **{key: f"of {key}" for key in keys}}
    with orm.Session(engine) as session:
        session.add(Document(body=body, numbers=[10, 20, 30], grid=[[1, 2], [3, 4]]))
        session.flush()
        items = Document.body["a"]
        assert session.execute(
            sa.select(
                items[0].as_integer(),
                items[1].as_string(),
                items[2].as_string(),
                items[3].as_boolean(),
                items[4].as_float(),
                items[4].as_numeric(5, 2),
                items[5].as_string(),
                items[5]["b"][1],
                items[-1]["b"],
                Document.body[("a", 5, "b", 1)].as_integer(),
                Document.body["none"],
            )
        ).one() == (7, "seven", None, True, 1.5, Decimal("1.50"), '{"b":[1,2]}', 2, [1, 2], 2, None)
        for key in keys:
            chosen = sa.select(Document.body[key].as_string(), Document.body[(key,)])
            assert session.execute(chosen).one() == (f"of {key}", f"of {key}")
            literal = chosen.compile(engine, compile_kwargs={"literal_binds": True})
            assert session.execute(sa.text(str(literal).replace(":", "\\:"))).one()[0] == f"of {key}"
        chosen = sa.select(Document.numbers[1], Document.numbers[2:3], Document.grid[2][1])
        assert session.execute(chosen.where(Document.numbers[3] == 30)).one() == (10, [20, 30], 3)
    engine.dispose()


def test_a_savepoint_is_refused_and_the_transaction_stays_open() -> None:
    engine = sa.create_engine("sqlshell://")
    Base.metadata.create_all(engine)
    refused = pytest.raises(sa.exc.NotSupportedError, match="DuckDB has no savepoints")
    with engine.begin() as connection:
        connection.execute(sa.insert(Note).values(body="kept"))
        with refused:
            connection.begin_nested()
    with orm.Session(engine) as session:
        with refused, session.begin_nested():
            session.add(Note(body="not kept"))
        assert session.scalars(sa.select(Note.body)).all() == ["kept"]
    engine.dispose()


def test_threads_share_a_pool(served: Served) -> None:
    host = served.url.removeprefix("http://")
    engine = sa.create_engine(f"sqlshell+http://:{served.token}@{host}/v2", pool_size=3, max_overflow=0)

    def work(number: int) -> int:
        with engine.connect() as connection:
            return int(connection.execute(sa.select(sa.literal(number) * 2)).scalar_one())

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(work, range(12))) == [number * 2 for number in range(12)]
    assert isinstance(engine.pool, sa.pool.QueuePool)
    assert engine.pool.checkedin() <= 3
    engine.dispose()


def test_the_token_of_a_profile_is_not_shown(
    served: Served, configured: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.mkdir()
    secret = configured / "token"
    secret.write_text(served.token)
    secret.chmod(0o600)
    (configured / "config.toml").write_text(f'[profiles.work]\nurl = "{served.url}/v2"\ntoken_file = "{secret}"\n')
    engine = sa.create_engine("sqlshell://?profile=work", echo=True)
    with caplog.at_level("DEBUG"), engine.connect() as connection:
        assert connection.execute(sa.text("select :n"), {"n": 5}).scalar() == 5
        raw = connection.connection.dbapi_connection
        shown = [repr(engine), repr(engine.url), repr(raw), str(vars(raw._session))]  # type: ignore[union-attr]
        with pytest.raises(sa.exc.ProgrammingError) as caught:
            connection.exec_driver_sql("select * from nowhere")
        shown += [str(caught.value), repr(caught.value)]
    engine.dispose()
    out, err = capsys.readouterr()
    assert "select" in caplog.text
    assert served.token not in "".join([*shown, caplog.text, out, err])


@contextlib.contextmanager
def with_tls(listener: socket.socket, upstream: str, authority: Path) -> Iterator[None]:
    """A reverse proxy with TLS in front of the service."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    host, _, port = upstream.removeprefix("http://").partition(":")
    loop = asyncio.new_event_loop()

    async def copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def relayed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, sent = await asyncio.open_connection(host, int(port))
        await asyncio.gather(copied(reader, sent), copied(upstream, writer))

    async def listening() -> asyncio.Server:
        return await asyncio.start_server(relayed, sock=listener, ssl=context)

    async def stopped() -> None:
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    server = loop.run_until_complete(listening())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(stopped(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.mark.slow("starts a service")
def test_the_token_of_a_profile_over_tls(tmp_path: Path, authority: Path, configured: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    origin = f"https://127.0.0.1:{listener.getsockname()[1]}"
    url = f"{origin}/v2"
    served = serve(tmp_path, "--public-url", origin)
    configured.mkdir()
    secret = tmp_path / "token"
    with with_tls(listener, served.url, authority):
        profile = f'[profiles.work]\nurl = "{url}"\ntoken_file = "{secret}"\nca_file = "{authority}/ca.pem"\n'
        (configured / "config.toml").write_text(profile)
        for given in ("sqlshell://?profile=work", f"sqlshell+{url}?profile=work"):
            engine = sa.create_engine(given)
            with engine.connect() as connection:
                assert connection.scalar(sa.select(sa.literal(5))) == 5
            engine.dispose()
        engine = sa.create_engine(f"sqlshell+{url.replace('127.0.0.1', 'localhost')}?profile=work")
        with (
            pytest.warns(Warning, match="the token of profile 'work' is not sent to https://localhost:"),
            pytest.raises(sa.exc.OperationalError, match="Hostname mismatch"),
            engine.connect(),
        ):
            pass
        engine = sa.create_engine(f"sqlshell+{url}")
        with pytest.raises(sa.exc.OperationalError, match="cannot verify the certificate"), engine.connect():
            pass
    stop(served)


def test_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    engine = sa.create_engine("sqlshell://")
    days = pandas.to_datetime(["2024-02-29 12:00:00.000005", None])
    frame: Any = pandas.DataFrame(
        {"i": [1, 2], "s": ["a: 100% ?", None], "f": [0.1, None], "t": days, "b": [True, False]}
    )
    for method in (None, "multi"):
        frame.to_sql("t", engine, index=False, if_exists="replace", method=method)
        found = pandas.read_sql("select * from t order by i", engine)
        assert found.astype(object).where(found.notna(), None).to_dict("list") == (
            frame.astype(object).where(frame.notna(), None).to_dict("list")
        )
    frame.to_sql("t", engine, index=False, if_exists="append", chunksize=1)
    assert pandas.read_sql_table("t", engine).shape == (4, 5)
    query = sa.text("select i from t where s is null and i = :i")
    assert pandas.read_sql(query, engine, params={"i": 2}).to_dict("list") == {"i": [2, 2]}
    engine.dispose()


def test_types() -> None:
    assert isinstance(type_of("INTEGER[]").item_type, sa.INTEGER)  # type: ignore[attr-defined]
    assert type_of("ENUM('a', 'b''c')").enums == ["a", "b'c"]  # type: ignore[attr-defined]
    assert isinstance(type_of("STRUCT(a INTEGER)"), sa.types.NullType)
    assert type_of("TIMESTAMP WITH TIME ZONE").timezone  # type: ignore[attr-defined]
