"""The values of a column prepared for a table: printable text, widths, and which have several lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from sqlshell.output.text.cells import cells, distinct_from_null, is_single_width, is_unsafe, lines_of, printable

Align = Literal["left", "right"]


class ColumnText(Struct, frozen=True):
    """Printable texts, one per row; `even` if each character takes one cell; `multiline` are the numbers of those with
    line breaks.
    """

    texts: Sequence[str]
    even: bool
    multiline: Sequence[int] = ()

    @property
    def width(self) -> int:
        """The width of the widest line in cells."""
        if self.multiline:
            return max(cells(line) for text in self.texts for line in lines_of(text))
        return max(map(len if self.even else cells, self.texts), default=0)

    def justified(self, width: int, align: Align) -> list[str]:
        """The texts padded to `width` cells; wider ones are not changed."""
        if not self.even:
            return [justify(text, width, align) for text in self.texts]
        if align == "left":
            return [text.ljust(width) for text in self.texts]
        return [text.rjust(width) for text in self.texts]


def column_text(values: Sequence[str | None], null: str) -> ColumnText:
    """The values of one column as drawn; `null` is printable and represents None."""
    present = [value for value in values if value is not None] if None in values else values
    joined = "".join(present)  # type: ignore[arg-type]
    if null and null in joined:
        values = [value if value is None else distinct_from_null(value, null) for value in values]
    texts: Sequence[str]
    if present is values:
        texts = values  # type: ignore[assignment]
    else:
        texts = [null if value is None else value for value in values]
    level = is_single_width(joined) and is_single_width(null)
    if level or not is_unsafe(joined):
        return ColumnText(texts, level)
    texts = [printable(text, "\n") for text in texts]
    multiline = [number for number, text in enumerate(texts) if "\n" in text] if "\n" in joined else []
    return ColumnText(texts, not multiline and is_single_width("".join(texts)), multiline)


def justify(text: str, width: int, align: Align) -> str:
    """One line padded to `width` cells."""
    pad = " " * (width - cells(text))
    return text + pad if align == "left" else pad + text
