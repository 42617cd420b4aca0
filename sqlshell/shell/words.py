"""Words for people."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """A time for people: `12 ms`, `1.234 s`, `2 min 03 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.3f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def one_line(text: str, most: int) -> str:
    """A text's words on one line, shortened with … where it is longer than `most` characters."""
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most and len(text) <= most * 4 else f"{line[: most - 1]}…"
