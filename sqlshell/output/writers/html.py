"""One self-contained HTML page: the rows can be sorted, searched and scrolled in a browser.

The rows are JSON in the page, and its script, the only one that the page's policy allows, puts them into cells as text.
Only the rows in view are elements, so that large results scroll well.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from sqlshell.output.text.cells import printable
from sqlshell.output.writer import Summary, Writer, WriterOptions, encode
from sqlshell.output.writers.table import NULL
from sqlshell.result import Batch, Column

_ESCAPES = {b"<": b"\\u003c", b">": b"\\u003e", b"&": b"\\u0026"}


class HtmlWriter(Writer):
    """A page per result; nothing is held back, but a browser shows nothing before the end."""

    def __init__(self, options: WriterOptions) -> None:
        self._null = NULL if options.null is None else options.null
        self._columns = False

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._columns = bool(columns)
        if not columns:
            return []
        described = [
            {
                "name": printable(column.name),
                "type": printable(column.exact_type),
                "number": column.kind.numeric,
                "null": printable(self._null),
            }
            for column in columns
        ]
        style, script = _part("page.css"), _part("page.js")
        return [encode(_head(style, script)), b"<style>", encode(style), b"</style>\n", _BODY, _data(described)]

    def write(self, batch: Batch) -> Iterable[bytes]:
        if not batch.rows or not batch.width:
            return []
        return [_data([[None if value is None else printable(value, "\n\t") for value in row] for row in batch.rows])]

    def end(self, summary: Summary) -> Iterable[bytes]:
        if not self._columns:
            return []
        return [b"<script>", encode(_part("page.js")), b"</script>\n</body>\n</html>\n"]


_BODY = b"""</head>
<body>
<header><input type="search" placeholder="Search" aria-label="Search" autocomplete="off"><output>
</output></header>
<main tabindex="0"><table><thead><tr></tr></thead><tbody></tbody></table></main>
<noscript>This page shows its rows with JavaScript.</noscript>
"""


def _head(style: str, script: str) -> str:
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}; base-uri 'none'; form-action 'none'\">\n"
        '<meta name="viewport" content="width=device-width">\n<title>Result</title>\n'
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _data(value: object) -> bytes:
    text = msgspec.json.encode(value)
    for char, escaped in _ESCAPES.items():
        text = text.replace(char, escaped)
    return b'<script type="application/json">' + text + b"</script>\n"


def _part(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
