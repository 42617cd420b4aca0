"""Everything that commands print to stdout and stderr: of their own accord, and of what they refuse."""

from __future__ import annotations

import asyncio

import pytest

from sqlshell.origin import Own
from tests.shell.core.scripted import Core


@pytest.fixture(autouse=True)
def _utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


@pytest.mark.parametrize(
    ("script", "out", "err"),
    [
        pytest.param(
            """\
\\pset
""",
            "",
            """\
  format         csv                      table, vertical, csv, tsv, json, jsonl, unaligned, markdown, html, \
insert, xlsx, parquet, arrow, arrows
  expanded       off                      off, on, auto
  wide           scroll                   scroll, fold
  maxwidth       0                        maximum width of a value in characters, 0 = no limit
  numericlocale  off                      on, off
  table_style    auto                     style of the table format: auto, psql, simple, rounded_outline, …
  types          on                       on, off
  explore        100                      minimum number of columns with which a result opens in the explorer \
at the prompt, 0 = never
  null           (default of the format)  text that represents NULL
  header         on                       on, off
  footer         on                       on, off
  fieldsep       |                        field separator of the unaligned format; \\t is a tab, \\0 a zero byte
  recordsep      \\n                       record separator of the unaligned format
  csv_safe       off                      on, off
  insert_table                            table name in the INSERT statements of the insert format
  timing         off                      on, off
  rowlimit       10000                    maximum rows of a SELECT at the prompt, except on a remote service; \
0 = no limit
  pager          on                       pager for large results, or off
  on_error       continue                 stop, continue
  echo           off                      on, off
  quiet          off                      on, off
  verbosity      default                  default, terse, verbose, sqlstate
  theme          default                  theme of the interactive shell
  completion     on                       on, off
  multiline      on                       on, off
  vi             off                      on, off
  max_rows       0                        stop a continuous query after N rows
  duration       0                        stop a continuous query after this time
  allow_gaps     off                      on, off
  prompt_color                            color of the prompt in this profile
  prompt                                  prompt template, such as "{database}.{schema}> "
  rprompt                                 template at the right edge of the prompt line, such as "{elapsed}"
  toolbar                                 template of the bottom line, such as "{target} {role} {jobs}"
  prompt_lines   1                        lines of the prompt: 1, or 2 to show the context above the statement
  title                                   template of the window title, such as "{target}", or off
  notify         0                        ring the bell after a statement that took at least this long
""",
            id="pset",
        ),
        pytest.param(
            """\
\\x
\\x
\\x auto
\\x on
\\x off
""",
            "",
            """\
Expanded display is on.
Expanded display is off.
Expanded display is used automatically.
Expanded display is on.
Expanded display is off.
""",
            id="x",
        ),
        pytest.param(
            """\
\\x maybe
""",
            "",
            """\
error: \\x: invalid argument 'maybe'; expected on, off or auto
usage: \\x [on|off|auto]
""",
            id="x 2",
        ),
        pytest.param(
            """\
\\a
\\a
\\format json
\\a
\\f ','
\\f
\\f '\\\\t'
""",
            "",
            """\
Format is unaligned.
Format is table.
Format is json.
Format is unaligned.
Field separator is ,.
Field separator is ,.
Field separator is \\t.
""",
            id="a",
        ),
        pytest.param(
            """\
\\format CSV
\\format nope
""",
            "",
            """\
Format is csv.
error: unknown format 'nope'
help: formats: table, vertical, csv, tsv, json, jsonl, unaligned, markdown, html, insert, xlsx, parquet, arrow, arrows
""",
            id="format",
        ),
        pytest.param(
            """\
\\t
\\t
\\t off
.headers off
.header on
""",
            "",
            """\
Tuples only is on.
Tuples only is off.
Tuples only is off.
Column names are off.
Column names are on.
""",
            id="t",
        ),
        pytest.param(
            """\
\\theme nope
""",
            "",
            """\
error: unknown theme 'nope'
help: themes: default
""",
            id="theme",
        ),
        pytest.param(
            """\
\\pset rowlimit 5
\\pset rowlimit
\\pset rowlimit x
\\pset rowlimit -1
\\pset rowlimit ²
""",
            "",
            """\
Option rowlimit is 5.
Option rowlimit is 5.
error: \\pset rowlimit: invalid value 'x'
help: expected an integer, 0 or greater
error: \\pset rowlimit: invalid value '-1'
help: expected an integer, 0 or greater
error: \\pset rowlimit: invalid value '²'
help: expected an integer, 0 or greater
""",
            id="pset 2",
        ),
        pytest.param(
            """\
\\pset duration 1h
\\pset duration 0
\\pset notify soon
""",
            "",
            """\
Option duration is 3600s.
Option duration is 0.
error: \\pset notify: 'soon' is not a duration
help: write it as 30, 1.5s, 5m or 1h30m
""",
            id="pset 3",
        ),
        pytest.param(
            """\
\\pset wide fold
\\pset wide FOLD
\\pset wide x
\\pset expanded yes
\\pset x 0
\\pset expanded maybe
""",
            "",
            """\
Option wide is fold.
Option wide is fold.
error: \\pset wide: invalid value 'x'
help: expected one of scroll, fold
Option expanded is on.
Option expanded is off.
error: \\pset expanded: invalid value 'maybe'
help: expected one of off, on, auto
""",
            id="pset 4",
        ),
        pytest.param(
            """\
\\pset footer maybe
\\pset tuples_only on
\\pset t off
\\pset columns 7
\\pset recordsep '\\\\n\\\\n'
\\pset fieldsep '\\\\t'
""",
            "",
            """\
error: \\pset footer: invalid value 'maybe'
help: expected on or off
Option tuples_only is on.
Option tuples_only is off.
Option maxwidth is 7.
Option recordsep is \\n\\n.
Option fieldsep is \\t.
""",
            id="pset 5",
        ),
        pytest.param(
            """\
\\pset border 2
\\pset csv_fieldsep ;
\\pset PAGER_min_lines 3
\\pset tableattr x
\\pset fieldsep_zero
\\pset recordsep_zero
\\pset xheader_width full
\\pset linestyle ascii
""",
            "",
            """\
psql's border has no effect: \\pset table_style selects the frame of tables.
psql's csv_fieldsep has no effect: \\format tsv separates by tabs, \\pset fieldsep sets the \
separator of the unaligned format.
psql's pager_min_lines has no effect: the pager opens for output that is taller than the screen.
psql's tableattr has no effect: HTML tables have no attributes.
psql's fieldsep_zero has no effect: \\pset fieldsep sets the separator.
psql's recordsep_zero has no effect: \\pset recordsep sets the separator.
psql's xheader_width has no effect: the header of a record is as wide as its values.
psql's linestyle has no effect: \\pset table_style selects the frame of tables.
""",
            id="pset 6",
        ),
        pytest.param(
            """\
\\pset formt csv
\\pset format_chosen on
\\pset format JSON
\\pset format nope
""",
            "",
            """\
error: unknown option 'formt'
help: did you mean format?
error: unknown option 'format_chosen'
help: did you mean format?
Option format is json.
error: unknown format 'nope'
help: formats: table, vertical, csv, tsv, json, jsonl, unaligned, markdown, html, insert, xlsx, parquet, arrow, arrows
""",
            id="pset 7",
        ),
        pytest.param(
            """\
\\pset table_style grid
\\pset table_style nope
\\pset theme default
\\pset theme x
""",
            "",
            """\
Option table_style is grid.
error: unknown table style 'nope'
help: styles: auto, double_grid, double_outline, fancy_grid, fancy_outline, github, grid, heavy_grid, \
heavy_outline, jira, mixed_grid, mixed_outline, orgtbl, outline, pipe, plain, presto, pretty, psql, \
rounded_grid, rounded_outline, rst, simple, simple_grid, simple_outline, youtrack
Option theme is default.
error: unknown theme 'x'
help: themes: default
""",
            id="pset 8",
        ),
        pytest.param(
            """\
\\pset prompt '{database}> '
\\pset prompt '{nope}'
\\pset prompt_color red
\\pset prompt_color nope
\\pset insert_table a.b
\\pset null ''
\\pset null
""",
            "",
            """\
Option prompt is {database}> .
error: prompt: unknown field {nope}
help: fields: organization, role, database, schema, store, pool, timezone, session, target, elapsed, jobs, \
transaction, readonly, statement; styles: {bold}, {#ff8800}, {bg:#003355 italic}, and {/} to end a style
Option prompt_color is red.
error: prompt_color: 'nope' is not a valid color
help: write it like '#ff5f5f' or '#ff5f5f bold'
Option insert_table is a.b.
Option null is .
Option null is .
""",
            id="pset 9",
        ),
        pytest.param(
            """\
\\pset verbosity terse
\\pset on_error stop
\\pset on_error x
""",
            "",
            """\
Option verbosity is terse.
Option on_error is stop.
error: \\pset on_error: invalid value 'x'
help: expected one of stop, continue
""",
            id="pset 10",
        ),
        pytest.param(
            """\
select 1 \\g (format=json null=x)
select 1 \\g (t=on)
select 1 \\g (expanded)
select 1 \\g (rowlimit=x)
""",
            """\
[{"a":1}]
1
""",
            """\
error: option expanded requires a value
help: write it as (expanded=VALUE)
warning: the unfinished statement before \\g was discarded
error: \\pset rowlimit: invalid value 'x'
help: expected an integer, 0 or greater
warning: the unfinished statement before \\g was discarded
""",
            id="g",
        ),
        pytest.param(
            """\
\\timing on
\\timing
\\timing off
\\timing
\\timing x
""",
            "",
            """\
Timing is on.
Timing is off.
Timing is off.
Timing is on.
error: \\timing: invalid argument 'x'; expected on or off
usage: \\timing [on|off]
""",
            id="timing",
        ),
        pytest.param(
            """\
\\set
\\set b 2
\\set a 'x y' z
\\set
""",
            """\
ENCODING = 'UTF8'
ENCODING = 'UTF8'
a = 'x yz'
b = '2'
""",
            "",
            id="set",
        ),
        pytest.param(
            """\
\\set 1x 2
\\set a-b 1
\\set ERROR x
\\set ROW_COUNT 5
\\unset ERROR
""",
            "",
            """\
error: 'a-b' is not a valid variable name
help: a name consists of letters, digits and underscores
""",
            id="set 2",
        ),
        pytest.param(
            """\
\\set a 1
\\echo :a ':a' :'a' :"a" :{?a} :{?b}
\\unset a
\\echo :a :{?a}
""",
            """\
1 :a '1' "1" TRUE FALSE
:a FALSE
""",
            "",
            id="set 3",
        ),
        pytest.param(
            """\
\\set ON_ERROR_STOP maybe
\\set ECHO x
\\set VERBOSITY x
\\set QUIET x
\\set ON_ERROR_STOP on
\\echo :ON_ERROR_STOP
""",
            """\
on
""",
            """\
error: ON_ERROR_STOP: invalid value 'maybe'; expected true or false (on, off, 1, 0)
error: ECHO: invalid value 'x'
help: expected one of none, queries, all, errors
error: VERBOSITY: invalid value 'x'
help: expected one of default, terse, verbose, sqlstate
error: QUIET: invalid value 'x'; expected true or false (on, off, 1, 0)
""",
            id="set 4",
        ),
        pytest.param(
            """\
\\if false
\\echo a
\\elif true
\\echo b
\\elif true
\\echo c
\\else
\\echo d
\\endif
\\if :{?x}
\\echo set
\\else
\\echo unset
\\endif
\\if maybe
\\echo e
\\endif
""",
            """\
b
unset
""",
            """\
error: \\if: invalid value 'maybe'; expected true or false (on, off, 1, 0)
""",
            id="if",
        ),
        pytest.param(
            """\
\\getenv h NO_SUCH_VARIABLE_HERE
\\echo :{?h}
""",
            """\
FALSE
""",
            "",
            id="getenv",
        ),
        pytest.param(
            """\
\\echo -n a  b
\\echo 'c  d' e
\\qecho -n f
\\qecho g
\\warn -n h
\\warn i
""",
            """\
a bc  d e
fg
""",
            """\
h
i
""",
            id="echo",
        ),
        pytest.param(
            """\
select 1
\\p
\\r
\\p
""",
            """\
select 1
""",
            """\
query buffer cleared
the query buffer is empty
""",
            id="p",
        ),
        pytest.param(
            """\
select 1;
\\p
\\gdesc
\\gset
\\echo :a
\\gset x_
\\echo :x_a
""",
            """\
a
1
select 1
name,type,nullable
a,INTEGER,
1
1
""",
            "",
            id="p 2",
        ),
        pytest.param(
            """\
select 1 \\gset 1x
select 1 \\gset ERR-
\\echo end
""",
            """\
end
""",
            """\
error: 'ERR-' is not a valid variable name
help: a name consists of letters, digits and underscores
warning: the unfinished statement before \\gset was discarded
""",
            id="gset",
        ),
        pytest.param(
            """\
select 1 \\watch x
select 1 \\watch m=x
select 1 \\watch q=1
select 1 \\watch c=x
""",
            "",
            """\
error: \\watch: 'x' is not a number
help: example: \\watch i=5 c=10 m=1
warning: the unfinished statement before \\watch was discarded
error: \\watch: 'x' is not a number
help: example: \\watch i=5 c=10 m=1
warning: the unfinished statement before \\watch was discarded
error: \\watch: unexpected argument 'q=1'
usage: \\watch [SECONDS] [i=SECONDS] [c=TIMES] [m=ROWS]
warning: the unfinished statement before \\watch was discarded
error: \\watch: 'x' is not a number
help: example: \\watch i=5 c=10 m=1
warning: the unfinished statement before \\watch was discarded
""",
            id="watch",
        ),
        pytest.param(
            """\
\\jobs 0
\\jobs 10001
\\jobs x
\\jobs ²
""",
            "",
            """\
error: \\jobs: invalid number of statements '0'
usage: \\jobs [COUNT], at most 10,000
error: \\jobs: invalid number of statements '10001'
usage: \\jobs [COUNT], at most 10,000
error: \\jobs: invalid number of statements 'x'
usage: \\jobs [COUNT], at most 10,000
error: \\jobs: invalid number of statements '²'
usage: \\jobs [COUNT], at most 10,000
""",
            id="jobs",
        ),
        pytest.param(
            """\
\\fetch
\\cancel
\\wait x
\\wait [7]
\\fetch 7
""",
            "",
            """\
error: this connection has not run a statement yet
help: \\jobs lists earlier statements
error: this connection has not run a statement yet
help: \\jobs lists earlier statements
error: no statement ID begins with 'x'
help: \\jobs lists the IDs; for an unlisted statement, give the full ID
error: no such job: [7]
help: \\jobs lists the jobs
error: no statement ID begins with '7'
help: \\jobs lists the IDs; for an unlisted statement, give the full ID
""",
            id="fetch",
        ),
        pytest.param(
            """\
\\n
\\n x
\\n+ x
""",
            "",
            """\
error: no config directory for named queries
help: set SQLSHELL_CONFIG_DIR, XDG_CONFIG_HOME or HOME
error: no config directory for named queries
help: set SQLSHELL_CONFIG_DIR, XDG_CONFIG_HOME or HOME
error: there is no statement to save
usage: \\n+ NAME SQL
""",
            id="n",
        ),
        pytest.param(
            """\
\\transcript
\\log
\\tee
\\o
""",
            "",
            "",
            id="transcript",
        ),
        pytest.param(
            """\
\\chart nope
\\clip nope
\\browse
""",
            "",
            """\
error: no statement has returned rows yet
help: run a statement first: select …;
error: unknown format 'nope'
help: formats: table, vertical, csv, tsv, json, jsonl, unaligned, markdown, html, insert, xlsx, parquet, arrow, arrows
error: \\browse requires an interactive terminal with cursor control
help: use \\g FILE to write a result to a file
""",
            id="chart",
        ),
        pytest.param(
            """\
\\copy
\\copy t
\\copy t from
""",
            "",
            """\
error: \\copy requires a table
usage: \\copy TABLE [(COLUMNS)] FROM|TO 'FILE' [WITH (OPTIONS)]
error: COPY: expected FROM or TO at the end
help: example: \\copy t FROM 'file.csv' WITH (FORMAT csv, HEADER)
error: COPY: expected a file at the end
help: example: \\copy t FROM 'file.csv' WITH (FORMAT csv, HEADER)
""",
            id="copy",
        ),
        pytest.param(
            """\
\\restrict a
\\restrict b
\\unrestrict b
\\echo x
\\unrestrict a
\\unrestrict a
\\echo y
""",
            """\
y
""",
            """\
error: \\restrict: backslash commands are disabled by \\restrict
help: \\unrestrict KEY enables them again
error: \\unrestrict: this is not the key of \\restrict
error: \\echo: backslash commands are disabled by \\restrict
help: \\unrestrict KEY enables them again
error: \\unrestrict: this is not the key of \\restrict
""",
            id="restrict",
        ),
        pytest.param(
            """\
\\h nonsense
""",
            "",
            """\
error: no statement begins with 'nonsense'
help: \\h lists the statements
""",
            id="h",
        ),
        pytest.param(
            """\
\\errverbose
\\cd /no/such/folder
\\errverbose
""",
            """\
there is no previous error
error: cannot change to /no/such/folder: No such file or directory
""",
            "error: cannot change to /no/such/folder: No such file or directory\n",
            id="errverbose",
        ),
        pytest.param(
            """\
\\cd /no/such/folder
\\i /no/such.sql
\\ir no.sql
\\! exit 3
\\echo :SHELL_ERROR :SHELL_EXIT_CODE
\\! true
\\echo :SHELL_ERROR :SHELL_EXIT_CODE
""",
            """\
true 3
false 0
""",
            """\
error: cannot change to /no/such/folder: No such file or directory
error: no such script: /no/such.sql
error: no such script: no.sql
""",
            id="cd",
        ),
        pytest.param(
            """\
\\tutorial x
\\refresh x
\\context a
\\demo x
\\doctor x
\\version x
""",
            "",
            """\
error: \\tutorial: unexpected argument 'x'
usage: \\tutorial
error: \\refresh: unexpected argument 'x'
usage: \\refresh
error: \\context: invalid argument 'a'; expected set or reset
usage: \\context [set|reset] [PART] [VALUE]
error: \\demo: invalid argument 'x'; expected on or off
usage: \\demo [on|off]
error: \\doctor: unexpected argument 'x'
usage: \\doctor
error: \\version: unexpected argument 'x'
usage: \\version
""",
            id="tutorial",
        ),
    ],
)
def test_what_is_printed(script: str, out: str, err: str) -> None:
    async def work() -> Core:
        core = Core()
        core.session.options.on_error = "continue"
        # A service that has announced something is not asked for it.
        core.session.connection.service.transport.extensions = frozenset({"batch"})
        await core.shell.run_script([Own(script)], "")
        await core.shell.aclose()
        return core

    core = asyncio.run(work())
    assert (core.out, core.err) == (out, err)
