"""A value from a service is data: it cannot name a file, command, target or setting, whatever its text and however it
was passed on. All commands of the registry are tested, so that new ones are covered; an audit hook of Python records
what is opened, run and connected to.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from sqlshell.context import SessionContext
from sqlshell.errors import UsageError
from sqlshell.launch.connector import Connector
from sqlshell.origin import Trusted, service_text, trusted_text
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.commands import BUILTIN, Command, table
from sqlshell.shell.commands.arguments import arguments, commands_named
from sqlshell.shell.commands.command import OPTIONS, Args, command, parse
from sqlshell.shell.commands.lexing import words
from sqlshell.shell.connection import Connection
from sqlshell.shell.interactive.editing.completer import ShellCompleter
from sqlshell.shell.scripts.conditions import CONDITION_COMMANDS
from sqlshell.shell.scripts.variables import CONTROL
from sqlshell.sql.analysis.files import named_files, names_file, refuse_files
from sqlshell.sql.completion.catalog import CachedCatalog, Catalog, Function, Relation
from sqlshell.sql.identifiers import literal
from sqlshell.sql.script.scanner import BackslashCommand
from sqlshell.sql.script.splitting import split
from sqlshell.sql.variables import substituted
from tests.commands.test_fuzz import Room, room
from tests.conftest import Program
from tests.shell.sessions import session

MARK = "pwned7f3a"
"""A word that nothing but a hostile value has."""
HOSTILE = (
    f"|touch {MARK}",
    f"$(touch {MARK})",
    f"`touch {MARK}`",
    f"; touch {MARK} #",
    f"' ; touch {MARK} ; '",
    f"/etc/{MARK}",
    f"~/.ssh/{MARK}",
    f"-rf {MARK}",
    f"--force {MARK}",
    f"a\n\\! touch {MARK}\n",
    f"select 1; drop table {MARK}",
    f"{MARK}.sql",
    f"@{MARK}.sql",
    f"https://{MARK}.invalid/v2",
    f"../{MARK}.csv",
)
PASSED_ON = (
    ":v",
    ":'v'",
    ':"v"',
    "a:v",
    ":v:v",
    "':v':v",
    ":same",
    ":longer",
    ":again",
    ":quoted",
    ":{?v}:v",
    ":LAST_ERROR_MESSAGE",
    ":LAST_STATEMENT_ID",
)
SENDING = {item.name for item in BUILTIN if item.sends}


class Watched:
    """What this process opened, ran, connected to and changed to while it is `on`, where it has the mark."""

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: Sequence[object]) -> None:
        if self.on and not event.startswith(("import", "compile", "exec", "object", "sys.")):
            told = repr(arguments)
            if MARK in told and "sqlite3" not in event:
                self.seen.append(f"{event}{told[:200]}")


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    hook = Watched()
    yield hook
    hook.on = False


def positions(item: Command) -> Iterator[tuple[str, list[str]]]:
    """Each argument of a command by its word in the usage, with fillers for those before it."""
    words = [word for word in item.usage.split() if word != OPTIONS]
    before: list[str] = []
    for word in words:
        name = word.strip("[]").removesuffix("...")
        yield name, list(before)
        before.append(name.split("|")[0] if "|" in name else "1" if name in {"TIMES", "SECONDS", "COUNT"} else "x")


async def passed_on(here: Room, value: str) -> None:
    """Have a service's value in `v`, and in other variables that were made of it."""
    variables = here.shell.variables
    await here.enter(f"select {literal(value)} as v \\gset\n")
    assert variables["v"].text == value
    await here.enter("\\set same :v\n\\set longer x:v\n\\set again :same\n\\set quoted :'v'\n")
    await here.enter(f"select nothing_{MARK};\n")
    assert variables["same"].text == variables["again"].text == value
    assert MARK in variables["LAST_ERROR_MESSAGE"].text


def text_of(item: Command, name: str, before: Sequence[str], reference: str) -> str:
    typed = name if name[0] in ".!" and len(name) > 1 else f"\\{name}"
    line = f"{typed} {' '.join([*before, reference])}"
    if item.name in SENDING:
        return f"select 1 as a {line}\n\\r\n"
    if item.name in CONDITION_COMMANDS:
        return f"{line}\n\\endif\n" if item.name == "if" else f"\\if 0\n{line}\n\\endif\n"
    return f"{line}\n"


