"""Every display option affects the formats that it is for, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlshell.output.writers.formats import FORMATS
from sqlshell.shell.options import DISPLAY
from tests.conftest import Program
from tests.terminal.terminal import Terminal

SQL = "select 1234567.5::double as a, null as b, 'a long text' as c;"
PLAIN = {
    "table": "+-----------+------+-------------+\n|         a | b    | c           |\n"
    "|-----------+------+-------------|\n| 1234567.5 | NULL | a long text |\n+-----------+------+-------------+\n",
    "vertical": "-[ RECORD 1 ]+----------\na | 1234567.5\nb | NULL\nc | a long text\n",
    "csv": "a,b,c\n1234567.5,,a long text\n",
    "tsv": "a\tb\tc\n1234567.5\t\\N\ta long text\n",
    "json": '[{"a":1234567.5,"b":null,"c":"a long text"}]\n',
    "jsonl": '{"a":1234567.5,"b":null,"c":"a long text"}\n',
    "unaligned": "a|b|c\n1234567.5||a long text\n(1 row)\n",
    "markdown": "| a | b | c |\n| ---: | --- | --- |\n| 1234567.5 | NULL | a long text |\n\n",
    "insert": "INSERT INTO t (a, b, c) VALUES\n  (1234567.5, NULL, 'a long text');\n",
}
DIFFERENT: dict[str, dict[str, str]] = {
    "tuples_only on": {
        "table": "+-----------+------+-------------+\n| 1234567.5 | NULL | a long text |\n"
        "+-----------+------+-------------+\n",
        "vertical": "a | 1234567.5\nb | NULL\nc | a long text\n",
        "csv": "1234567.5,,a long text\n",
        "tsv": "1234567.5\t\\N\ta long text\n",
        "unaligned": "1234567.5||a long text\n",
    },
    "footer off": {"unaligned": PLAIN["unaligned"].replace("(1 row)\n", "")},
    "fieldsep ,": {"unaligned": PLAIN["unaligned"].replace("|", ",")},
    "recordsep ^": {"unaligned": "a|b|c^1234567.5||a long text^(1 row)\n"},
    "csv_safe on": {},
    "insert_table u": {"insert": PLAIN["insert"].replace("INTO t", "INTO u")},
    "tuples_only off": {},
    "header on": {},
    "null ∅": {
        "table": PLAIN["table"].replace("+------+", "+-----+").replace("NULL", "∅  ").replace("| b    |", "| b   |"),
        "vertical": PLAIN["vertical"].replace("NULL", "∅"),
        "csv": PLAIN["csv"].replace(",,", ",∅,"),
        "tsv": PLAIN["tsv"].replace("\\N", "∅"),
        "unaligned": PLAIN["unaligned"].replace("||", "|∅|"),
        "markdown": PLAIN["markdown"].replace("NULL", "∅"),
    },
    "maxwidth 5": {
        "table": "+-----------+------+-------+\n|         a | b    | c     |\n|-----------+------+-------|\n"
        "| 1234567.5 | NULL | a lo… |\n+-----------+------+-------+\n",
        "vertical": PLAIN["vertical"].replace("a long text", "a lo…"),
    },
    "table_style simple": {
        "table": "        a  b     c\n---------  ----  -----------\n1234567.5  NULL  a long text\n",
    },
    "expanded on": {
        "table": PLAIN["vertical"],
        "unaligned": "a|1234567.5\nb|\nc|a long text\n",
        "csv": "a,1234567.5\nb,\nc,a long text\n",
    },
    "expanded 1": {
        "table": PLAIN["vertical"],
        "unaligned": "a|1234567.5\nb|\nc|a long text\n",
        "csv": "a,1234567.5\nb,\nc,a long text\n",
    },
    "expanded off": {},
    # No terminal, nothing to fit into.
    "expanded auto": {},
    "wide fold": {},
    "pager off": {},
    "prompt_color red": {},
    "prompt {database}": {},
    "rprompt {jobs}": {},
    "toolbar {jobs}": {},
    "title {jobs}": {},
    "prompt_lines 2": {},
    "notify 1s": {},
    "completion off": {},
    "multiline off": {},
    "vi on": {},
    "theme forest": {},
    # What a terminal alone shows, or opens.
    "types off": {},
    "browse 5": {},
    # A limit of the prompt alone.
    "rowlimit 0": {},
    "max_rows 0": {},
    "duration 0": {},
    "allow_gaps on": {},
    "numericlocale on": {
        "table": PLAIN["table"]
        .replace("1234567.5", "1,234,567.5")
        .replace("-+------+", "---+------+")
        .replace("|         a", "|           a"),
        "vertical": PLAIN["vertical"].replace("1234567.5", "1,234,567.5"),
    },
    "quiet on": {},
    "verbosity terse": {},
    "on_error continue": {},
    "timing on": {},
    "echo on": {},
}
SAID = {"timing on": "1 row (", "echo on": SQL.rstrip(";"), "maxwidth 5": "1 value truncated"}


def test_every_option_is_here() -> None:
    assert {text.split()[0] for text in DIFFERENT} | {"format"} == {*DISPLAY, "tuples_only"}
    assert set(PLAIN) == {item.name for item in FORMATS if item.several != "refused"}


@pytest.mark.slow("runs the program")
def test_every_option_in_every_format(program: Program) -> None:
    """One shell runs them all: each option is put back to what it was."""
    before = {"tuples_only": "off", "header": "on", "maxwidth": "0", "table_style": "auto", "expanded": "off"}
    before |= {"numericlocale": "off", "footer": "on", "fieldsep": "|", "recordsep": "'\\n'", "csv_safe": "off"}
    before |= {"insert_table": "t"}
    before |= {"timing": "off", "echo": "off", "quiet": "off", "on_error": "stop"}
    script = []
    for option in DIFFERENT:
        name = option.split()[0]
        # Nothing puts NULL's text back to the format's own: it is the last one.
        if name == "null":
            continue
        for form in PLAIN:
            script += [f"\\pset format {form}", f"\\pset {option}", f"\\echo <{option}|{form}>"]
            script += [f"\\warn <{option}|{form}>", SQL, "\\echo </>", "\\warn </>"]
            script += [f"\\pset {name} {before[name]}"] if name in before else []
    script += ["\\pset null ∅"]
    for form in PLAIN:
        script += [f"\\pset format {form}", f"\\echo <null ∅|{form}>", f"\\warn <null ∅|{form}>", SQL]
        script += ["\\echo </>", "\\warn </>"]
    done = program("--format", "table", "--insert-table", "t", stdin="\n".join(script) + "\n", env={"LC_ALL": "C"})
    assert done.code == 0, done.err
    for option, told in DIFFERENT.items():
        for form, plain in PLAIN.items():
            shown = done.out.partition(f"<{option}|{form}>\n")[2].partition("</>\n")[0]
            assert shown == told.get(form, plain), (option, form)
            message = done.err.partition(f"<{option}|{form}>\n")[2].partition("</>\n")[0]
            message = "" if "warning: the output contains several json documents" in message else message
            wanted = SAID.get(option, "") if option != "maxwidth 5" or form in told else ""
            assert (wanted in message) if wanted else (message == ""), (option, form, message)


def test_records_without_their_numbers(program: Program) -> None:
    done = program("-q", "--format", "vertical", stdin="\\t\nselect range as a, 'x' as bb from range(3);\n")
    assert done.out == "a  | 0\nbb | x\n\na  | 1\nbb | x\n\na  | 2\nbb | x\n"


@pytest.mark.slow("runs the program four times")
def test_quiet_holds_from_then_on(program: Program) -> None:
    """In the words of \\pset and of psql's variable."""
    job = "select 1;&\n\\wait\n"
    for words in ("\\pset quiet on\n", "\\set QUIET on\n"):
        done = program(stdin=f"\\pset quiet off\n{job}")
        assert "finished" in done.err
        assert "finished" not in program(stdin=f"{words}{job}").err


@pytest.mark.slow("a terminal")
def test_vi_keys_from_the_next_prompt_on(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-q")
    terminal.prompt()
    terminal.enter("\\pset vi on")
    terminal.wait("Vi is on.\n")
    terminal.type("zselect 41 + 1 as n;")
    terminal.wait("as n;")
    terminal.type("\x1b")
    terminal.screen_after(0.8)
    terminal.type("0x\r")
    terminal.wait("42 │")
    terminal.close()
