"""The effect of commands on an unfinished statement, in psql and here: the same lines are typed at both prompts.

`python -m tests.terminal.query_buffer` has a psql of this machine answer, on a server of its own, and writes that down.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pexpect

from tests.conftest import clean_environment

ANSWERS = Path(__file__).parents[1] / "data" / "buffer" / "psql.json"

FILL = "truncate t; insert into t values (1), (2), (3);"
SETUP = f"create table t (a int); {FILL}"
UNFINISHED = "delete from t"

CASES: Mapping[str, tuple[str, ...]] = {
    **{
        command: (UNFINISHED, command)
        for command in (
            *("\\?", "\\h select", "\\l", "\\d t", "\\d", "\\dt", "\\dv", "\\dn", "\\df", "\\di", "\\dT", "\\conninfo"),
            *(
                "\\d nosuch",
                "\\nosuch",
                "\\echo hi",
                "\\qecho hi",
                "\\warn hi",
                "\\set v 1",
                "\\set",
                "\\unset v",
                "\\getenv v HOME",
            ),
            *(
                "\\x",
                "\\x off",
                "\\pset null x",
                "\\pset",
                "\\timing",
                "\\t",
                "\\cd .",
                "\\cd nosuch",
                "\\! true",
                "\\!true",
            ),
            *("\\p", "\\print", "\\w other", "\\w /nosuch/x", "\\r", "\\reset", "\\i empty.sql", "\\i nosuch.sql"),
            *(
                "\\i insert.sql",
                "\\i insert-unfinished.sql",
                "\\ir insert.sql",
                "\\include insert.sql",
                "\\o other",
                "\\o",
                "\\e",
                "\\edit",
            ),
            *(
                "\\g",
                "\\gx",
                "\\gset",
                "\\gexec",
                "\\gdesc",
                "\\crosstabview",
                "\\g other",
                "\\g |cat",
                "\\if true",
                "\\endif",
            ),
            *("\\g (nope=1)", "\\g (format=nope)", "\\gx (format=nope) other", "\\g /nosuch/x", "\\elif", "\\else x"),
        )
    },
    "on the same line": (f"{UNFINISHED} \\x",),
    "two on the same line": (f"{UNFINISHED} \\x \\x",),
    "then the rest": (UNFINISHED, "\\d t", "where a = 2", "\\x", ";"),
    "then a sending one": (UNFINISHED, "\\d t", "where a = 2", "\\g"),
    "sent on the same line": (f"{UNFINISHED} \\echo x \\g",),
    "in parentheses": (f"{UNFINISHED} where a in (", "\\d t", "1);"),
    "in a string": (f"{UNFINISHED} where a::text = '", "\\x", "1';"),
    "in a comment": (f"{UNFINISHED} /*", "\\g", "*/ where a = 3;"),
    "after a comment": (f"{UNFINISHED} -- all", "\\x", "where a = 3;"),
    "a semicolon that does not send": (f"{UNFINISHED} where a = 1\\; {UNFINISHED} where a = 2", "\\x"),
    "edited to its end": (f"{UNFINISHED} where a = 1 /* now */", "\\e"),
    "edited and left": (f"{UNFINISHED} where a = 1 /* same */", "\\e"),
    "the last one, edited and left": (
        f"{UNFINISHED} where a = 1 /* same */;",
        "insert into t values (1) /* same */;",
        "\\e",
    ),
    "the last one, sent again": ("insert into t values (1);", "\\g"),
    "cleared, then the last one again": (UNFINISHED, "\\r", "\\g"),
    "cleared twice": (UNFINISHED, "\\r", "\\r", "\\g"),
    "a part is chosen": (
        UNFINISHED,
        "\\if false",
        "where a = 1",
        "\\elif true",
        "where a = 2",
        "\\else",
        "where a = 3;",
        "\\endif",
        ";",
    ),
    "a part is passed over": (UNFINISHED, "\\if false", "where a = 1;", "\\g", "\\endif", "where a > 1;"),
    "a part that sends": ("\\if true", UNFINISHED, "\\else", "where a = 1;", "\\endif", "where a = 3;"),
    "a variable that changes": ("\\set v 1", f"{UNFINISHED} where a = :v", "\\set v 2", "or a = :v"),
    "a value that ends it": ("\\set v 'delete from t where a = 1;'", ":v"),
    "errors between statements": ("delete from t where a = 1; selct; delete from t where a = 2;",),
    "an unknown command in the way": ("delete from t where a = 1; \\nosuch", "delete from t where a = 2;"),
}
"""Lines that are typed. Before them the table has 1, 2 and 3; after them `probe` goes on with what is unfinished."""


def lines_of(number: int, lines: tuple[str, ...]) -> list[str]:
    """A case as it is typed: each leaves its rows in `N.rows` and what is unfinished in `N.text`."""
    rows = "select coalesce(string_agg(a::text, ',' order by a), 'none') from t"
    return [
        *lines,
        "probe",
        f"\\w {number}.text \\r \\endif \\x off \\t off \\o",
        f"copy ({rows}) to '{{folder}}/{number}.rows'; {FILL}",
    ]


def prepare(folder: Path) -> Mapping[str, str]:
    """Files that the cases name, and the environment with an editor that knows what to do."""
    (folder / "empty.sql").write_text("")
    (folder / "insert.sql").write_text("insert into t values (4);\n")
    (folder / "insert-unfinished.sql").write_text("insert into t values (5)")
    editor = folder / "editor"
    editor.write_text(
        "#!/bin/sh\ngrep -q same $1 && exit\n"
        "if grep -q now $1; then echo ';' >> $1; else sed -i 's/from t/from t where a = 1/' $1; fi\n"
    )
    editor.chmod(0o755)
    return {"EDITOR": str(editor), "PAGER": "cat", "TERM": "dumb"}


def answers(folder: Path, enter: Callable[[str], None], look: Callable[[], object]) -> dict[str, list[str]]:
    """The rows, and what is unfinished, after each case: asked of whatever takes lines that are entered.

    `look` reads what it writes.
    """
    found = {}
    for number, (name, lines) in enumerate(CASES.items()):
        for line in lines_of(number, lines):
            enter(line.replace("{folder}", str(folder)))
        rows = folder / f"{number}.rows"
        until = time.monotonic() + 60
        while not (rows.exists() and rows.read_text().endswith("\n")):
            assert time.monotonic() < until, name
            look()
        found[name] = answer(folder, number)
    return found


def answer(folder: Path, number: int) -> list[str]:
    text = folder / f"{number}.text"
    unfinished = text.read_text() if text.exists() else ""
    return [
        (folder / f"{number}.rows").read_text().split("\n")[-2].strip('"'),
        unfinished.strip().rstrip("; \n").replace("\n\n", "\n"),
    ]


@contextlib.contextmanager
def psql_prompt() -> Iterator[tuple[Path, Any]]:
    """A folder, and a psql that works in it on a server of its own. The server needs a user who is not root."""
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    user = "nobody" if os.geteuid() == 0 else None
    if user:
        shutil.chown(folder, user)
        pwd.getpwnam(user)
    place = folder / "data"
    made = prepare(folder)
    folder.chmod(0o777)
    subprocess.run(
        ["initdb", "-D", place, "-U", "postgres", "-A", "trust", "--no-sync"],
        user=user,
        check=True,
        capture_output=True,
        cwd=folder,
    )
    options = f"-k {folder} -c listen_addresses= -c fsync=off"
    subprocess.run(
        ["pg_ctl", "-D", place, "-o", options, "-l", folder / "log", "-w", "start"],
        user=user,
        check=True,
        capture_output=True,
        cwd=folder,
    )
    try:
        environment = clean_environment(folder, made)
        child = pexpect.spawn(
            "psql",
            ["-X", "-q", "-n", "-h", str(folder), "-U", "postgres"],
            env=environment,
            cwd=str(folder),
            echo=False,
        )

        child.delaybeforesend = None
        child.sendline(SETUP)
        yield folder, child
        child.close(force=True)
    finally:
        subprocess.run(
            ["pg_ctl", "-D", place, "-m", "immediate", "stop"], user=user, check=False, capture_output=True, cwd=folder
        )
        shutil.rmtree(folder, ignore_errors=True)


def of_psql() -> dict[str, list[str]]:
    with psql_prompt() as (folder, child):

        def look() -> None:
            with contextlib.suppress(pexpect.TIMEOUT, pexpect.EOF):
                child.read_nonblocking(1 << 16, timeout=0.01)

        return answers(folder, child.sendline, look)


if __name__ == "__main__":
    ANSWERS.parent.mkdir(parents=True, exist_ok=True)
    ANSWERS.write_text(json.dumps(of_psql(), indent=1) + "\n", encoding="utf-8")