@pytest.mark.parametrize("interactive", [False, True])
def test_no_value_of_a_service_is_opened_run_or_connected_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: Watched, interactive: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.setenv("TERM", "dumb")
    (tmp_path / f"{MARK}.sql").write_text(f"\\! touch {MARK}\nselect '{MARK}' as included;\n")
    (tmp_path / "x").write_text("select 1;\n")
    chance = random.Random(20_261_121 + interactive)
    commands = table(BUILTIN)
    # An alias is the same command; one of another shell is read otherwise.
    asked = [(name, item) for name, item in commands.items() if item.name != "q" and not name.endswith("+")]
    asked = [(name, item) for name, item in asked if name == item.name or name[0] in ".!"]

    async def work() -> None:
        async with room(tmp_path, interactive=interactive) as here:
            shell = here.shell

            async def connect(connector: Connector, target: Trusted, present: Connection) -> Connection:
                watched.seen += [target] if MARK in target else []
                raise UsageError("there is one target")

            async def answer(question: str, *, keys: str = "") -> str:
                return "own"

            monkeypatch.setattr(Connector, "connect", connect)
            here.front_end.ask = answer
            settings = {name: getattr(shell.session.options, name) for name in ("on_error", "prompt", "title", "null")}
            for value in HOSTILE:
                watched.on = False
                await passed_on(here, value)
                watched.on = True
                for name, item in asked:
                    for word, before in positions(item):
                        # How often a place is tried: what is data asks the service.
                        if chance.random() < (0.05 if word in item.data else 0.2 if interactive else 0.4):
                            reference = chance.choice((":v", *PASSED_ON))
                            await here.enter(text_of(item, name, before, reference))
                            assert not watched.seen, (name, word, reference, value)
                    if OPTIONS in item.usage:
                        await here.enter(f"select 1 as a \\{name} (null=:v)\n\\r\n")
                await here.enter(f"\\! true :v\n\\o\n\\tee\n\\log\n\\transcript\n\\unset x\n\\cd {tmp_path}\n")
            watched.on = False
            assert {name: getattr(shell.session.options, name) for name in settings} == settings
            assert not here.bugs, here.bugs

    asyncio.run(work())
    assert sorted(path.name for path in tmp_path.iterdir() if MARK in path.name) == [f"{MARK}.sql"]
    assert not (tmp_path.parent / f"{MARK}.csv").exists()


@command("fresh", "FILE [NAME] [WORD...]", data=("WORD",))
async def fresh(shell: CommandShell, args: Args) -> None:
    """A command that nobody has thought about."""


@pytest.mark.parametrize("reference", [":v", ":'v'", ':"v"', "a:v", ":v:o"])
def test_an_argument_is_the_persons_own_unless_the_command_takes_data(reference: str) -> None:
    values = {"v": service_text("x", ":v"), "o": trusted_text(Trusted("y"))}
    for item in (*BUILTIN, fresh):
        if item.usage in {"", "[TEXT...]"} or item.verbatim:
            continue
        for word, before in positions(item):
            text = Trusted(" ".join([*before, reference]))
            if word in item.data:
                args = parse(item.name, item.usage, text, values, data=item.data)
                assert args.texts[-1].foreign
                with pytest.raises(UsageError, match="came from the service"):
                    args.trusted(-1)
            else:
                with pytest.raises(UsageError, match="came from the service"):
                    parse(item.name, item.usage, text, values, data=item.data)


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("shell", ["echo :v", "printf %s :'v'", ":'v'", "cat < :'v'", "sh -c :'v'", "echo ':'v''"])
def test_in_backticks_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: Watched, value: str, shell: str
) -> None:
    monkeypatch.chdir(tmp_path)
    values = {"v": service_text(value, ":v")}
    watched.seen.clear()
    watched.on = True
    with pytest.raises(UsageError, match="came from the service"):
        parse("set", "[NAME] [VALUE...]", Trusted(f"`{shell}`"), values, data=("NAME",))
    watched.on = False
    assert not watched.seen
    assert list(tmp_path.iterdir()) == []


