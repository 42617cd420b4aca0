"""Generates statements whose effects are hidden by their syntax."""

from __future__ import annotations

import duckdb
from hypothesis import strategies as st

READING = [
    "select * from t",
    "select a, count(*) from t group by a having count(*) > 0 order by 1 limit 3",
    "with q as (select * from k) select * from q join t on q.i = t.a",
    "with recursive r(n) as (select 1 union all select n + 1 from r where n < 3) select * from r",
    "select plus(a), counted(a) from w",
    "from series(3)",
    "describe t",
    "summarize k",
    "show tables",
    "select * from information_schema.tables",
    'select * from st.main."a b.csv"',
    "select row_number() over (partition by b order by a) from t qualify true",
    "select list_transform([1, 2], lambda x: x + 1), '{\"a\": 1}'->>'a', 'good'::mood",
    "pivot t on b using sum(a)",
    "set variable z = 3",
    "set timezone = 'UTC'",
    "values (1, 'a')",
]
WRITING = [
    "insert into t values (9, 'y')",
    "insert into d (v) select b from t returning *",
    "insert into k values (1, 'a') on conflict (i) do update set j = excluded.j",
    "insert or replace into k values (2, 'b')",
    "update t set a = 5 where b = 'x1'",
    "delete from t",
    "delete from other.main.t",
    "truncate k",
    "merge into k using t on k.i = t.a when matched then delete when not matched then insert values (t.a + 10, t.b)",
    "select nextval('s')",
    "select setval('s', 99)",
    "from range(nextval('s'))",
    "select counted(nextval('s'))",
    "from series(nextval('s'))",
    "insert into aside.u values (2)",
]
MAKING = [
    "create table n as select 1 as a",
    "create or replace table t (i int)",
    "create view n as select * from t",
    "create or replace view w as select 2",
    "create macro n() as 1",
    "create or replace macro plus(x) as x + 2",
    "create sequence n",
    "create schema n",
    "create index n on t (a)",
    "create type n as enum ('a')",
    "create table n as pivot t on b using sum(a)",
    "alter table t add column z int",
    "alter table t rename to tt",
    "comment on table t is 'x'",
    "drop table t",
    "drop view w",
    "drop sequence s cascade",
    "drop schema aside cascade",
    "vacuum",
    "create trigger n after insert on t for each statement insert into k values (3, 'c')",
]
REACHING = [
    "copy t to '{out}/x.csv'",
    "copy (select 1) to '{own}/local.data' (format csv, use_tmp_file false)",
    "copy (select 1) to '{own}/new.csv'",
    "copy t from '{out}/secret.csv'",
    "select * from read_csv('{out}/secret.csv')",
    "select content from read_text('{own}/local.data')",
    "from '{out}/secret.csv'",
    'from "{own}/*"',
    "from glob('{out}/*')",
    "select * from query('delete from t')",
    "select * from query_table('{out}/secret.csv')",
    "from histogram_values('{out}/secret.csv', a)",
    "select * from json_execute_serialized_sql(json_serialize_sql('from t'))",
    "select json_serialize_plan('from range(nextval(''s''))')",
    "select current_setting('temp_directory')",
    "select * from duckdb_settings()",
    "show temp_directory",
    "export database '{out}/all'",
    "import database '{out}/all'",
    "attach '{out}/x.duckdb' as n",
    "attach ':memory:' as n",
    "detach other",
    "checkpoint",
    "force checkpoint",
    "from checkpoint()",
    "call force_checkpoint()",
    "vacuum into '{out}/x'",
    "load json",
    "install httpfs",
    "pragma enable_profiling",
    "pragma profiling_output = '{out}/x'",
    "call enable_logging()",
    "select write_log('x')",
    "set threads = 3",
    "set temp_directory = '{out}'",
    "reset allowed_directories",
    "create secret n (type s3)",
    "create persistent secret n (type s3)",
    "prepare p as delete from t",
    "execute p",
    "drop schema deltastream.sys cascade",
    "create table deltastream.sys.n (i int)",
    "drop view deltastream.sys.tables",
    'insert into st.main."a b.csv" values (2)',
    "create table st.main.n (i int)",
    "copy from database other to local",
    "use system",
]
AROUND = [
    "explain {}",
    "explain analyze {}",
    "explain (analyze, format json) {}",
    "explain (format json) {}",
    "with q as ({}) select 1",
    "with q as ({}), p as (select 1) select * from q, p",
    "with q as materialized ({}) select * from q",
    "prepare p as {}",
    "begin; {}",
    "{}; {}",
    "select 1; {}",
    "/* {} */ select 1",
    "/* /* */ */ {}",
    "-- {}\nselect 1",
    "{};",
    "from query($q${}$q$)",
    "call query($q${}$q$)",
]
"""What may stand around any statement."""

