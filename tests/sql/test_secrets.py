"""Secrets in statements: a table of their positions, and any secret at each of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sqlshell.client.http import trace
from sqlshell.context import SessionContext
from sqlshell.origin import Trusted
from sqlshell.shell.interactive.history import FileHistory
from sqlshell.shell.records.journal import Journal
from sqlshell.shell.records.run_records import Transcript
from sqlshell.shell.records.saved_queries import SavedQueries
from sqlshell.shell.running.statement import Running
from sqlshell.sql.analysis.secrets import (
    NOT_RECORDED,
    names_secret,
    redacted,
    removed_values,
    shown_options,
    without_values,
)
from sqlshell.sql.script.items import Statement
from sqlshell.sql.script.splitting import split

FORMS = (
    "create secret s (type s3, key_id 'k', secret '@')",
    "create persistent secret s in file (type http, bearer_token '@')",
    "create or replace secret (type gcs, secret $$@$$)",
    "create secret s (type azure, connection_string 'AccountName=a;AccountKey=@')",
    "create user u password '@'",
    "create user u with encrypted password '@' valid until '2030-01-01'",
    "create user u identified by '@'",
    "create user u identified with sha256_password by '@'",
    "create user 'u' identified by password '@'",
    "alter user u set password = '@'",
    "alter role r password '@' login",
    "set password for u = password('@')",
    "set password = '@'",
    "set api_key to '@'",
    "set http_proxy_password = '@'",
    "set access_key_id = '@'",
    "attach 'f.db' as f (encryption_key '@')",
    "attach 'f.db' as f (type duckdb, ENCRYPTION_KEY '@', block_size 16384)",
    "pragma add_parquet_key('key128', '@')  -- key_material",
    "copy t to 'f' (encryption_config {footer_key: 'k', api_key: '@'})",
    "attach 'host=h user=u password=@ dbname=d' as pg (type postgres)",
    "attach 'host=h pwd = @' as pg",
    "attach 'postgresql://u:@@h:5432/d?sslmode=require' as pg",
    'attach "postgresql://u:@@h/d" as pg',
    "attach 'mysql://h/d?user=u&password=@' as m",
    "attach 'u:@@tcp(h:3306)/d' as m",
    "copy t from 'https://@@h/f.csv'",
    "copy t from 'https://h/f.csv?sig=@&se=1'",
    "copy t from 's3://b/k' credentials (aws_key_id='k' aws_secret_key='@')",
    "copy t from 's3://b/k' access_key_id '@' secret_access_key '@'",
    "create stage s url='azure://x' credentials=(azure_sas_token='?sv=1&sig=@')",
    "create store k with ('type' = kafka, 'kafka.sasl.password' = '@')",
    "create store k with ('kafka.sasl.username' = 'u', 'kafka.sasl.password'='@', 'uris' = 'h:9092')",
    "create store k with ('sasl.jaas.config' = 'x.PlainLoginModule required username=\"u\" password=\"@\";')",
    "create store k with ('tls.client.key' = '@')",
    "create store k with ('kafka.ssl.key' = '@', 'type' = kafka)",
    "create store k with ('ssl.keystore.key' = '@')",
    "create store k with ('basic.auth.user.info' = 'u:@')",
    "create store k with ('schema.registry.auth.header' = '@')",
    "create store k with (\"kinesis.secret_access_key\" = '@')",
    "create store k with (password = '@')",
    "create store k with ('x.password' =\n  '@'\n)",
    "create store k with ('x.password'/* why */='@')",
    "update store k with ('snowflake.client.key_passphrase' = '@')",
    "create secret_store s with ('x.secret' = 'a' '@' 'b')",
    "alter user u password 'a' '@'",
    "alter user u password 'a'\n'@'",
    "set password = 'a' || '@'",
    "set password = concat('a', '@')",
    "set password = decode(concat('a', 'b', '@'), 'hex')",
    "set password = E'@'",
    "set password = U&'@' uescape '!'",
    "set password = $$@$$",
    "set password = $tag$@$tag$",
    "set password = N'@'",
    "alter user u password 'my password is the token @'",
    'select \'{"user": "u", "password": "@"}\'::json',
    'select \'{"a": {"api_key" : ["@"]}}\'',
    'select $${"token": "@"}$$',
    "insert into config values ('<password>@</password>')",
    "insert into users (name, password) values ('bob', '@')",
    "insert into users (name, password) select 'bob', '@'",
    "insert into api_tokens values (1, '@')",
    "insert into config (k, v) values ('kafka.sasl.password', '@')",
    "merge into users using (values ('bob', '@')) v(n, password) on true when not matched then insert values (n, '@')",
    "update users set password = '@' where name = 'bob'",
    "update users set name = 'a', password = crypt('@', gen_salt('bf'))",
    "select * from users where token = '@'",
    "select * from users where token in ('a', '@')",
    "select * from users where password like '@%'",
    "select * from users where '@' = password  -- password = '@'",
    "select set_config('app.password', '@', true)",
    "select json_object('password', '@')",
    "select map {'token': '@'}",
    "select {token: '@'}",
    "select login(password := '@')",
    "select login(password => '@')",
    "call connect(token => '@')",
    "select dblink_connect('host=h password=@')",
    "select dblink('postgres://u:@@h/d', 'select 1')",
    "set \"s3_secret_access_key\" = '@'",
    "select 1 -- password: '@'",
    "select 1 /* token = @ */",
    "select 1 /* https://u:@@h/ */",
    "create user u password '@",
    "create secret s (type s3, secret '@",
    "set password = $$@",
    "select 1; set password = '@'; select 2",
    "begin application a set password = '@'; end application",
    "\\set password '@'",
    "\\set password @",
    "\\c https://:@@h/v2",
    "\\c https://u:@@h/v2?sessionID=1",
    "\\local attach 'postgres://u:@@h/d' as pg",
    "\\local create secret s (type s3, secret '@')",
    "\\set q 'create secret s (type s3, secret ''@'')'",
    "\\set q 'alter user u password ''@'''",
    "\\n+ q2 'create user u password ''@'''",
    "\\if '@' = :'password'",
    "\\if @ = :'password'",
    "\\trust pw '@'",
    "\\set pw '@'",
    "\\set q 'it\\'s' password '@'",
    '\\! echo curl -H "Authorization: Bearer @"',
    "\\set h `curl -H 'Authorization: Bearer @' h`",
    "\\echo `PGPASSWORD=@ true`",
    "\\set q `vault kv put secret/x v=@`",
    "\\set x \"create user u password '@'\"",
    "create connection c with ('pw'='@')",
    "create connection c with ('auth'='@')",
    "copy t to 'o.parquet' (encryption_config {footer_key: '@'})",
    "copy t to 'o.parquet' (encryption_config {my_key: '@'})",
    "create store s with ('x_key' = '@')",
    "pragma add_parquet_key('k', '@')",
    "select pgp_sym_encrypt('b','@')",
    "select encrypt('a','@')",
    "select hmac('x','@','sha256')",
    "select crypt('@', gen_salt('bf'))",
    "select aes_decrypt(a, '@')",
    "select case when '@' = password then 1 end",
    "select * from t where '@' = t.password",
    "select * from t where 'a' || '@' = upper(t.password)",
    "select * from t where '@' in (password, y)",
    "select * from t where concat('a', '@') <> password",
    "select '@' as password",
    "select '@'::varchar password",
    "select * from t where password is not distinct from '@'",
    "\\c https//:@@h/v2",
    "\\c https//@@h/v2",
    "\\c :@@h/v2",
    "with c(password) as (values ('@')) select * from c",
    "with c(password) as (select '@') select * from c",
    "select * from (values ('bob', '@')) t(name, password)",
    "create connection c with ('webhook'='https://h/@')",
)
assert len(FORMS) >= 60


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_removed_values(form: str) -> None:
    for sql in (form, form.upper(), f"{form};\n"):
        told = redacted(sql.replace("@", "hunter2", 1) if "@@" in sql else sql.replace("@", "hunter2"))
        assert "hunter2" not in told.lower(), told
        assert "***" in told


REDACTED = json.loads(Path(__file__).with_name("redacted.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("sql", REDACTED)
def test_what_stands_around_a_secret_is_kept(sql: str) -> None:
    assert redacted(sql) == REDACTED[sql]


def test_every_form_has_what_becomes_of_it() -> None:
    for form in FORMS:
        assert form.replace("@", "hunter2", 1 if "@@" in form else -1) in REDACTED


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("near 'hunter2'", "near '***'"),
        ("near hunter2 and hunter2", "near *** and ***"),
        ("value abc, 'abc'", "value abc, '***'"),
        ('syntax error at or near "abc"', "syntax error at or near '***'"),
        ("syntax error at hunter2\nLINE 1: set password = 'hunter2'\n        ^", "syntax error at ***"),
        ("nothing of it\nline 1", "nothing of it\nline 1"),
    ],
)
def test_a_message_is_shown_without_the_values_of_its_statement(told: str, shown: str) -> None:
    assert without_values(told, ["abc", "hunter2"]) == shown


def test_a_message_of_a_statement_with_many_values_is_not_shown() -> None:
    assert without_values("near x", [f"value-{number}" for number in range(50)]) == "near x"
    assert without_values("near x", [f"value-{number}" for number in range(51)]) == NOT_RECORDED


@pytest.mark.parametrize("begun", ["'SEKRET17", "E'SEKRET17", "$$SEKRET17", "$x$SEKRET17", '"SEKRET17'])
def test_the_value_of_an_unfinished_string_is_removed_whole(begun: str) -> None:
    sql = f"create secret z18 with ('type' = generic_string, 'secret_string' = {begun}"
    values = removed_values(sql, redacted(sql))
    assert "17" not in without_values(f'syntax error at or near "{begun}"', values)


def test_the_values_that_were_removed_values() -> None:
    sql = "create user u with (a = 'kept', password = 'it''s', 'b.password' = hunter2)"
    assert removed_values(sql, redacted(sql)) == ["kept", "it's", "it''s", "hunter2"]
    assert removed_values("select 'a' = 1", "select 'a' = 1") == []


def test_options_as_they_are_shown() -> None:
    given = {"type": "kafka", "uris": "h:9092", "x.password": "", "x_key": "v", "url": "https://u:p@h/", "topic": "a@b"}
    shown = shown_options(given)
    assert list(shown) == list(given)
    assert [name for name, value in shown.items() if value == "***"] == ["x.password", "x_key", "url"]
    assert {name: value for name, value in shown.items() if value != "***"}.items() <= given.items()


SECRETS = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="'\"\\$<>{}()[]%/:@?&;=`,*#"), min_size=8
)


@given(form=st.sampled_from(FORMS), secret=SECRETS)
@example(form=FORMS[0], secret="password")
@example(form="create user u password '@'", secret="and-from-where")
@example(form="\\if @ = :'password'", secret="000000--")
@example(form="\\if @ = :'password'", secret="00/*0000")
@example(form="copy t from 'https://h/f.csv?sig=@&se=1'", secret="\x850000000")
@settings(max_examples=80, deadline=None)
def test_no_secret_reaches_a_file(tmp_path_factory: pytest.TempPathFactory, form: str, secret: str) -> None:
    """The history, the journal and the transcript, after statements that ended in any way; and what -vv shows."""
    if any(secret.lower() in form.lower().replace("@", "") for form in (form, "***")):
        return
    secret = f"{secret}~Qx"
    folder = tmp_path_factory.mktemp("kept")
    sql = form.replace("@", secret, 1) if "@@" in form else form.replace("@", secret)
    history = FileHistory(folder / "history", print)
    journal = Journal(folder / "journal.db", "t", "", print)
    transcript = Transcript(Trusted(str(folder / "transcript")))
    for number, state in enumerate(("00000", "42601", "57014")):
        history.store_string(sql)
        journal.record_start(f"{number}", sql, SessionContext(), 0)
        journal.record_end(f"{number}", state, f"syntax error near {sql}")
        transcript.write(Running(statement=sql), redacted(sql), 0.0)
    journal.close()
    transcript.close()
    for path in folder.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path.name
            assert json.dumps(secret)[1:-1].encode() not in path.read_bytes(), path.name
    for body in (json.dumps({"statement": sql}), json.dumps({"statements": [sql, {"statement": sql}]}), sql):
        assert secret not in trace.shown_body(body.encode(), redacted)


SUSPICIOUS = {
    "select token from t where user = 'bob'": "select token from t where user = '***'",
    "select password_hash, 'x' as label from t where id = 3 limit 5": (
        "select password_hash, '***' as label from t where id = 3 limit 5"
    ),
    "select password_hash from users where id = 12345": "select password_hash from users where id = ***",
    "select u.name from tokens t join users u using (id) where u.name = 'bob'": (
        "select u.name from tokens t join users u using (id) where u.name = '***'"
    ),
    "create table tokens (id int, label varchar(255) default 'x')": (
        "create table tokens (id int, label varchar(255) default '***')"
    ),
    "select 'the secret garden', 'Burnett'": "select '***', '***'",
    "select 'x' -- the token comes later": "select '***' /* *** */ ",
    "where name in ('password', 'token')": "where name in ('***', '***')",
    'select t."a b", "password" from "my table" t where "c d" > 3': (
        'select t."a b", "password" from "my table" t where "c d" > 3'
    ),
    'insert into t ("a b", "password") values ("x", 3)': 'insert into t ("a b", "password") values ("***", 3)',
    "select pin from t where pin = 123": "select pin from t where pin = 123",
    "select 0x1F, 0xFFFF as token": "select 0***, 0*** as token",
    "create store k with ('type' = kafka, 'pin' = 'a', 'uris' = 'b')": (
        "create store k with ('type' = kafka, 'pin' = '***', 'uris' = '***')"
    ),
    "set user_pin = abc": "set user_pin = ***",
    "\\echo 'select token from t'": "\\echo ***",
    "update secret s with (secret_string = bare_value)": "update secret s with (***)",
    "explain create secret s (key_id bare_value)": "explain create secret s (***)",
    "select 1; set password = 'a'; select 'b'": "select 1; set password = '***'; select '***'",
}
"""Statements that name a secret: their values are removed, the names of tables, columns and options stay."""


@pytest.mark.parametrize("sql", SUSPICIOUS)
def test_a_statement_that_names_a_secret_keeps_none_of_its_values(sql: str) -> None:
    assert redacted(sql) == SUSPICIOUS[sql]


@pytest.mark.parametrize(
    "sql",
    [
        "select map(['password'], ['hunter2'])",
        "select 'password' as k, 'hunter2' as v",
        "select 'hunter2' password",
        "select 'hunter2' as userPwd",
        "select 'hunter2' as \"my password\"",
        "select x'ab', 'hunter2' from tokens",
        "select [{'k': 'password', 'v': 'hunter2'}]",
        "select 'hunter2' -- the password",
        "values ('hunter2', 'signature')",
        "select 'hunter2' as pin",
        'create user u password "hunter2"',
        'insert into users (name, password) values ("bob", "hunter2")',
        "create store s with ('x.pin' = 'hunter2')",
        "\\echo 'hunter2' 'my password'",
    ],
)
def test_a_secret_is_removed_wherever_its_name_stands(sql: str) -> None:
    assert "hunter2" not in redacted(sql)
    assert names_secret(sql)


HARMLESS = (
    "select * from users where name = 'bob' and age > 3",
    "select tokenize('some text', 'english')",
    "select key, value from t where key = 'a'",
    "create table t (id int primary key, name text default 'key')",
    "select '12:30', 'a@b.c', 'https://host:80/p?q=1'",
    "select * from t where compass = 'north' and passenger = 'x'",
    "with ('topic' = 't', 'key.format' = 'json', 'value.format' = 'json')",
    "copy t to 'f.csv' (format csv, delimiter ',')",
    "select * from auth.users where name = 'bob'",
    "create table auth.users (name text default 'x')",
    "select partition_key from t where partition_key = 'x'",
    "select {'sort_key': 'a'}",
    "select * from t where business_key = 'A1'",
    "\\set x 'hello'",
    "\\i 'my file.sql'",
    "\\echo `date +%s`",
    "\\! ls -la",
    "\\! psql -p 5432 -U bob",
    "\\pset null 'x'",
    "\\copy t to 'x.csv'",
    "select monkey from zoo where monkey = 'a'",
    "with ('topic'='t', 'key.format'='json', 'timestamp'='x')",
    "\\d keys",
    "create table t(key text primary key, v text default 'v')",
    "select * from a join b on a.user_key = b.user_key where a.x = 'y'",
    "\\set user_key 'x'",
)


@pytest.mark.parametrize("sql", HARMLESS)
def test_an_ordinary_statement_stays_as_it_is(sql: str) -> None:
    assert redacted(sql) == sql


def test_ordinary_statements_seldom_lose_their_literals() -> None:
    """Of the examples of README and docs, and of the texts that tests split, fewer than one in a hundred."""
    root = Path(__file__).parents[2]
    texts = [
        block
        for path in (root / "README.md", *root.glob("docs/*.md"))
        for block in re.findall(r"```(?:sql|console)?\n(.*?)```|`([^`\n]*'[^`\n]*)`", path.read_text(), re.S)
    ]
    found = [item for block in texts for item in split("".join(block), commands=False)]
    statements = [item.text for item in found if isinstance(item, Statement)]
    statements += [line.split(" => ")[0] for line in (root / "tests/sql/effects.txt").read_text().splitlines()]
    named = re.compile("password|secret|token|auth", re.I)
    # A table of a page is no statement.
    literal = [sql for sql in statements if "'" in sql and "\n|" not in sql and not named.search(sql)]
    assert len(literal) > 40
    assert [sql for sql in literal if redacted(sql) != sql] == []


def test_a_query_with_a_secret_gets_no_name(tmp_path: Path) -> None:
    from sqlshell.errors import UsageError

    queries = SavedQueries(tmp_path / "queries.toml")
    with pytest.raises(UsageError, match="secret"):
        queries.save("q", "create user u password 'hunter2'")
    assert not (tmp_path / "queries.toml").exists()
    queries.save("q", "alter user u set password = :'new_password'")
    assert queries.text("q") == "alter user u set password = :'new_password'"
    assert (tmp_path / "queries.toml").stat().st_mode & 0o777 == 0o600


def test_a_secret_of_a_statement_over_several_entries_is_not_kept(tmp_path: Path) -> None:
    before = [""]
    history = FileHistory(tmp_path / "history", print, unfinished=lambda: before[0])
    lines = ["create user u", "password", "'hunter2';", "select 'kept';", "set password = 'a", "hunter3", "hunter4';"]
    for number, line in enumerate(lines):
        start = 0 if number < 3 else number if number == 3 else 4
        before[0] = "\n".join(lines[start:number])
        history.store_string(line)
    kept = (tmp_path / "history").read_text()
    assert "hunter" not in kept
    assert "create user u" in kept
    assert "select 'kept'" in kept


@pytest.mark.parametrize("text", ["\u017fecret = 'a'", "to\u212aen = 'a'", "SECRET = '\xe9'"])
def test_names_are_found_in_letters_that_only_unicode_folds(text: str) -> None:
    assert names_secret(text)
    assert redacted(text) != text


@pytest.mark.parametrize(
    "sql",
    [
        "select * from t where password = {}",
        "select * from t where password > {}",
        "select * from t where password is {}",
        "select * from t where password in ({})",
        "alter user u set password to {}",
        "create user u identified by {}",
    ],
)
def test_a_reference_to_a_variable_is_no_secret(sql: str) -> None:
    assert redacted(sql.format(":'pw'")) == sql.format(":'pw'")
    assert "hush" not in redacted(sql.format("'hush'"))


def test_the_bound_of_a_slice_is_no_reference_to_a_variable() -> None:
    assert "hush" not in redacted("select * from t where password = x[1:'hush']")


@pytest.mark.parametrize("start", ["create secret s with (", "password values ("])
def test_a_secret_behind_very_many_brackets_is_removed(start: str) -> None:
    sql = start + "[" * 65_000 + "'hush', \"hush\"" * 1000
    assert "hush" not in redacted(sql)
    assert "hush" in removed_values(sql, redacted(sql))