FILES = f"{MARK}.csv"
OPENING = (
    "select * from :'v'",
    'select * from :"v"',
    "select * from :v",
    "from :'v'",
    "select * from range(1) t, :'v'",
    "select * from range(1) t join :'v' on true",
    "select * from (select * from :'v')",
    "select * from values (1) t, :'v'",
    "from t: :'v'",
    "delete from made using :'v'",
    "select * from (made join :'v' on true)",
    "select * from ((:'v'))",
    "select * from reads(:'v')",
    "select content(:'v')",
    "select upper(content(:'v'))",
    "execute prepared(:'v')",
    "select name in (from :'v') from made",
    "select [(select count(*) from :'v')]",
    "table :'v'",
    "pivot :'v' on a",
    "select * from (:'v')",
    "select * from read_csv(:'v')",
    "select * from read_csv([:'v'])",
    "select * from read_text(:'v')",
    "select * from \"read_blob\"(:'v')",
    "select * from glob(:'v')",
    "select * from query('from ' || :'v')",
    "select * from sniff_csv(:'v')",
    "select (select count(*) from :'v') as n",
    "with a as (from :'v') select * from a",
    "select 1 union all select 2 from :'v'",
    "copy (select 1) to :'v'",
    'copy (select 1) to :"v"',
    "copy (select 1) to :v",
    "copy made from :'v'",
    "attach :'v' as other",
    'attach :"v"',
    "describe :'v'",
    "summarize :'v'",
    "create table t1 as from :'v'",
    "insert into made from :'v'",
    "export database :'v'",
    "import database :'v'",
    "load :'v'",
    "install :v",
    "set temp_directory = :'v'",
    "set variable f = :'v'",
    "pragma database_list(:'v')",
    "create store s1 with ('type' = 'files', 'uri' = :'v')",
    "create function_source f1 with ('file' = :'at')",
    ":whole",
    ":hidden",
    ":writing",
    "select 1 as a; :writing",
    "select :'whole' as t \\gexec\n",
    "select :'writing' as t \\gexec\n",
    "\\local select * from :'v'",
    "\\local select * from read_csv(:'v')",
    "\\local copy (select 1) to :'v'",
    "\\local :writing",
)
TAKEN = (
    "select * from made where name = :'v'",
    "select :'v' as a, :'v' as b, upper(:'v') as c",
    "select * from made where name in (:'v', :'v') order by 1",
    "select extract(year from date '2020-01-01') as y, trim(both 'x' from :'v') as t",
    "select 1 is distinct from :'n' as a",
    "select * from :table limit :n",
    'select * from :"table"',
    "copy :\"table\" to 'own.csv'",
    "copy (select * from made where name = :'v') to 'own.csv'",
    "insert into made values (:'v')",
    "update made set name = :'v' where name = :'n'",
    "select * from (values (:'v'), (:'v')) t(a)",
    "insert into made values (:'v'), (:'v')",
    "select * from made join made as other using (name) where other.name <> :'v'",
    "with a as (select :'v' as b) select * from a",
    "create table t2 as select :'v' as a from made",
    ":'v' || 'x' as a",
    "\\local select :'v' as a",
    "select 'select upper(name), count(*) from made where name in (''a'', ''b'') group by all' as t \\gexec\n",
    "select 'create or replace table t3 (a int, b varchar(10))' as t \\gexec\n",
    "select 'insert into t3 values (1, ''x''), (2, ''y'')' as t \\gexec\n",
    "select 'create table main.t4 (a varchar default ''x'' check (a in (''x'', ''y'')))' as t \\gexec\n",
    "select 'insert into t4 (a) values (''x'')' as t \\gexec\n",
    "select 'drop table t3' as t \\gexec\n",
    ":query",
)


WHOLE = (
    *(
        "from m.csv",
        'from "m.csv"',
        'from main."m.csv"',
        'from memory.main."m.csv"',
        'from t, "b"."d/../../m.csv"',
        'from t join main."m*" on true',
        "from m . csv",
        "select * from (m.csv)",
        "describe m.csv",
        "show m.csv",
        "table m.csv",
    ),
    *(
        "summarize m.csv",
        "pivot m.csv on a",
        "unpivot 'm.csv' on a",
        "from x: m.csv",
        "from t, m.csv",
        "from ((m.csv))",
    ),
    *("from t cross join 'm.csv'", "from t positional join 'm.csv'", "from t semi join 'm.csv' using (a)"),
    *(
        "select * from\u200b'm.csv'",
        "select * from/**/'m.csv'",
        "select * from--x\n'm.csv'",
        "from read\u200b_csv('m')",
    ),
    *("from \"read_csv\"('m')", "from system.main.read_csv('m')", "from glob('*')", "from query_table('m.csv')"),
    *("select a from t limit (select a from 'm.csv')", "update t set a = (from 'm.csv')", "from (describe 'm.csv')"),
    *("merge into t using m.csv as s on t.a = s.a when matched then delete", "values ((from 'm.csv'))"),
    *("copy (select 1) to o.csv", "explain analyze copy t to 'o'", "with x as (copy (select 1) to 'o') select 1"),
    *("prepare p as from 'm.csv'", "create macro r() as table from 'm.csv'", "select {'x': (from 'm.csv')}"),
    *("select [a for a in (select list(a) from 'm.csv')]", "select count(*) filter (where a in (from 'm.csv')) from t"),
    *(
        "select getenv('HOME')",
        "select * from json_execute_serialized_sql('{}')",
        "create secret s (type s3)",
        "load x",
    ),
)


