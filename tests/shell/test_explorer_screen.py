"""The whole screen of the explorer after each key, drawn into a terminal in memory."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyte
import pytest
from msgspec.structs import replace
from prompt_toolkit.application import create_app_session
from prompt_toolkit.application.current import set_app
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output.vt100 import Vt100_Output

from sqlshell.client.results.partitions import PartitionReader
from sqlshell.errors import OutputError, ShellError
from sqlshell.output.writer import WriterOptions
from sqlshell.result import Batch, Column, Result, StoredColumn
from sqlshell.shell.explorer.browsing import RememberedPositions, browse
from sqlshell.shell.explorer.explorer import Explorer
from sqlshell.shell.explorer.keys import bindings
from sqlshell.shell.explorer.pages import Pages
from sqlshell.shell.interactive import terminal as tty

Row = list[str | None]

COLUMNS = [Column("id", "INTEGER"), Column("name", "VARCHAR"), Column("doc", "VARCHAR")]


@pytest.fixture(autouse=True)
def _utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory of a test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def numbered(count: int) -> list[Row]:
    return [[str(number), f"name {number}", f'{{"n":{number}}}'] for number in range(count)]


class Partitions:
    """The partitions of a result: those after the first wait until they are let go, or fail."""

    def __init__(self, *rows: Sequence[Row], columns: Sequence[Column] = COLUMNS, state: str = "00000") -> None:
        self.rows, self.columns, self.state = rows, list(columns), state
        self.fetched: list[int] = []
        self.error: ShellError | None = None
        self.let_go = asyncio.Event()
        self.let_go.set()

    async def fetch(self, number: int) -> Batch:
        await self.let_go.wait()
        self.fetched.append(number)
        if self.error is not None:
            raise self.error
        return Batch(len(self.columns), rows=list(self.rows[number]), number=number)

    async def result(self) -> Result:
        batches = PartitionReader(self.fetch, await self.fetch(0), len(self.rows), 1)
        counts = [len(rows) for rows in self.rows]
        shown = Result(self.columns, batches, row_counts=counts, partition=self.fetch)
        return replace(shown, sql_state=self.state)


class _Drawn:
    encoding = "utf-8"

    def __init__(self, columns: int, rows: int) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self.screen)
        self.screens: list[str] = []

    def write(self, text: str) -> None:
        self._stream.feed(text)

    def flush(self) -> None:
        self.screens.append(self.text())

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display)


def terminal(columns: int, rows: int) -> tuple[Vt100_Output, _Drawn]:
    drawn, size = _Drawn(columns, rows), Size(rows=rows, columns=columns)
    return Vt100_Output(drawn, lambda: size, term="xterm", enable_cpr=False), drawn  # type: ignore[arg-type]


class Seen:
    """An explorer that runs: press() gives it keys, and screen() is what a person sees then."""

    def __init__(self, explorer: Explorer, drawn: _Drawn) -> None:
        self.explorer, self._drawn = explorer, drawn

    async def press(self, *keys: str) -> str:
        """Press keys one by one, by their names or characters; a longer text is typed. Returns the screen."""
        processor, shown = self.explorer.app.key_processor, ""
        with set_app(self.explorer.app):
            for key in keys:
                queries = key in {"[", "]", "s"} or (key == "enter" and self.explorer._label.startswith("rows where"))
                for one in [NAMED[key]] if key in NAMED else key:
                    processor.feed(KeyPress(one))
                    processor.process_keys()
                if queries and self.explorer._work is not None:
                    await asyncio.wait({self.explorer._work})
                shown = await self.screen()
        return shown

    async def screen(self) -> str:
        await _steps()
        if self.explorer.app.is_running:
            self.explorer.app._redraw()
        return self._drawn.text()

    async def mouse(self, event: str) -> str:
        """What a terminal sends for the mouse, after the bracket; returns the screen."""
        with set_app(self.explorer.app):
            self.explorer.app.key_processor.feed(KeyPress(Keys.Vt100MouseEvent, f"\x1b[{event}"))
            self.explorer.app.key_processor.process_keys()
        return await self.screen()

    async def until(self, seen: str) -> str:
        async for screen in self._screens():
            if seen in screen:
                return screen
        raise AssertionError(f"not seen: {seen}")

    async def _screens(self) -> AsyncIterator[str]:
        """What is seen at every step of the loop, for as long as the test may take."""
        while self.explorer.app.is_running:
            yield await self.screen()


async def _steps() -> None:
    """Let the loop do what the last key has begun."""
    for _ in range(20):
        await asyncio.sleep(0)


NAMED: dict[str, Keys | str] = {
    **{key.value: key for key in Keys if key.value[:2] == "c-"},
    **{key.value: key for key in (Keys.Up, Keys.Down, Keys.Left, Keys.Right, Keys.Home, Keys.End, Keys.F1)},
    **{key.value: key for key in (Keys.PageUp, Keys.PageDown, Keys.Escape)},
    "enter": Keys.ControlM,
    "space": " ",
}


@contextlib.asynccontextmanager
async def opened(
    shown: Partitions | Result, width: int = 60, height: int = 7, options: WriterOptions | None = None
) -> AsyncIterator[Seen]:
    output, drawn = terminal(width, height)
    with create_pipe_input() as typed, create_app_session(input=typed, output=output):
        pages = Pages(shown if isinstance(shown, Result) else await shown.result())
        await pages.open()
        explorer = Explorer(pages, None, options or WriterOptions())
        running = asyncio.ensure_future(explorer.run(bindings(explorer)))
        try:
            await _steps()
            yield Seen(explorer, drawn)
        finally:
            if explorer.app.is_running:
                explorer.app.exit()
            await running
            await pages.close()


def run(work: Callable[[], Awaitable[Any]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 60))


HELP = "? for help, q to quit"


@pytest.mark.parametrize(
    ("keys", "first", "row", "column"),
    [
        ("j", 1, 2, "id integer"),
        ("down down", 1, 3, "id integer"),
        ("j j k", 1, 2, "id integer"),
        ("down up up", 1, 1, "id integer"),
        ("l", 1, 1, "name varchar"),
        ("right right right", 1, 1, "doc varchar"),
        ("l l h", 1, 1, "name varchar"),
        ("right left left", 1, 1, "id integer"),
        ("pagedown", 6, 6, "id integer"),
        ("j c-f", 6, 7, "id integer"),
        ("j space space", 11, 12, "id integer"),
        ("j pagedown pagedown pagedown pagedown pagedown pagedown", 26, 30, "id integer"),
        ("j pagedown pagedown pageup", 6, 7, "id integer"),
        ("j pagedown pagedown c-b b", 1, 2, "id integer"),
        ("j pagedown b b", 1, 1, "id integer"),
        ("G", 26, 30, "id integer"),
        ("c-end", 26, 30, "id integer"),
        ("G j g", 1, 1, "id integer"),
        ("G k c-home", 1, 1, "id integer"),
        ("$", 1, 1, "doc varchar"),
        ("end h", 1, 1, "name varchar"),
        ("$ 0", 1, 1, "id integer"),
        ("$ home", 1, 1, "id integer"),
        (":1,2 enter", 9, 12, "id integer"),
        (":99 enter c-home G", 26, 30, "id integer"),
        ("j : enter", 1, 2, "id integer"),
        ("j :9 escape", 1, 2, "id integer"),
        ("j :9 c-c j", 1, 3, "id integer"),
        ("cDOC enter", 1, 1, "doc varchar"),
        ("c2 enter", 1, 1, "name varchar"),
        ("cO enter", 1, 1, "doc varchar"),
        ("l c enter", 1, 1, "name varchar"),
    ],
)
def test_moving(keys: str, first: int, row: int, column: str) -> None:
    async def work() -> None:
        async with opened(Partitions(numbered(30))) as seen:
            lines = (await seen.press(*keys.split(" "))).split("\n")
        assert lines[0] == "     id │ name    │ doc      │"
        assert [line.split()[0] for line in lines[1:6]] == [str(number) for number in range(first, first + 5)]
        assert lines[6] == f" row {row} of 30 │ {column} │ {HELP}"

    run(work)


def status(screen: str) -> str:
    return screen.rpartition("\n")[2].removeprefix(" ")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (":x1 enter", "row 1 of 9 │ id integer │ 'x1' is not a row number"),
        (":x1 enter j", f"row 2 of 9 │ id integer │ {HELP}"),
        (":² enter", "row 1 of 9 │ id integer │ '²' is not a row number"),
        ("czz enter", 'row 1 of 9 │ id integer │ column "zz" does not exist'),
        ("l - - -", "row 1 of 9 │ id integer │ 2 hidden columns │ cannot hide the only visible column"),
        ("l -", f"row 1 of 9 │ doc varchar │ 1 hidden column │ {HELP}"),
        ("$ -", f"row 1 of 9 │ name varchar │ 1 hidden column │ {HELP}"),
        ("l - +", f"row 1 of 9 │ name varchar │ {HELP}"),
        ("]", f"row 1 of 9 │ id integer │ sorted by id desc │ {HELP}"),
        ("[ =", f"row 1 of 9 │ id integer │ {HELP}"),
        ("l [", f"row 1 of 9 │ name varchar │ sorted by name │ {HELP}"),
        ("j l &[3-7] enter", f"row 1 of 5 │ name varchar │ name matches '[3-7]' │ {HELP}"),
        ("&[3-7] enter l ]", f"row 1 of 5 │ name varchar │ id matches '[3-7]', sorted by name desc │ {HELP}"),
        ("l ] &[3-7] enter =", f"row 8 of 9 │ name varchar │ {HELP}"),
        ("&[3-7] enter j & enter", f"row 5 of 9 │ id integer │ {HELP}"),
        ("&[3-7] enter & escape", f"row 1 of 5 │ id integer │ id matches '[3-7]' │ {HELP}"),
        ("&NULL enter", f"no rows │ id integer │ id matches 'NULL' │ {HELP}"),
        ("&x enter", f"no rows │ id integer │ id matches 'x' │ {HELP}"),
        ("/NAME enter", "row 1 of 9 │ id integer │ no match for 'NAME' below"),
        ("/name.5 enter", f"row 6 of 9 │ name varchar │ {HELP}"),
        ("/5 enter n", "row 6 of 9 │ id integer │ no match for '5' below"),
        ("j /[25] enter n", f"row 6 of 9 │ id integer │ {HELP}"),
        ("j /[25] enter n n", "row 6 of 9 │ id integer │ no match for '[25]' below"),
        ("j /[25] enter n N", f"row 3 of 9 │ id integer │ {HELP}"),
        ("j /[25] enter n N N", "row 3 of 9 │ id integer │ no match for '[25]' above"),
        ("/2 escape / enter n", f"row 3 of 9 │ id integer │ {HELP}"),
        ("j /2 escape n", "row 3 of 9 │ id integer │ no match for '2' below"),
        ("n", f"row 1 of 9 │ id integer │ {HELP}"),
        ("N", f"row 1 of 9 │ id integer │ {HELP}"),
        ("?", "q to go back"),
    ],
)
def test_the_status_line(keys: str, said: str) -> None:
    async def work() -> None:
        async with opened(Partitions(numbered(9)), width=100) as seen:
            assert status(await seen.press(*keys.split(" "))) == said

    run(work)


@pytest.mark.parametrize(
    ("keys", "asked"),
    [
        (":1", "row: 1"),
        ("cna", "column: na"),
        ("/na", "/na"),
        ("l &na", "rows where name matches: na"),
        ("wx.csv", "write to file: x.csv"),
        ("wx.csv escape wy", "write to file: y"),
    ],
)
def test_what_a_key_asks_for(keys: str, asked: str) -> None:
    async def work() -> None:
        async with opened(Partitions(numbered(9))) as seen:
            lines = (await seen.press(*keys.split(" "))).split("\n")
        assert lines[-2] == asked

    run(work)


def test_columns_that_are_resized_moved_frozen_and_hidden() -> None:
    async def work() -> None:
        async with opened(Partitions(numbered(2)), height=3) as seen:
            seen_lines = []
            for keys in (">", "> <", "< <", "}", "} }", "{", "f {", "f - +", "h ]"):
                screen = await seen.press(*keys.split(" "))
                seen_lines.append((keys, *screen.split("\n")[:2], seen.explorer.grid.frozen))
        assert seen_lines == [
            (">", "        id │ name   │ doc     │", '1        0 │ name 0 │ {"n":0} │', 1),
            ("> <", "        id │ name   │ doc     │", '1        0 │ name 0 │ {"n":0} │', 1),
            ("< <", "    id │ name   │ doc     │", '1    0 │ name 0 │ {"n":0} │', 1),
            ("}", "   name   │  id │ doc     │", '1  name 0 │   0 │ {"n":0} │', 1),
            ("} }", "   name   │ doc     │  id │", '1  name 0 │ {"n":0} │   0 │', 1),
            ("{", "   name   │  id │ doc     │", '1  name 0 │   0 │ {"n":0} │', 1),
            ("f {", "    id │ name   │ doc     │", '1    0 │ name 0 │ {"n":0} │', 2),
            ("f - +", "    id │ name   │ doc     │", '1    0 │ name 0 │ {"n":0} │', 0),
            ("h ]", "    id │ name   │ doc     │", '2    1 │ name 1 │ {"n":1} │', 0),
        ]

    run(work)


def test_columns_beyond_the_screen_are_counted() -> None:
    async def work() -> None:
        async with opened(Partitions(numbered(2)), width=65) as seen:
            widened = await seen.press(*">" * 12, "l")
            assert status(widened) == f"row 1 of 2 │ column 2 of 3: name varchar │ {HELP}"

    run(work)


def test_a_narrow_screen_says_how_to_leave() -> None:
    async def work() -> None:
        async with opened(Partitions(numbered(2)), width=40) as seen:
            assert status(await seen.screen()) == f"row 1 of 2 │ {HELP}"

    run(work)


def test_a_long_value_has_the_width_that_is_left() -> None:
    async def work() -> None:
        async with opened(Partitions([["1", "x" * 70, "{}"]]), width=110) as seen:
            assert "x" * 70 in await seen.screen()
        async with opened(Partitions([["1", "x" * 70, "{}"]]), width=80) as seen:
            assert f" {'x' * 65}… " in await seen.screen()

    run(work)


def test_the_keys_are_explained() -> None:
    async def work() -> None:
        async with opened(Partitions(numbered(1)), width=80, height=24) as seen:
            shown = await seen.press("?")
            assert await seen.press("q", "f1") == shown
            assert status(await seen.press("escape")) == f"row 1 of 1 │ id integer │ {HELP}"
        assert [line.rstrip("^v ") for line in shown.split("\n")] == [
            "arrows, h j k l  move; PgUp, PgDn and Space scroll by a screen",
            "g, G             go to the first or last row; Home, End to the first or last",
            "                 column",
            ":                go to a row by its number",
            "c                go to a column by its name or number",
            "/                search for a regular expression; n finds the next match, N",
            "                 the previous one, Esc stops",
            "&                show only rows whose value here matches a regular expression;",
            "                 NULL finds NULLs too, nothing shows all",
            "[ and ]          sort by this column, ascending or descending",
            "=                remove the filter and the sort order",
            "f                freeze the columns up to this one, or unfreeze them;",
            "                 initially, a narrow first column is frozen",
            "-, +             hide this column; show all columns",
            "<, >             make this column narrower or wider",
            "{, }             move this column left or right",
            "Enter            show the full value; JSON and nested values are indented",
            "s                show statistics of this column",
            "v                start or end a selection",
            "y, Y, K          copy the cell or selection, the row, the column",
            "w                write the visible rows and columns to a file; the extension",
            "                 sets the format",
            "q, Esc           exit; Esc first ends a search or a selection",
            " q to go back",
        ]

    run(work)


def test_a_value_and_the_statistics_of_a_column() -> None:
    async def work() -> None:
        async with opened(Partitions(numbered(2)), height=16) as seen:
            value = await seen.press("j", "$", "enter")
            numbers = await seen.press("enter", "0", "s")
            texts = await seen.press("c-c", "l", "s")
            assert status(await seen.press("q")) == f"row 2 of 2 │ name varchar │ {HELP}"
        shown = [[line.rstrip("^v ") for line in screen.split("\n")] for screen in (value, numbers, texts)]
        assert shown == [
            ["doc  varchar  row 2", "", "{", '  "n": 1', "}", *[""] * 10, " q to go back"],
            [
                *("id  integer", "all rows", "", "rows      2", "nulls     0", "distinct  2"),
                *("min       0", "max       1", "mean      0.5", ""),
                *("0  ██████████████████████████████ 1", "1  ██████████████████████████████ 1"),
                *["", "", ""],
                " q to go back",
            ],
            [
                *("name  varchar", "all rows", "", "rows      2", "nulls     0", "distinct  2"),
                *("min       name 0", "max       name 1", ""),
                *("██████████████████████████████ 1  name 0", "██████████████████████████████ 1  name 1"),
                *["", "", "", ""],
                " q to go back",
            ],
        ]

    run(work)


def test_rows_of_other_partitions() -> None:
    async def work() -> None:
        rows = numbered(20)
        partitions = Partitions(rows[:12], rows[12:18], rows[18:])
        async with opened(partitions, height=6) as seen:
            partitions.let_go.clear()
            lines = (await seen.press("G")).split("\n")
            assert lines[1:] == [
                *(f"{number}  …   │ …       │ …        │" for number in range(17, 21)),
                f" row 20 of 20 │ id integer │ {HELP}",
            ]
            partitions.let_go.set()
            lines = (await seen.until("name 17")).split("\n")
            assert [line.split("│")[0] for line in lines[1:5]] == ["17   16 ", "18   17 ", "19   18 ", "20   19 "]
            assert sorted(partitions.fetched) == [0, 1, 2]

    run(work)


def test_a_partition_that_cannot_be_fetched_is_fetched_again_by_the_next_key() -> None:
    async def work() -> None:
        partitions = Partitions(numbered(12), numbered(3))
        async with opened(partitions, height=6) as seen:
            partitions.error = OutputError("gone\x1b")
            await seen.press("G")
            assert status(await seen.until("gone")) == "row 15 of 15 │ id integer │ gone\\x1b"
            partitions.error = None
            await seen.press("k")
            lines = (await seen.until("15    2")).split("\n")
            assert (lines[4].split("│")[0], status(lines[5])) == ("15    2 ", f"row 14 of 15 │ id integer │ {HELP}")

    run(work)


def test_a_search_that_cannot_go_on_and_one_that_is_stopped() -> None:
    async def work() -> None:
        partitions = Partitions(numbered(12), numbered(3))
        async with opened(partitions) as seen:
            partitions.let_go.clear()
            said = status(await seen.press("/zz", "enter"))
            assert said == "row 1 of 15 │ id integer │ searching row 13; Esc stops"
            assert status(await seen.press("escape")) == "row 1 of 15 │ id integer │ stopped"
            partitions.error = OutputError("gone\x1b")
            await seen.press("n")
            partitions.let_go.set()
            assert status(await seen.until("gone")) == "row 1 of 15 │ id integer │ gone\\x1b"

    run(work)


@pytest.mark.parametrize(
    ("keys", "rows", "copied", "said"),
    [
        ("j l y", numbered(3), "name 1", "copied 1 row of 1 column"),
        ("j Y", numbered(3), 'id\tname\tdoc\n1\tname 1\t{"n":1}\n', "copied 1 row of 3 columns"),
        ("j l - Y", numbered(3), 'id\tdoc\n1\t{"n":1}\n', "copied 1 row of 2 columns"),
        ("l K", numbered(3), "name 0\nname 1\nname 2\n", "copied 3 rows of 1 column"),
        ("l v j l y", numbered(3), 'name\tdoc\nname 0\t{"n":0}\nname 1\t{"n":1}\n', "copied 2 rows of 2 columns"),
        ("v j v y", numbered(3), "1", "copied 1 row of 1 column"),
        ("v j escape y", numbered(3), "1", "copied 1 row of 1 column"),
        ("v j y y", numbered(3), "1", "copied 1 row of 1 column"),
        ("v j y", numbered(3), "0\n1\n", "copied 2 rows of 1 column"),
        ("y", [[None, "x", "y"]], "", "copied 1 row of 1 column"),
        ("Y", [["1", None, "a\tb"]], "id\tname\tdoc\n1\t\\N\ta\\tb\n", "copied 1 row of 3 columns"),
    ],
)
def test_copying(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: str, rows: list[Row], copied: str, said: str
) -> None:
    terminal = tmp_path / "tty"
    monkeypatch.setattr(tty, "Path", lambda _: terminal)
    monkeypatch.delenv("TMUX", raising=False)

    async def work() -> None:
        async with opened(Partitions(rows), width=100) as seen:
            assert status(await seen.press(*keys.split(" "))).split(" │ ")[-1] == said

    run(work)
    # Each copy replaces what was there: the file has the last one.
    assert base64.b64decode(terminal.read_bytes().split(b";")[2].rstrip(b"\x07")).decode() == copied


def test_copying_of_a_part_and_of_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = tmp_path / "tty"
    monkeypatch.setattr(tty, "Path", lambda _: terminal)

    async def work() -> None:
        async with opened(Partitions(numbered(2), [["2", "x" * (1 << 20), ""]]), 120, 3) as seen:
            said = status(await seen.press("l", "K"))
            assert said == "row 1 of 3 │ name varchar │ copied 2 rows of 1 column (of the rows in memory)"
            await seen.press("G")
            await seen.until("xxx")
            said = status(await seen.press("Y"))
            assert said == (
                "row 3 of 3 │ name varchar │ too large for the clipboard: 1,048,592 bytes; the limit is 1,048,576"
            )

    run(work)


@pytest.mark.parametrize(
    ("keys", "name", "written", "said"),
    [
        ("", "t.csv", 'id,name,doc\n0,name 0,"{""n"":0}"\n1,name 1,"{""n"":1}"\n', "wrote 2 rows to "),
        ("- }", "t.tsv", 'doc\tname\n{"n":0}\tname 0\n{"n":1}\tname 1\n', "wrote 2 rows to "),
        ("] &1 enter", "t.csv", 'id,name,doc\n1,name 1,"{""n"":1}"\n', "wrote 1 row to "),
        ("]", "t.jsonl", '{"id":1,"name":"name 1","doc":"{\\"n\\":1}"}\n{"id":0,', "wrote 2 rows to "),
    ],
)
def test_writing_a_file(folder: Path, keys: str, name: str, written: str, said: str) -> None:
    async def work() -> None:
        async with opened(Partitions(numbered(2)[:1], numbered(2)[1:]), width=200, height=4) as seen:
            await seen.press("G", *keys.split(" ") if keys else ())
            assert status(await seen.press("w", name, "enter")).endswith(f"{said}{name}")

    run(work)
    assert (folder / name).read_text()[: len(written)] == written


def test_a_file_gets_the_options_and_values_of_files(folder: Path) -> None:
    async def work() -> None:
        columns = [Column("b", "VARBINARY")]
        options = WriterOptions(header=False, null="-")
        async with opened(Partitions([["YWI="], [None]], columns=columns), options=options) as seen:
            await seen.press("w", "t.csv", "enter")

    run(work)
    assert (folder / "t.csv").read_text() == "\\x6162\n-\n"


def test_a_compressed_file(folder: Path) -> None:
    async def work() -> None:
        async with opened(Partitions(numbered(2))) as seen:
            await seen.press("l", "-", "w", "t.csv.gz", "enter")

    run(work)
    assert gzip.decompress((folder / "t.csv.gz").read_bytes()) == b'id,doc\n0,"{""n"":0}"\n1,"{""n"":1}"\n'


def test_a_file_that_cannot_be_written_is_not_left(folder: Path) -> None:
    async def work() -> None:
        partitions = Partitions(numbered(2), numbered(2))
        async with opened(partitions, width=200, height=3) as seen:
            said = status(await seen.press("w", "t.nope", "enter"))
            assert said == "row 1 of 4 │ id integer │ t.nope: unknown file extension"
            assert status(await seen.press("w", "enter")) == f"row 1 of 4 │ id integer │ {HELP}"
            partitions.let_go.clear()
            said = status(await seen.press("w", "t.csv", "enter"))
            assert said == "row 1 of 4 │ id integer │ writing: 2 rows; Esc stops"
            assert status(await seen.press("escape")) == "row 1 of 4 │ id integer │ stopped"
            partitions.error = OutputError("gone")
            partitions.let_go.set()
            await seen.press("w", "t.csv", "enter")
            assert status(await seen.until("gone")) == "row 1 of 4 │ id integer │ gone"

    run(work)
    assert list(folder.iterdir()) == []


def test_the_mouse() -> None:
    async def work() -> None:
        async with opened(Partitions(numbered(30))) as seen:
            found = [(status(await seen.mouse(event)), seen.explorer.grid.top) for event in MOUSE]
        assert found == [(f"row {row} of 30 │ {column} │ {HELP}", top) for row, column, top in MOVED]

    run(work)


MOUSE = ["<65;1;1M", "<65;9;2M", "<64;1;1M", "<0;11;2M", "<0;11;3m", "<0;11;1M", "<0;5;6M", "<64;1;1M", "<64;1;1M"]
"""Wheel down twice and up, a click and its end, clicks at the names and at the last line, wheel up twice."""
MOVED = [
    *[(4, "id integer", 0), (7, "id integer", 2), (4, "id integer", 2)],
    *[(3, "name varchar", 2), (3, "name varchar", 2), (3, "name varchar", 2)],
    *[(7, "id integer", 2), (4, "id integer", 2), (1, "id integer", 0)],
]


@pytest.mark.parametrize(
    "keys", ["q", "escape", "c-c", "c-d", "v escape q", "/1 enter escape q", "v q q", "? q q", "s c-c q", "/ c-c q"]
)
def test_it_is_left(keys: str) -> None:
    async def work() -> None:
        async with opened(Partitions(numbered(3))) as seen:
            *before, last = keys.split(" ")
            for key in before:
                await seen.press(key)
                assert seen.explorer.app.is_running
            await seen.press(last)
            assert not seen.explorer.app.is_running

    run(work)


class Whole:
    """A file of the result that the service no longer has."""

    def __init__(self) -> None:
        self.asked = 0

    async def table(self) -> None:
        self.asked += 1


def test_a_part_is_arranged_and_counted_where_the_service_has_no_file_of_the_rest() -> None:
    async def work() -> None:
        whole = Whole()
        result = await Partitions(numbered(3), numbered(3)).result()
        result.whole = whole  # type: ignore[assignment]
        async with opened(result, width=100, height=5) as seen:
            assert status(await seen.press("]")) == (
                f"row 1 of 3 │ id integer │ sorted by id desc (only the 3 rows in memory) │ {HELP}"
            )
            assert whole.asked == 1
            lines = (await seen.press("l", "s")).split("\n")
            assert [line.rstrip("^v ") for line in lines] == [
                *("name  varchar", "only the 3 rows in memory, of 6", "", "rows      3", " q to go back")
            ]
            assert status(await seen.press("q", "=")) == f"row 3 of 6 │ name varchar │ {HELP}"
            await seen.press("G")
            await seen.until("6    2")
            lines = (await seen.press("s")).split("\n")
            assert lines[1].rstrip("^ ") == "all rows"
            assert whole.asked == 1

    run(work)


class Held:
    """A file of the result: the numbers and names of 4 rows, in DuckDB."""

    columns = (
        StoredColumn(Column("id", "INTEGER"), "id", "bigint", "id::VARCHAR"),
        StoredColumn(Column("name"), "name", "varchar", "name"),
    )
    source = "held"

    def __init__(self) -> None:
        self._database = duckdb.connect()
        self._database.execute(
            "create table held as select i as id, 'name ' || i as name, i as file_row_number from range(4) t(i)"
        )
        self.error: OutputError | None = None
        self.closed = False

    async def table(self) -> Held:
        return self

    async def query(self, sql: str) -> list[tuple[Any, ...]]:
        if self.error is not None:
            raise self.error
        return self._database.execute(sql).fetchall()

    async def texts(self, sql: str) -> list[Row]:
        return [row for (row,) in await self.query(sql)]

    def close(self) -> None:
        self._database.close()
        self.closed = True


def test_all_rows_are_arranged_and_counted_by_the_file_of_the_service() -> None:
    async def work() -> None:
        held = Held()
        rows = [row[:2] for row in numbered(4)]
        partitions = Partitions(rows[:2], rows[2:], columns=COLUMNS[:2])
        result = await partitions.result()
        result.whole = held  # type: ignore[assignment]
        partitions.let_go.clear()
        async with opened(result, width=100, height=5) as seen:
            await seen.press("]")
            assert [line.strip() for line in (await seen.until("name 1")).split("\n")] == [
                *("id │ name   │", "4    3 │ name 3 │", "3    2 │ name 2 │", "2    1 │ name 1 │"),
                f"row 1 of 4 │ id integer │ sorted by id desc │ {HELP}",
            ]
            await seen.press("l", "&[1-3]", "enter")
            assert [line.strip() for line in (await seen.until("name 1")).split("\n")] == [
                *("id │ name   │", "4    3 │ name 3 │", "3    2 │ name 2 │", "2    1 │ name 1 │"),
                f"row 1 of 3 │ name varchar │ name matches '[1-3]', sorted by id desc │ {HELP}",
            ]
            lines = (await seen.press("h", "s")).split("\n")
            assert [line.rstrip("^v ") for line in lines] == [
                *("id  integer", "all rows", "", "rows      4", " q to go back")
            ]
            held.error = OutputError("gone\x1b")
            assert status(await seen.press("q", "[")) == (
                "row 1 of 3 │ id integer │ name matches '[1-3]', sorted by id desc │ gone\\x1b"
            )
            assert not held.closed
        assert held.closed

    run(work)


@pytest.mark.parametrize(
    ("state", "counts", "said"),
    [("01R01", True, "the first "), ("00000", True, ""), ("00000", False, "")],
)
def test_a_result_that_ends_at_a_limit(state: str, counts: bool, said: str) -> None:
    async def work() -> None:
        result = await Partitions(numbered(3), state=state).result()
        result.row_counts = result.row_counts if counts else None
        async with opened(result, width=100) as seen:
            assert status(await seen.screen()) == f"row 1 of {said}3 │ id integer │ {HELP}"

    run(work)


def test_a_result_is_browsed_where_it_was_left() -> None:
    async def work() -> None:
        output, drawn = terminal(60, 7)
        with create_pipe_input() as typed, create_app_session(input=typed, output=output):
            places = RememberedPositions()
            typed.send_text("jlq")
            first = replace(await Partitions(numbered(3)).result(), statement_id="one")
            summary = await browse(first, None, places)
            assert (summary.rows, summary.complete, summary.waited > 0) == (3, True, True)
            drawn.screens.clear()
            typed.send_text("q")
            again = replace(await Partitions(numbered(3)).result(), statement_id="one")
            await browse(again, None, places)
            assert [status(screen) for screen in drawn.screens if screen.strip()] == [
                f"row 2 of 3 │ name varchar │ {HELP}"
            ]

    run(work)
