"""Converts the JSON bytes of a response to CSV directly, for rows that need no special treatment.

The rows of a response are `["1","abc",null],["2",…]`. What remains of them without the characters of their values is
the same for every row whose values contain no quotes, commas, brackets, backslashes and control characters: comparing
it finds the other rows, which are decoded one by one. Replacing what separates the values of the rest gives their CSV
lines. Any text that is not written in exactly this form is left to the general writer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from sqlshell.result import Body

HEAD = b'"data":[['
TAIL = b"]]}"
CARE, NULL, EMPTY = b"\x01", b"\x02", b"\x03"
"""Placeholders for a row that needs special treatment, for NULL and for an empty value."""

BETWEEN = b"],["
_VALUES = bytes(set(range(256)) - set(b'",[]\\') - set(range(32)) | set(CARE + NULL + EMPTY))
"""The bytes that do not belong to the form of a row."""

_ROW = msgspec.json.Decoder(list[str | None])

Row = Sequence[str | None]


def csv_from_json(body: Body, width: int, count: int, line: Callable[[Row], str]) -> bytes | None:
    """The CSV lines of the rows in `body`, or None if it is not written in the expected form.

    `width` is the number of columns, at least two; `count` the number of rows, at least one; `line` returns the CSV
    line of a row that needs special treatment, without its line end.
    """
    start = body.find(HEAD)
    if start < 0 or not body.endswith(TAIL):
        return None
    data = bytes(body[start + len(HEAD) : -len(TAIL)])
    if CARE in data or NULL in data or EMPTY in data or not _is_text(data):
        return None
    marked = data
    if b"null" in data:
        marked = marked.replace(b",null", b',"' + NULL + b'"').replace(b"[null", b'["' + NULL + b'"')
        if marked.startswith(b"null"):
            marked = b'"' + NULL + b'"' + marked[4:]
    if b'""' in marked:
        marked = marked.replace(b'""', b'"' + EMPTY + b'"')
    form = b'""' + b',""' * (width - 1)
    made: list[bytes] = []
    forms = marked.translate(None, _VALUES)
    if forms != (form + BETWEEN) * (count - 1) + form:
        replaced = _replaced(marked, data, forms.split(BETWEEN), form, count, line)
        if replaced is None:
            return None
        marked, made = replaced
    joined = marked.replace(b'","', b",")
    lines = joined.replace(b'"],["', b"\n")
    # Both lengths tell how many separators were replaced: blanks between values and bare numbers change them.
    between = 2 * (count - len(made)) * (width - 1)
    if len(marked) - len(joined) != between or len(joined) - len(lines) != 4 * (count - 1):
        return None
    if not (lines.startswith(b'"') and lines.endswith(b'"') and len(lines) > 1):
        return None
    bare = lines[1:-1].replace(NULL, b"").replace(EMPTY, b'""') + b"\n"
    if not made:
        return bare
    pieces = bare.split(CARE)
    return b"".join([part for pair in zip(pieces, [*made, b""], strict=True) for part in pair])


def _replaced(
    marked: bytes, data: bytes, forms: Sequence[bytes], form: bytes, count: int, line: Callable[[Row], str]
) -> tuple[bytes, list[bytes]] | None:
    """The rows with CARE in place of those of another form, and the CSV lines of these; None if they are not rows of
    the same width, or cannot be told apart."""
    rows = marked.split(BETWEEN)
    given = rows if marked is data else data.split(BETWEEN)
    if not len(rows) == len(given) == len(forms) == count:
        return None
    width = form.count(b",") + 1
    made: list[bytes] = []
    care = b'"' + CARE + b'"'
    for number, found in enumerate(forms):
        if found == form:
            continue
        try:
            values = _ROW.decode(b"[" + given[number] + b"]")
        except (msgspec.DecodeError, UnicodeError):
            return None
        if len(values) != width:
            return None
        made.append(line(values).encode("utf-8", "surrogatepass"))
        rows[number] = care
    return BETWEEN.join(rows), made


def _is_text(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
