"""When a command refuses something, it says why and how it is used, sends nothing, and fails its script."""

from __future__ import annotations

import asyncio

import pytest

from sqlshell.errors import Exit
from tests.shell.core.scripted import Core

PARTS = "parts: organization, role, database, schema, store, compute_pool, timezone, session_id"
EMPTY_COPY = "\\copy: the file name is empty\nhelp: example: \\copy t TO 'file.csv' WITH (FORMAT csv)"
WATCHED = (
    "\\watch: a number is out of range\n"
    "help: SECONDS must not be negative, and TIMES and ROWS must be at least 1; example: \\watch i=5 c=10 m=1"
)
NO_ROWS = "no statement has returned rows yet\nhelp: run a statement first: select …;"

OF_CSV = ("quote '#'", "escape '#'", "force_not_null (a)", "force_null (a)", "allow_quoted_nulls true")
OF_TEXT = ("delimiter ';'", "null 'x'", "header true", "encoding 'latin1'", *OF_CSV)
NOT_FOR = {"text": OF_CSV, "json": OF_TEXT, "parquet": OF_TEXT}
"""The options of COPY that a format does not have."""
COPIED = "example: \\copy t FROM 'file.csv' WITH (FORMAT csv, HEADER)"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("\\watch x", "\\watch: 'x' is not a number\nhelp: example: \\watch i=5 c=10 m=1"),
        ("\\watch c=x", "\\watch: 'x' is not a number\nhelp: example: \\watch i=5 c=10 m=1"),
        ("\\watch -1", WATCHED),
        ("\\watch i=-1", WATCHED),
        ("\\watch c=-1", WATCHED),
        ("\\watch m=-1", WATCHED),
        ("\\watch c=0", WATCHED),
        ("\\watch 1 m=0", WATCHED),
        ("\\c ''", "\\c: TARGET is empty\nhelp: \\c alone shows the current connection"),
        ("\\watch nan", WATCHED),
        ("\\watch 1 2", "\\watch: unexpected argument '2'\nusage: \\watch [SECONDS] [i=SECONDS] [c=TIMES] [m=ROWS]"),
        ('\\export ""', "\\export: the file name is empty\nusage: \\export FILE"),
        ('\\i ""', "\\i: the file name is empty\nusage: \\i FILE"),
        ("\\ir ''", "\\ir: the file name is empty\nusage: \\ir FILE"),
        ('\\w ""', "\\w: the file name is empty\nusage: \\w FILE"),
        ('\\e ""', "\\e: the file name is empty\nusage: \\e [FILE]"),
        ('\\once ""', "\\once: the file name is empty\nusage: \\once FILE..."),
        ('\\log ""', "\\log: the file name is empty\nusage: \\log [FILE]"),
        ('\\attach ""', "\\attach: the file name is empty\nusage: \\attach [FILE]"),
        ('\\transcript ""', "\\transcript: the file name is empty\nusage: \\transcript [FILE]"),
        ('\\replay ""', "\\replay: the file name is empty\nusage: \\replay FILE"),
        ('\\cd ""', "\\cd: the directory name is empty\nusage: \\cd [DIRECTORY]"),
        ("\\copy t to ''", EMPTY_COPY),
        ("\\copy t from ''", EMPTY_COPY),
        ("\\copy t from 'f' (rejects '')", f"COPY: the file name of rejects is empty\nhelp: {COPIED}"),
        ("\\prompt", "\\prompt requires NAME\nusage: \\prompt [TEXT] NAME"),
        ("\\prompt a b c", "\\prompt: unexpected argument 'c'\nusage: \\prompt [TEXT] NAME"),
        ("\\context reset a b", f"\\context reset accepts at most one part\nhelp: {PARTS}"),
        ("\\context reset nope", f"unknown part of the context: 'nope'\nhelp: {PARTS}"),
        (
            "\\context nope x",
            "\\context: invalid argument 'nope'; expected set or reset\nusage: \\context [set|reset] [PART] [VALUE]",
        ),
        ("\\pset nope x", "unknown option 'nope'\nhelp: \\pset lists the options"),
        ("\\pset nope", "unknown option 'nope'\nhelp: \\pset lists the options"),
        ("\\timing nope", "\\timing: invalid argument 'nope'; expected on or off\nusage: \\timing [on|off]"),
        ("\\x nope", "\\x: invalid argument 'nope'; expected on, off or auto\nusage: \\x [on|off|auto]"),
        (
            "\\pset maxwidth x",
            "\\pset maxwidth: invalid value 'x'\nhelp: expected an integer, 0 or greater",
        ),
        (
            "\\pset maxwidth -1",
            "\\pset maxwidth: invalid value '-1'\nhelp: expected an integer, 0 or greater",
        ),
        (
            "\\pset notify x",
            "\\pset notify: 'x' is not a duration\nhelp: write it as 30, 1.5s, 5m or 1h30m",
        ),
        ("\\pset theme nope", "unknown theme 'nope'\nhelp: themes: default"),
        ("\\pset table_style simpel", "unknown table style 'simpel'\nhelp: did you mean simple?"),
        (
            "\\prompt a",
            "\\prompt requires a terminal\nhelp: set the value with --set NAME=VALUE instead",
        ),
        ("\\theme nope", "unknown theme 'nope'\nhelp: themes: default"),
        ("\\download", "\\download requires TYPE\nusage: \\download TYPE NAME [FILE] [--force]"),
        ("\\download a", "\\download requires NAME\nusage: \\download TYPE NAME [FILE] [--force]"),
        (
            "\\download a b c d",
            "\\download: unexpected argument 'd'\nusage: \\download TYPE NAME [FILE] [--force]",
        ),
        (
            "\\fetch x",
            "no statement ID begins with 'x'\nhelp: \\jobs lists the IDs; for an unlisted statement, give the full ID",
        ),
        (
            "\\fetch",
            "this connection has not run a statement yet\nhelp: \\jobs lists earlier statements",
        ),
        (
            "\\wait x",
            "no statement ID begins with 'x'\nhelp: \\jobs lists the IDs; for an unlisted statement, give the full ID",
        ),
        ("\\jobs x", "\\jobs: invalid number of statements 'x'\nusage: \\jobs [COUNT], at most 10,000"),
        ("\\jobs 10001", "\\jobs: invalid number of statements '10001'\nusage: \\jobs [COUNT], at most 10,000"),
        ("\\jobs 0", "\\jobs: invalid number of statements '0'\nusage: \\jobs [COUNT], at most 10,000"),
        ("\\h nope nope", "no statement begins with 'nope nope'\nhelp: \\h lists the statements"),
        ("\\d 'x", "\\d: unterminated quote: 'x\nusage: \\d [PATTERN]"),
        ('\\d "x', '\\d: unterminated quote: "x\nusage: \\d [PATTERN]'),
        (
            "\\set x `exit 3`",
            "\\set: the command 'exit 3' failed with exit code 3\nhelp: "
            "to use its output anyway, append ; true to the command",
        ),
        ("\\n", "no config directory for named queries\nhelp: set SQLSHELL_CONFIG_DIR, XDG_CONFIG_HOME or HOME"),
        ("\\elif true", "\\elif: no matching \\if"),
        ("\\else", "\\else: no matching \\if"),
        ("\\endif", "\\endif: no matching \\if"),
        ("\\if true\\else\\else\\endif", "\\else: cannot occur after \\else"),
        ("\\if true\\else\\elif true\\endif", "\\elif: cannot occur after \\else"),
        ("\\if true", "the script ends inside an \\if block\nhelp: add \\endif"),
        ("\\local", "\\local requires a statement\nhelp: example: \\local select count(*) from _"),
        ("\\chart", NO_ROWS),
        ("\\crosstab a b c", NO_ROWS),
        ("\\clip", NO_ROWS),
        ("\\g x y", "\\g: unexpected argument 'y'\nusage: \\g [(NAME=VALUE...)] [FILE...]"),
        ("\\g (format=csv", "missing closing parenthesis: (format=csv\nusage: \\g [(NAME=VALUE...)] [FILE...]"),
        ("\\g (nope=csv)", "unknown option 'nope'\nhelp: \\pset lists the options"),
        ("\\gset a b", "\\gset: unexpected argument 'b'\nusage: \\gset [PREFIX]"),
        ("\\gdesc", "\\gdesc: there is no statement to send\nhelp: write a statement before the command"),
        ("\\g", "\\g: there is no statement to send\nhelp: write a statement before the command"),
        ("\\o a b", "\\o: unexpected argument 'b'\nusage: \\o [FILE...]"),
        ("\\i", "\\i requires FILE\nusage: \\i FILE"),
        ("\\i nope.sql", "no such script: nope.sql"),
        *(
            (
                f"\\set ON_ERROR_ROLLBACK{value}",
                "ON_ERROR_ROLLBACK is not supported: a failed statement aborts its transaction\n"
                "help: commit in smaller transactions, or use SAVEPOINT if the engine has it, as PostgreSQL does",
            )
            for value in ("", " on", " interactive")
        ),
        ("\\unset", "\\unset requires NAME\nusage: \\unset NAME"),
        ("\\attach nope", "cannot read nope: no such file\nhelp: nothing was sent"),
        ("\\e", "\\e requires an interactive terminal\nhelp: use \\i FILE to run a script"),
        ("\\export", "\\export requires FILE\nusage: \\export FILE"),
        ("\\export a again", "\\export: unexpected argument 'again'\nusage: \\export FILE"),
        ("\\w", "\\w requires FILE\nusage: \\w FILE"),
        ("\\w x", "there is no statement to write"),
        ("\\replay", "\\replay requires FILE\nusage: \\replay FILE"),
        (
            "\\browse",
            "\\browse requires an interactive terminal with cursor control\n"
            "help: use \\g FILE to write a result to a file",
        ),
        ("\\once", "\\once requires FILE\nusage: \\once FILE..."),
        ("\\q a", "\\q: unexpected argument 'a'\nusage: \\q"),
        ("\\sf", "\\sf requires PATTERN\nusage: \\sf PATTERN..."),
        *(
            (
                f"\\copy t from 'a' (format {form}, {option})",
                f"COPY: {option.split()[0]} does not apply to the format {form}",
            )
            for form, options in NOT_FOR.items()
            for option in options
        ),
        ("\\copy t from 'a' (if_unknown x)", "COPY: if_unknown must be skip or send, not 'x'"),
        ("\\nope", "unknown command \\nope\nhelp: \\? lists the commands"),
        (
            "\\password",
            "unknown command \\password\nhelp: on PostgreSQL, write ALTER ROLE name PASSWORD '…'; "
            "the history does not keep the password",
        ),
        ("\\dx+", "unknown command \\dx+\nhelp: on PostgreSQL, write: select * from pg_catalog.pg_extension"),
        ("\\dES", "unknown command \\dES\nhelp: on PostgreSQL, write: select * from pg_catalog.pg_foreign_table"),
        (
            "\\lo_import",
            "unknown command \\lo_import\nhelp: on PostgreSQL, call functions such as lo_get() and lo_put() in SQL",
        ),
        (
            "\\endpipeline",
            "unknown command \\endpipeline\n"
            "help: pipelines are not supported; statements of a script are sent together where that is safe",
        ),
        ("\\? nope", "unknown command \\nope\nhelp: \\? lists the commands"),
    ],
)
def test_a_command_that_is_refused(command: str, said: str) -> None:
    async def work() -> Core:
        core = Core()
        core.session.options.on_error = "continue"
        await core.run(f"{command}\n")
        return core

    core = asyncio.run(work())
    assert core.err == f"error: {said}\n"
    assert core.out == ""
    assert core.client.ran == []
    assert core.shell.exit == Exit.USAGE
