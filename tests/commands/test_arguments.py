"""Every command without arguments, with too many and with wrong ones: a clear error, never a traceback."""

from __future__ import annotations

import re

import pytest

from sqlshell.shell.commands import BUILTIN, Command, table
from sqlshell.shell.commands.examples import EXAMPLES
from sqlshell.shell.commands.help_text import COLUMN, overview
from tests.conftest import Program

GROUPS = list(dict.fromkeys(item.group for item in BUILTIN))


def _takes_any(item: Command) -> bool:
    return item.usage.rstrip("]").endswith("...")


def _conditions_last(item: Command) -> int:
    """What is behind a condition that cannot be read does not run."""
    return ["if", "elif"].index(item.name) + 1 if item.name in {"if", "elif"} else 0


WORDS = re.compile(r"[A-Z]+|--[a-z]+|[a-z]+(\|[a-z]+)*|[icm]=[A-Z]+|FROM\|TO|\(NAME=VALUE\.\.\.\)|\.\.\.")
PLACEHOLDERS = (
    "COLUMN COMMAND CONDITION COUNT DIRECTORY FILE FORMAT FROM HOST ID KEY KIND LETTERS NAME PART PATTERN PORT PREFIX "
    "REGEX ROW ROWS SECONDS SQL STATEMENT TABLE TARGET TEXT TIMES TO TYPE USER VALUE VARIABLE WORD"
)
"""What an argument is called in all commands that take one."""


def test_a_usage_is_written_as_all_others() -> None:
    for item in BUILTIN:
        for part in re.sub(r"\[(\S+)\]", r"\1", item.usage).split():
            word = part if part.startswith(("(", ".")) else part.removesuffix("...")
            assert WORDS.fullmatch(word), f"\\{item.name} {item.usage}"
    called = {name for item in BUILTIN for name in re.findall("[A-Z]+", item.usage)}
    assert called == set(PLACEHOLDERS.split())


def test_values_of_a_service_are_for_arguments_that_there_are() -> None:
    for item in BUILTIN:
        assert item.data <= {*re.findall(r"[a-z]+=[A-Z]+|[A-Z]+", item.usage)}, item.name


def test_no_two_commands_have_a_name() -> None:
    assert table(BUILTIN)["help"].name == "?"
    with pytest.raises(ValueError, match=r"two commands are named \\x$"):
        table([item for item in BUILTIN if item.name == "x"] * 2)


def test_too_many_arguments(program: Program) -> None:
    asked = [item for item in BUILTIN if not _takes_any(item)]
    assert len(asked) > 40
    done = program("--on-error", "continue", "-q", stdin="".join(f"\\{item.name} a b c d e f g h\n" for item in asked))
    assert done.code == 2
    for number, item in enumerate(asked, 1):
        line = next(line for line in done.err.splitlines() if line.startswith(f"<stdin>:{number}: error: "))
        assert f"\\{item.name}" in line, line


def test_none_where_some_are_needed(program: Program) -> None:
    asked = [item for item in BUILTIN if item.usage and not item.usage.split()[-1].startswith("[")]
    asked.sort(key=_conditions_last)
    done = program("--on-error", "continue", "-q", stdin="".join(f"\\{item.name}\n" for item in asked))
    for number, item in enumerate(asked, 1):
        line = next(line for line in done.err.splitlines() if line.startswith(f"<stdin>:{number}: error: "))
        assert f"\\{item.name} requires" in line, line


def test_words_that_are_none_of_those_allowed(program: Program) -> None:
    asked = [item for item in BUILTIN if "|" in item.usage.split(" ")[0]]
    assert {item.name for item in asked} >= {"x", "timing", "t", "context"}
    done = program("--on-error", "continue", "-q", stdin="".join(f"\\{item.name} sideways\n" for item in asked))
    for number, item in enumerate(asked, 1):
        line = next(line for line in done.err.splitlines() if line.startswith(f"<stdin>:{number}: error: "))
        assert f"\\{item.name}: invalid argument 'sideways'; expected" in line, line


