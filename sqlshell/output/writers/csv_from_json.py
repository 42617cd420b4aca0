"""Converts the JSON bytes of a response to CSV directly, for rows that need no special treatment.

The rows of a response are `["1","abc",null],["2",…]`. Rows with a backslash are cut out and decoded one by one. What
remains of the others without the characters of their values is the same for every row whose values contain no commas,
brackets and control characters: comparing it finds the other rows, which are decoded too. Replacing what separates the
values of the rest gives their CSV lines. Any text that is not written in exactly this form is left to the general
writer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from sqlshell.result import Body

HEAD = b'"data":[['
TAIL = b"]]}"
PLACEHOLDER, EMPTY = b"\x01", b"\x02"
"""Placeholders for the values of a row that needs special treatment, and for an empty value."""

BETWEEN = b"],["
ESCAPE = b"\\"
_VALUES = bytes(set(range(256)) - set(b'",[]\\') - set(range(32)) | set(PLACEHOLDER + EMPTY))
"""The bytes that do not belong to the form of a row."""

_ROW = msgspec.json.Decoder(list[str | None])

Row = Sequence[str | None]
Line = Callable[[Row], str]


def csv_from_json(body: Body, width: int, count: int, line: Line) -> bytes | None:
    """The CSV lines of the rows in `body`, or None if it is not written in the expected form.

    `width` is the number of columns, at least two; `count` the number of rows, at least one; `line` returns the CSV
    line of a row that needs special treatment, without its line end.
    """
    start = body.find(HEAD)
    if start < 0 or not body.endswith(TAIL):
        return None
    with memoryview(body) as view:
        data = bytes(view[start + len(HEAD) : -len(TAIL)])
    if PLACEHOLDER in data or EMPTY in data or not _is_text(data):
        return None
    texts: list[bytes] = []
    if ESCAPE in data:
        cut = _without_escapes(data, width, line)
        if cut is None:
            return None
        data, texts = cut
    # No value contains a quote any more.
    marked = data.replace(b'""', b'"' + EMPTY + b'"') if b'""' in data else data
    if b"null" in marked:
        marked = marked.replace(b",null", b',""').replace(b"[null", b'[""')
        if marked.startswith(b"null"):
            marked = b'""' + marked[4:]
    form = b'""' + b',""' * (width - 1)
    forms = marked.translate(None, _VALUES)
    if forms != (form + BETWEEN) * (count - 1) + form:
        replaced = _replaced(marked, data, forms.split(BETWEEN), form, count, line, texts)
        if replaced is None:
            return None
        marked, texts = replaced
    joined = marked.replace(b'","', b",")
    lines = joined.replace(b'"],["', b"\n")
    # Both lengths show how many separators were replaced: blanks between values and bare numbers change them.
    if len(marked) - len(joined) != 2 * count * (width - 1) or len(joined) - len(lines) != 4 * (count - 1):
        return None
    if not (lines.startswith(b'"') and lines.endswith(b'"') and len(lines) > 1):
        return None
    if EMPTY in lines:
        lines = lines.replace(EMPTY, b'""')
    with memoryview(lines) as whole:
        bare = b"".join((whole[1:-1], b"\n"))
    if not texts:
        return bare
    pieces = bare.split(b",".join([PLACEHOLDER] * width))
    return b"".join([part for pair in zip(pieces, [*texts, b""], strict=True) for part in pair])


def _without_escapes(data: bytes, width: int, line: Line) -> tuple[bytes, list[bytes]] | None:
    """The rows with PLACEHOLDER for each value of those that contain a backslash, and the CSV lines of these; None if
    the end of a row cannot be found.

    A part that is not exactly a row cannot be decoded: the backslash would be outside of its strings, or its last
    string would not end.
    """
    pieces: list[bytes] = []
    texts: list[bytes] = []
    at = 0
    escape = data.find(ESCAPE)
    while escape >= 0:
        before, end = data.rfind(BETWEEN, at, escape), data.find(BETWEEN, escape)
        start, end = (before + len(BETWEEN) if before >= 0 else at), (end if end >= 0 else len(data))
        text = _line(data[start:end], width, line)
        if text is None:
            return None
        pieces.append(data[at:start])
        texts.append(text)
        at = end
        escape = data.find(ESCAPE, end)
    pieces.append(data[at:])
    return _placeholders(width).join(pieces), texts


def _replaced(
    marked: bytes, data: bytes, forms: Sequence[bytes], form: bytes, count: int, line: Line, known: Sequence[bytes]
) -> tuple[bytes, list[bytes]] | None:
    """The rows with PLACEHOLDER for each value of those that have another form, and the CSV lines of these and of those
    that were `known`; None if they are not rows of the same width, or cannot be separated."""
    rows = marked.split(BETWEEN)
    given = rows if marked is data else data.split(BETWEEN)
    if not len(rows) == len(given) == len(forms) == count:
        return None
    width = form.count(b",") + 1
    texts: list[bytes] = []
    placeholders = _placeholders(width)
    lines = iter(known)
    for number, other in enumerate(forms):
        if other == form:
            texts += [next(lines)] if known and rows[number] == placeholders else []
            continue
        text = _line(given[number], width, line)
        if text is None:
            return None
        texts.append(text)
        rows[number] = placeholders
    return BETWEEN.join(rows), texts


def _placeholders(width: int) -> bytes:
    return b",".join([b'"' + PLACEHOLDER + b'"'] * width)


def _line(row: bytes, width: int, line: Line) -> bytes | None:
    """The CSV line of a row; None if it is not one of this width."""
    try:
        values = _ROW.decode(b"[" + row + b"]")
    except (msgspec.DecodeError, UnicodeError):
        return None
    return line(values).encode("utf-8", "surrogatepass") if len(values) == width else None


def _is_text(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
