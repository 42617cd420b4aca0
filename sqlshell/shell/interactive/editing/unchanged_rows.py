"""Leaves rows of the screen that are as before out of prompt_toolkit's comparison of two screens.

prompt_toolkit looks at each cell of both screens for each key, some of them twice. Here two rows are compared as a
whole, which takes a tenth of the time, because cells of the same look are one object. There is no public function for
this: if a version of prompt_toolkit has another one, it compares alone, with the same outcome.
"""

from __future__ import annotations

import functools
from inspect import signature
from typing import Any, Final

from prompt_toolkit import renderer
from prompt_toolkit.layout.screen import Screen

COMPARE: Final = "_output_screen_diff"
"""The private function that writes what differs between two screens."""

KNOWN: Final = (
    *("app", "output", "screen", "current_pos", "color_depth", "previous_screen", "last_style", "is_done"),
    *("full_screen", "attrs_for_style_string", "style_string_has_style", "size", "previous_width"),
)
"""Its parameters in all versions that are known here."""


def skip_unchanged_rows() -> None:
    """Do so in all applications of this process from now on."""
    compare = getattr(renderer, COMPARE, None)
    if compare is None or hasattr(compare, "__wrapped__") or tuple(signature(compare).parameters) != KNOWN:
        return

    @functools.wraps(compare)
    def difference(*given: Any, **named: Any) -> Any:
        values = dict(zip(KNOWN, given, strict=False)) | named
        screen, before = values["screen"], values["previous_screen"]
        if before is None or values["is_done"] or values["previous_width"] != values["size"].columns:
            return compare(*given, **named)
        rows, former, empty = screen.data_buffer, before.data_buffer, Screen().data_buffer[0]
        same = {y: row for y, row in rows.items() if y in former and row == former[y]}
        try:
            for y in same:
                rows[y] = former[y] = empty
            return compare(*given, **named)
        finally:
            rows.update(same)

    setattr(renderer, COMPARE, difference)
