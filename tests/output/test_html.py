"""The page is well-formed, allows no script but its own, and its rows are JSON. What a browser makes of it is tested
with the conformance tests."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import re

import pytest

from sqlshell.output.writer import WriterOptions
from sqlshell.output.writers.html import HtmlWriter
from sqlshell.result import Column, Rows
from tests.output.writing import drawn

COLUMNS = [Column("id", "BIGINT"), Column("a\x1b<b>", "STRUCT<a INTEGER>")]


def html_of(columns: list[Column], *batches: Rows, **options: object) -> str:
    return drawn(HtmlWriter(WriterOptions(**options)), columns, *batches)  # type: ignore[arg-type]


class Page(html.parser.HTMLParser):
    """The elements of a page, with the text of styles and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: dict[str, list[str]] = {"style": [], "program": [], "application/json": []}
        self.open: list[str] = []
        self.tags: list[str] = []
        self.metas: list[dict[str, str | None]] = []
        self.kind = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "meta":
            self.metas.append(dict(attrs))
        elif tag != "input":
            self.open.append(tag)
        if tag in {"script", "style"}:
            self.kind = "style" if tag == "style" else dict(attrs).get("type") or "program"
            self.texts[self.kind].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.kind = ""

    def handle_data(self, data: str) -> None:
        if self.kind:
            self.texts[self.kind][-1] += data

    @property
    def rows(self) -> list[list[object]]:
        return [row for text in self.texts["application/json"][1:] for row in json.loads(text)]


def hashed(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_a_page() -> None:
    page = Page(html_of(COLUMNS, [["1", None]], [["-2", "a\tb\n\x1b[31m"], [None, "é"]], []))
    assert page.open == []
    assert page.tags.count("main") == page.tags.count("noscript") == 1
    assert json.loads(page.texts["application/json"][0]) == [
        {"name": "id", "type": "BIGINT", "number": True, "null": "NULL"},
        {"name": "a\\x1b<b>", "type": "STRUCT<a INTEGER>", "number": False, "null": "NULL"},
    ]
    assert page.rows == [["1", None], ["-2", "a\tb\n\\x1b[31m"], [None, "é"]]


@pytest.mark.parametrize("text", ["</script><script>alert(1)</script>", "<!--<script>", "&lt;", "]]>", "<"])
def test_no_value_ends_its_script(text: str) -> None:
    data = html_of([Column(text, text)], [[text]], null=text)
    page = Page(data)
    assert page.open == []
    assert page.rows == [[text]]
    assert json.loads(page.texts["application/json"][0]) == [
        {"name": text, "type": text, "number": False, "null": text}
    ]
    assert re.search("[<>&]", "".join(page.texts["application/json"])) is None


def test_the_policy_allows_the_pages_style_and_script_alone() -> None:
    page = Page(html_of(COLUMNS, [["1", "2"]]))
    (style,), (script,) = page.texts["style"], page.texts["program"]
    assert "position: sticky" in style
    assert script.startswith('"use strict";')
    assert page.metas == [
        {"charset": "utf-8"},
        {
            "http-equiv": "Content-Security-Policy",
            "content": f"default-src 'none'; style-src '{hashed(style)}'; script-src '{hashed(script)}';"
            " base-uri 'none'; form-action 'none'",
        },
        {"name": "viewport", "content": "width=device-width"},
    ]


def test_a_chosen_null_and_an_empty_one() -> None:
    for null in ("-", ""):
        page = Page(html_of(COLUMNS, null=null))
        assert {column["null"] for column in json.loads(page.texts["application/json"][0])} == {null}
        assert page.rows == []


def test_a_statement_without_columns_gives_nothing() -> None:
    assert html_of([], []) == ""
    assert not HtmlWriter(WriterOptions()).buffering
