"""The kind of a statement: whether it only reads, and which secrets and files it names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlshell.origin import Trusted, trusted_text
from sqlshell.sql.analysis.files import named_files, names_file
from sqlshell.sql.analysis.kinds import is_repeatable, verb
from sqlshell.sql.analysis.secrets import redacted, redactor
from sqlshell.sql.analysis.tokens import tokens


@pytest.mark.parametrize(
    ("sql", "word", "reads"),
    [
        ("select 1", "SELECT", True),
        ("  -- insert into t\n/* drop /* nested */ */ SELECT 1", "SELECT", True),
        ("(((select 1)))", "SELECT", True),
        ("values (1)", "VALUES", True),
        ("from t", "FROM", True),
        ("table t", "TABLE", True),
        ("show tables", "SHOW", True),
        ("list streams in database d", "LIST", True),
        ("describe query history 1", "DESCRIBE", True),
        ("print entity e from beginning", "PRINT", True),
        ("explain select 1", "EXPLAIN", True),
        ("explain (format json) select 1", "EXPLAIN", True),
        ("explain analyze select 1", "EXPLAIN", True),
        ("explain (verbose, format json, buffers, timing, analyze) select 1", "EXPLAIN", True),
        ("explain (verbose, format json, buffers, timing, analyze) delete from t", "EXPLAIN", False),
        ("explain verbose analyze with a as (delete from t returning *) table a", "EXPLAIN", False),
        ("explain (analyze) execute p", "EXPLAIN", False),
        ("explain (analyze) frobnicate", "EXPLAIN", False),
        ("explain (analyze, verbose) insert into t values (1)", "EXPLAIN", False),
        ("explain insert into t values (1)", "EXPLAIN", True),
        ("select 'insert into t'", "SELECT", True),
        ('select "insert" from "update"', "SELECT", True),
        ("select $$delete from t$$", "SELECT", True),
        ("select replace(a, 'b', 'c') from t", "SELECT", True),
        ("select a as delete from t", "SELECT", True),
        ("select t.update from t", "SELECT", True),
        ("select * into u from t", "SELECT", False),
        ("select nextval('s')", "SELECT", False),
        ("select * from t for update", "SELECT", True),
        ("select my_function(1)", "SELECT", False),
        ('select s.upper(a), "upper"(b) from t', "SELECT", True),
        ("select 1; delete from t", "SELECT", False),
        ("select 1;", "SELECT", True),
        ("with a as (select 1) select * from a", "SELECT", True),
        ("with a as (select 1), b as materialized (values (1, 2)) from b", "FROM", True),
        ("with recursive a as (select 1 union all select * from a) (select * from a)", "SELECT", True),
        ("with a as (select 1) insert into t select * from a", "INSERT", False),
        ("with a as (delete from t returning *) select * from a", "SELECT", False),
        ("with a as (select 1) update t set b = 1", "UPDATE", False),
        ("pivot t on a using count(*)", "PIVOT", True),
        ("with p as (from t) unpivot p on a into name n value v", "UNPIVOT", True),
        ("insert into t select 1", "INSERT", False),
        ("create table t as select 1", "CREATE", False),
        ("copy t to 'x'", "COPY", False),
        ("call f()", "CALL", False),
        ("use database d", "USE", False),
        ("terminate query 1", "TERMINATE", False),
        ("begin application a insert into t values (1); end application", "BEGIN", False),
        ("frobnicate", "FROBNICATE", False),
        ("", "", False),
        ("-- nothing", "", False),
        ("'select'", "", False),
    ],
)
def test_what_only_reads(sql: str, word: str, reads: bool) -> None:
    assert (verb(sql), is_repeatable(sql)) == (word, reads)


@given(st.text(alphabet="ab '\"`$;/*-\\\n(=é", max_size=40))
def test_tokens_take_any_text(sql: str) -> None:
    end = 0
    for token in tokens(sql):
        assert token.start >= end
        assert sql[token.start : token.end] == token.text
        end = token.end
    is_repeatable(sql)
    redacted(sql)
    named_files(trusted_text(Trusted(sql)))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 'x'", "select 'x'"),
        ("with ('password' = 'p')", "with ('password' = '***')"),
        ("with ('kafka.sasl.password'='a secret ''token''')", "with ('kafka.sasl.password'='***')"),
        ("with ('kafka.sasl.username' = 'me', 'uri' = 'u')", "with ('kafka.sasl.username' = 'me', 'uri' = 'u')"),
        ("set sasl_password = hunter2", "set sasl_password = ***"),
        ("with ('access_key_id' = \"AKIA\", 'n' = 5)", "with ('access_key_id' = \"***\", 'n' = 5)"),
        ("update store s with (kafka.sasl.password = 'p')", "update store s with (kafka.sasl.password = '***')"),
        ("create secret x with ('secret_string' = 'p');", "create secret x with (***);"),
        ("with ('uri' = 'u', 'sasl.jaas.config' = 'x;y')", "with ('uri' = '***', 'sasl.jaas.config' = '***')"),
        ("secret_access_key 'k', region 'r'", "secret_access_key '***', region '***'"),
        ("create user u password 'p'", "create user u password '***'"),
        ("identified by 'p' -- password", "identified by '***' /* *** */ "),
        ("set api_key to 'k'", "set api_key to '***'"),
        ("{token: $$t$$, b: 'c'}", "{token: '***', b: '***'}"),
        ("token => E'a\\'b'", "token => '***'"),
        ("where name in ('password', 'token')", "where name in ('***', '***')"),
        ("-- 'password' = 'x'", " /* *** */ "),
        ("select 1 -- don't say password = x\nfrom t", "select 1 /* *** */\nfrom t"),
        ("select /* token: abc /* in */ */ 1", "select /* *** */ 1"),
        ("select 1 -- the token comes later", "select 1 /* *** */ "),
        ("create secret x (type s3, secret 'topsecret2')", "create secret x (***)"),
        (
            "CREATE OR REPLACE TEMP SECRET (TYPE s3, KEY_ID bare, n 5); select (1)",
            "CREATE OR REPLACE TEMP SECRET (***); select (1)",
        ),
        ("create secret x with ('type' = t, 'secret_string' = \"v\", own = 'v')", "create secret x with (***)"),
        ("create secret x with ('own' = 'v')", "create secret x with (***)"),
        ("create store s with ('a.password' = v, 'b' = c)", "create store s with ('a.password' = ***, 'b' = c)"),
        (
            "update store s with ('a.password' = \"v\", 'b' = 1)",
            "update store s with ('a.password' = \"***\", 'b' = 1)",
        ),
        ("create secret s in file (type http, bearer f('a', 'b'), c 'd", "create secret s in file (***"),
        ("create table secret (a text default 'x')", "create table secret (***)"),
        ("secret 'my secret token'", "secret '***'"),
        ("attach 'host=h password=p' as pg", "attach '***' as pg"),
        ("attach 'postgres://u:p@h/d' as pg", "attach '***' as pg"),
        ('select \'{"api_key": "k"}\'', "select '***'"),
        ("select * from t where s like '%token=%'", "select * from t where s like '***'"),
        ("select 'https://host:80/p', t::text, 'a@b'", "select 'https://host:80/p', t::text, 'a@b'"),
        ("password = 'never closed", "password = '***'"),
    ],
)
def test_secrets_are_taken_out(sql: str, expected: str) -> None:
    assert redacted(sql) == expected


@pytest.mark.parametrize(
    ("sql", "sent", "paths"),
    [
        ("with ('file' = '@/a/b/f.jar')", "with ('file' = 'f.jar')", ("/a/b/f.jar",)),
        ("with ('FILE'='@f.jar', 'x' = '@d/y')", "with ('FILE'='f.jar', 'x' = 'y')", ("f.jar", "d/y")),
        (
            "create store s with ('type' = K, tls.ca_cert_file = '@ca.pem')",
            "create store s with ('type' = K, tls.ca_cert_file = 'ca.pem')",
            ("ca.pem",),
        ),
        (
            "update entity e with (a = '@x', b = f('@y', '@z'), \"c\" = '@v')",
            "update entity e with (a = 'x', b = f('@y', '@z'), \"c\" = 'v')",
            ("x", "v"),
        ),
        (
            "with ('password' = '@@dmin', 'user' = 'me@host', 'n' = 5)",
            "with ('password' = '@dmin', 'user' = 'me@host', 'n' = 5)",
            (),
        ),
        ("with ('a' = '@@@x')", "with ('a' = '@@x')", ()),
        (
            "select * from t with ('a' = '@b') where file = '@c'",
            "select * from t with ('a' = 'b') where file = '@c'",
            ("b",),
        ),
        ("update t set file = '@c'", "update t set file = '@c'", ()),
        ("with a as (select file = '@c') select 1", "with a as (select file = '@c') select 1", ()),
        ("with (file = '@o''brien.jar')", "with (file = 'o''brien.jar')", ("o'brien.jar",)),
        ("with ('file' = 'f.jar')", "with ('file' = 'f.jar')", ()),
        ("with ('file' = '@')", "with ('file' = '@')", ()),
        ("select '@file'", "select '@file'", ()),
        ("-- 'file' = '@x'", "-- 'file' = '@x'", ()),
        ("select $$'file' = '@x'$$", "select $$'file' = '@x'$$", ()),
        ("with ('file' = '@a'); x with ('file' = '@a')", "with ('file' = 'a'); x with ('file' = 'a')", ("a",)),
    ],
)
def test_files_that_a_statement_names(sql: str, sent: str, paths: tuple[str, ...]) -> None:
    found = named_files(trusted_text(Trusted(sql)))
    assert (found.sql, tuple(item.path for item in found.files)) == (sent, paths)


def test_further_names_of_secrets() -> None:
    sql = "with ('badge' = '1234', 'uri' = 'u')"
    assert redactor(["^badge$"])(sql) == "with ('badge' = '***', 'uri' = '***')"
    assert redactor([])(sql) == sql


def test_a_name_is_mentioned_as_a_string() -> None:
    assert names_file(trusted_text(Trusted("with ('file' = 'f.jar')")), "f.jar")
    assert not names_file(trusted_text(Trusted("select \"f.jar\" -- 'f.jar'")), "f.jar")
