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


def amount(size: int) -> str:
    """A number of bytes for people: `512 bytes`, `1.2 kB`, `3.4 MB`."""
    if size < 1000:
        return f"{size} byte{'' if size == 1 else 's'}"
    for unit, bytes_ in (("GB", 10**9), ("MB", 10**6)):
        if size >= bytes_:
            return f"{size / bytes_:.1f} {unit}"
    return f"{size / 1000:.1f} kB"


def one_line(text: str, most: int) -> str:
    """A text's words on one line, shortened with … where it is longer than `most` characters."""
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most and len(text) <= most * 4 else f"{line[: most - 1]}…"
