"""Generates statements whose effects are hidden by their syntax."""

from __future__ import annotations

import duckdb
from hypothesis import strategies as st

from tests.cases import lines

READING = lines("hidden", "reading")
WRITING = lines("hidden", "writing")
MAKING = lines("hidden", "making")
REACHING = lines("hidden", "reaching")
AROUND = lines("hidden", "around")
"""What may stand around any statement."""

AROUND_ROWS = lines("hidden", "around-rows")
"""What may stand around a statement that gives rows."""

GIVING = ("select", "with", "from", "values", "describe", "summarize", "show", "pivot", "(")
BLANKS = [
    " ",
    "  ",
    "\n",
    "\t",
    "\r\n",
    "/**/",
    "/* x */",
    "/* /* y */ */",
    "-- z\n",
    "\u200b",
    "\u2060",
    "\ufeff",
    "\u00a0",
]

# A strategy takes longer to make than to draw from.
_CHANCE, _WAYS, _DIGITS = st.integers(0, 3), st.integers(0, 4), st.integers(0, 9)
_STATEMENTS = st.sampled_from(READING + WRITING * 2 + MAKING + REACHING)
_DEPTHS = st.sampled_from([0, 0, 1, 1, 1, 2, 2, 3])
_AROUND, _AROUND_ROWS = st.sampled_from(AROUND), st.sampled_from(AROUND + AROUND_ROWS)
_ENDINGS = st.sampled_from(["", "", ";", " -- end", "/* end */", "\u200b"])
_blanks = st.one_of(
    *[st.just(" ")] * 3,
    *[st.lists(st.sampled_from(BLANKS), min_size=1, max_size=3).map("".join)] * 6,
    st.characters(max_codepoint=0xFFFF).filter(lambda sign: not sign.isalnum()),
)


def _pieces(sql: str) -> list[tuple[str, str]]:
    """The words of a statement, each with the name of its kind."""
    encoded = sql.encode()
    found = duckdb.tokenize(sql)
    ends = [start for start, _ in found[1:]] + [len(encoded)]
    return [
        (encoded[start:end].decode("utf-8", "replace").strip(), kind.name)
        for (start, kind), end in zip(found, ends, strict=True)
    ]


@st.composite
def _written(draw: st.DrawFn, sql: str) -> str:
    """A statement with other blanks, comments, quotes and case."""
    pieces = _pieces(sql)
    if len(pieces) > 60 or draw(_CHANCE) == 0:
        return sql
    hidden = draw(st.integers(0, len(pieces)))
    parts = []
    for number, (piece, kind) in enumerate(pieces):
        text = piece
        if number == hidden:
            match draw(_WAYS):
                case 0:
                    text = f'"{piece}"' if kind == "identifier" else piece
                case 1:
                    text = f"$${piece[1:-1]}$$" if kind.startswith("string") and piece.startswith("'") else piece
                case 2:
                    text = f"e{piece}" if piece.startswith("'") else piece
                case 3:
                    text = piece.upper()
                case 4:
                    text = piece.swapcase()
        blank = draw(_blanks) if number in {hidden, hidden + 1} else " "
        parts.append(blank + text)
    return "".join(parts) + draw(_ENDINGS)


@st.composite
def statements(draw: st.DrawFn) -> str:
    """SQL with {own} and {out} in place of the folders."""
    sql = draw(_STATEMENTS)
    for _ in range(draw(_DEPTHS)):
        rows = sql.startswith(GIVING) or draw(_DIGITS) == 0
        around = draw(_AROUND_ROWS if rows else _AROUND).replace("{{out}}", "<out>")
        sql = around.replace("{}", sql).replace("<out>", "{out}")
    return draw(_written(sql))
