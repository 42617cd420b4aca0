"""The HTML format in a browser: headless Chromium, driven over its debugging port."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from sqlshell.output.writer import Summary, WriterOptions
from sqlshell.output.writers.html import HtmlWriter
from sqlshell.result import Batch, Column, Rows

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.conformance, pytest.mark.skipif(CHROMIUM is None, reason="requires Chromium")]

HOSTILE = [
    "</script><script>document.title='owned'</script>",
    "<!--<script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "javascript:document.title='owned'",
    "\u2028\u2029\u202e",
    "]]>",
    "&lt;b&gt;",
]
Page = Callable[[str], Any]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("browser")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--window-size=1000,700"]
    quiet = subprocess.DEVNULL
    browser = subprocess.Popen([str(CHROMIUM), *options, f"--user-data-dir={folder}"], stdout=quiet, stderr=quiet)
    told = folder / "DevToolsActivePort"
    try:
        while not (told.exists() and told.read_text().count("\n")):
            assert browser.poll() is None
            time.sleep(0.05)
        yield int(told.read_text().split()[0])
    finally:
        browser.kill()
        browser.wait()


@pytest.fixture
def page(port: int, tmp_path: Path) -> Iterator[Callable[[list[Column], Rows], Page]]:
    """Open a result in the browser: a function that evaluates JavaScript there."""
    opened = contextlib.ExitStack()

    def open_page(columns: list[Column], rows: Rows) -> Page:
        writer = HtmlWriter(WriterOptions())
        path = tmp_path / "result.html"
        half = len(rows) // 2
        with path.open("wb") as file:
            file.writelines(writer.begin(columns))
            file.writelines(writer.write(Batch(len(columns), rows=rows[:half])))
            file.writelines(writer.write(Batch(len(columns), rows=rows[half:])))
            file.writelines(writer.end(Summary(len(rows), True)))
        target = httpx.put(f"http://127.0.0.1:{port}/json/new?{path.as_uri()}", trust_env=False).json()
        socket = opened.enter_context(connect(target["webSocketDebuggerUrl"], max_size=None))

        def evaluate(script: str) -> Any:
            params = {"expression": script, "returnByValue": True, "awaitPromise": True}
            socket.send(json.dumps({"id": 1, "method": "Runtime.evaluate", "params": params}))
            answer = json.loads(socket.recv())
            assert "exceptionDetails" not in answer["result"], answer
            return answer["result"]["result"].get("value")

        while evaluate("document.readyState + document.title") != "completeResult":
            time.sleep(0.05)
        return evaluate

    with opened:
        yield open_page


CELLS = "[...document.querySelectorAll('tbody tr:not(.gap)')].map(row => [...row.cells].map(cell => cell.textContent))"


def sort(page: Page, column: int) -> list[list[str]]:
    page(f"document.querySelectorAll('th button')[{column}].click()")
    return page(CELLS)  # type: ignore[no-any-return]


def find(page: Page, text: str) -> list[list[str]]:
    page(f"document.querySelector('input').value = {json.dumps(text)}; choose()")
    return page(CELLS)  # type: ignore[no-any-return]


def test_hostile_cells_are_text(page: Callable[[list[Column], Rows], Page]) -> None:
    shown = page([Column(text) for text in HOSTILE], [list(HOSTILE), [None] * len(HOSTILE)])
    assert shown("document.title") == "Result"
    assert shown(CELLS)[0][:4] == HOSTILE[:4]
    assert shown(CELLS)[0][4] == "\\u2028\\u2029\\u202e"
    assert shown(CELLS)[1] == ["NULL"] * len(HOSTILE)
    assert shown("[...document.querySelectorAll('th b')].map(name => name.textContent)")[0] == HOSTILE[0]
    assert shown("document.querySelectorAll('img, a, iframe').length") == 0
    # The policy holds for whatever a page could be made to contain.
    shown("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = 1'}))")
    assert shown("window.ran") is None
    assert shown("fetch('https://example.com').then(() => false, () => true)")


def test_sorting_and_searching(page: Callable[[list[Column], Rows], Page]) -> None:
    rows: Rows = [
        ["10", "b"],
        [None, "ä"],
        ["9", None],
        ["9007199254740993", "a"],
        ["9007199254740992", "B"],
        ["-1.5", ""],
    ]
    shown = page([Column("n", "DECIMAL(38,1)"), Column("s")], rows)
    numbers = ["-1.5", "9", "10", "9007199254740992", "9007199254740993"]
    assert [row[0] for row in sort(shown, 0)] == [*numbers, "NULL"]
    assert [row[0] for row in sort(shown, 0)] == [*numbers[::-1], "NULL"]
    assert [row[0] for row in sort(shown, 0)] == [row[0] or "NULL" for row in rows]
    assert [row[1] for row in sort(shown, 1)] == ["", "a", "ä", "b", "B", "NULL"]
    assert shown("document.querySelectorAll('th')[1].getAttribute('aria-sort')") == "ascending"
    assert [row[1] for row in find(shown, "B")] == ["b", "B"]
    assert shown("document.querySelector('output').textContent") == "2 of 6 rows"
    assert find(shown, "nowhere") == []


def test_sorting_decimals_beyond_the_precision_of_a_double(page: Callable[[list[Column], Rows], Page]) -> None:
    ordered = ["-0.2000000000000000001", "-0.2000000000000000000", "0.5000000000000000001", "0.5000000000000000002"]
    shown = page([Column("n", "DECIMAL(38,19)")], [[text] for text in reversed(ordered)])
    assert [row[0] for row in sort(shown, 0)] == ordered


def test_a_hundred_thousand_rows(page: Callable[[list[Column], Rows], Page]) -> None:
    rows: Rows = [[str(number), f"name {number * 7919 % 100_003}", "x" * 40] for number in range(100_000)]
    shown = page([Column("id", "INTEGER"), Column("name"), Column("pad")], rows)
    assert shown("document.querySelectorAll('tbody tr').length") < 200
    assert shown(CELLS)[0] == rows[0]
    shown("view.scrollTop = view.scrollHeight; draw()")
    assert shown(CELLS)[-1] == rows[-1]
    shown("view.scrollTop = 50000 * 26; draw()")
    assert rows[50_000] in shown(CELLS)
    assert sort(shown, 1)[0] == rows[0]
    assert find(shown, "name 77777")[0][1] == "name 77777"


def test_rows_beyond_what_a_browser_can_be_high(page: Callable[[list[Column], Rows], Page]) -> None:
    rows: Rows = [[str(number)] for number in range(400_000)]
    shown = page([Column("id", "INTEGER")], rows)
    assert shown("view.scrollHeight") < 9_000_000
    shown("view.scrollTop = view.scrollHeight; draw()")
    assert shown(CELLS)[-1] == rows[-1]
    bottom = shown(
        "[...document.querySelectorAll('tbody tr:not(.gap)')].at(-1).getBoundingClientRect().bottom"
        " - view.getBoundingClientRect().bottom"
    )
    assert abs(bottom) < 30


def test_it_looks_the_same_without_the_network() -> None:
    writer = HtmlWriter(WriterOptions())
    text = b"".join([*writer.begin([Column("a")]), *writer.end(Summary(0, True))]).decode()
    assert "http:" not in text and "https:" not in text and " src=" not in text and "@import" not in text
    assert os.linesep in text
