"""Texts for people: numbers, times and sizes, similar names for an unknown one, and what replaces a secret."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

MASK: Final = "***"
"""What replaces a secret."""


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


def byte_size(size: int) -> str:
    """A number of bytes for people: `512 bytes`, `1.2 kB`, `3.4 MB`."""
    if size < 1000:
        return format_count(size, "byte")
    for unit, bytes_ in (("GB", 10**9), ("MB", 10**6)):
        if size >= bytes_:
            return f"{size / bytes_:.1f} {unit}"
    return f"{size / 1000:.1f} kB"


def short_id(statement_id: str) -> str:
    """The beginning of a statement's ID, which tells it from others and which commands accept."""
    return statement_id.partition("-")[0] or statement_id


def format_count(number: float, noun: str, plural: str = "") -> str:
    """A number with its noun: `1 row`, `2,000 rows`. `plural` is a plural that does not only add an s."""
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {noun if number == 1 else plural or f'{noun}s'}"


def was_or_were(number: int) -> str:
    """The verb after such a number: `was` or `were`."""
    return "was" if number == 1 else "were"


def any_of(words: Sequence[str]) -> str:
    """Several words as a choice: `a, b or c`."""
    return f"{', '.join(words[:-1])} or {words[-1]}"


def how_to_install(packages: str) -> str:
    """The help where packages are missing, for an installation with pip and for one with pipx.

    It does not name sqlshell with an extra, because sqlshell on PyPI is another project.
    """
    return f"run: pip install {packages} (with pipx: pipx inject sqlshell {packages})"


def not_run(*counts: tuple[int, str], before: str = "") -> str:
    """The message about items that were not run, such as `2 statements and 1 command were not run`; "" for none."""
    left = [(number, noun) for number, noun in counts if number]
    named = " and ".join(format_count(number, noun) for number, noun in left)
    return f"{before}{named} {was_or_were(sum(number for number, _ in left))} not run" if left else ""


def one_line(text: str, most: int) -> str:
    """The words of a text on one line, truncated with … to `most` characters."""
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most and len(text) <= most * 4 else f"{line[: most - 1]}…"


def elapsed_time(seconds: float) -> str:
    """A time that is still passing: `1.2 s`, `2 min 03 s`. Its width seldom changes."""
    return f"{seconds:.1f} s" if seconds < 60 else duration(seconds)


def short_number(number: float) -> str:
    """A number with three digits: `950`, `12.3k`, `4.56M`."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            scaled = number / size
            return f"{scaled:.{2 if scaled < 10 else 1 if scaled < 100 else 0}f}{unit}"
    return f"{number:.0f}"


def nearest(word: str, known: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """At most `most` of the known names, the most similar first; upper and lower case count as equal.

    `cutoff` is the least similarity, from 0 to 1.
    """
    import difflib

    names: dict[str, str] = {}
    for name in known:
        names.setdefault(name.lower(), name)
    return [names[low] for low in difflib.get_close_matches(word.lower(), names, most, cutoff)]


def did_you_mean(
    word: str,
    known: Iterable[str],
    otherwise: str = "",
    *,
    most: int = 1,
    cutoff: float = 0.6,
    shown: Callable[[str], str] = '"{}"'.format,
) -> str:
    """A hint such as `did you mean "orders" or "order_items"?`; `otherwise` if no known name is similar."""
    names = nearest(word, known, most, cutoff)
    return f"did you mean {' or '.join(map(shown, names))}?" if names else otherwise
