"""The shell on Spark Connect: the program, the service in it, and a real server."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conftest import Program
from tests.service.spark import needs_spark

pytestmark = needs_spark

BOTH = "select 1 as a, true as b, map('k', array(1, null)) as m;\nselect * from nowhere;\n"
ROWS = 'a,b,m\n1,true,"{""k"":[1,null]}"\n'


def test_rows_and_errors_are_the_same_three_ways(program: Program, spark_url: str, tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_text(BOTH)
    one, other = BOTH.splitlines()
    ways = [
        program(spark_url, "--format", "csv", "-c", one, "-c", other),
        program(spark_url, "--format", "csv", "-f", "s.sql"),
        program(spark_url, "--format", "csv", stdin=BOTH),
    ]
    for done in ways:
        assert done.out == ROWS and done.code == 1
        assert "error[42P01]: " in done.err
        assert re.search(r"\n \d \| select \* from nowhere\n   \| +\^{7}\n", done.err), done.err


def test_relations_of_the_session_are_described(program: Program, spark_url: str) -> None:
    script = (
        "create schema if not exists of_shell;\nuse schema of_shell;\ndrop table if exists t;\n"
        "create table t (a int not null, d decimal(12,2), m map<string,int>);\n"
        "create temp view passing as select 1 as one;\n\\d t\n\\dt\ndescribe relation columns passing;\n"
        "insert into t values (1, 2.5, map('k', 3));\nselect * from t;\n"
        "describe relation columns t;\ndrop table t;\n"
    )
    done = program(spark_url, "-q", "--format", "csv", stdin=script)
    assert "name,type" in done.out and 'd,"DECIMAL(12,2)"' in done.out, done
    assert 'a,d,m\n1,2.50,"{""k"":3}"\n' in done.out


def test_a_large_result_has_its_types_in_parquet(program: Program, spark_url: str, tmp_path: Path) -> None:
    import duckdb

    sql = (
        "select cast(id as int) as n, cast(id as decimal(12,2)) as d, cast(id as double) as f, true as b, "
        "date_add(date'2024-01-01', cast(id as int)) as t, X'00' as y, array(id) as l from range(60000)"
    )
    done = program(spark_url, "--format", "parquet", "-o", "rows.parquet", "-c", sql)
    assert done.code == 0, done
    made = duckdb.read_parquet(str(tmp_path / "rows.parquet"))
    expected = ["INTEGER", "DECIMAL(12,2)", "DOUBLE", "BOOLEAN", "DATE", "BLOB", "BIGINT[]"]
    assert [str(item) for item in made.types] == expected
    assert made.aggregate("count(*), sum(n), sum(d)").fetchall()[0][:2] == (60000, 59999 * 60000 // 2)


def test_a_large_result_is_written_as_csv(program: Program, spark_url: str, tmp_path: Path) -> None:
    text = "concat('name \"', cast(id as string), '\\\\,\\n')"
    sql = f"select id, {text} as s, nullif(id % 3, 0) as z from range(60000) order by id"
    assert program(spark_url, "--format", "csv", "-o", "rows.csv", "-c", sql).code == 0
    expected = "".join(f'{n},"name ""{n}\\,\n",{n % 3 or ""}\n' for n in range(60_000))
    assert (tmp_path / "rows.csv").read_text() == "id,s,z\n" + expected


def test_the_token_is_not_shown(program: Program, spark_url: str) -> None:
    url = spark_url.replace("127.0.0.1", "localhost") + ";token=sesame"
    done = program(url, "-c", "\\conninfo+", "-c", "list engines", "-c", "select nothing")
    assert "Spark Connect" in done.out + done.err and "sesame" not in done.out + done.err
    unreachable = program("sc://127.0.0.1:1;token=sesame", "-c", "select 1")
    assert unreachable.code != 0 and "sesame" not in unreachable.out + unreachable.err
    assert "cannot reach the Spark Connect server at 127.0.0.1:1: connection refused" in unreachable.err


def test_catalog_commands_tell_what_the_server_has_or_that_it_has_none(program: Program, spark_url: str) -> None:
    script = (
        "create schema if not exists of_catalog;\nuse schema of_catalog;\ndrop table if exists listed;\n"
        "create table listed (a int not null comment 'the a', d decimal(12,2));\n"
        "\\d listed\n\\dt\n\\df abs\n\\l\n\\dn\n"
        "\\schema listed\n\\di\n\\dT\n\\du\n\\dp\n\\sf abs\n\\d nowhere\n\\demo\ndrop table listed;\n"
    )
    done = program(spark_url, "-q", "--format", "csv", "--on-error", "continue", stdin=script)
    assert "name,type,nullable,comment\na,int,false,the a\n" in done.out
    assert "listed,table" in done.out and "\nof_catalog\n" in done.out and "CREATE TABLE" in done.out
    assert done.err.count("error[0A000]: ") == 5 and "42601" not in done.err, done.err
    assert 'no relation matches "nowhere"' in done.err and "this is Spark" in done.err