def test_a_quote_that_is_not_closed(program: Program) -> None:
    asked = [item for item in BUILTIN if item.usage and not item.verbatim and "TEXT..." not in item.usage]
    asked.sort(key=_conditions_last)
    done = program("--on-error", "continue", "-q", stdin="".join(f"\\{item.name} 'a\n" for item in asked))
    for number, item in enumerate(asked, 1):
        line = next(line for line in done.err.splitlines() if line.startswith(f"<stdin>:{number}: error: "))
        assert "unterminated quote" in line, (item.name, line)


def test_help_of_each(program: Program) -> None:
    done = program("-q", stdin="".join(f"\\? {item.name}\n" for item in BUILTIN))
    assert done.code == 0, done.err
    told = " ".join(done.out.split())
    for item in BUILTIN:
        assert f"\\{item.name} {item.usage}".rstrip() in told
        assert " ".join(item.help.split()) in told
        assert len(item.summary) <= 120, item.name


def test_the_usual_commands_fit_a_small_screen(program: Program) -> None:
    done = program("-q", "-c", "\\?", env={"COLUMNS": "80"})
    lines = done.out.splitlines()
    assert len(lines) < 24 and max(map(len, lines)) < 80
    assert "  \\copy TABLE FROM|TO …   Copy rows between a table and a file" in lines
    assert lines[-1].startswith(f"\\? all lists all {len(BUILTIN)} commands")


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_the_list_of_commands_is_short_and_cut_in_no_word(program: Program, columns: int) -> None:
    done = program("-q", "-c", "\\? all", env={"COLUMNS": str(columns)})
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert max(map(len, lines)) < columns
    known = {word for item in BUILTIN for word in f"\\{item.name} {item.usage} {item.help}".split()}
    known |= {word for title in GROUPS for word in title.split()} | {"…", *lines[0].split(), *lines[1].split()}
    for word in done.out.split():
        assert any(word == each.rstrip(".,;:") or word == each for each in known), word
    heads = [line.split()[0] for line in lines if line.startswith("  \\")]
    assert heads == [f"\\{item.name}" for item in BUILTIN]
    if columns == 80:
        assert len(lines) <= len(BUILTIN) + 2 * len(GROUPS) + 18


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".quit\nselect 1;", ""),
        ("!quit\nselect 1;", ""),
        (".help q", "Exit the shell"),
        (".tables", ""),
        (".databases", ""),
        (".mode csv", "Format is csv"),
        (".mode line", "Format is vertical"),
        ("\\pset format aligned", "Format is table."),
        (".headers off", "off"),
        (".timer on", "Timing is on"),
        (".show", "rowlimit"),
        ("!help", "\\? all lists all"),
        ("!options", "maxwidth"),
        ("!queries", ""),
    ],
)
def test_commands_of_other_shells(program: Program, text: str, message: str) -> None:
    done = program(stdin=f"{text}\n")
    assert done.code == 0, done.err
    assert message in done.out + done.err
    assert "select 1" not in done.out


def test_the_list_of_commands_fits_a_large_screen() -> None:
    for width, columns, most in ((79, 1, None), (119, 2, None), (199, 3, 57)):
        text = overview(BUILTIN, width, columns=3)
        lines = text.splitlines()
        assert max(map(len, lines)) <= width
        assert most is None or len(lines) <= most
        titles = [title for title in GROUPS if f"{title}\n" in f"{text}\n" or f"{title}   " in text]
        assert len(titles) == len(GROUPS)
        assert text.count("  \\") >= len(BUILTIN)
        assert (columns > 1) == any("   \\" in line[COLUMN:] for line in lines)


@pytest.mark.slow("runs the program")
def test_every_example_runs(program: Program) -> None:
    """Those that only a prompt can run are for it alone; what an example makes is for those after it."""
    texts = [text for name, found in EXAMPLES.items() if name not in {"browse", "clip", "chart"} for text in found]
    given = [argument for text in ("\\demo", *texts) for argument in ("-c", text)]
    done = program("--on-error", "continue", *given)
    assert done.code == 0, done.err


def test_an_example_is_for_a_command_that_there_is(program: Program) -> None:
    names = {item.name for item in BUILTIN}
    assert not EXAMPLES.keys() - names
    shown = program("-c", "\\? gset").out
    assert "Examples on the data of \\demo:\n  1  select max(id)" in shown
    assert "Ctrl-X" not in shown
