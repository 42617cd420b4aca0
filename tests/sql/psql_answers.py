"""Records how psql substitutes variables: `python -m tests.sql.psql_answers CONNECTION` runs psql and stores its
output.

CONNECTION is what psql takes, such as `postgresql://user@host/db`; any server will do, for what psql sends is echoed
before the server has said anything about it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ANSWERS = Path(__file__).parents[1] / "data" / "variables" / "psql.json"

VALUES = {
    "x": "5",
    "y": "seven",
    "n": "2",
    "a1": "one",
    "1": "digit",
    "_u": "under",
    "empty": "",
    "quote": "it's",
    "dquote": 'say "hi"',
    "two": "a b",
    "nested": ":x + 1",
    "self": "1 + :self",
    "ping": ":pong",
    "pong": "p :ping",
    "tab": "My Table",
    "star": "*",
    "é": "accent",
    "cast": ":x::int",
    "list": "1, 2, 3",
    "X": "upper",
}

SAME = (
    "select :x",
    "select :x, :y",
    "select:x",
    "select :x:y",
    "select (:x)",
    "select :x+:n",
    "select :'x'",
    "select :'quote'",
    "select :'dquote'",
    "select :'two'",
    "select :'empty'",
    "select :empty 1",
    'select * from :"tab"',
    'select :"dquote"',
    'select :"quote"',
    'select :"x".:"y"',
    "select * from :y.:x",
    "select :star from t",
    "select :unknown",
    "select :'unknown'",
    'select :"unknown"',
    "select :{?x}",
    "select :{?unknown}",
    "select :{?empty}",
    "select :{x}",
    "select :{?}",
    "select ':x'",
    "select 'it''s :x'",
    "select E'\\':x'",
    "select E'a' ':x'",
    "select $$:x$$",
    "select $tag$ :x $$ $tag$",
    "select $1, :x",
    'select ":x"',
    "select 1 -- :x",
    "select 1 /* :x */ + :x",
    "select 1 /* a /* :x */ :x */ + :x",
    "select x::int",
    "select x::text, :x",
    "select :x::int",
    "select '5'::int + :x",
    "select :::x",
    "select a:=:x",
    "select a :=x",
    "select f(a => :x)",
    "select : x",
    "select :",
    "select :;x",
    "select :a1",
    "select :1",
    "select :_u",
    "select :é",
    "select :X :x",
    "select :nested",
    "select :self",
    "select :ping",
    "select :cast",
    "select :x.5",
    "select :x\n+ :n",
    "select * from t where a = :'y' and b in (:list)",
    "select * from t limit :x offset :n",
    "insert into t values (:x, :'two', :'quote')",
    "select '12:30:00'",
    "select time '12:30'",
    "select :'x':'y'",
    "select :'x''y'",
    "select :'two words'",
    "select '':x''",
    "select :x'a'",
    "select ::x",
    'select jsonb \'{"a": ":x"}\'',
    "select b'1' :x",
    "select a ? :x",
    "select array[:x, :n]",
    "select (array[1,2])[ :x ]",
    "update t set a = :x where b = :'quote'",
)
"""Where our rules are psql's."""


def script() -> str:
    lines = ["\\set " + name + " '" + value.replace("'", "''") + "'" for name, value in VALUES.items()]
    for number, text in enumerate(SAME):
        # The first ; of a text ends it too: what is behind it counts as well.
        lines += [f"\\echo @@{number}", f"{text}\n;"]
    return "\n".join([*lines, "\\echo @@end", ""])


def main() -> None:
    command = ["psql", "-X", "-q", "-e", "-d", sys.argv[1]]
    done = subprocess.run(command, input=script(), capture_output=True, text=True, check=False)
    found: dict[str, str] = {}
    for number, text in enumerate(SAME):
        since = done.stdout.index(f"@@{number}\n") + len(f"@@{number}\n")
        until = done.stdout.index(f"@@{number + 1}\n" if number + 1 < len(SAME) else "@@end\n")
        # Rows of the statements that went well come behind the echo, which ends in the statement's own ;.
        found[text] = done.stdout[since:until].split(";")[0].strip()
    ANSWERS.parent.mkdir(parents=True, exist_ok=True)
    ANSWERS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
