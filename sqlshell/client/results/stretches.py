"""The stretches of a result file: rows that are turned into text together."""

from __future__ import annotations

import sys
from collections.abc import Iterable

STRETCH_BYTES = 4 << 20
"""The approximate bytes of text of a stretch, which ends with the row group that reaches them."""

MOST_BYTES = 4 * STRETCH_BYTES
"""A stretch ends at once when it has these bytes."""

BLOCK = 64
"""The number of rows that are measured together."""

BLOCKS = 1 << 18
"""The maximum number of blocks of a file, which bounds the memory for measuring."""

USUAL_BYTES = 8
"""The bytes of text of a value that is a number."""


def block_of(rows: int) -> int:
    """The number of rows of a block in a file of `rows` rows."""
    return max(BLOCK, rows // BLOCKS)


def stretches(
    groups: Iterable[tuple[int, int]], blocks: Iterable[int], block: int, columns: int, skip: int
) -> list[tuple[int, int]]:
    """The first row and the number of rows of each stretch, without the first `skip` rows.

    `groups` are the row groups, each with its rows and the bytes of its pages without compression, in which a repeated
    string counts once. `blocks` are the bytes of the strings in each `block` rows, nothing if no string is repeated.
    """
    sizes = iter(blocks)
    ranges: list[tuple[int, int]] = []
    start, size = skip, 0.0
    at = group_end = 0
    block_end, dense = 0, 0.0
    for rows, bytes_ in groups:
        group_end += rows
        while at < group_end:
            if at == block_end:
                measured = next(sizes, 0)
                dense = measured / block
                block_end = at + block if measured else sys.maxsize
            each = USUAL_BYTES * columns + bytes_ / rows + dense
            to = min(group_end, block_end, at + max(1, int(MOST_BYTES / each)))
            size += max(0, to - max(at, start)) * each
            at = to
            if at > start and size >= (STRETCH_BYTES if at == group_end else MOST_BYTES):
                ranges.append((start, at - start))
                start, size = at, 0.0
    return [*ranges, (start, at - start)] if at > start else ranges
