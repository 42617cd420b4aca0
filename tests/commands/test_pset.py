"""Every display option affects the formats that it is for, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sqlshell.output.writers.formats import FORMATS
from sqlshell.shell.options import DISPLAY
from tests.conftest import Program
from tests.goldens import agree
from tests.terminal.terminal import Terminal

SQL = "select 1234567.5::double as a, null as b, 'a long text' as c;"
FORMS = [item.name for item in FORMATS if item.several != "refused"]
SCRIPTS = Path(__file__).parent.parent / "golden" / "declared" / "options.txt"


def options() -> list[str]:
    """The options of tests/golden/declared/options.txt, and the values that they get there."""
    return [line.removeprefix("> ") for line in SCRIPTS.read_text().splitlines() if line.startswith("> ")]


def test_every_option_is_here() -> None:
    assert {text.split()[0] for text in options()} | {"format"} == {*DISPLAY, "tuples_only"}


@pytest.mark.slow("runs the program")
def test_every_option_in_every_format(program: Program) -> None:
    """One shell runs them all: each option is put back to what it was."""
    before = {"tuples_only": "off", "header": "on", "maxwidth": "0", "table_style": "auto", "expanded": "off"}
    before |= {"numericlocale": "off", "footer": "on", "fieldsep": "|", "recordsep": "'\\n'", "csv_safe": "off"}
    before |= {"insert_table": "t"}
    before |= {"timing": "off", "echo": "off", "quiet": "off", "on_error": "stop"}
    # Nothing puts NULL's text back to the format's own: it is the last one.
    given = ["", *sorted(options(), key=lambda option: option.startswith("null "))]
    script = []
    for option in given:
        name = option.partition(" ")[0]
        for form in FORMS:
            script += [f"\\pset format {form}", f"\\pset {option}" if option else ""]
            script += [f"\\echo <{option}|{form}>", f"\\warn <{option}|{form}>", SQL, "\\echo </>", "\\warn </>"]
            script += [f"\\pset {name} {before[name]}"] if name in before else []
    done = program("--format", "table", "--insert-table", "t", stdin="\n".join(script) + "\n", env={"LC_ALL": "C"})
    assert done.code == 0, done.err

    def printed(option: str, form: str) -> str:
        """What a format prints: lines of stdout behind `1 `, those of stderr behind `2 `."""
        parts = [text.partition(f"<{option}|{form}>\n")[2].partition("</>\n")[0] for text in (done.out, done.err)]
        marked = [f"{mark} {line}".rstrip() for mark, text in enumerate(parts, 1) for line in text.splitlines()]
        # The first two documents of the script cause a warning, whatever the option.
        kept = [line for line in marked if "several json documents" not in line]
        return "".join(re.sub(r"\([0-9.]+ m?s\)", "(TIME)", line) + "\n" for line in kept)

    plain = {form: printed("", form) for form in FORMS}
    text = "".join(f"{form}:\n{plain[form]}" for form in FORMS)
    for option in options():
        text += f"> {option}\n"
        for form in FORMS:
            shown = printed(option, form)
            text += f"{form}:\n{shown}" * (shown != plain[form])
    agree("declared/options.txt", text)


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