@pytest.mark.parametrize("text", WHOLE)
def test_a_statement_of_a_service_names_no_file(text: str) -> None:
    with pytest.raises(UsageError, match="came from the service"):
        refuse_files(service_text(text, ":v"))


VALUES = {
    "v": FILES,
    "at": f"@{FILES}",
    "whole": f"select * from '{FILES}'",
    "hidden": f"from read_text('{FILES}')",
    "writing": f"copy (select 1) to '{MARK}.out'",
    "table": "made",
    "query": "select count(*) as n from (select name from made union all select 'x') t join made using (name)",
    "n": "1",
}


def test_no_statement_opens_a_file_that_a_service_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / FILES).write_text("a\nthe-secret\n")

    async def work() -> None:
        async with room(tmp_path, interactive=False) as here:
            await here.enter("create table made (name varchar);\n")
            await here.enter("create macro reads(f) as table from read_text(f);\n")
            await here.enter("create macro content(f) as (select content from read_text(f));\n")
            for name, value in VALUES.items():
                await here.enter(f"select {literal(value)} as {name} \\gset\n")
                assert here.shell.variables[name].text == value
            for text in OPENING:
                told = await here.enter(f"{text};\n" if text[0] != "\\" and text[-1] != "\n" else f"{text}\n")
                assert "came from the service" in told, (text, told)
                await here.enter("\\r\n")
            for text in TAKEN:
                whole = f"select {text[:-5]};\n" if text.endswith(" as a") and text[0] == ":" else f"{text};\n"
                told = await here.enter(whole if text[-1] != "\n" else text)
                assert "error" not in told, (text, told)
            assert (await here.enter("\\trust v '.*[.]csv'\nselect * from :'v';\n")) == ""
            assert not here.bugs

    asyncio.run(work())
    left = {path.name for path in tmp_path.iterdir() if path.name not in {"own.csv", "screen", FILES}}
    assert not left or not any(MARK in name for name in left), left
    assert (tmp_path / "screen").read_text().count("the-secret") == 1


