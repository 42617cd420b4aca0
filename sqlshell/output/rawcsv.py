"""CSV straight from the text of an answer, for the rows that need no care.

An answer's rows are `["1","abc",null],["2",…]`. In a row without backslashes no value holds a quote or a control
character, and in one with no more commas than columns no value holds a comma: taking the quotes away leaves its
CSV line. The other rows are decoded one by one. What is not written in just this way is left to the decoding path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

HEAD = b'"data":[['
TAIL = b"]]}"
CARE = "\x01"
"""Stands for a row that needs care; it cannot be part of the others, which have no control characters."""

_ROW = msgspec.json.Decoder(list[str | None])

Row = Sequence[str | None]


def raw_csv(body: bytes, width: int, count: int, line: Callable[[Row], str]) -> str | None:
    """The CSV lines of the rows in `body`, or None where it is not written as expected.

    `width` is the number of columns, two or more; `count` that of the rows, one or more; `line` makes the CSV line of a
    row that needs care, without its line end.
    """
    start = body.find(HEAD)
    if start < 0 or not body.endswith(TAIL):
        return None
    try:
        text = body[start + len(HEAD) : -len(TAIL)].decode()
    except UnicodeDecodeError:
        return None
    rows = text.split("],[")
    if len(rows) != count:
        return None
    commas = width - 1
    careful = [number for number, row in enumerate(rows) if "\\" in row or row.count(",") != commas]
    lines: list[str] = []
    for number in careful:
        try:
            values = _ROW.decode(f"[{rows[number]}]")
        except (msgspec.DecodeError, UnicodeError):
            return None
        if len(values) != width:
            return None
        lines.append(line(values))
        rows[number] = CARE
    text = "\n".join(rows)
    without = text.replace(",null", ",").replace("\nnull", "\n")
    without = without.removeprefix("null")
    nulls = (len(text) - len(without)) // 4
    if not _as_expected(without, (count - len(careful)) * width - nulls):
        return None
    bare = _unquoted(without)
    if not careful:
        return bare + "\n"
    pieces = bare.split(CARE)
    whole = [pieces[0]]
    for made, piece in zip(lines, pieces[1:], strict=True):
        whole += (made, piece)
    return "".join(whole) + "\n"


def _unquoted(text: str) -> str:
    """Without its quotes, but for those of empty values."""
    if '""' in text:
        text = text.replace('""', "\0")
        return text.encode().translate(None, b'"').decode().replace("\0", '""')
    return text.encode().translate(None, b'"').decode()


def _as_expected(text: str, values: int) -> bool:
    """Whether `text` has that many quoted values, each with a separator or an end of the text at both sides.

    What is neither (blanks, bare numbers, values too few) changes one of the counts.
    """
    return (
        text.count('"') == 2 * values
        and text.count(',"') + text.count('\n"') + text.startswith('"') == values
        and text.count('",') + text.count('"\n') + text.endswith('"') == values
    )
