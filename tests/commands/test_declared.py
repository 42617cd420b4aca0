"""Every command as it is declared: a change of what it accepts, or of what it changes, is one on purpose."""

from __future__ import annotations

from sqlshell.shell.commands import BUILTIN
from sqlshell.shell.commands.command import Command

DECLARED = """
General
  ? [COMMAND] | help .help !help ; data COMMAND
  q | quit exit .quit .exit !quit !exit ; changes text
  conninfo | conninfo+
  context [set|reset] [PART] [VALUE] ; changes shell, data VALUE
  c [TARGET] [USER] [HOST] [PORT] | connect !connect ; changes shell
  refresh
  history [LETTERS] | s
  errverbose
Objects
  d [PATTERN] | d+ !describe ; data PATTERN
  schema [PATTERN] | .schema sv sv+ ; data PATTERN
  dt [PATTERN] | dt+ .tables ; data PATTERN
  dv [PATTERN] | dv+ ; data PATTERN
  dm [PATTERN] | dm+ ; data PATTERN
  l [PATTERN] | l+ list .databases ; data PATTERN
  dn [PATTERN] | dn+ ; data PATTERN
  di [PATTERN] | di+ .indexes ; data PATTERN
  dT [PATTERN] | dT+ ; data PATTERN
  df [PATTERN] | df+ ; data PATTERN
  sf PATTERN... | sf+ ; data PATTERN
  ds [PATTERN] | ds+ ; data PATTERN
  de [PATTERN] | de+ ; data PATTERN
  dp [PATTERN] | dp+ z z+ ; data PATTERN
  dr [PATTERN] | dr+ dg dg+ du du+ ; data PATTERN
  dq [PATTERN] | dq+ !queries ; data PATTERN
Running statements
  g [(NAME=VALUE...)] [FILE...] ; sends
  gx [(NAME=VALUE...)] [FILE...] | G ; sends
  bg ; sends
  gset [PREFIX] ; sends
  gexec ; sends
  gdesc ; sends
  watch [SECONDS] [i=SECONDS] [c=TIMES] [m=ROWS] ; sends, data SECONDS c=TIMES i=SECONDS m=ROWS
  p | print
  r | reset ; changes text
  w FILE | write
Display options
  x [on|off|auto] ; changes shell
  format [NAME] | .mode ; changes shell
  a ; changes shell
  f [TEXT] ; changes shell
  timing [on|off] | .timer ; changes shell
  theme [NAME] ; changes shell
  t [on|off] | .headers .header ; changes shell
  pset [NAME] [VALUE] | .show !options ; changes shell
Exploring results
  clip [FORMAT] ; sends
  crosstab [ROW] [COLUMN] [VALUE] | crosstabview ; sends, data COLUMN ROW VALUE
  chart [KIND] [COLUMN...] ; sends, data COLUMN KIND
  browse ; sends
  local [SQL...] ; sends, verbatim
Scripts and files
  i FILE | include .read !source !load ; changes text
  ir FILE | include_relative ; changes text
  o [FILE...] | out .output ; changes shell
  once FILE... | .once ; changes shell
  tee [FILE...] | !spool ; changes shell
  e [FILE] | edit !edit
  cd [DIRECTORY] | .cd ; changes text
  ! [TEXT...] | .shell .system !system
Loading and copying
  copy TABLE FROM|TO FILE ... ; verbatim
  export FILE ; sends
  restrict KEY ; changes text
  unrestrict KEY ; changes text
Variables and conditions
  set [NAME] [VALUE...] ; changes text, data VALUE
  unset NAME ; changes text
  trust NAME REGEX ; changes shell
  getenv NAME VARIABLE ; changes text
  prompt [TEXT] NAME ; changes text, data TEXT
  if CONDITION... ; changes text, data CONDITION
  elif CONDITION... ; changes text, data CONDITION
  else ; changes text
  endif ; changes text
  echo [VALUE...] | .print !print ; data VALUE
  qecho [VALUE...] ; data VALUE
  warn [VALUE...] ; data VALUE
Transcripts, logs and named queries
  n [NAME] [WORD...] ; changes text, data WORD
  n+ NAME [SQL...]
  transcript [FILE] ; changes shell
  replay FILE
  log [FILE] | .log ; changes shell
Background and earlier statements
  jobs [COUNT] ; data COUNT
  fetch [ID] | !result ; data ID
  wait [ID] ; data ID
  cancel [ID] | !abort ; data ID
The service's files and version
  attach [FILE] ; changes text
  download TYPE NAME [FILE] [--force]
  version
Learning and troubleshooting
  h [STATEMENT...] ; data STATEMENT
  demo [on|off]
  tutorial
  doctor
"""


def declared(item: Command) -> str:
    """What a command accepts, its other names, and what it sends, changes and takes from a service."""
    flags = [
        *(["sends"] if item.sends else []),
        *([f"changes {item.changes}"] if item.changes else []),
        *(["verbatim"] if item.verbatim else []),
        *([f"data {' '.join(sorted(item.data))}"] if item.data else []),
    ]
    names = f" | {' '.join(item.aliases)}" if item.aliases else ""
    return f"  {item.name} {item.usage}".rstrip() + names + (f" ; {', '.join(flags)}" if flags else "")


def test_what_each_command_declares() -> None:
    lines: list[str] = []
    groups: list[str] = []
    for item in BUILTIN:
        if item.group not in groups:
            groups.append(item.group)
            lines.append(item.group)
        lines.append(declared(item))
    assert lines == DECLARED.strip().split("\n")


def test_each_command_is_explained() -> None:
    assert [item.name for item in BUILTIN if not item.summary or "\n" in item.summary] == []
