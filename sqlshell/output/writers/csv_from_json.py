"""CSV straight from the text of an answer, for the rows that need no care.

An answer's rows are `["1","abc",null],["2",…]`. In a row without backslashes no value holds a quote or a control
character, and in one with no more commas than columns no value holds a comma: taking the quotes away leaves its
CSV line. The other rows are decoded one by one. What is not written in just this way is left to the decoding path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import methodcaller

import msgspec

from sqlshell.result import Body

HEAD = b'"data":[['
TAIL = b"]]}"
CARE = '"\x01"'
NULL = '"\x02"'
"""Stand for a row that needs care and for NULL; the other rows have no control characters."""

_COMMAS = methodcaller("count", ",")
_ROW = msgspec.json.Decoder(list[str | None])

Row = Sequence[str | None]


def csv_from_json(body: Body, width: int, count: int, line: Callable[[Row], str]) -> str | None:
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
    made: dict[int, str] = {}
    if "\\" in text or set(map(_COMMAS, rows)) != {commas}:
        careful = [number for number, row in enumerate(rows) if "\\" in row or row.count(",") != commas]
        replaced = _replaced(rows, careful, width, line)
        if replaced is None:
            return None
        made = replaced
    text = "\n".join(rows)
    text = text.replace(",null", f",{NULL}").replace("\nnull", f"\n{NULL}")
    if text.startswith("null"):
        text = NULL + text[4:]
    if not _as_expected(text, (count - len(made)) * width + len(made), count, len(made)):
        return None
    bare = _unquoted(text)
    if not made:
        return bare + "\n"
    whole = bare.split(CARE[1])
    lines = [made[number] for number in sorted(made)]
    return "".join([part for pair in zip(whole, [*lines, "\n"], strict=True) for part in pair])


def _replaced(rows: list[str], numbers: Sequence[int], width: int, line: Callable[[Row], str]) -> dict[int, str] | None:
    """Put CARE in the place of these rows; their CSV lines by number, or None where one is no row of that width."""
    made: dict[int, str] = {}
    for number in numbers:
        try:
            values = _ROW.decode(f"[{rows[number]}]")
        except (msgspec.DecodeError, UnicodeError):
            return None
        if len(values) != width:
            return None
        made[number] = line(values)
        rows[number] = CARE
    return made


def _unquoted(text: str) -> str:
    """Without quotes, but for those of empty values, and without what stands for NULL."""
    if '""' in text:
        return text.replace('""', "\0").encode().translate(None, b'"\2').decode().replace("\0", '""')
    return text.encode().translate(None, b'"\2').decode()


def _as_expected(text: str, values: int, rows: int, careful: int) -> bool:
    """Whether `text` is that many quoted values with one separator between each two, and nothing else.

    Blanks, bare numbers and values too few all change one of the counts.
    """
    return (
        text.count('"') == 2 * values
        and text.count('","') + text.count('"\n"') == values - 1
        and text[0] == text[-1] == '"'
        and text.count(CARE) == careful
        and text.count("\n") == rows - 1
    )