def test_a_file_is_sent_only_where_the_person_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other parts of the statement may come from a service."""
    own = {"file": trusted_text(Trusted("@lib.jar"))}
    for text, values, paths in (
        ("with ('file' = '@lib.jar', 'name' = :'v')", {"v": service_text("@other", ":v")}, ["lib.jar"]),
        ("with ('name' = :'v', 'file' = '@lib.jar')", {"v": service_text("'file' = '@x'", ":v")}, ["lib.jar"]),
        ("with ('file' = :'file', 'name' = :v)", own | {"v": service_text("1", ":v")}, ["lib.jar"]),
        ("with ('file' = :'v')", {"v": service_text("@lib.jar", ":v")}, None),
        ("with (:'v' = '@lib.jar')", {"v": service_text("file", ":v")}, None),
        ("with ('file' :v '@lib.jar')", {"v": service_text("=", ":v")}, None),
        ("with (:v)", {"v": service_text("'file' = '@lib.jar'", ":v")}, None),
        ("with (a = :v -- don't, 'file' = '@lib.jar'", {"v": service_text("'", ":v")}, None),
        ("with ('key' = :'v')", {"v": service_text("@lib.jar", ":v")}, []),
        ("with ('key' = :v)", {"v": service_text("'@lib.jar'", ":v")}, []),
        ("with ('key' = :v '@lib.jar')", {"v": service_text("1, 'other' =", ":v")}, None),
        ("with (:v '@lib.jar')", {"v": service_text("'other' =", ":v")}, None),
        ("with ('file' = '@:v')", {"v": service_text("lib.jar", ":v")}, [":v"]),
    ):
        statement = substituted(trusted_text(Trusted(text)), values)
        if paths is None:
            with pytest.raises(UsageError, match="the name of a file to upload cannot be"):
                named_files(statement)
        else:
            assert [item.path for item in named_files(statement).files] == paths
    waiting = substituted(trusted_text(Trusted("with ('file' = :'v')")), {"v": service_text("lib.jar", ":v")})
    with pytest.raises(UsageError, match="the name of a file to upload"):
        names_file(waiting, "lib.jar")
    assert not names_file(
        substituted(trusted_text(Trusted("insert :'v'")), {"v": service_text("lib.jar", ":v")}), "lib.jar"
    )


AGAIN = (
    f"select 1 as a, '\n' as b \\! touch {MARK}\n",
    f"\\! touch {MARK}",
    f".shell touch {MARK}",
    f"!system touch {MARK}",
    f"select 1;\n\\! touch {MARK}",
    f"select 1; drop table {MARK}",
    "select :secret",
    "create function_source f with ('file' = '@x')",
    "create store s with ('tls.ca_cert_file' = '@x')",
    f"select 1 \\g |touch {MARK}",
    f"copy t from stdin;\n\\! touch {MARK}",
    f"copy (select 1) to '{MARK}'",
    "select * from 'x.csv'",
)


def test_what_would_act_when_it_is_read_again_is_not_written_kept_or_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EDITOR", "sed -i s/select/Select/")

    async def work() -> None:
        async with room(tmp_path, interactive=True) as here:
            await here.enter("\\set secret s3cret\n")
            for text in AGAIN:
                await here.enter(f"select {literal(text)} as a \\gexec\n")
                assert here.shell.buffer.last.foreign, text
                for command_text in ("\\w out.sql", "\\n+ kept", "\\e"):
                    told = await here.enter(f"{command_text}\n")
                    assert "came from the service" in told, (text, command_text, told)
                    assert here.shell.buffer.take_edited() == ""
            await here.enter("select 'select 1 as one' as a \\gexec\n\\w out.sql\n\\n+ kept\n\\e\n")
            assert here.shell.buffer.take_edited() == "Select 1 as one;"

    asyncio.run(work())
    assert not (tmp_path / MARK).exists()
    assert (tmp_path / "out.sql").read_text() == "select 1 as one;\n"


NAMED = (
    "`touch {}`",
    "a `touch {}` b",
    '"x" `touch {}` "y"',
    "a\n\\! touch {}\n",
    "a; \\! touch {}",
    ":v{}",
    "'{}",
    "a\\{} b",
)
"""What a service may name its objects, with a word that is their kind."""


def test_what_completion_inserts_is_one_word_of_the_command(tmp_path: Path) -> None:
    kinds = ("query", "store", "database", "schema", "role", "pool", "organization", "sequence", "index", "user type")
    names = {kind: [form.format("x") for form in NAMED] for kind in (*kinds, "macro", "entity")}
    relations = [Relation("d", "s", form.format(kind), kind) for form in NAMED for kind in ("table", "view", "stream")]
    known = CachedCatalog(relations, {}, [Function(form.format("f")) for form in NAMED], names)

    def fail(command_text: Trusted) -> str:
        raise AssertionError(f"run: {command_text}")

    async def work() -> int:
        found = 0
        async with room(tmp_path, interactive=True) as here:
            shell = here.shell
            here.front_end.catalog = Catalog(known)
            shell.session.state.context = replace(shell.session.context, database="d", schema="s")
            commands = partial(commands_named, shell.commands)
            completer = ShellCompleter(shell.session, here.front_end.catalog, commands, partial(arguments, shell), list)
            for item in BUILTIN:
                places = [*positions(item), ("VALUE", ["set", "store"])] if item.name == "context" else positions(item)
                for _, before in places:
                    for typed in ("", "a", '"', "`"):
                        text = " ".join([f"\\{item.name}", *before, typed])
                        asked = Document(text, len(text)), CompleteEvent(completion_requested=True)
                        for inserted in completer.get_completions(*asked):
                            line = text[: len(text) + inserted.start_position] + inserted.text
                            if typed == "`" and "`" in line[: len(text)]:
                                continue
                            first, *rest = split(f"{line}\n")
                            assert not rest, line
                            if isinstance(first, BackslashCommand) and line.count('"') % 2 == 0:
                                words(Trusted(first.args), {}, fail)
                            found += 1
        return found

    assert asyncio.run(work()) > 200


def test_names_with_a_line_end_are_not_proposed_in_statements() -> None:
    relations = [Relation("d", "s", 'o"\n\\! touch x\n"', "table"), Relation("d", "s", "other", "table")]
    completer = ShellCompleter(
        session(SessionContext(database="d", schema="s")),
        Catalog(CachedCatalog(relations)),
        lambda text: [],
        lambda *_: [],
        list,
    )
    text = "select * from o"
    asked = Document(text, len(text)), CompleteEvent(completion_requested=True)
    assert [found.text for found in completer.get_completions(*asked)] == ["other"]


KEPT: dict[str, tuple[str, str, int]] = {
    "a column is no option of the shell": (
        "select 'off' as \"ON_ERROR_STOP\", 2 as b \\gset\n\\echo [:{?b}]\nselect 1/;\n\\echo on",
        'column "ON_ERROR_STOP" has the name',
        2,
    ),
    "nor does a NULL unset one": ('select null as "ON_ERROR_STOP" \\gset\n', 'column "ON_ERROR_STOP" has the name', 2),
    "nor with a prefix that makes it one": ("select 'off' as \"STOP\" \\gset ON_ERROR_\n", "ON_ERROR_STOP", 2),
    "nor what scripts decide by": ("select 'false' as \"ERROR\" \\gset\n", 'column "ERROR" has the name', 2),
    "an option takes no value of a service": (
        "select 'off' as v \\gset\n\\set ON_ERROR_STOP :v\n",
        "the value of ON_ERROR_STOP cannot be :v: the value came from the service",
        2,
    ),
    "a value names no variables": (
        "\\set secret s3cret\nselect ':secret' as v \\gset\nselect ':v' as a, :v as b;\n",
        "",
        1,
    ),
    "a value is not several statements": (
        "select '1; select 2' as v \\gset\nselect :v;\n",
        ":v came from the service and contains several statements",
        2,
    ),
    "nor is it where a command stands behind it": (
        "select '1; select 2 as two; select 3' as v \\gset\nselect :v \\p\n;\n",
        ":v came from the service and contains several statements",
        2,
    ),
    "a named query keeps none that would act": (
        "select 'select '':x'', :x' as v \\gset\n:v \\n+ kept\n",
        "would run as a command or expand as a variable",
        2,
    ),
    "a file keeps none that would act": (
        f"select 'select 1 as \"\\n\\! touch {MARK}\n\"' as v \\gset\n".replace("\\n", "'||chr(10)||'")
        + ":v \\w out.sql\n",
        "",
        0,
    ),
    "the words of a named query are data": (
        f"\\n+ send2 create function_source f with ('file' = $1)\nselect '@{MARK}' as v \\gset\n\\n send2 :'v'\n",
        "the name of a file to upload cannot be",
        2,
    ),
    "what is adopted matches as a whole": (
        "select 'a.csv; x' as v \\gset\n\\trust v '[a-z.]+'\n",
        "the value of v does not match",
        2,
    ),
    "what is adopted is the person's own": (
        "select 'a.csv' as v \\gset\n\\trust v '[a-z.]+'\nselect 7 as seven \\g :v\n\\! cat a.csv\n",
        "",
        0,
    ),
    "so is an answer of the shell's": ("\\set v `echo a.csv`\nselect 7 as seven \\g :v\n\\! cat a.csv\n", "", 0),
    "a number of rows may be part of a name": (
        "select 7 as seven;\nselect 7 as seven \\g out-:ROW_COUNT.csv\n\\! cat out-1.csv\n",
        "",
        0,
    ),
    "an id of a statement is taken": ("select 7 as seven;\n\\fetch :LAST_STATEMENT_ID\n", "", 0),
}


@pytest.mark.parametrize(
    ("name", "way"),
    [(name, ("-c", "-f", "stdin")[number % 3]) for number, name in enumerate([*KEPT, *[next(iter(KEPT))] * 2])],
)
def test_in_every_way_of_running(program: Program, tmp_path: Path, name: str, way: str) -> None:
    script, told, code = KEPT[name]
    if way == "-f":
        (tmp_path / "s.sql").write_text(script)
    where = {"-c": ("-c", script), "-f": ("-f", "s.sql"), "stdin": ()}[way]
    done = program("-q", "--format", "csv", *where, stdin=script if way == "stdin" else "")
    assert told in done.err, done.err
    assert done.code == code, done.err
    assert "s3cret" not in done.out + done.err
    assert not (tmp_path / MARK).exists()
    if code == 0:
        assert done.err == ""


def test_the_variables_of_the_shell_are_explained(program: Program) -> None:
    done = program("-q", "-c", "\\? variables")
    assert (done.code, done.err) == (0, "")
    for name in CONTROL:
        assert name in done.out
    assert "\\trust NAME REGEX" in " ".join(done.out.split())
