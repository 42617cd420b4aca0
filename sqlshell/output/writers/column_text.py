"""A column of a batch on its way into a table: safe texts, their widths, which of them have several lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from sqlshell.output.text.cells import cells, even, hostile, lines_of, printable, told_from_null

Align = Literal["left", "right"]


class Cells(Struct, frozen=True):
    """Printable texts, one a row; `even` when each character takes one cell; `tall` numbers those with line breaks."""

    texts: Sequence[str]
    even: bool
    tall: Sequence[int] = ()

    @property
    def width(self) -> int:
        """The cells of the widest line."""
        if self.tall:
            return max(cells(line) for text in self.texts for line in lines_of(text))
        return max(map(len if self.even else cells, self.texts), default=0)

    def justified(self, width: int, align: Align) -> list[str]:
        """The texts padded to `width` cells; those that are wider stay whole."""
        if not self.even:
            return [justify(text, width, align) for text in self.texts]
        if align == "left":
            return [text.ljust(width) for text in self.texts]
        return [text.rjust(width) for text in self.texts]


def prepare(values: Sequence[str | None], null: str) -> Cells:
    """The values of one column as they are drawn; `null` is printable and stands for None."""
    present = [value for value in values if value is not None] if None in values else values
    joined = "".join(present)  # type: ignore[arg-type]
    if null and null in joined:
        values = [value if value is None else told_from_null(value, null) for value in values]
    texts: Sequence[str]
    if present is values:
        texts = values  # type: ignore[assignment]
    else:
        texts = [null if value is None else value for value in values]
    level = even(joined) and even(null)
    if level or not hostile(joined):
        return Cells(texts, level)
    texts = [printable(text, "\n") for text in texts]
    tall = [number for number, text in enumerate(texts) if "\n" in text] if "\n" in joined else []
    return Cells(texts, not tall and even("".join(texts)), tall)


def justify(text: str, width: int, align: Align) -> str:
    """One line padded to `width` cells."""
    pad = " " * (width - cells(text))
    return text + pad if align == "left" else pad + text