AROUND_ROWS = [
    "select * from ({})",
    "select exists ({})",
    "select ({})",
    "select typeof(({}))",
    "from t where a in ({})",
    "describe {}",
    "summarize {}",
    "from (describe {})",
    "create table made as {}",
    "create temp table made as {}",
    "create view made as {}",
    "create temp view made as {}",
    "create macro made() as table {}",
    "create macro made() as ({})",
    "create type made as enum ({})",
    "insert into t {}",
    "update t set a = ({})",
    "delete from t where a = ({})",
    "merge into k using ({}) q on false when matched then delete",
    "set variable z = ({})",
    "copy ({}) to '{{out}}/y.csv'",
    "copy ({}) to stdout",
    "pivot ({}) on a using count(*)",
    "create table made as pivot ({}) on a using count(*)",
    "select * from t limit ({})",
    "({})",
    "create table made (i int default ({}))",
    "create table made (i int, check (({}) is null))",
    "create index made on t (({}))",
]
"""What may stand around a statement that gives rows."""

GIVING = ("select", "with", "from", "values", "describe", "summarize", "show", "pivot", "(")
BLANKS = [
    " ",
    "  ",
    "\n",
    "\t",
    "\r\n",
    "/**/",
    "/* x */",
    "/* /* y */ */",
    "-- z\n",
    "\u200b",
    "\u2060",
    "\ufeff",
    "\u00a0",
]

# A strategy takes longer to make than to draw from.
_CHANCE, _WAYS, _DIGITS = st.integers(0, 3), st.integers(0, 4), st.integers(0, 9)
_STATEMENTS = st.sampled_from(READING + WRITING * 2 + MAKING + REACHING)
_DEPTHS = st.sampled_from([0, 0, 1, 1, 1, 2, 2, 3])
_AROUND, _AROUND_ROWS = st.sampled_from(AROUND), st.sampled_from(AROUND + AROUND_ROWS)
_ENDINGS = st.sampled_from(["", "", ";", " -- end", "/* end */", "\u200b"])
_blanks = st.one_of(
    *[st.just(" ")] * 3,
    *[st.lists(st.sampled_from(BLANKS), min_size=1, max_size=3).map("".join)] * 6,
    st.characters(max_codepoint=0xFFFF).filter(lambda sign: not sign.isalnum()),
)


def _pieces(sql: str) -> list[tuple[str, str]]:
    """The words of a statement, each with the name of its kind."""
    encoded = sql.encode()
    found = duckdb.tokenize(sql)
    ends = [start for start, _ in found[1:]] + [len(encoded)]
    return [
        (encoded[start:end].decode("utf-8", "replace").strip(), kind.name)
        for (start, kind), end in zip(found, ends, strict=True)
    ]


@st.composite
def _written(draw: st.DrawFn, sql: str) -> str:
    """A statement with other blanks, comments, quotes and case."""
    pieces = _pieces(sql)
    if len(pieces) > 60 or draw(_CHANCE) == 0:
        return sql
    hidden = draw(st.integers(0, len(pieces)))
    parts = []
    for number, (piece, kind) in enumerate(pieces):
        text = piece
        if number == hidden:
            match draw(_WAYS):
                case 0:
                    text = f'"{piece}"' if kind == "identifier" else piece
                case 1:
                    text = f"$${piece[1:-1]}$$" if kind.startswith("string") and piece.startswith("'") else piece
                case 2:
                    text = f"e{piece}" if piece.startswith("'") else piece
                case 3:
                    text = piece.upper()
                case 4:
                    text = piece.swapcase()
        blank = draw(_blanks) if number in {hidden, hidden + 1} else " "
        parts.append(blank + text)
    return "".join(parts) + draw(_ENDINGS)


@st.composite
def statements(draw: st.DrawFn) -> str:
    """SQL with {own} and {out} in place of the folders."""
    sql = draw(_STATEMENTS)
    for _ in range(draw(_DEPTHS)):
        rows = sql.startswith(GIVING) or draw(_DIGITS) == 0
        around = draw(_AROUND_ROWS if rows else _AROUND).replace("{{out}}", "<out>")
        sql = around.replace("{}", sql).replace("<out>", "{out}")
    return draw(_written(sql))
